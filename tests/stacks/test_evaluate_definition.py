"""EVALUATE as a document: where its edges lead, what is retried, what travels."""

import pytest

from compilegate.domain import naming
from compilegate.domain.failures import RESOURCE_LIMIT_ERROR
from compilegate.domain.naming import REFUSED
from compilegate.domain.planning.rounds import (
    LEASE_SECONDS,
    MACHINE_SECONDS,
    QUEUE_AND_TRANSFER_SECONDS,
    QUOTA_WAIT_SECONDS,
    TRIAL_SECONDS,
)
from compilegate.domain.trial.jobs import UNKNOWN
from stacks.evaluate import FAILURES
from stacks.functions import EVALUATE
from tests.stacks.asl import build, called, catchers, edges, leaves, reachable
from tests.stacks.test_definitions import DEFINITIONS

MACHINE = DEFINITIONS[EVALUATE]
STATES = build(MACHINE)
TOP = MACHINE["States"]
ROUNDS = {"SpeedGate": "Speed", "QualityRuns": "Quality"}
# Within a Map a state cannot leave the Map: its error fails the Map, which has the Catch.
AFTER_THE_FLAG = {
    "ReleaseModels": "WriteReport",
    "WriteReport": "Notify",
    "Notify": "ReleaseLock",
    "ReleaseLock": "Done",
}
INNER = {name for round_ in ROUNDS for name in TOP[round_]["ItemProcessor"]["States"]}


BEFORE_THE_FLAG = {name for name, state in TOP.items() if state["Type"] in ("Task", "Map")} - {
    "AbortTrial", "TellApproval", *AFTER_THE_FLAG,
}  # fmt: skip


@pytest.mark.parametrize("name", sorted(BEFORE_THE_FLAG))
def test_any_error_of_a_step_aborts_the_trial(name):
    assert "AbortTrial" == catchers(TOP[name])["States.ALL"]
    assert "States.ALL" == list(catchers(TOP[name]))[-1]


def test_a_failing_clean_up_still_ends_with_a_reason():
    assert {"States.ALL": "TrialFailed"} == catchers(TOP["AbortTrial"])
    (catcher,) = TOP["AbortTrial"]["Catch"]
    assert {"error", "reason"} == set(catcher["Output"])


def test_a_locked_workload_is_refused_without_touching_the_trial_that_holds_it():
    assert "HoldsLock" == TOP["AcquireLock"]["Next"]
    assert {"AlreadyRunning", "CheckEligibility"} == set(edges(TOP["HoldsLock"]))
    assert {"AlreadyRunning"} == reachable(MACHINE, "AlreadyRunning")


def test_a_refused_trial_says_so_and_does_not_count_as_a_failed_execution():
    """AWS/States ExecutionsFailed raises an alarm."""
    state = TOP["AlreadyRunning"]

    assert "Succeed" == state["Type"]
    assert [REFUSED] == list(state["Output"])


def test_aborting_leads_nowhere_but_to_the_end():
    assert {"AbortTrial", "TrialFailed"} == reachable(MACHINE, "AbortTrial")


@pytest.mark.parametrize(("name", "then"), sorted(AFTER_THE_FLAG.items()))
def test_after_the_flag_an_error_is_written_down_and_the_trial_goes_on(name, then):
    state = TOP[name]

    assert then == state["Next"]
    assert {"States.ALL": then} == catchers(state)
    (catcher,) = state["Catch"]
    (variable,) = set(catcher["Assign"]) & set(FAILURES)
    assert {"error", "cause"} == set(catcher["Assign"][variable])


def test_the_output_says_what_failed_after_the_flag_and_null_where_nothing_did():
    assert set(FAILURES) <= set(TOP["Done"]["Output"])
    assert {"{% null %}"} == {TOP["ApplyFlag"]["Assign"][name] for name in FAILURES}


def test_without_a_report_people_are_notified():
    (catcher,) = TOP["WriteReport"]["Catch"]

    assert {"subject", "message"} == set(catcher["Output"])


def test_giving_the_lease_back_is_tried_again_after_any_error():
    assert ["States.ALL"] == TOP["ReleaseLock"]["Retry"][-1]["ErrorEquals"]


@pytest.mark.parametrize("name", sorted(INNER))
def test_within_a_round_a_failed_job_is_caught_and_a_look_that_fails(name):
    caught = {
        "SpeedTrain": {
            "States.TaskFailed": "SpeedRunFailed",
            "States.Timeout": "SpeedRunOverdue",
        },
        "QualityTrain": {"States.TaskFailed": "QualityRunFailed"},
        "QualityRunCompleted": {"States.ALL": "QualityRunNotLookedAt"},
        "SpeedRunFailed": {"States.ALL": "SpeedRunUnexplained"},
        "QualityRunFailed": {"States.ALL": "QualityRunUnexplained"},
    }

    assert caught.get(name, {}) == catchers(STATES[name])


