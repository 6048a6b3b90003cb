"""What happens now, and why."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from compilegate.domain.decision import EXIT_CODES, Decision, FlagAction
from compilegate.explain.item import Item, Section, Teller, sentence

FLAG_WORDS = {
    FlagAction.ENABLE: "the flag is on: production's runs use the candidate",
    FlagAction.DISABLE: "the flag is off: production's runs use the baseline",
    FlagAction.KEEP: "the flag is left as it was: nothing was proven that would change it",
}
TELL = Teller(Section.NEXT)


def next_items(decision: Decision) -> Iterator[Item]:
    """The flag, the exit code and the step that would settle what is open."""
    action = decision.flag_action
    yield TELL.answer(str(decision.verdict), FLAG_WORDS[action], of="decision.FLAG_ACTIONS")
    step = decision.next
    if step is not None:
        if step["stage"] == "speed":
            size, unit = step["blocks"], "blocks"
        else:
            size, unit = len(step["runs"]), "runs"
        yield TELL(
            "next step", size, sentence(str(step.get("why") or "")), unit=unit,
            inputs={"stage": step["stage"], "arms": _arms(step)}, of=_place(step["stage"]),
        )  # fmt: skip
        if "usd" in step:
            usd = step["usd"]
            yield TELL(
                "its cost", usd,
                "Unknown: a price or a run's time is missing." if usd is None
                else "Nothing: production makes these runs anyway." if not usd
                else "What it may cost at most, by plan or by the runs seen so far.",
                unit="USD", of=_place(step["stage"]),
            )  # fmt: skip
    yield TELL(
        "exit code", EXIT_CODES[decision.verdict], f"What a script sees of {decision.verdict}.",
        of="decision.EXIT_CODES",
    )  # fmt: skip


def _place(stage: str) -> str:
    return (
        "judging.probation.judge_probation"
        if stage == "probation"
        else f"judging.next_step.next_{stage}"
    )


def _arms(step: Mapping[str, Any]) -> str:
    return ", ".join(step.get("arms") or [run["arm"] for run in step["runs"]])
