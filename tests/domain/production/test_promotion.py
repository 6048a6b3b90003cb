"""Which promotion a flag stands for."""

from __future__ import annotations

from typing import Any

import pytest

from compilegate.domain.flag import OFF, Flag
from compilegate.domain.production.promotion import standing_promotion
from compilegate.domain.records.flags import FlagVersion

ON = Flag(True, "probation", "compile", {"compiler": "torch_compile"}, "d1")
KEPT = Flag(True, "permanent", "compile", {"compiler": "torch_compile"}, "d2")
OTHER = Flag(True, "probation", "fp8", {"precision": "fp8"}, "d3")


def entry(at: int, flag: Flag, by: str = "evaluate", trial: str | None = "abcd1234") -> Any:
    details = {"trial": trial} if trial else {}
    return FlagVersion(at, at, f"c{at}", by, "a", "r", flag.to_json(), details=details)


PROMOTED = entry(1, ON)


@pytest.mark.parametrize(
    "history",
    [
        [],
        [PROMOTED, entry(2, OFF, "human:ann", None)],
        [PROMOTED, entry(2, Flag(False, "reverted", "compile"), "train")],
        [entry(1, ON, "human:ann", None)],
        [PROMOTED, entry(2, OTHER, "human:ann", None)],
    ],
    ids=["never on", "off by hand", "reverted", "a person's own", "another by hand"],
)
def test_what_is_off_or_no_trial_proved_is_no_promotion(history: list[Any]) -> None:
    assert None is standing_promotion(history)


def test_a_promotion_is_that_of_its_trial() -> None:
    found = standing_promotion([PROMOTED])

    assert found is not None
    assert ("abcd1234", "compile", 1, 1, 1) == (
        found.trial, found.candidate, found.at, found.since, found.version,
    )  # fmt: skip


def test_what_the_watch_made_of_it_keeps_the_day_it_was_promoted() -> None:
    found = standing_promotion([PROMOTED, entry(5, KEPT, "train"), entry(7, KEPT, "train")])

    assert found is not None
    assert (1, 5, 3) == (found.at, found.since, found.version)


def test_a_later_trial_is_what_the_flag_stands_for() -> None:
    found = standing_promotion([PROMOTED, entry(4, OTHER, trial="newer123")])

    assert found is not None
    assert ("newer123", "fp8", 4) == (found.trial, found.candidate, found.at)


def test_a_person_who_turns_on_what_a_trial_planned_begins_a_promotion_of_their_own() -> None:
    off_and_on = [PROMOTED, entry(2, OFF, "human:ann", None), entry(3, ON, "human:ann")]
    found = standing_promotion(off_and_on)

    assert found is not None
    assert ("abcd1234", 3, 3, True) == (found.trial, found.at, found.since, found.by_human)
