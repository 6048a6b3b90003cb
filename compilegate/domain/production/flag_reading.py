"""The flag as a run that begins may follow it: parameter and ledger have to agree.

Whatever is in doubt, the run trains the baseline and says why.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from compilegate.domain.errors import InvalidInputError
from compilegate.domain.flag import OFF, Flag, parse_flag
from compilegate.domain.flag_change import Versions, agrees, flag_of
from compilegate.domain.production.promotion import Promotion, standing_promotion
from compilegate.domain.reasons import Reason

STALE, UNREADABLE, MALFORMED, DIFFERS = "stale", "unreadable", "malformed", "differs"


@dataclass(frozen=True)
class FlagParameter:
    """The parameter as it was read; ``text`` is None where it is absent, ``error`` says why not."""

    name: str
    text: str | None = None
    error: str | None = None


@dataclass(frozen=True)
class FlagReading:
    """What a run may follow; ``problem`` says why not the flag, ``explanation`` in words.

    ``text`` is the parameter's value. ``repair``: the parameter does not hold what the ledger says.
    """

    flag: Flag = OFF
    text: str | None = None
    problem: str | None = None
    explanation: str | None = None
    repair: bool = False


def read_flag(parameter: FlagParameter, versions: Versions) -> FlagReading:
    """The flag as parameter and ledger have it.

    Where the two differ the parameter is to be given the ledger's value. If either is on, this
    run follows neither: off may be meant, and on is not proven.
    """
    name, text = parameter.name, parameter.text
    if parameter.error is not None:
        return FlagReading(
            problem=UNREADABLE, explanation=f"{name} cannot be read: {parameter.error}"
        )
    try:
        flag = parse_flag(text)
    except InvalidInputError as error:
        explanation = f"{name} is malformed: {error}"
        return FlagReading(text=text, problem=MALFORMED, explanation=explanation, repair=True)
    if agrees(text, versions):
        return FlagReading(flag, text)
    recorded = flag_of(versions)
    if not recorded.enabled and not flag.enabled:
        return FlagReading(recorded, text, repair=True)
    values = f"{name} said {_shown(flag)} and the ledger {_shown(recorded)}"
    return FlagReading(
        recorded if flag.enabled else flag,
        text,
        problem=DIFFERS,
        explanation=f"{values}: the ledger's value was written again",
        repair=True,
    )


def promotion_to_compare(
    reading: FlagReading, versions: Versions, *, keep_stale: bool
) -> Promotion | None:
    """The promotion that the run would follow, None where nothing needs to be compared.

    What a person has turned on is followed, whatever it was measured on, and so is a stale
    promotion where the team's policy keeps it.
    """
    if reading.problem is not None or not reading.flag.enabled or keep_stale:
        return None
    promotion = standing_promotion(versions)
    if promotion is None or promotion.by_human or promotion.flag != reading.flag:
        return None
    return promotion


def without_stale(
    reading: FlagReading, promotion: Promotion, changed: Sequence[Reason]
) -> FlagReading:
    """The flag off where what the run would train is unproven.

    The flag itself is changed after the run (watch_production.py), which also reports it.
    """
    if not changed:
        return reading
    explanation = "; ".join(reason.message for reason in changed)
    off = Flag(enabled=False, state=STALE, candidate=promotion.candidate)
    return replace(reading, flag=off, explanation=explanation)


def _shown(flag: Flag) -> str:
    return f"on ({flag.candidate})" if flag.enabled else "off"
