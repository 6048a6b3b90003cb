"""After a revert no trial is begun for a while, unless a person says so."""

from __future__ import annotations

from typing import Any

import pytest

from compilegate.domain.flag import OFF
from compilegate.domain.production.promotion import DAY_SECONDS, cooling_down
from compilegate.domain.records.flags import FlagVersion
from tests.domain.production.run_builder import BEGIN


def said(by: str = "train", action: str = "revert", at: int = BEGIN) -> FlagVersion:
    return FlagVersion(1, at, "c", by, action, "accuracy fell by 0.04.", OFF.to_json())


def asked(history: list[FlagVersion], *, days: float = 14, after: float = 1) -> Any:
    now = BEGIN + round(after * DAY_SECONDS)
    return cooling_down(history, days, now=now, workload="bert-docs")


def test_a_revert_is_followed_by_a_wait_that_says_until_when_and_how_to_end_it() -> None:
    reason = asked([said()])

    assert "cooling_down" == reason.code
    for words in (
        "accuracy fell by 0.04);", "before 2026-10-05", "policy.cooldown_days: 14",
    ):  # fmt: skip
        assert words in reason.message
    assert "compilegate flag revert bert-docs --reason" in reason.fix


@pytest.mark.parametrize(
    ("days", "after", "waits"),
    [(14, 13.99, True), (14, 14, False), (0, 0, False), (0.5, 0.4, True)],
)
def test_the_policy_says_how_long(days: float, after: float, *, waits: bool) -> None:
    assert waits is (asked([said()], days=days, after=after) is not None)


@pytest.mark.parametrize(
    "history",
    [
        [],
        [said("evaluate", "disable")],
        [said(), said("human:ann", "revert", BEGIN + 60)],
        [said(), said("human:ann", "set", BEGIN + 60)],
        [said("human:ann", "revert")],
        [said("train", "stale")],
    ],
    ids=["never", "a trial's no", "a person said why", "a person set it", "by hand", "stale"],
)
def test_nothing_else_makes_a_trial_wait(history: list[FlagVersion]) -> None:
    assert None is asked(history)