def test_a_job_that_is_overdue_fails_the_trial_unless_it_is_a_controls():
    (control,) = STATES["SpeedRunOverdue"]["Choices"]

    assert ("{% $exists($run.control) %}", "SpeedRunUnexplained") == (
        control["Condition"], control["Next"],
    )  # fmt: skip
    assert "Fail" == STATES[STATES["SpeedRunOverdue"]["Default"]]["Type"]


def test_a_full_run_that_completed_counts_even_where_the_look_at_it_failed():
    assert STATES["SpeedRunCompleted"] == STATES["QualityRunNotLookedAt"]
    assert "settle_run" == called(STATES["QualityRunCompleted"])


def test_a_failed_run_that_could_not_be_explained_is_left_to_the_judge():
    for stage in ROUNDS.values():
        assert UNKNOWN == STATES[f"{stage}RunUnexplained"]["Output"]["status"]


def test_what_is_ineligible_or_over_budget_reaches_the_end_without_training():
    without = {
        name: edge
        for name in ("IsEligible", "IsPlanned")
        for edge in edges(TOP[name])
        if edge == "RecordDecision"
    }

    assert ["IsEligible", "IsPlanned"] == sorted(without)
    assert set(ROUNDS).isdisjoint(reachable(MACHINE, "RecordDecision"))


def test_training_is_only_reached_through_the_judge():
    leading = {round_: [n for n, s in TOP.items() if round_ in edges(s)] for round_ in ROUNDS}

    assert {"SpeedGate": ["NextStep"], "QualityRuns": ["NextStep"]} == leading
    assert ["JudgeArms"] == [name for name, state in TOP.items() if "NextStep" in edges(state)]
    assert ["JudgeArms"] * 2 == [TOP[round_]["Next"] for round_ in ROUNDS]


def test_the_flag_is_applied_after_the_ledger_entry_and_the_lease_goes_last():
    path, name = [], "RecordDecision"
    while name != "Done":
        path.append(name)
        name = TOP[name].get("Next") or TOP[name]["Default"]

    ending = list(AFTER_THE_FLAG)
    assert ["RecordDecision", "NeedsApproval", "ApplyFlag", *ending] == path


def test_a_promotion_that_needs_approval_is_asked_for_announced_waited_for_and_closed():
    (needed,) = TOP["NeedsApproval"]["Choices"]
    path, name = [], needed["Next"]
    while name != "ApplyFlag":
        path.append(name)
        name = TOP[name]["Next"]

    assert "{% $approval_needed %}" == needed["Condition"]
    assert ["AskApproval", "TellApproval", "AwaitApproval", "CloseApproval"] == path
    assert {"States.ALL": "AwaitApproval"} == catchers(TOP["TellApproval"])
    assert "CloseApproval" == catchers(TOP["AwaitApproval"])["States.Timeout"]
    assert 30 * 24 * 3600 == TOP["AwaitApproval"]["TimeoutSeconds"]


def test_only_one_step_applies_the_flag():
    assert ["ApplyFlag"] == [
        name
        for name, state in STATES.items()
        if "lambda" in state.get("Resource", "") and called(state) == "apply_flag"
    ]


@pytest.mark.parametrize("stage", ROUNDS.values())
def test_throttled_training_is_retried_with_jitter_under_a_new_name(stage):
    train = STATES[f"{stage}Train"]

    quota, policy = train["Retry"]
    assert "SageMaker.AmazonSageMakerException" in policy["ErrorEquals"]
    assert "FULL" == policy["JitterStrategy"]
    assert policy["MaxAttempts"] > 1
    assert "$states.context.State.RetryCount" in train["Arguments"]
    for one in (quota, policy):
        assert "States.ALL" not in one["ErrorEquals"]
        assert "States.TaskFailed" not in one["ErrorEquals"]  # a failed job is not paid for twice


@pytest.mark.parametrize("stage", ROUNDS.values())
def test_a_quota_in_use_is_waited_for_as_long_as_the_plan_of_a_round_says(stage):
    policy = STATES[f"{stage}Train"]["Retry"][0]
    delays = [
        min(policy["IntervalSeconds"] * policy["BackoffRate"] ** n, policy["MaxDelaySeconds"])
        for n in range(policy["MaxAttempts"])
    ]

    assert [RESOURCE_LIMIT_ERROR] == policy["ErrorEquals"]
    assert "JitterStrategy" not in policy
    assert QUOTA_WAIT_SECONDS == sum(delays)
    assert 12 * 3600 < QUOTA_WAIT_SECONDS < 24 * 3600


