"""EVALUATE as a document: where every edge goes, what is retried, what travels."""

import json

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
from stacks.evaluate import FAILURES, definition
from stacks.functions import EVALUATE, STEPS
from tests.stacks.asl import (
    assigned_on_every_path,
    build,
    catchers,
    edges,
    leaves,
    lint,
    machines,
    reachable,
    reads,
)

FUNCTIONS = {
    step.name: f"arn:aws:lambda:us-east-1:123456789012:function:{step.name}"
    for step in STEPS
    if step.machine == EVALUATE
}
MACHINE = definition(
    FUNCTIONS, bucket="data", topic_arn="arn:aws:sns:us-east-1:123456789012:decisions"
)
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
# The question stands in the ledger whether or not its message was sent.
UNTOLD = "TellApproval"
INNER = {name for round_ in ROUNDS for name in TOP[round_]["ItemProcessor"]["States"]}


def called(state):
    """The function that a state invokes."""
    return state["Arguments"]["FunctionName"].rpartition(":")[2]


def tasks(states):
    return {name: state for name, state in states.items() if state["Type"] in ("Task", "Map")}


def test_the_deployed_definition_is_this_one(template):
    deployed = template.definition("evaluate")

    assert list(MACHINE["States"]) == list(deployed["States"])
    assert MACHINE["TimeoutSeconds"] == deployed["TimeoutSeconds"]


def test_nothing_is_null_which_synthesis_would_drop():
    assert None not in leaves(MACHINE)


def test_every_state_can_be_reached():
    for machine in machines(MACHINE):
        assert set(machine["States"]) == reachable(machine)


def test_every_edge_leads_to_a_state_of_the_same_machine():
    for machine in machines(MACHINE):
        for name, state in machine["States"].items():
            assert set(edges(state)) <= set(machine["States"]), name


def test_every_state_leads_on_or_ends():
    for name, state in STATES.items():
        ends = state["Type"] in ("Succeed", "Fail") or state.get("End") is True
        assert ends != bool(edges({**state, "Catch": ()})), name


def test_names_fit_the_limit():
    assert all(len(name) <= 80 for name in STATES)


def test_every_function_is_called():
    lambdas = [state for state in STATES.values() if "lambda" in state.get("Resource", "")]

    assert set(FUNCTIONS) == {called(state) for state in lambdas}


@pytest.mark.parametrize("name", sorted(set(tasks(TOP)) - {"AbortTrial", UNTOLD, *AFTER_THE_FLAG}))
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


def test_without_a_report_people_are_told_all_the_same():
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


def test_a_promotion_that_needs_approval_is_asked_for_told_waited_for_and_closed():
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


def test_every_other_retry_has_jitter():
    policies = [policy for state in STATES.values() for policy in state.get("Retry", ())]
    others = [policy for policy in policies if policy["ErrorEquals"] != [RESOURCE_LIMIT_ERROR]]

    assert {"FULL"} == {policy["JitterStrategy"] for policy in others}


def test_as_many_jobs_run_at_once_as_the_judge_says():
    for round_ in ROUNDS:
        assert "{% $max_concurrency %}" == STATES[round_]["MaxConcurrency"]
    assert "max_concurrency" in STATES["JudgeArms"]["Assign"]


def test_a_run_that_was_withdrawn_before_its_turn_starts_no_job():
    for stage in ROUNDS.values():
        check, withdrawn = STATES[f"{stage}IsStillWanted"], STATES[f"{stage}RunWithdrawn"]

        assert f"{stage}IsStillWanted" == STATES[f"{stage}LoadRequest"]["Next"]
        assert f"{{% $exists($request.{naming.WITHDRAWN}) %}}" == check["Choices"][0]["Condition"]
        assert [f"{stage}RunWithdrawn", f"{stage}Train"] == edges(check)
        assert ("Stopped", True) == (withdrawn["Output"]["status"], withdrawn["End"])


def test_every_task_gives_up_in_the_end():
    for name, state in STATES.items():
        if state["Type"] == "Task":
            assert "TimeoutSeconds" in state, name
    assert MACHINE_SECONDS == MACHINE["TimeoutSeconds"]


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


def test_functions_get_keys_and_names_only():
    allowed = {
        "workload", "trial", "spec_key", "execution", "decision_key", "round", "runs", "run",
        "job", "status", "error", "cause", "flag_enabled", "token", "timeout_seconds",
    }  # fmt: skip
    for state in STATES.values():
        if "lambda" in state.get("Resource", ""):
            assert set(state["Arguments"]["Payload"]) <= allowed


def test_variables_are_assigned_before_anything_can_read_them():
    """A variable that is read must be assigned on the way, whichever way that was."""
    for machine in machines(MACHINE):
        outer = set() if machine is MACHINE else {"runs"}
        for name, state in machine["States"].items():
            for variable in reads(state) - outer:
                assert assigned_on_every_path(machine, name, variable), (name, variable)


def test_variables_of_a_branch_do_not_shadow_those_outside():
    outside = {v for state in TOP.values() for v in state.get("Assign", ())}
    inside = {v for name in INNER for v in STATES[name].get("Assign", ())}

    assert set() == outside & inside


def test_the_definition_is_valid_amazon_states_language():
    document = json.loads(json.dumps(MACHINE))
    for round_, stage in ROUNDS.items():
        # cfn-lint takes a number only; in JSONata the language takes an expression as well.
        train = document["States"][round_]["ItemProcessor"]["States"][f"{stage}Train"]
        train["TimeoutSeconds"] = 1
        document["States"][round_]["MaxConcurrency"] = 1
    document["States"]["CanaryRuns"]["TimeoutSeconds"] = 1

    assert [] == lint(document)


def test_the_check_of_the_language_finds_a_seeded_fault():
    document = json.loads(json.dumps(MACHINE))
    document["States"]["Notify"]["Reesource"] = "$.x"

    assert any("Reesource" in message for message in lint(document))
