"""Schedules of several faults, people and lies: the same seed plays the same, all promises hold."""

from __future__ import annotations

import pytest

from tests.faults.simulation import Summary, kept, tried
from tests.faults.simulation_schedule import Act, Schedule, Team
from tests.faults.simulation_shrink import shrunk

FEW, MANY = range(1, 41), range(1, 161)
# So many faults a schedule at least: else they are put where nothing happens.
LEAST_FAULTS = 3


def unsurvived(summary: Summary) -> list[str]:
    return [f"seed {one['seed']}: {one['problems']}: {one['smallest']}" for one in summary.failed]


@pytest.mark.sample
def test_a_few_schedules_keep_every_promise() -> None:
    summary = tried(FEW, list(kept().values()))

    assert [] == unsurvived(summary)
    assert len(FEW) + len(kept()) == summary.schedules


@pytest.mark.slow
@pytest.mark.timeout(1200)
def test_schedules_keep_every_promise() -> None:
    summary = tried(MANY, list(kept().values()))

    assert [] == unsurvived(summary)
    assert not summary.misses_too_often
    assert len(MANY) <= summary.intervals + len(MANY) // 2
    assert LEAST_FAULTS * len(MANY) <= summary.faults


def test_the_same_seed_plays_the_same_in_every_process() -> None:
    seeds = range(7, 15)
    first, again = (
        tried(seeds, environment={"PYTHONHASHSEED": hash_seed}) for hash_seed in ("1", "2")
    )

    assert list(seeds) == sorted(first.ends)
    assert first.ends == again.ends
    assert len(set(first.ends.values())) > len(seeds) // 2


def test_a_failing_schedule_is_shrunk_to_what_fails() -> None:
    """It fails where workload 1 has a trial that is stopped after a sweep."""

    def fails(one: Schedule) -> bool:
        acts = [act.do for act in one.acts]
        stopped = (
            act.do == "trial" and act.of == 1 and any(inner.do == "stop" for inner in act.within)
            for act in one.acts
        )
        return any(stopped) and "sweep" in acts

    noise = Act("train", within=(Act("dies", at=3), Act("clock", at=9)), event="late")
    trial = Act("trial", of=1, how="agree", event="twice", within=(
        Act("refused", at=4), Act("stop", at=70), Act("train", at=90),
    ))  # fmt: skip
    one = Schedule(
        7, (Team(lie="missing"), Team(runs="canary"), Team()),
        (noise, Act("sweep"), noise, trial, noise, Act("digest")), {"3": "partial"},
    )  # fmt: skip

    assert Schedule(
        7, (Team(), Team()), (Act("sweep"), Act("trial", of=1, within=(Act("stop", at=70),)))
    ) == shrunk(one, fails)
