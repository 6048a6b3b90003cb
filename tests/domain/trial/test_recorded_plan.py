"""A recorded plan is read, and what follows from it; arms of which no job left anything."""

from __future__ import annotations

from dataclasses import asdict, replace
from types import SimpleNamespace
from typing import Any

import pytest

from compilegate.domain.decision import CANARY, SHADOW
from compilegate.domain.errors import InvalidInputError
from compilegate.domain.flag import OFF, Flag
from compilegate.domain.planning import rounds
from compilegate.domain.production.history import DAY_SECONDS, WorkloadHistory
from compilegate.domain.production.registration import Registration, TrainedJob
from compilegate.domain.records.flags import FlagVersion
from compilegate.domain.records.trials import TrialDecided
from compilegate.domain.trial.plan import (
    PlannedCandidate,
    QualityMode,
    RecordedPlan,
    TrialContext,
    candidate_named,
    cooling_down,
    plan_document,
    planned_candidates,
    quality_mode,
    read_plan,
)
from compilegate.domain.workload.model import BASELINE
from compilegate.usecases.reports import silent_arms
from tests.domain.production.run_builder import BEGIN, production_run
from tests.domain.trial.plans import arm, plan
from tests.domain.workload_builder import SOUND, change


def document(**changes: Any) -> dict[str, Any]:
    return {**asdict(plan("baseline", "compile")), "quotas": [], **changes}


def test_a_later_releases_further_fields_are_left_out():
    mode = QualityMode(CANARY, CANARY, beside=True)
    arms = [{**arm, "of_a_later_release": 1} for arm in document()["arms"]]
    later = {**asdict(mode), "of_a_later_release": 1}

    assert plan("baseline", "compile", quality_mode=mode) == read_plan(
        document(arms=arms, quality_mode=later, of_a_later_release=1)
    )


def test_remarks_and_the_estimate_are_read_with_it():
    read = read_plan(document(estimate={"usd": 12.5}, no_holdback={}))

    codes = [note.code for note in read.notes]
    assert (12.5, ["no_holdback"]) == (read.expected_usd, codes)
    assert (0, 0) == (read.started_at, read.stands_on)


@pytest.mark.parametrize(
    ("used", "beside", "in_production"),
    [(SHADOW, False, False), (SHADOW, True, True), (CANARY, False, True)],
)
def test_production_makes_evidence_of_its_own_or_the_full_runs(used, beside, in_production):
    own = plan("baseline", quality_mode=QualityMode(used, used, beside=beside))

    assert in_production is own.runs_in_production


def made_plan(*turns: int, names: tuple[str, ...]) -> Any:
    layout = [SimpleNamespace(waves=waves) for waves in turns]
    return SimpleNamespace(
        arms=plan(*names).arms, layout=layout, max_quality_runs=7,
        to_dict=lambda: {"speed_steps": 160},
    )  # fmt: skip


def test_a_trial_fits_into_its_time_to_the_second():
    each = (rounds.TRIAL_SECONDS - rounds.ENDING_SECONDS) // rounds.max_rounds(1)
    longest = each - rounds.QUEUE_AND_TRANSFER_SECONDS - rounds.QUOTA_WAIT_SECONDS
    context = TrialContext("t", "s.json", "e", "s.tgz", 9, QualityMode(SHADOW, SHADOW), 0)
    made = made_plan(1, names=("baseline", "compile"))
    hours = [(longest + more) / 3600 for more in (0, 1)]
    jobs = [change(SOUND, training__max_runtime_hours=one).training for one in hours]

    limits = [plan_document(made, context, job)["limits"] for job in jobs]
    assert [True, False] == [one["fits"] for one in limits]


def test_a_plan_is_kept_with_the_limits_of_its_longest_path():
    """A control and the baseline are no candidates; the slowest layout takes two turns."""
    made = made_plan(1, 2, names=("baseline", "compile", "larger", "a-control"))
    hours = SOUND.training.longest_job_hours
    seconds = rounds.max_rounds(2) * rounds.round_seconds(hours, 2) + rounds.ENDING_SECONDS

    for used, most, quality in (
        (SHADOW, rounds.TRIAL_SECONDS, 0),
        (CANARY, rounds.MACHINE_SECONDS, 7),
    ):
        mode = QualityMode(used, used)
        for stands_on in (0, 3):
            context = TrialContext("t", "s.json", "e", "s.tgz", 9, mode, stands_on)
            kept = plan_document(made, context, SOUND.training)

            assert {
                "max_rounds": rounds.max_rounds(2, quality),
                "longest_hours": round(seconds / 3600, 2), "machine_hours": most / 3600,
                "fits": seconds <= most,
            } == kept["limits"]  # fmt: skip
            assert (160, "t", 9) == (kept["speed_steps"], kept["trial"], kept["started_at"])
            assert (stands_on or None) == kept.get("stands_on")


PYTHON = change(SOUND, policy__quality_runs="canary", framework__python="py312")
JOB = TrainedJob(PYTHON, code="c")
REGISTERED = Registration(SOUND.name, "spec", "source", schedule="rate(1 day)")
UNSCHEDULED = replace(REGISTERED, schedule=None)
OTHER = replace(
    JOB, workload=change(JOB.workload, training__batch_size=SOUND.training.batch_size * 2)
)

LATER = change(PYTHON, framework__python=None, framework__transformers="4.36.0")


