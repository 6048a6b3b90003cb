"""EVALUATE as a document: where its edges lead, what is retried, what travels."""

import pytest

from compilegate.domain import naming
from compilegate.domain.failures import RESOURCE_LIMIT_ERROR
from compilegate.domain.planning.rounds import (
    LOCK_SECONDS,
    MACHINE_SECONDS,
    QUEUE_AND_TRANSFER_SECONDS,
    QUOTA_WAIT_SECONDS,
    TRIAL_SECONDS,
)
from stacks.functions import EVALUATE
from tests.stacks.asl import build
from tests.stacks.test_definitions import DEFINITIONS

MACHINE = DEFINITIONS[EVALUATE]
STATES = build(MACHINE)
TOP = MACHINE["States"]
ROUNDS = {"SpeedGate": "Speed", "QualityRuns": "Quality"}


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


def test_giving_the_lock_back_is_tried_again_after_any_error():
    assert ["States.ALL"] == TOP["ReleaseLock"]["Retry"][-1]["ErrorEquals"]


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
