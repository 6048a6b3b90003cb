"""What a round's jobs, and those of production, lead to: a decision, the jobs to stop, the next."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from compilegate.domain import naming
from compilegate.domain.argument_text import decoded_document
from compilegate.domain.decision import (
    Decision,
    QualityStep,
    RequestedFullRun,
    SpeedStep,
    Verdict,
)
from compilegate.domain.planning import rounds
from compilegate.domain.planning.arms import CONTROL
from compilegate.domain.planning.rounds import MOST_WITHOUT_RESULT
from compilegate.domain.production.canary import OVERDUE
from compilegate.domain.production.history import WorkloadHistory
from compilegate.domain.production.registration import TrainedJob
from compilegate.domain.reasons import Reason
from compilegate.domain.records.production import BegunRun, CanarySlot
from compilegate.domain.trial.evidence import (
    JobRecord,
    ProductionFacts,
    TrialEvidence,
    TrialRecords,
)
from compilegate.domain.trial.jobs import STOP_SECONDS, EndedJob, OutputRuns
from compilegate.domain.trial.judge_round import (
    CanaryRequest,
    NextRound,
    RoundFacts,
    RoundOutcome,
    judge_round,
    lost_arms,
)
from compilegate.domain.trial.plan import QualityMode, RecordedPlan
from compilegate.domain.workload.model import CONTROL_SUFFIX
from tests.domain.production.run_builder import production_run
from tests.domain.test_request import CONTEXT, SITE
from tests.domain.trial.plans import arm, plan
from tests.domain.trial.test_evidence import full
from tests.domain.trial.test_jobs import full as full_run
from tests.domain.workload_builder import SOUND

ARMS = (
    *plan("baseline", "compile", "larger").arms, arm(f"compile{CONTROL_SUFFIX}", role=CONTROL)
)  # fmt: skip
PLAN = replace(plan(), arms=ARMS, max_trial_usd=1e6)
ROUND, NOW = 3, 5_000
OF_CONTROL = naming.parse_run(naming.speed_run(ROUND, 1, 0))


def ended(run: naming.RunId, status: str, **fields: Any) -> EndedJob:
    return EndedJob(run, fields.pop("job", f"j-{run.text}"), status, **fields)


def full_job(index: int, seed: int = 1, **fields: Any) -> EndedJob:
    run = naming.parse_run(naming.quality_run(ROUND, index, seed))
    left = OutputRuns(full_run=full_run(seed))
    return ended(run, **{"status": "Completed", "output": left, **fields})


def decided(step: Any = None, verdict: Verdict = Verdict.CONTINUE, *reasons: Reason) -> Decision:
    decision = Decision.of_this_judge("w", "d", "speed", verdict, [*reasons])
    return replace(decision, next=step)


def judged(
    *jobs: EndedJob, decision: Decision | None = None, records: Sequence[JobRecord] = (),
    lost: tuple[int, ...] = (), waited: tuple[int, ...] = (), of: RecordedPlan = PLAN,
    duplicates: tuple[EndedJob, ...] = (), canary_ended: str | None = None,
    production: ProductionFacts | None = None,
) -> RoundOutcome:  # fmt: skip
    facts = RoundFacts(
        trial="t1", round=ROUND, workload=SOUND, code="c", plan=of,
        records=TrialRecords(tuple(records), lost, waited), ended=jobs, duplicates=duplicates,
        production=production or ProductionFacts(canary_ended=canary_ended), context=CONTEXT,
        now=NOW,
    )  # fmt: skip
    return judge_round(facts, lambda _: decision or decided())


SEEDS = (("compile", 5), ("baseline", 5), ("larger", 6), ("compile", 6))
RUNS = tuple(RequestedFullRun(name, seed) for name, seed in SEEDS)
QUALITY = QualityStep("shadow", RUNS, 1.0, "")
PAIRED = replace(QUALITY, runs=tuple(
    RequestedFullRun(name, seed)
    for name, seed in (("baseline", 5), ("compile", 5), ("compile", 6), ("baseline", 6))
))  # fmt: skip
FOUR_IN_TURN = (
    rounds.round_seconds(SOUND.training.longest_job_hours, 4)
    + rounds.ENDING_SECONDS - rounds.TRIAL_SECONDS
)  # fmt: skip
BLOCKS = SpeedStep(2, 2, 77, ("baseline", "compile", "larger"), 1.0, "")


def following(outcome: RoundOutcome) -> NextRound:
    assert isinstance(outcome.next, NextRound)
    return outcome.next


def asked(coming: NextRound) -> list[dict[str, Any]]:
    """What the jobs' scripts are started with."""
    parameters = [one.request["HyperParameters"] for one in coming.jobs]
    return [{key: json.loads(text) for key, text in one.items()} for one in parameters]