@pytest.mark.parametrize(
    ("registration", "produced", "launched_by", "why"),
    [
        (REGISTERED, JOB, None, None),
        (None, None, None, "is not registered"),
        (REGISTERED, None, None, "is not registered"),
        (None, JOB, None, "is not registered"),
        (replace(REGISTERED, active=False), JOB, None, "was retired"),
        (REGISTERED, replace(JOB, code="d"), None, "differs in the source"),
        (REGISTERED, OTHER, None, "differs in training.batch_size: register"),
        (REGISTERED, replace(JOB, workload=LATER), None,
         "differs in framework.python, framework.transformers: register"),
        (UNSCHEDULED, JOB, None, "no production run has gone through TRAIN"),
        (UNSCHEDULED, JOB, "team", "no production run has gone through TRAIN"),
        (UNSCHEDULED, JOB, "train", None),
    ],
)  # fmt: skip
def test_production_makes_the_runs_where_it_trains_this_very_job(
    registration, produced, launched_by, why
):
    runs = (production_run(1, launched_by=launched_by),) if launched_by else ()
    mode = quality_mode(JOB, registration, produced, WorkloadHistory(runs=runs))

    assert ("canary", SHADOW if why else CANARY) == (mode.asked, mode.used)
    assert mode.beside is (why is None)
    assert (why or "None") in str(mode.why)
    # Where shadow runs were asked for, no reason is needed.
    shadow = replace(JOB, workload=change(SOUND, policy__quality_runs="shadow"))
    assert None is quality_mode(shadow, None, None, WorkloadHistory()).why


def test_the_first_arm_is_the_baseline_and_controls_are_no_candidates():
    read = plan("baseline", "compile", "a-control", "b-control", "c-control", "larger")

    assert ("baseline", 2, "") == (read.baseline.name, read.candidates, read.on_top_of)
    assert ["baseline", "compile", "larger"] == [one.name for one in read.judged_arms]
    assert "a-control" == read.arm("a-control").name
    larger = replace(
        read, arms=(read.baseline, arm("larger", batch_size=16, overrides={"batch_size": 16}))
    )
    assert ({}, 16) == (larger.overrides("baseline"), larger.overrides("larger")["batch_size"])


def test_an_arm_of_which_three_jobs_left_nothing_is_given_up():
    unmeasured = {
        "s0": ["compile", "larger"], "s1": ["compile"], "s2": ["larger", "compile"],
        "s3": "x", "s4": "x", "s5": "x",
    }  # fmt: skip
    given_up = silent_arms({"plan": {"unmeasured_by_job": unmeasured}})

    assert ["compile"] == [*given_up]
    reason = given_up["compile"]
    assert ("evidence_missing", "compile") == (reason.code, reason.arm)
    assert "compile: 3 speed jobs" in reason.message
    assert reason.message.endswith("s0, s1, s2")


@pytest.mark.parametrize("evidence", [None, {}, {"plan": 1}, {"plan": {"unmeasured_by_job": 3}}])
def test_evidence_that_cannot_be_read_gives_up_no_arm(evidence):
    assert {} == silent_arms(evidence)


# Candidates that a person may turn on: those that decided trials have planned.


def decided(
    trial: str, at: int, verdict: str = "promote", candidate: str = "compile"
) -> TrialDecided:
    return TrialDecided(at, trial, verdict, f"{trial}/decision.json", f"d-{trial}", candidate)


def candidates(*planned: tuple[TrialDecided, RecordedPlan]) -> dict[str, PlannedCandidate]:
    return planned_candidates("bert-docs", planned)


def plan_of(**overrides: object) -> RecordedPlan:
    arms = (arm(BASELINE, role="baseline"), arm("compile", overrides=overrides, batch_size=16))
    return replace(plan(), arms=arms)


@pytest.mark.parametrize(
    ("verdict", "candidate", "proven"),
    [("promote", "compile", True), ("promote", "other", False), ("inconclusive", "compile", False)],
)
def test_a_candidate_is_proven_where_its_own_trial_promoted_it(verdict, candidate, proven):
    known = candidates((decided("t1", 1, verdict, candidate), plan_of()))

    assert proven is known["compile"].proven


def test_a_candidate_that_was_never_planned_is_refused_with_those_that_were():
    planned = candidates((decided("t1", 1), plan_of()))

    assert planned["compile"] is candidate_named("compile", planned, "bert-docs")
    with pytest.raises(InvalidInputError, match="Fix: use one of compile"):
        candidate_named("compil", planned, "bert-docs")
    with pytest.raises(InvalidInputError, match="run a trial of bert-docs first"):
        candidate_named("compile", {}, "bert-docs")


# How long no trial starts after a revert.


def test_of_several_trials_the_newest_counts_in_whatever_order_they_are_read():
    old = decided("t1", 1), plan_of()
    new = decided("t2", 2, verdict="stay_off"), plan_of(batch_size=16)
    one, other = candidates(old, new)["compile"], candidates(new, old)["compile"]

    assert one == other
    assert ("t2", "stay_off", False) == (one.trial, one.verdict, one.proven)
    assert {"batch_size": 16, "learning_rate": 0.1} == one.flag.overrides
    assert ("probation", "compile", "d-t2") == (
        one.flag.state, one.flag.candidate, one.flag.decision_id,
    )  # fmt: skip


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
        [reverted("train", "stale")],
    ],
    ids=["never", "a trial's no", "reverted by a person", "stale"],
)
def test_nothing_else_makes_a_trial_wait(history):
    assert None is cooling_down(history, 14, now=BEGIN + DAY_SECONDS, workload="bert-docs")
