"""Which place of a trial's round the next production run takes, and when the round is over."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from compilegate.domain.decision import RequestedFullRun
from compilegate.domain.flag import OFF, Flag
from compilegate.domain.production import canary
from compilegate.domain.production.canary import (
    effect_of_run,
    open_slot,
    result_ending,
)
from compilegate.domain.production.history import history
from compilegate.domain.production.registration import TrainedJob
from compilegate.domain.records.flags import FlagVersion
from compilegate.domain.records.production import (
    BegunRun,
    CanaryClosed,
    CanaryReported,
    CanaryRound,
    CanarySlot,
    ProductionRun,
    RegistrationChange,
)
from compilegate.domain.records.trials import TrialDecided, TrialFailed
from tests.domain.workload_builder import SOUND, change

TRIAL, NOW, JOB = "0mabc123", 1_790_000_000, "job"
ROUND = CanaryRound(
    trial=TRIAL, round=3, runs=(RequestedFullRun("compile", 17), RequestedFullRun("baseline", 18)),
    arms={"baseline": {}, "compile": {"compiler": "torch_compile"}},
    job=JOB, until=NOW + 1000, slot_seconds=600, hold=True, at=NOW - 1000,
)  # fmt: skip


def begun(run: str, position: int, *, at: int = NOW - 10) -> dict[str, Any]:
    return BegunRun(
        at=at, run=run, execution=f"e-{run}", arm="compile", why="canary", seed=1, number=1,
        spec_key="s", source_key="s.tgz", canary=CanarySlot(ROUND.trial, ROUND.round, position),
    ).to_entry()  # fmt: skip


def ended(run: str, position: int | None, arm: str, **changes: Any) -> dict[str, Any]:
    result = {"finished": True, "applied": True, "metric": 0.9, **changes.pop("result", {})}
    slot = None if position is None else CanarySlot(ROUND.trial, ROUND.round, position)
    values = {
        "run": run, "job": f"cg-{run}", "arm": arm, "started_at": NOW - 9.0, "ended_at": NOW - 5.0,
        "result": result, "counts": True, "why": "canary", "canary": slot, **changes,
    }  # fmt: skip
    return ProductionRun(**values, at=NOW).to_entry()


def closed(reason: str) -> dict[str, Any]:
    return CanaryClosed(NOW, TRIAL, 3, reason).to_entry()


def slot_after(*entries: dict[str, Any], now: int = NOW, job: str = JOB) -> Any:
    return open_slot(history([ROUND.to_entry(), *entries]), now=now, job=job)


def position_after(*entries: dict[str, Any], now: int = NOW) -> int | None:
    slot = slot_after(*entries, now=now)
    return None if slot is None else slot.canary.position


@pytest.mark.parametrize(
    ("entries", "position"),
    [
        ([begun("r1", 0)], 1),
        ([begun("r1", 0), ended("r1", 0, "compile")], 1),
        ([begun("r1", 0), begun("r2", 1)], None),
        ([begun("r1", 0), begun("r2", 1), ended("r1", 0, "compile", counts=False)], 0),
        # It trained another arm after all, so nothing is known of the place's own.
        ([begun("r1", 0), ended("r1", 0, "baseline")], 0),
        # The place of an earlier round.
        ([ended("r1", 0, "compile", canary=CanarySlot(ROUND.trial, ROUND.round - 1, 0))], 0),
        # The run was lost: it began long ago and nothing more was heard of it.
        ([begun("r1", 0, at=NOW - 600)], 0),
    ],
)
def test_a_place_is_taken_while_its_run_is_on_the_way_or_has_a_result(entries, position):
    assert position == position_after(*entries)


@pytest.mark.parametrize("reason", [canary.COMPLETE, canary.ABORTED, canary.OVERDUE])
def test_a_closed_round_has_no_place(reason):
    assert slot_after(closed(reason)) is None


def over(kind: str, trial: str) -> dict[str, Any]:
    if kind == "decision":
        return TrialDecided(NOW, trial, "stay_off", "decision.json").to_entry()
    return TrialFailed(NOW, trial).to_entry()


def test_a_trial_that_is_over_has_no_place_even_where_its_round_is_open():
    assert slot_after(TrialFailed(NOW, TRIAL).to_entry()) is None
    assert slot_after(TrialFailed(NOW, "another1").to_entry()) is not None


def test_a_round_whose_time_is_over_is_not_awaited():
    assert slot_after(now=NOW + 999) is not None
    assert slot_after(now=NOW + 1000) is None


def test_production_of_another_job_carries_nothing():
    assert slot_after(job="edited") is None


@pytest.mark.parametrize("result", [{"finished": False, "applied": None}, {"applied": False}])
def test_a_lost_candidate_ends_the_round_and_production_goes_back(result):
    entries = [ROUND.to_entry(), ended("r1", 0, "compile", result=result)]

    assert canary.LOST == result_ending(ROUND, history(entries))
    assert open_slot(history(entries), now=NOW, job=JOB) is None


def effect_of(run: dict[str, Any], *entries: dict[str, Any], job: str | None = JOB) -> Any:
    return effect_of_run(
        ProductionRun.from_entry(run), history([ROUND.to_entry(), run, *entries]), job
    )


def test_the_round_is_over_once_every_place_has_its_result():
    entries = [ROUND.to_entry(), ended("r1", 0, "compile")]
    assert "" == result_ending(ROUND, history(entries))

    assert canary.COMPLETE == result_ending(ROUND, history([*entries, ended("r2", 1, "baseline")]))


def test_a_baseline_that_crashed_is_a_result_and_ends_nothing_by_itself():
    crashed = ended("r2", 1, "baseline", result={"finished": False})

    assert "" == result_ending(ROUND, history([ROUND.to_entry(), crashed]))
    assert 0 == position_after(crashed)


def test_the_job_is_what_is_trained_and_nothing_of_how_it_is_judged():
    same = change(SOUND, quality__history=(0.1, 0.2), policy__alpha=0.01, schedule__cron=None)
    other = change(SOUND, training__learning_rate=1e-4)
    digest = TrainedJob(SOUND, "s.tgz").digest

    assert digest == TrainedJob(same, "s.tgz").digest
    assert digest not in {TrainedJob(other, "s.tgz").digest, TrainedJob(SOUND, "t.tgz").digest}


@pytest.mark.parametrize(
    ("run", "job", "reason"),
    [
        (ended("r1", 0, "compile"), JOB, None),
        (ended("r1", 0, "compile", result={"finished": False}), JOB, "lost"),
        (ended("r1", None, "baseline"), "another job", "changed"),
        (ended("r1", None, "baseline"), None, None),
        (ended("r1", None, "baseline", started_at=ROUND.at - 1.0), "another job", None),
    ],
    ids=["one of two", "crashed", "of another job", "of an unknown job", "begun before the round"],
)
def test_a_run_ends_the_round_that_it_decides(run, job, reason):
    over, too_late = effect_of(run, job=job)

    assert ([] if reason is None else [(3, reason)]) == [(one.round, why) for one, why in over]
    assert not too_late


@pytest.mark.parametrize(
    ("arm", "hold", "reason", "late"),
    [
        ("compile", True, "overdue", True), ("compile", True, "complete", False),
        ("compile", False, "overdue", False),
    ],
)  # fmt: skip
def test_a_closed_round_is_reported_and_its_late_model_is_not_released(arm, hold, reason, late):
    run, asked = ended("r1", 0, arm), replace(ROUND, hold=hold)
    entries = [asked.to_entry(), run, closed(reason)]
    over, too_late = effect_of_run(ProductionRun.from_entry(run), history(entries), JOB)

    assert (late, [reason]) == (too_late, [why for _, why in over])


def test_a_model_is_late_for_its_own_round_alone():
    earlier = replace(ROUND, round=2).to_entry()
    over = CanaryClosed(NOW, TRIAL, 2, "overdue").to_entry()

    assert not effect_of(ended("r1", 0, "compile"), earlier, over)[1]


@pytest.mark.parametrize(
    ("arm", "hold", "held"),
    [("compile", True, True), ("compile", False, False), ("baseline", True, False)],
)
def test_a_candidates_model_is_held_where_the_round_holds_models(arm, hold, held):
    asked = replace(ROUND, hold=hold, runs=(RequestedFullRun(arm, 17),))
    slot = open_slot(history([asked.to_entry()]), now=NOW, job=JOB)

    assert ("hold" if held else None) == slot.tags.get("compilegate:release")


def test_held_are_the_candidates_runs_of_the_trials_rounds_that_hold():
    free, other = replace(ROUND, round=4, hold=False), replace(ROUND, trial="0mabc999")
    runs = [
        ended("r1", 0, "compile"), ended("r2", 1, "baseline"), ended("r3", None, "compile"),
        ended("r4", 0, "compile", canary=CanarySlot(TRIAL, 4, 0)),
        ended("r5", 0, "compile", canary=CanarySlot("0mabc999", 3, 0)),
    ]  # fmt: skip
    past = history([ROUND.to_entry(), free.to_entry(), other.to_entry(), *runs])

    assert ["r1"] == [run.run for run in canary.held_runs(past, TRIAL)]


STACK = replace(
    ROUND, on="compile", arms={**ROUND.arms, "larger": {"batch_size": 64}},
    runs=tuple(RequestedFullRun(name, 17) for name in ("compile", "larger", "baseline")),
)  # fmt: skip
COMPILE = Flag(True, "permanent", "compile", {"compiler": "torch_compile"}, "d1")


def turned(*flags: Flag) -> list[dict[str, Any]]:
    return [
        FlagVersion(n, NOW - 99 + n, f"c{n}", "evaluate", "a", "r", one.to_json()).to_entry()
        for n, one in enumerate(flags, start=1)
    ]


@pytest.mark.parametrize(
    ("on", "flags", "stands"),
    [
        ("", [], True),
        ("compile", [COMPILE], True),
        ("compile", [], False),
        ("compile", [COMPILE, OFF], False),
        ("compile", [replace(COMPILE, enabled=False, state="reverted")], False),
        ("compile", [replace(COMPILE, candidate="larger")], False),
    ],
)
def test_a_round_on_top_of_what_is_on_stands_as_long_as_that_is(on, flags, stands):
    asked = replace(STACK, on=on)
    run = ended("r1", None, "baseline")
    past = [asked.to_entry(), run, *turned(*flags)]

    assert stands is (open_slot(history(past), now=NOW, job=JOB) is not None)
    over, _ = effect_of_run(ProductionRun.from_entry(run), history(past), JOB)
    assert ([] if stands else ["changed"]) == [why for _, why in over]


def test_where_it_cannot_be_read_what_is_on_nothing_is_tried_on_top_of_it():
    (damaged,) = turned(COMPILE)
    del damaged["to"]

    assert None is open_slot(history([STACK.to_entry(), damaged]), now=NOW, job=JOB)


def test_the_model_of_what_is_on_is_not_held_and_never_late():
    on = history([STACK.to_entry(), *turned(COMPILE)])
    larger = history([STACK.to_entry(), *turned(COMPILE), ended("r1", 0, "compile")])
    tags = [open_slot(past, now=NOW, job=JOB).tags for past in (on, larger)]

    assert [None, "hold"] == [one.get("compilegate:release") for one in tags]
    assert [TRIAL, TRIAL] == [one["compilegate:trial"] for one in tags]
    runs = [ended("r1", 0, "compile"), ended("r2", 1, "larger"), ended("r3", 2, "baseline")]
    past = history([STACK.to_entry(), *runs, closed("overdue"), *turned(COMPILE)])
    assert ["r2"] == [run.run for run in canary.held_runs(past, TRIAL)]
    late = [effect_of_run(ProductionRun.from_entry(run), past, JOB)[1] for run in runs]
    assert [False, True, False] == late


def test_a_round_of_another_job_leaves_the_next_one_its_place():
    other = replace(ROUND, trial="0mabc000", job="edited")
    slot = open_slot(history([other.to_entry(), ROUND.to_entry()]), now=NOW, job=JOB)

    assert CanarySlot(TRIAL, 3, 0) == slot.canary
    assert (17, "canary", "compile") == (slot.seed, slot.why, slot.arm)


def test_only_a_places_own_run_takes_it():
    """A run of another trial's place is on its way, and one of a place that there is not ended."""
    of_another = {**begun("r1", 0), "canary": {"trial": "0mabc000", "round": 3, "position": 0}}
    beyond = ended("r2", 2, "compile")

    assert 0 == position_after(of_another, beyond)
    past = history([ROUND.to_entry(), beyond])
    assert {} == canary.results(ROUND, past)
    assert ["r2"] == [run.run for run in canary.canary_runs(past, TRIAL)]
    assert [] == canary.canary_runs(past, "0mabc000")


def test_a_workload_that_was_retired_ends_the_round():
    retired = history([ROUND.to_entry(), RegistrationChange(1, False, at=NOW).to_entry()])

    assert ("retired", "") == (
        canary.round_ending(ROUND, retired), canary.round_ending(ROUND, history([])),
    )  # fmt: skip


def test_a_run_that_began_as_the_round_opened_does_not_end_it_and_none_ends_twice():
    at_once = ended("r1", None, "baseline", started_at=float(ROUND.at))
    reported = CanaryReported(NOW, TRIAL, 3).to_entry()

    assert [] == effect_of(at_once, job="another job")[0]
    assert [] == effect_of(at_once, closed("overdue"), reported)[0]
    assert ("complete", "lost", "changed", "retired") == canary.REPORTED_ENDS