def limits(coming: NextRound) -> list[int]:
    return [one.request["StoppingCondition"]["MaxRuntimeInSeconds"] for one in coming.jobs]


def test_blocks_of_arms_on_the_same_nodes_are_one_job_and_of_others_one_each():
    alone = following(judged(decision=decided(BLOCKS), of=replace(PLAN, arms=ARMS[:3])))
    beside = following(judged(decision=decided(BLOCKS)))

    assert ("speed", [naming.speed_run(ROUND)]) == (alone.stage, [job.run for job in alone.jobs])
    group_and_block = [(0, 2), (1, 2), (0, 3), (1, 3)]
    assert [naming.speed_run(ROUND, *one) for one in group_and_block] == [
        job.run for job in beside.jobs
    ]
    assert [False, True, False, True] == [job.is_control for job in beside.jobs]
    said = [[one[key] for key in ("first_block", "blocks", "steps")] for one in asked(alone)]
    assert [[2, 2, 77]] == said
    said = [[one[key] for key in ("first_block", "blocks")] for one in asked(beside)]
    assert [[2, 1], [2, 1], [3, 1], [3, 1]] == said
    assert all(SITE.bucket in str(job.request["OutputDataConfig"]) for job in beside.jobs)


def test_an_arm_of_which_enough_jobs_left_nothing_is_measured_no_more():
    nothing = [JobRecord(f"s{n}", unmeasured=("larger",)) for n in range(MOST_WITHOUT_RESULT)]
    outcome = judged(decision=decided(BLOCKS), records=nothing)

    assert ("baseline", "compile") == outcome.decision.next.arms


@pytest.mark.parametrize(
    ("step", "plan_", "code"),
    [
        (BLOCKS, {"max_trial_usd": 0.5}, "trial_over_budget"),
        # Four jobs in turn would end a second after the limit.
        (BLOCKS, {"started_at": NOW + FOUR_IN_TURN - 1}, "trial_over_time"),
        (replace(QUALITY, mode="canary"), {"max_trial_usd": 0.5}, "trial_over_budget"),
    ],
)
def test_a_trial_over_a_limit_says_so_before_what_the_judge_said(step, plan_, code):
    said = replace(decided(step), reasons=(Reason("speed_unproven", "m"),))
    decision = judged(decision=said, of=replace(PLAN, **plan_)).decision

    assert [code, "speed_unproven"] == [reason.code for reason in decision.reasons]


def test_replicates_count_the_runs_that_an_arm_has_behind_it():
    """compile has made one full run before, baseline two."""
    arms = ("compile", "baseline", "baseline")
    behind = [JobRecord(f"q{n}", runs=(full(f"q{n}", arm, n),)) for n, arm in enumerate(arms)]
    coming = following(judged(decision=decided(QUALITY), records=behind))

    indexes = {"baseline": 0, "compile": 1, "larger": 2}
    runs = [naming.quality_run(ROUND, indexes[name], seed) for name, seed in SEEDS]
    assert ("quality", runs) == (coming.stage, [job.run for job in coming.jobs])
    said = [(one["arm"], one["seed"], one["replicate"]) for one in asked(coming)]
    assert [("compile", 5, 1), ("baseline", 5, 2), ("larger", 6, 0), ("compile", 6, 2)] == said


