"""The round that production carries, and what may be said of the models that it made."""

import pytest

from tests.stacks.template import ACCOUNT, REGION, as_list
from tests.stacks.test_evaluate_definition import TOP, called, catchers, leaves

JOBS = f"arn:aws:sagemaker:{REGION}:{ACCOUNT}:training-job/cg-*"
MACHINE = f"arn:aws:states:{REGION}:{ACCOUNT}:stateMachine:compilegate-prod-evaluate"
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


def test_models_are_told_of_after_the_flag_and_hold_nothing_up():
    state = TOP["ReleaseModels"]

    assert ("release_models", "WriteReport") == (called(state), state["Next"])
    assert "{% $flag_enabled %}" == state["Arguments"]["Payload"]["flag_enabled"]
    assert {"States.ALL": "WriteReport"} == catchers(state)


@pytest.mark.parametrize("owner", ["abort_trial", "record_run", "release_models"])
def test_models_are_tagged_by_one_key_and_on_our_own_jobs_only(template, owner):
    (statement,) = [
        statement
        for statement in template.statements(owner)
        if "sagemaker:AddTags" in as_list(statement["Action"])
    ]

    assert JOBS == statement["Resource"]
    only = {"aws:TagKeys": ["compilegate:release"]}
    assert {"ForAllValues:StringEquals": only} == statement["Condition"]


def test_whoever_opens_a_round_may_let_the_trial_go_on_and_no_other_machine(template):
    assert [MACHINE] == template.allowed("states:SendTaskSuccess")["open_canary"]
