"""What one step of a trial takes of its budget, and which limit it meets."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from compilegate.domain import naming
from compilegate.domain.decision import QualityStep, RequestedFullRun, SpeedStep
from compilegate.domain.naming import parse_run
from compilegate.domain.planning import rounds
from compilegate.domain.planning.arms import CONTROL
from compilegate.domain.trial.evidence import JobRecord, TrialEvidence, TrialRecords
from compilegate.domain.trial.jobs import EndedJob
from compilegate.domain.trial.judge_round import RoundEffect, round_effect
from compilegate.domain.trial.limits import PlannedStep
from compilegate.domain.trial.plan import QualityMode, RecordedPlan, most_rounds, most_seconds
from compilegate.domain.workload.model import CONTROL_SUFFIX
from tests.domain.trial.plans import arm, plan
from tests.domain.workload_builder import SOUND, change

# At 30 dollars an hour two minutes of stopping cost one, and a full run of six hours 180.
PRICE, STOPPING, FULL_RUN = 30.0, 1.0, 180.0
SPENT = 98.0
CENT = 0.01


def full_runs(*arms: str, usd: float | None = None, mode: str = "shadow") -> QualityStep:
    runs = tuple(RequestedFullRun(name, seed) for seed, name in enumerate(arms))
    return QualityStep(mode, runs, usd, "")


def blocks(*arms: str, usd: float | None = 0.0, blocks: int = 2) -> SpeedStep:
    return SpeedStep(0, blocks, 160, arms, usd, "")


def planned(
    step: SpeedStep | QualityStep, *records: JobRecord, prices: tuple[float, ...] = (), **plan_: Any
) -> PlannedStep:
    prices = prices or (PRICE, PRICE)
    names = ("baseline", "compile", "left")
    arms = tuple(arm(name, usd_per_hour=usd) for name, usd in zip(names, prices, strict=False))
    values = {"speed_steps": 160, "blocks_per_round": 2, "max_blocks": 6, "usd_per_block": 7.0,
              "usd_per_quality_run": 200.0, "max_quality_runs": 12, "max_trial_usd": 1e6,
              "quality_mode": plan().quality_mode}  # fmt: skip
    recorded = RecordedPlan(**{"arms": arms, **values, **plan_})
    return PlannedStep(step, TrialEvidence(SOUND, recorded, TrialRecords(records)))


def code(step: PlannedStep, **changes: Any) -> str | None:
    met = step.limit_met((), **{"rounds_done": 1, "now": 0, **changes})
    return None if met is None else met.code


BOTH = ("baseline", "compile")


@pytest.mark.parametrize(
    ("step", "prices", "needed"),
    [
        # What the judge asks for, where that is more than the jobs should take.
        (full_runs(*BOTH, usd=400.0), (), 400.0 + 2 * STOPPING),
        (full_runs(*BOTH, usd=1.0), (), 2 * FULL_RUN + 2 * STOPPING),
        # The plan's price where the judge knows none.
        (full_runs(*BOTH), (), 2 * 200.0 + 2 * STOPPING),
        # A cluster at twice the price has to take half as long; a cheaper one as long.
        (full_runs("compile", usd=1.0), (PRICE, 2 * PRICE), FULL_RUN + 2 * STOPPING),
        (full_runs("compile", usd=1.0), (PRICE, PRICE / 2), (FULL_RUN + STOPPING) / 2),
        # Of a canary round one candidate's run, which may fail.
        (
            full_runs("baseline", "compile", "left", mode="canary"),
            (PRICE, PRICE / 2, PRICE),
            FULL_RUN / 2,
        ),
        (full_runs("compile", "compile", mode="canary"), (), FULL_RUN),
        # Blocks at the plan's price, all in one job.
        (blocks("baseline", "compile", usd=None, blocks=3), (), 3 * 7.0 + STOPPING),
        # A start of 0.05 hours, two blocks of two arms of 0.1 hours each.
        (blocks(*BOTH), (), 0.45 * PRICE + STOPPING),
    ],
)
def test_a_step_is_taken_where_the_budget_holds_it(step, prices, needed):
    spent = JobRecord("s0", usd=SPENT)
    holds, lacks = (
        planned(step, spent, prices=prices, max_trial_usd=SPENT + needed + extra)
        for extra in (0.0, -CENT)
    )

    assert [None, "trial_over_budget"] == [code(holds), code(lacks)]


def test_controls_are_left_out_where_the_budget_lacks_their_price():
    arms = (
        *(arm(name, image=name, usd_per_hour=PRICE) for name in BOTH),
        arm(f"compile{CONTROL_SUFFIX}", role=CONTROL, usd_per_hour=PRICE),
    )
    step = blocks("baseline", "compile", usd=5000.0, blocks=1)
    jobs = len(arms)
    needed = 5000.0 + jobs * STOPPING

    for extra, count in ((0.0, jobs), (-CENT, jobs - 1)):
        cap = needed + extra
        assert count == len(planned(step, arms=arms, max_trial_usd=cap).speed_jobs)
    # Without them it costs so much less.
    least = 5000.0 * (jobs - 1) / jobs + (jobs - 1) * STOPPING
    caps = (least + CENT, least - CENT)
    assert [None, "trial_over_budget"] == [
        code(planned(step, arms=arms, max_trial_usd=cap)) for cap in caps
    ]


def silent(arm_name: str, first: int = 0, jobs: int = 3) -> list[JobRecord]:
    return [JobRecord(f"s{first + n}", unmeasured=(arm_name,)) for n in range(jobs)]


@pytest.mark.parametrize(
    ("records", "named"),
    [
        (silent("compile"), None),
        (silent("baseline"), "baseline"),
        (silent("baseline", jobs=2), None),
        ([*silent("compile"), *silent("left", 5)], "compile"),
    ],
)
def test_a_trial_ends_where_the_baseline_or_every_candidate_leaves_nothing(records, named):
    step = planned(blocks("baseline", "compile", "left"), *records, prices=(PRICE,) * 3)
    met = step.limit_met((), rounds_done=1, now=0)

    assert named == (None if met is None else met.arm)
    assert met is None or met.message.endswith("s0, s1, s2")


def test_a_silent_candidate_is_measured_no_more():
    left = planned(blocks("baseline", "compile", "left"), *silent("compile"), prices=(PRICE,) * 3)

    assert ("baseline", "left") == left.without_silent_arms().arms


def test_each_job_may_take_its_share_of_what_is_left():
    spent = JobRecord("s0", usd=SPENT)
    step = planned(full_runs(*BOTH), spent, max_trial_usd=SPENT + 3 * FULL_RUN + 2 * STOPPING)

    # Three runs' money for two.
    assert [9 * 3600] * 2 == step.affordable_seconds
    odd = planned(full_runs(*BOTH), max_trial_usd=2 * STOPPING + 0.01)
    assert [0, 0] == odd.affordable_seconds


def test_a_job_of_pairs_has_the_share_of_all_its_runs():
    short = change(SOUND, schedule__run_hours=2)

    def paired(cap: float) -> PlannedStep:
        step = planned(full_runs(*BOTH * 3, usd=1.0), pairs=True, max_trial_usd=cap)
        return replace(step, evidence=replace(step.evidence, workload=short))

    # Jobs of four runs of two hours and of two.
    needed = 12 * PRICE + 2 * STOPPING
    caps = (needed, needed - CENT)
    assert [None, "trial_over_budget"] == [code(paired(cap)) for cap in caps]
    assert [16 * 3600, 8 * 3600] == paired(needed + 12 * PRICE).affordable_seconds
    for step in (full_runs("compile", "compile"), blocks(*BOTH)):
        assert [] == planned(step, pairs=True).pair_jobs


def test_a_run_that_the_budget_cut_off_ends_the_trial():
    limit = {"StoppingCondition": {"MaxRuntimeInSeconds": 3600}}
    cut = EndedJob(parse_run("q1b17"), "q", "Stopped", timed_out=True, described=limit)
    met = planned(full_runs(*BOTH)).limit_met([cut], rounds_done=1, now=0)

    assert "trial_over_budget" == met.code


@pytest.mark.parametrize("mode", ["shadow", "canary"])
def test_rounds_are_counted_but_for_those_that_waited_for_the_quota(mode):
    own = QualityMode(mode, mode)
    most = most_rounds(1, 12, own)
    waited = step = planned(full_runs(*BOTH, mode=mode), quality_mode=own)
    records = TrialRecords(waited_rounds=(3, 4))
    waited = replace(waited, evidence=replace(waited.evidence, records=records))

    assert [None, "too_many_rounds"] == [code(step, rounds_done=done) for done in (most - 1, most)]
    assert [None, "too_many_rounds"] == [
        code(waited, rounds_done=done) for done in (most + 1, most + 2)
    ]


@pytest.mark.parametrize("mode", ["shadow", "canary"])
def test_a_round_that_may_not_end_in_time_is_not_begun(mode):
    own = QualityMode(mode, mode)
    step = planned(full_runs(*BOTH, mode=mode), quality_mode=own, started_at=1_000)
    hours = SOUND.training.longest_job_hours
    if mode == "canary":
        needed = rounds.production_seconds(2, SOUND.schedule.runs_per_week, hours)
    else:
        # Of a quota that is not known one job at a time.
        needed = rounds.round_seconds(hours, 2)
    latest = 1_000 + most_seconds(own) - needed - rounds.ENDING_SECONDS

    assert [None, "trial_over_time"] == [code(step, now=now) for now in (latest, latest + 1)]


def test_each_block_of_each_arm_needs_room_in_the_history():
    spent = [JobRecord(f"s{n}-r0", usd=0.0) for n in range(900)]

    assert [None, "too_many_rounds"] == [
        code(planned(blocks(*BOTH, blocks=count), *spent)) for count in (2, 3)
    ]


def test_production_has_more_time_for_a_longer_or_rarer_job():
    step = planned(full_runs(*BOTH, mode="canary"), started_at=1_000)
    longer = change(SOUND, training__max_runtime_hours=24)
    more = replace(step, evidence=replace(step.evidence, workload=longer))
    rarer = change(SOUND, schedule__runs_per_week=1)
    most = replace(step, evidence=replace(step.evidence, workload=rarer))
    waits = [one.canary_timeout_seconds(1_000) for one in (step, more, most)]

    assert waits == sorted(set(waits))
    late = 1_000 + rounds.MACHINE_SECONDS - rounds.ENDING_SECONDS - 60
    assert 60 == step.canary_timeout_seconds(late)


# What the end of one job means for the others of its round.

FULL, SPEED, OF_A_CONTROL = "q1b17", "s0b0", "s0c0"
ARMS = (arm("baseline"), arm("managed", image="m"), arm("managed-control", image="c"))
INFRASTRUCTURE: dict[str, Any] = {"status": "Failed", "infrastructure": True}
EFFECTS: dict[str, tuple[dict[str, Any], RoundEffect]] = {
    "a full run": ({}, RoundEffect.LOOK),
    "a full run that crashed": ({"status": "Failed"}, RoundEffect.LOOK),
    "a full run at its time limit": ({"status": "Stopped", "timed_out": True}, RoundEffect.LOOK),
    "the only full run": ({"jobs": 1}, RoundEffect.NONE),
    "a speed job": ({"run": SPEED}, RoundEffect.NONE),
    "stopped by this trial": ({"status": "Stopped", "stopped_by_trial": True}, RoundEffect.LOOK),
    "stopped by somebody else": ({"status": "Stopped"}, RoundEffect.STOP),
    "not run by the cloud": (INFRASTRUCTURE, RoundEffect.STOP),
    "a speed job not run by the cloud": ({**INFRASTRUCTURE, "run": SPEED}, RoundEffect.STOP),
    "no quota": ({**INFRASTRUCTURE, "waited": True}, RoundEffect.NONE),
    "a control not run by the cloud": ({**INFRASTRUCTURE, "run": OF_A_CONTROL}, RoundEffect.NONE),
}


@pytest.mark.parametrize(("ended", "effect"), EFFECTS.values(), ids=EFFECTS)
def test_only_what_says_something_about_the_others_has_an_effect(ended, effect):
    values = {"run": FULL, "status": "Completed", "jobs": 3, **ended}
    run, jobs = (values.pop(key) for key in ("run", "jobs"))
    job = EndedJob(naming.parse_run(run), "j", **values)

    assert effect is round_effect(job, ARMS, jobs_in_round=jobs)


def test_a_full_run_and_a_job_of_the_first_nodes_need_no_arms():
    job, speed = (EndedJob(naming.parse_run(run), "j", "Completed") for run in (FULL, "s0a0"))

    assert RoundEffect.LOOK is round_effect(job, (), jobs_in_round=2)
    assert RoundEffect.NONE is round_effect(speed, (), jobs_in_round=2)