def test_a_job_of_pairs_has_both_arms_and_the_name_of_its_candidates_first_run():
    more = tuple(RequestedFullRun(name, 7) for name in ("baseline", "compile"))
    six = replace(PAIRED, runs=(*PAIRED.runs, *more))
    coming = following(judged(decision=decided(six), of=replace(PLAN, pairs=True)))

    names = [naming.quality_run(ROUND, 1, seed, pairs=True) for seed in (5, 7)]
    assert names == [job.run for job in coming.jobs]
    one, other = asked(coming)
    assert [["baseline", 7, 2], ["compile", 7, 2]] == decoded_document(other["runs"])
    runs = [["baseline", 5, 0], ["compile", 5, 0], ["compile", 6, 1], ["baseline", 6, 1]]
    assert runs == decoded_document(one["runs"])
    assert [decoded_document(one[f"arm_{n}"])["name"] for n in (0, 1)] == ["baseline", "compile"]


def test_a_single_run_of_a_plan_of_pairs_is_a_job_as_any_other():
    alone = replace(PAIRED, runs=(*PAIRED.runs, RequestedFullRun("compile", 7)))
    coming = following(judged(decision=decided(alone), of=replace(PLAN, pairs=True)))

    assert naming.quality_run(ROUND, 1, 7) == coming.jobs[-1].run
    assert 2 == asked(coming)[-1]["replicate"]


def test_no_job_may_take_longer_than_the_budget_allows():
    (whole, *_) = limits(following(judged(decision=decided(QUALITY))))
    # Four runs at two dollars an hour, and two minutes each to stop them.
    poor = replace(PLAN, max_trial_usd=4 * 2.0 * (whole / 3600 - 1 + STOP_SECONDS / 3600))
    free = replace(QUALITY, usd=0.0)

    assert [whole] * 4 == limits(following(judged(decision=decided(free))))
    rest = judged(decision=decided(free), of=poor)
    assert rest.next is None or [whole - 3600] * 4 == limits(following(rest))


def test_production_makes_a_canary_round_unless_the_last_one_ended_badly():
    step = replace(QUALITY, mode="canary")
    of = replace(PLAN, quality_mode=QualityMode("canary", "canary"), started_at=NOW)
    asked_for = judged(decision=decided(step), of=of).next
    overdue = judged(decision=decided(step), of=of, canary_ended=OVERDUE)

    assert isinstance(asked_for, CanaryRequest)
    assert (ROUND, step.runs) == (asked_for.round, asked_for.runs)
    assert asked_for.timeout_seconds > 0
    assert (Verdict.INCONCLUSIVE, None, None) == (
        overdue.decision.verdict, overdue.decision.next, overdue.next,
    )  # fmt: skip
    assert "canary_overdue" == overdue.decision.reasons[0].code
    # Of a round on machines of its own that says nothing.
    assert following(judged(decision=decided(QUALITY), canary_ended=OVERDUE))


def test_runs_that_production_has_made_of_the_job_are_evidence():
    run = production_run(1, "compile", canary=CanarySlot("t1", 0, 1))
    begun = BegunRun(0, run.run, "e", run.arm, "scheduled", 1, 1, "spec", "source")
    history = WorkloadHistory(begun=(begun,), runs=(run,))
    of = replace(PLAN, quality_mode=QualityMode("canary", "canary"))
    outcomes = [
        judged(of=of, production=ProductionFacts(history, {"spec": TrainedJob(SOUND, code).digest}))
        for code in ("c", "d")
    ]

    assert [{run.job}, set()] == [one.evidence.records.with_runs for one in outcomes]


@pytest.mark.parametrize("verdict", [Verdict.STAY_OFF, Verdict.INCONCLUSIVE])
def test_nothing_follows_a_verdict(verdict):
    outcome = judged(full_job(1, status="Stopped"), decision=decided(BLOCKS, verdict))

    assert (verdict, None, None) == (outcome.decision.verdict, outcome.next, outcome.failure)


def test_what_still_runs_is_stopped():
    running, done = ({"TrainingJobStatus": status} for status in ("InProgress", "Completed"))
    jobs = [full_job(1, seed, job=f"j{seed}", described=one)
            for seed, one in enumerate((running, done, {}))]  # fmt: skip
    twice = [replace(one, job=f"{one.job}-r1") for one in jobs]

    assert ("j0", "j0-r1") == judged(*jobs, duplicates=tuple(twice)).stop


