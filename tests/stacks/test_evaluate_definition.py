"""EVALUATE as a document: where its edges lead, what is retried, what travels."""

import pytest

from compilegate.domain import naming
from compilegate.domain.failures import RESOURCE_LIMIT_ERROR
from compilegate.domain.naming import REFUSED
from compilegate.domain.planning.rounds import (
    LOCK_SECONDS,
    MACHINE_SECONDS,
    QUEUE_AND_TRANSFER_SECONDS,
    QUOTA_WAIT_SECONDS,
    TRIAL_SECONDS,
)
from compilegate.domain.trial.jobs import UNKNOWN
from stacks.evaluate import FAILURES
from stacks.functions import EVALUATE
from tests.stacks.asl import build, called
from tests.stacks.test_definitions import DEFINITIONS

MACHINE = DEFINITIONS[EVALUATE]
STATES = build(MACHINE)
TOP = MACHINE["States"]
ROUNDS = {"SpeedGate": "Speed", "QualityRuns": "Quality"}
INNER = {name for round_ in ROUNDS for name in TOP[round_]["ItemProcessor"]["States"]}


# What stands in a state besides its ways, which are on file (test_definitions.py).
IN_A_STATE = {
    "AwaitApproval": {"TimeoutSeconds": 30 * 24 * 3600},
    "CanaryRuns": {
        "Resource": "arn:aws:states:::lambda:invoke.waitForTaskToken",
        "TimeoutSeconds": "{% $canary.timeout_seconds %}",
        "Assign": {"outcomes": []},  # of an earlier round, which are not judged again
    },
    **{name: {"MaxConcurrency": "{% $max_concurrency %}"} for name in ROUNDS},
    **{
        f"{stage}LoadRequest": {
            "Arguments": {"Bucket": "data", "Key": "{% $states.input.request_key %}"},
            "Output": {},  # it never leaves its branch
        }
        for stage in ROUNDS.values()
    },
    **{
        f"{stage}Train": {
            "TimeoutSeconds": "{% $max([$request.StoppingCondition.MaxRuntimeInSeconds, "
            "$request.StoppingCondition.MaxWaitTimeInSeconds]) + "
            f"{QUEUE_AND_TRANSFER_SECONDS} %}}"
        }
        for stage in ROUNDS.values()
    },
}


@pytest.mark.parametrize("name", IN_A_STATE)
def test_a_state_waits_and_takes_as_it_says(name):
    expected = IN_A_STATE[name]

    assert expected == {field: STATES[name][field] for field in expected}


def keys(field, state, *, of_catcher=False):
    part = TOP[state]["Catch"][0] if of_catcher else STATES[state]
    return set(part[field])


def test_an_end_says_what_became_of_the_trial():
    """A refused trial succeeds: AWS/States ExecutionsFailed raises an alarm."""
    assert {REFUSED} == keys("Output", "AlreadyRunning")
    assert {"error", "reason"} == keys("Output", "AbortTrial", of_catcher=True)
    assert {"subject", "message"} == keys("Output", "WriteReport", of_catcher=True)
    assert set(FAILURES) <= keys("Output", "Done")
    assert {"{% null %}"} == {TOP["ApplyFlag"]["Assign"][name] for name in FAILURES}


@pytest.mark.parametrize(
    ("name", "failure"),
    list(zip(("ReleaseModels", "WriteReport", "Notify", "ReleaseLock"), FAILURES, strict=True)),
)
def test_after_the_flag_an_error_is_written_down(name, failure):
    assert {"error", "cause"} == set(TOP[name]["Catch"][0]["Assign"][failure])


def test_giving_the_lock_back_is_tried_again_after_any_error():
    assert ["States.ALL"] == TOP["ReleaseLock"]["Retry"][-1]["ErrorEquals"]


def test_outcomes_of_runs_that_no_look_explains():
    assert {"outcomes": []} == TOP["CanaryRuns"]["Catch"][0]["Assign"]
    assert STATES["SpeedRunCompleted"] == STATES["QualityRunNotLookedAt"]
    assert {"run", "job", "status", "reason"} == keys("Output", "QualityRunNotLookedAt")
    for stage in ROUNDS.values():
        assert UNKNOWN == STATES[f"{stage}RunUnexplained"]["Output"]["status"]
        assert "Stopped" == STATES[f"{stage}RunWithdrawn"]["Output"]["status"]


CALLED = {
    "CanaryRuns": ("open_canary", "token", "{% $states.context.Task.Token %}"),
    "ReleaseModels": ("release_models", "flag_enabled", "{% $flag_enabled %}"),
}


@pytest.mark.parametrize("name", CALLED)
def test_a_function_gets_what_it_waits_or_asks_for(name):
    function, field, value = CALLED[name]

    assert (function, value) == (called(TOP[name]), TOP[name]["Arguments"]["Payload"][field])


@pytest.mark.parametrize("stage", ROUNDS.values())
def test_throttled_training_is_retried_with_jitter_under_a_new_name(stage):
    train = STATES[f"{stage}Train"]
    quota, policy = train["Retry"]

    assert "SageMaker.AmazonSageMakerException" in policy["ErrorEquals"]
    assert "FULL" == policy["JitterStrategy"]
    assert policy["MaxAttempts"] > 1
    assert "$states.context.State.RetryCount" in train["Arguments"]
    # A failed job is not paid for twice.
    assert {"States.ALL", "States.TaskFailed"}.isdisjoint(
        (*quota["ErrorEquals"], *policy["ErrorEquals"])
    )


def test_only_one_step_applies_the_flag():
    assert ["ApplyFlag"] == [
        name
        for name, state in STATES.items()
        if "lambda" in state.get("Resource", "") and called(state) == "apply_flag"
    ]


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


def test_the_lock_outlives_a_trial_of_its_own_runs_and_nothing_outlives_the_services_year():
    assert LOCK_SECONDS > TRIAL_SECONDS
    assert TRIAL_SECONDS < MACHINE_SECONDS < 365 * 24 * 3600


def test_variables_of_a_branch_do_not_shadow_those_outside():
    outside = {v for state in TOP.values() for v in state.get("Assign", ())}
    inside = {v for name in INNER for v in STATES[name].get("Assign", ())}

    assert set() == outside & inside
