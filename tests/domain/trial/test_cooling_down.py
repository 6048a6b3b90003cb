"""How long no trial starts after a revert."""

from __future__ import annotations

import pytest

from compilegate.domain.flag import OFF, Flag
from compilegate.domain.production.history import DAY_SECONDS
from compilegate.domain.records.flags import FlagVersion
from compilegate.domain.trial.plan import cooling_down
from tests.domain.production.run_builder import BEGIN


def promoted(at: int) -> FlagVersion:
    flag = Flag(True, "probation", "compile", {"compiler": "torch_compile"}, "d1")
    return FlagVersion(1, at, "c", "evaluate", "enable", "r", flag.to_json())


def reverted(by: str = "train", action: str = "revert", at: int = BEGIN) -> FlagVersion:
    return FlagVersion(1, at, "c", by, action, "accuracy fell by 0.04.", OFF.to_json())


@pytest.mark.parametrize(
    ("days", "after", "waits"),
    [(14, 13.99, True), (14, 14, False), (0, 0, False), (0.5, 0.4, True)],
)
def test_no_trial_starts_for_some_days_after_a_revert(days, after, *, waits):
    now = BEGIN + round(after * DAY_SECONDS)
    history = [
        promoted(BEGIN - 90 * DAY_SECONDS), reverted(at=BEGIN - 60 * DAY_SECONDS),
        promoted(BEGIN - 30 * DAY_SECONDS), reverted(),
    ]  # fmt: skip
    reason = cooling_down(history, days, now=now, workload="bert-docs")

    assert waits == (reason is not None)
    if reason is not None:
        assert reason.code == "cooling_down"
        assert "(accuracy fell by 0.04);" in reason.message
        assert "compilegate flag revert bert-docs" in reason.fix


@pytest.mark.parametrize(
    "history",
    [
        [],
        [reverted("evaluate", "disable")],
        [reverted(), reverted("human:ann", "revert", BEGIN + 60)],
        [reverted(), reverted("human:ann", "set", BEGIN + 60)],
        [reverted("human:ann", "revert")],
        [reverted("train", "stale")],
    ],
    ids=["never", "a trial's no", "reverted by a person", "set by a person", "by hand", "stale"],
)
def test_nothing_else_makes_a_trial_wait(history):
    assert None is cooling_down(history, 14, now=BEGIN + DAY_SECONDS, workload="bert-docs")