BROKEN: dict[str, Any] = {"status": "Failed", "reason": "no GPU", "infrastructure": True}
WAITED = {**BROKEN, "waited": True}


@pytest.mark.parametrize(
    ("jobs", "lost", "rounds", "failure"),
    [
        ([full_job(1, **BROKEN)], (), ((ROUND,), (1,)), None),
        ([full_job(1, **BROKEN)], (1,), ((1, ROUND), (1,)), None),
        ([full_job(1, **BROKEN)], (1, 2), ((1, 2, ROUND), (1,)), "could not run: no GPU"),
        ([full_job(1, **WAITED)], (1, 2, 3), ((1, 2, 3), (1, ROUND)), None),
        # One that only waited, beside one that was lost.
        (
            [full_job(1, **BROKEN), full_job(2, **{**BROKEN, "reason": "no disk"}, job="j2")],
            (1, 2),
            ((1, 2, ROUND), (1,)),
            f"j-q{ROUND}b1 could not run: no GPU",
        ),
        ([full_job(1, **WAITED), full_job(2, **BROKEN)], (1, 2), ((1, 2, ROUND), (1,)), "no GPU"),
        ([full_job(1)], (1, 2, 3), ((1, 2, 3), (1,)), None),
        # A control decides nothing.
        ([ended(OF_CONTROL, **BROKEN)], (1, 2), ((1, 2), (1,)), None),
        ([ended(OF_CONTROL, "Stopped")], (), ((), (1,)), None),
        ([full_job(1, status="Stopped")], (), ((), (1,)), "stopped before the end"),
        ([full_job(1, **{**BROKEN, "status": "Stopped"})], (), ((ROUND,), (1,)), None),
        ([full_job(1, status="Stopped", stopped_by_trial=True)], (), ((), (1,)), None),
    ],
)
def test_the_cloud_may_fail_a_trial_twice_and_a_person_never(jobs, lost, rounds, failure):
    outcome = judged(*jobs, lost=lost, waited=(1,), decision=decided(QUALITY))

    assert rounds == (outcome.evidence.lost_rounds, outcome.evidence.waited_rounds)
    assert (failure is None) is (outcome.failure is None) is (outcome.next is not None)
    assert (failure or "None") in str(outcome.failure)


def test_every_job_is_paid_for_also_one_that_was_started_twice():
    half_an_hour = {"BillableTimeInSeconds": 1800}
    job = full_job(1, described=half_an_hour)
    twice = replace(job, job="again")

    assert {job.job: 1.0, "again": 1.0} == judged(job, duplicates=(twice,)).evidence.usd_by_job


UNDER_TEST = [naming.parse_run(naming.quality_run(ROUND, index, 1)) for index in (0, 1)]


@pytest.mark.parametrize(
    ("decision", "stopped"),
    [
        (decided(verdict=Verdict.STAY_OFF), {0, 1, 2, 3}),
        (decided(verdict=Verdict.INVALID), {0, 1, 2, 3}),
        (decided(), set()),
        *(
            (decided(None, Verdict.CONTINUE, Reason(code, "m", arm="compile")), {1})
            for code in (
                "quality_worse", "guardrail_worse", "candidate_crashed", "not_equivalent",
                "numerics_wrong",
            )
        ),
        (decided(None, Verdict.CONTINUE, Reason("speed_unproven", "m", arm="compile")), set()),
        # Nothing of the third arm runs.
        (decided(None, Verdict.CONTINUE, Reason("quality_worse", "m", arm="larger")), set()),
        # The baseline's runs are needed as long as any candidate is left.
        (decided(None, Verdict.CONTINUE, Reason("quality_worse", "m", arm="baseline")), set()),
    ],
)  # fmt: skip
def test_arms_that_have_lost_make_no_more_runs(decision, stopped):
    evidence = TrialEvidence(SOUND, PLAN, TrialRecords())

    assert stopped == lost_arms((), UNDER_TEST, evidence, lambda _: decision, trial="t")
