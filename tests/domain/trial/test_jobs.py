"""How a job of a trial ended, and the runs that its end leaves in the evidence."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest

from compilegate.domain import naming
from compilegate.domain.argument_text import encoded_document
from compilegate.domain.decision import Decision, Verdict
from compilegate.domain.errors import InvalidEvidenceError, OverwrittenEvidenceError
from compilegate.domain.judging.evidence import Evidence, FullRun
from compilegate.domain.judging.evidence_file import read_full_run, read_speed_run
from compilegate.domain.judging.probation import Judge
from compilegate.domain.planning.rounds import speed_job_seconds
from compilegate.domain.trial.evidence import JobRecord, TrialEvidence, TrialRecords
from compilegate.domain.trial.jobs import (
    NO_REASON,
    UNKNOWN,
    EndedJob,
    OutputRuns,
    billable_seconds,
    judge_with,
    spent_on,
)
from compilegate.domain.trial.plan import RecordedPlan
from compilegate.domain.workload.model import job_seconds
from tests.domain.trial.plans import arm, plan
from tests.domain.workload_builder import SOUND

# Of the plan's arms the first two share nodes, the control has its own.
PLAN = plan("baseline", "compile", "native-control")
SPEED, OWN_NODES = naming.speed_run(1), naming.speed_run(1, 0, 2)
CONTROL = naming.speed_run(1, 1, 0)
FULL, PAIRS = naming.quality_run(1, 1, 9), naming.quality_run(1, 1, 9, pairs=True)
HOURS = SOUND.training.max_runtime_hours


def ended(run: str, status: str = "Completed", **changes: Any) -> EndedJob:
    return EndedJob(naming.parse_run(run), "j", status, **changes)


def full(seed: int = 9, *, finished: bool = True, **fields: Any) -> FullRun:
    return read_full_run({
        "stage": "quality", "mode": "shadow", "order": 0, "seed": seed, "job": "j",
        "metric": 0.9 if finished else None, "finished": finished, "wall_seconds": 3000.0, **fields,
    })  # fmt: skip


def parameters(**values: object) -> dict[str, Any]:
    return {"HyperParameters": {name: json.dumps(value) for name, value in values.items()}}


def asked(*arms: str, **values: object) -> dict[str, Any]:
    named = {f"arm_{n}": encoded_document({"name": name}) for n, name in enumerate(arms)}
    return parameters(**named, **values)


@pytest.mark.parametrize(
    ("job", "kept"),
    [
        (ended(FULL, reason=None), {}),
        (ended(FULL, "Failed", reason="r"), {"infrastructure": False, "timed_out": False}),
        (ended(FULL, "Stopped", timed_out=True), {"infrastructure": False, "timed_out": True}),
        (
            ended(FULL, "Failed", infrastructure=True, waited=True),
            {"infrastructure": True, "timed_out": False, "waited": True},
        ),
    ],
)
def test_the_state_machine_passes_an_outcome_along_as_it_is(job, kept):
    outcome = job.to_outcome()

    assert {"run": FULL, "job": "j", "status": job.status, "reason": job.reason, **kept} == outcome
    assert job == EndedJob.from_event(outcome)


TRAINED = {
    "TrainingTimeInSeconds": 3600,
    "SecondaryStatusTransitions": [{
        "Status": "Training", "StartTime": datetime(2026, 1, 1, 0, tzinfo=UTC),
        "EndTime": datetime(2026, 1, 1, 1, tzinfo=UTC),
    }],
}  # fmt: skip
LIMIT = {"TrainingJobStatus": "Stopped", "SecondaryStatus": "MaxRuntimeExceeded"}


def test_a_description_says_how_a_job_ended_where_nothing_else_did():
    at_limit = ended(FULL, UNKNOWN).with_description(LIMIT)
    unseen = ended(FULL, UNKNOWN).with_description({})
    done = ended(FULL, UNKNOWN, reason="r").with_description({"TrainingJobStatus": "Completed"})
    reported = ended(FULL, "Failed", reason="r").with_description(LIMIT)
    timed = ended(FULL, UNKNOWN).with_description({**LIMIT, **TRAINED})

    assert (True, False, LIMIT) == (at_limit.timed_out, at_limit.infrastructure, at_limit.described)
    assert timed.timed_out
    assert (True, "the job could not be started") == (unseen.infrastructure, unseen.reason)
    assert ("Completed", None) == (done.status, done.reason)
    assert ("Failed", "r", LIMIT) == (reported.status, reported.reason, reported.described)


@pytest.mark.parametrize(
    ("run", "expected"),
    [
        (None, False),
        (full(), False),
        (full(examining=False), False),
        (full(finished=False, examining=True), False),
        (full(examining=True), True),
    ],
)
def test_only_a_finished_run_ended_in_the_check(run, expected):
    assert expected is ended(FULL, "Failed", output=OutputRuns(full_run=run)).ended_examined


@pytest.mark.parametrize(
    ("run", "status", "described", "arms"),
    [
        (SPEED, "Completed", asked("baseline", "compile", blocks=2), ("baseline", "compile")),
        (SPEED, "Completed", {}, ()),
        (SPEED, "Failed", asked("baseline"), ()),
        (FULL, "Completed", asked("baseline"), ()),
    ],
)
def test_a_completed_speed_job_must_measure_the_arms_that_it_was_asked_for(
    run, status, described, arms
):
    assert arms == ended(run, status, described=described).arms_to_measure


OF_ARMS = speed_job_seconds(HOURS, arms=2, blocks=1)


@pytest.mark.parametrize(
    ("run", "timed_out", "described", "limit", "expected"),
    [
        (FULL, True, {}, job_seconds(HOURS) - 1, True),
        (FULL, True, {}, job_seconds(HOURS), False),
        (FULL, True, {}, None, False),
        (FULL, False, {}, 1, False),
        (FULL, True, asked("a", "b", blocks=1), OF_ARMS, True),
        (SPEED, True, asked("a", "b", blocks=1), OF_ARMS - 1, True),
        (SPEED, True, asked("a", "b", blocks=1), OF_ARMS, False),
        # One without blocks has a whole job's time.
        (SPEED, True, asked("a", "b"), job_seconds(HOURS) - 1, True),
        (SPEED, True, {}, job_seconds(HOURS) - 1, True),
    ],
)
def test_a_job_was_cut_off_below_its_own_limit_alone(run, timed_out, described, limit, expected):
    stopping = {} if limit is None else {"StoppingCondition": {"MaxRuntimeInSeconds": limit}}
    job = ended(run, "Stopped", timed_out=timed_out, described={**described, **stopping})

    assert expected is job.cut_off(HOURS)
    assert not ended(run, "Stopped", timed_out=True).cut_off(HOURS)  # it was never seen


@pytest.mark.parametrize(
    ("described", "seconds"),
    [
        ({"BillableTimeInSeconds": 7, "TrainingStartTime": 100}, 7),
        ({"BillableTimeInSeconds": 0, "TrainingStartTime": 100, "TrainingEndTime": 150}, 0),
        ({}, 0),
        ({"TrainingStartTime": 100, "TrainingEndTime": 150}, 50),
        # Still being stopped: two minutes more.
        ({"TrainingStartTime": 100}, 900 + 120),
        ({"TrainingStartTime": 100, "TrainingEndTime": 90}, 0),
    ],
)
def test_billed_is_what_the_service_says_or_at_most_will(described, seconds):
    times = {
        key: datetime.fromtimestamp(value, UTC) if key.endswith("Time") else value
        for key, value in described.items()
    }

    assert seconds == billable_seconds(times, now=1000)


def accepts(_: Evidence) -> Decision:
    return Decision.of_this_judge("w", "d", "speed", Verdict.CONTINUE, [])


def judged(job: EndedJob, *records: JobRecord, of: RecordedPlan = PLAN, judge: Judge = accepts):
    before = TrialEvidence(SOUND, of, TrialRecords(records))
    after, decision = judge_with([job], before, judge, trial="t")
    return decision, {arm.name: [*arm.speed, *arm.quality] for arm in after.arms if arm.runs}


def before(arm: str) -> JobRecord:
    return JobRecord("before", runs=((arm, full(job="before")),))


def test_a_full_run_counts_also_where_its_job_failed_in_the_check_after_it():
    left = OutputRuns(full_run=full(examining=True))
    _, runs = judged(ended(FULL, "Failed", output=left, described=TRAINED), before("baseline"))

    (run,) = runs["compile"]
    assert (0.9, 1, 3600) == (run.metric, run.order, run.job_seconds)


def segments(*seconds: float, arm: str = "compile", block: int = 0) -> OutputRuns:
    run = {
        "stage": "speed", "block": block, "job": "j", "step_seconds": seconds,
        "full_run_steps": 900, "finished": bool(seconds),
    }  # fmt: skip
    return OutputRuns(((arm, read_speed_run(run)),))


@pytest.mark.parametrize(
    ("job", "problem"),
    [
        (ended(FULL), "left no evidence of its run"),
        (ended(FULL, output=OutputRuns(full_run=full(8))), "with seed 9 and recorded 8"),
        (ended(FULL, output=OutputRuns(full_run=full(wall_seconds=0.001))), "its run took 0.001 s"),
        (ended(FULL, output=OutputRuns(unreadable=InvalidEvidenceError("no zip"))), "no zip"),
        (ended(FULL, output=OutputRuns(unreadable=OverwrittenEvidenceError("twice"))), "twice"),
        (ended(SPEED), "left no evidence of any block"),
        (ended(OWN_NODES, output=segments(0.1, arm="native-control", block=2)), "not its own"),
        (ended(SPEED, output=segments(4000.0), described=TRAINED), "its steps took 4,000 s"),
        (ended(SPEED, output=segments(0.1, 1e-7)), "a step of it took 1e-07 s"),
    ],
)
def test_what_is_not_the_jobs_own_run_makes_the_trial_invalid(job, problem):
    decision, runs = judged(job)

    assert (Verdict.INVALID, "speed", {}) == (decision.verdict, decision.stage, runs)
    (reason,) = decision.reasons
    assert problem in reason.message
    codes = {"twice": "evidence_overwritten", "took": "clock_implausible"}
    said = [code for word, code in codes.items() if word in problem]
    assert (said or ["evidence_invalid"]) == [reason.code]


def test_a_job_whose_run_was_recorded_is_not_read_again():
    decision, runs = judged(ended(FULL), JobRecord("j", runs=(("compile", full()),)))

    assert (Verdict.CONTINUE, [9]) == (decision.verdict, [run.seed for run in runs["compile"]])


def test_a_crash_is_a_result():
    _, full_run = judged(ended(FULL, "Failed", reason="crash"), before("baseline"))
    _, unsaid = judged(ended(FULL, "Failed", described=parameters(runs="of no pairs")))
    _, block = judged(ended(SPEED, "Failed", reason="boom"))
    _, own = judged(ended(OWN_NODES, "Failed", asked_arms=("compile",)))

    (crashed,) = full_run["compile"]
    expected = {"order": 1, "seed": 9, "finished": False, "reason": "crash"}
    assert expected == {key: crashed.record[key] for key in expected}
    # Without its baseline a block has nothing to compare with.
    (first,) = block["baseline"]
    assert (NO_REASON, NO_REASON) == (unsaid["compile"][0].reason, own["baseline"][0].reason)
    assert (0, 0.0, "boom") == (first.block, first.compile_seconds, first.reason)
    assert ({"baseline"}, [2]) == (own.keys(), [run.block for run in own["baseline"]])


def test_of_other_nodes_each_arm_that_was_asked_for_has_crashed():
    arms = (*plan("baseline", "compile").arms, arm("larger", instance_type="ml.p4d.24xlarge"))
    job = ended(naming.speed_run(1, 1, 2), "Failed", asked_arms=("larger",))
    _, runs = judged(job, of=replace(PLAN, arms=arms))

    assert {"larger": [2]} == {name: [run.block for run in own] for name, own in runs.items()}


STOPPED = {"status": "Stopped", "described": {"StoppingCondition": {"MaxRuntimeInSeconds": 60}}}


@pytest.mark.parametrize(
    "end", [{}, {"infrastructure": True}, {"timed_out": True}, {"stopped_by_trial": True}]
)
def test_a_job_that_was_stopped_or_cut_off_says_nothing(end):
    assert {} == judged(ended(FULL, **STOPPED, **end))[1]


def test_a_job_names_the_arms_that_it_should_have_measured():
    job = ended(SPEED, output=segments(0.1), described=asked("baseline", "compile"))
    evidence, _ = judge_with([job], TrialEvidence(SOUND, PLAN, TrialRecords()), accepts, trial="t")

    assert [[], ["j"]] == [evidence.jobs_without(name) for name in ("compile", "baseline")]


def test_a_trial_has_cost_what_its_jobs_and_its_records_say():
    names = [naming.job_base("bert", "t1", run) + "-r0" for run in (SPEED, FULL)]
    described = {name: {"BillableTimeInSeconds": 1800} for name in names}
    described["of-another"] = {"BillableTimeInSeconds": 7}
    records = TrialRecords((JobRecord(names[0], usd=50.0), JobRecord("earlier", usd=3.0)))

    # Half an hour each at two dollars; what is described replaces what was recorded.
    spent = spent_on(described, records, PLAN.arms, of=("bert", "t1"), now=0)
    assert 1.0 + 1.0 + 3.0 == spent


def test_a_segment_that_failed_has_no_steps():
    _, runs = judged(ended(SPEED, output=segments()))

    assert [False] == [run.finished for run in runs["compile"]]


def refuses_controls(evidence: Evidence) -> Decision:
    if any(run.finished for control in evidence.controls for run in control.speed):
        raise InvalidEvidenceError("it cannot be judged")
    return accepts(evidence)


@pytest.mark.parametrize(
    ("job", "reason"),
    [
        (ended(CONTROL, "Failed", reason="boom"), "boom"),
        (ended(naming.speed_run(1, 1, 2), "Failed"), NO_REASON),
        (ended(CONTROL), "completed and left no evidence"),
        (ended(CONTROL, output=segments(0.1, arm="native-control", block=3)), "is not its own"),
        (ended(CONTROL, output=segments(0.1, arm="native-control")), "it cannot be judged"),
        (ended(CONTROL, output=OutputRuns(unreadable=InvalidEvidenceError("no zip"))), "no zip"),
    ],
)
def test_whatever_is_wrong_with_a_control_leaves_it_alone_unmeasured(job, reason):
    asked_for = replace(job, asked_arms=("native-control",))
    decision, runs = judged(asked_for, judge=refuses_controls)

    (block,) = runs["native-control"]
    assert (Verdict.CONTINUE, job.run.block) == (decision.verdict, block.block)
    assert not block.finished
    assert reason in block.reason


ASKED = [("compile", 9, 0), ("baseline", 4, 3)]


def pairs(
    status: str, left: dict[Any, FullRun], described: Mapping[str, Any] | None = None, **output: Any
) -> EndedJob:
    said = {**parameters(runs=encoded_document(ASKED)), **(described or {})}
    return ended(PAIRS, status, described=said, output=OutputRuns(pairs=left, **output))


@pytest.mark.parametrize(
    ("job", "expected"),
    [
        (
            pairs(
                "Completed",
                {
                    (0, "compile"): full(9, wall_seconds=None),
                    (1, "baseline"): full(4),
                },
            ),
            {"compile": [(1, 9, True)], "baseline": [(0, 9, True), (2, 4, True)]},
        ),
        # The second was begun, or not: the job failed in it.
        (
            pairs("Failed", {(0, "compile"): full(9), (1, "baseline"): full(3, finished=False)}),
            {"compile": [(1, 9, True)], "baseline": [(0, 9, True), (2, 4, False)]},
        ),
        (
            pairs("Failed", {(0, "compile"): full(9)}),
            {"compile": [(1, 9, True)], "baseline": [(0, 9, True), (2, 4, False)]},
        ),
        (
            pairs("Failed", {(0, "compile"): full(9, finished=False), (1, "baseline"): full(4)}),
            {"compile": [(1, 9, False)], "baseline": [(0, 9, True), (2, 4, True)]},
        ),
        # Of what came after the one in which it failed nothing is said.
        (
            pairs("Failed", {(0, "compile"): full(9, finished=False)}),
            {"compile": [(1, 9, False)], "baseline": [(0, 9, True)]},
        ),
        (pairs("Failed", {}), {"compile": [(1, 9, False)], "baseline": [(0, 9, True)]}),
        (
            pairs("Failed", {}, unreadable=InvalidEvidenceError("no zip")),
            {"compile": [(1, 9, False)], "baseline": [(0, 9, True)]},
        ),
        # A bundle that knows no pairs has failed as any other job.
        (ended(PAIRS, "Failed"), {"compile": [(1, 9, False)], "baseline": [(0, 9, True)]}),
    ],
)
def test_each_run_of_a_job_of_pairs_stands_for_itself(job, expected):
    _, runs = judged(job, before("baseline"))

    made = {arm: [(r.order, r.seed, r.finished) for r in own] for arm, own in runs.items()}
    assert expected == made


@pytest.mark.parametrize(
    ("job", "problem"),
    [
        (pairs("Completed", {(0, "compile"): full(9)}), "left no run 1 of baseline"),
        (pairs("Completed", {(0, "compile"): full(9, finished=False)}), "left no run 1 of"),
        (pairs("Completed", {(0, "compile"): full(8)}), "with seed 9 and recorded 8"),
        (pairs("Failed", {(0, "baseline"): full(9)}), "runs that are not its own"),
        (pairs("Completed", {}, unreadable=InvalidEvidenceError("no zip")), "no zip"),
        (
            pairs(
                "Completed",
                {
                    (0, "compile"): full(9),
                    (1, "baseline"): full(4, wall_seconds=700.0),
                },
                described=TRAINED,
            ),
            "its steps took 3,700 s",
        ),
        # Also where the last run was not begun, and those before it are too long together.
        (
            pairs(
                "Failed",
                {(0, "compile"): full(9), (1, "baseline"): full(4, wall_seconds=700.0)},
                described={
                    **TRAINED,
                    **parameters(runs=encoded_document([*ASKED, ("compile", 5, 1)])),
                },
            ),
            "its steps took 3,700 s",
        ),
        # Also where the second run was not begun, and the first alone is too long for the job.
        (
            pairs("Failed", {(0, "compile"): full(9, wall_seconds=3698.0)}, described=TRAINED),
            "3,698 s",
        ),
    ],
)
def test_a_job_of_pairs_leaves_the_runs_that_it_was_asked_for(job, problem):
    decision, _ = judged(job)

    assert Verdict.INVALID is decision.verdict
    assert problem in decision.reasons[0].message