def test_every_retry_of_a_request_has_a_name_of_its_own():
    for stage in ROUNDS.values():
        train = STATES[f"{stage}Train"]
        retries = sum(policy["MaxAttempts"] for policy in train["Retry"])

        assert f"$substring('{naming.RETRY_DIGITS}'," in train["Arguments"]
        assert retries < len(naming.RETRY_DIGITS) == len(set(naming.RETRY_DIGITS))
    assert list(naming.RETRY_DIGITS) == sorted(naming.RETRY_DIGITS)


def test_as_many_jobs_run_at_once_as_the_judge_says():
    for round_ in ROUNDS:
        assert "{% $max_concurrency %}" == STATES[round_]["MaxConcurrency"]
    assert "max_concurrency" in STATES["JudgeArms"]["Assign"]


def test_a_run_that_was_withdrawn_before_its_turn_starts_no_job():
    for stage in ROUNDS.values():
        check, withdrawn = STATES[f"{stage}IsStillWanted"], STATES[f"{stage}RunWithdrawn"]

        assert f"{stage}IsStillWanted" == STATES[f"{stage}LoadRequest"]["Next"]
        assert f"{{% $exists($request.{naming.WITHDRAWN}) %}}" == check["Choices"][0]["Condition"]
        assert {f"{stage}RunWithdrawn", f"{stage}Train"} == set(edges(check))
        assert ("Stopped", True) == (withdrawn["Output"]["status"], withdrawn["End"])


def test_a_job_is_waited_for_as_long_as_it_may_take_and_wait_for_spot_capacity():
    limits = "$request.StoppingCondition"
    longest = f"$max([{limits}.MaxRuntimeInSeconds, {limits}.MaxWaitTimeInSeconds])"

    for stage in ROUNDS.values():
        expected = f"{{% {longest} + {QUEUE_AND_TRANSFER_SECONDS} %}}"
        assert expected == STATES[f"{stage}Train"]["TimeoutSeconds"]


def test_the_lease_outlives_a_trial_of_its_own_runs_and_nothing_outlives_the_services_year():
    assert LEASE_SECONDS > TRIAL_SECONDS
    assert TRIAL_SECONDS < MACHINE_SECONDS < 365 * 24 * 3600


def test_the_request_travels_by_key_and_never_leaves_its_branch():
    for stage in ROUNDS.values():
        load = STATES[f"{stage}LoadRequest"]
        assert {"Bucket": "data", "Key": "{% $states.input.request_key %}"} == load["Arguments"]
        assert {} == load["Output"]
    outcome = STATES["QualityRunNotLookedAt"]["Output"]
    assert {"run", "job", "status", "reason"} == set(outcome)


def test_variables_of_a_branch_do_not_shadow_those_outside():
    outside = {v for state in TOP.values() for v in state.get("Assign", ())}
    inside = {v for name in INNER for v in STATES[name].get("Assign", ())}

    assert set() == outside & inside


CANARY = TOP["CanaryRuns"]


def test_the_trial_waits_with_a_token_as_long_as_the_judge_allows():
    assert "arn:aws:states:::lambda:invoke.waitForTaskToken" == CANARY["Resource"]
    assert "open_canary" == called(CANARY)
    payload = CANARY["Arguments"]["Payload"]
    assert "{% $states.context.Task.Token %}" == payload["token"]
    assert "{% $canary.timeout_seconds %}" == CANARY["TimeoutSeconds"]
    assert {"workload", "trial", "spec_key", "execution", "token", "round", "runs",
            "timeout_seconds"} == set(payload)  # fmt: skip


def test_too_long_a_wait_is_judged_and_any_other_error_aborts():
    assert {"States.Timeout": "JudgeArms", "States.ALL": "AbortTrial"} == catchers(CANARY)
    assert "JudgeArms" == CANARY["Next"]


def test_no_outcomes_of_an_earlier_round_are_judged_again_after_the_wait():
    assert {"outcomes": []} == CANARY["Assign"]
    assert {"outcomes": []} == CANARY["Catch"][0]["Assign"]


def test_only_the_judge_leads_to_a_round_that_production_carries():
    (choice,) = [c for c in TOP["NextStep"]["Choices"] if c["Next"] == "CanaryRuns"]

    assert "{% $next_stage = 'canary' %}" == choice["Condition"]
    assert ["NextStep"] == [name for name, state in TOP.items() if "CanaryRuns" in leaves(state)]


def test_models_are_reported_after_the_flag_and_hold_nothing_up():
    state = TOP["ReleaseModels"]

    assert ("release_models", "WriteReport") == (called(state), state["Next"])
    assert "{% $flag_enabled %}" == state["Arguments"]["Payload"]["flag_enabled"]
    assert {"States.ALL": "WriteReport"} == catchers(state)
