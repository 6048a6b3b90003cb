"""What may not change about the ways of the state machines, wherever else they lead."""

import pytest

from stacks.functions import EVALUATE, TRAIN
from tests.stacks.asl import before, build, catchers, machines, reachable
from tests.stacks.test_definitions import DEFINITIONS

STATES = {name: build(definition) for name, definition in DEFINITIONS.items()}
ROUNDS = {"SpeedGate", "QualityRuns", "CanaryRuns"}


def machine_with(name, state):
    """The definition, or the Map's inner machine, that has a state."""
    (found,) = [one for one in machines(DEFINITIONS[name]) if state in one["States"]]
    return found


# From which states alone a state comes next.
ONLY_AFTER = [
    # A round, by the judge alone.
    *((EVALUATE, round_, {"NextStep"}) for round_ in sorted(ROUNDS)),
    (EVALUATE, "NextStep", {"JudgeArms"}),
    # A job, where its request was not withdrawn.
    (EVALUATE, "SpeedTrain", {"SpeedIsStillWanted"}),
    (EVALUATE, "QualityTrain", {"QualityIsStillWanted"}),
    # The flag, after the ledger's entry and the approval, in this order.
    (EVALUATE, "ApplyFlag", {"NeedsApproval", "CloseApproval"}),
    (EVALUATE, "CloseApproval", {"AwaitApproval"}),
    (EVALUATE, "AwaitApproval", {"TellApproval"}),
    (EVALUATE, "TellApproval", {"AskApproval"}),
    (EVALUATE, "AskApproval", {"NeedsApproval"}),
    (EVALUATE, "NeedsApproval", {"RecordDecision"}),
    (EVALUATE, "Done", {"ReleaseLock"}),
    # A job, from a request and from a run that is the execution's own.
    (TRAIN, "Train", {"LoadRequest"}),
    (TRAIN, "LoadRequest", {"BuildRequest"}),
    (TRAIN, "BuildRequest", {"IsOwnRun", "WaitForCapacity", "WhatNext"}),
    (TRAIN, "IsOwnRun", {"BeginRun"}),
]


@pytest.mark.parametrize(("name", "state", "states"), ONLY_AFTER)
def test_a_state_comes_only_after_these(name, state, states):
    assert states == before(machine_with(name, state), state)


# By state, what can be reached from it, itself among it: ends in which nothing trains.
ENDS = [
    (EVALUATE, "AlreadyRunning", {"AlreadyRunning"}),
    (EVALUATE, "AbortTrial", {"AbortTrial", "TrialFailed"}),
    (EVALUATE, "SpeedRunWithdrawn", {"SpeedRunWithdrawn"}),
    (EVALUATE, "QualityRunWithdrawn", {"QualityRunWithdrawn"}),
    (TRAIN, "Duplicate", {"Duplicate"}),
    (TRAIN, "TrainBroke", {"TrainBroke", "NotifyBroken", "Broken"}),
]


@pytest.mark.parametrize(("name", "state", "states"), ENDS)
def test_from_an_end_nothing_else_is_reached(name, state, states):
    assert states == reachable(machine_with(name, state), state)


# The answer that must not go straight on, and where it leads instead.
REFUSALS = [
    (EVALUATE, "HoldsLock", "$exists($states.input.refused)", "AlreadyRunning"),
    (EVALUATE, "IsEligible", "$verdict = 'ineligible'", "RecordDecision"),
    (EVALUATE, "NeedsApproval", "$approval_needed", "AskApproval"),
    (EVALUATE, "SpeedIsStillWanted", "$exists($request.Withdrawn)", "SpeedRunWithdrawn"),
    (EVALUATE, "QualityIsStillWanted", "$exists($request.Withdrawn)", "QualityRunWithdrawn"),
    (TRAIN, "WhoTrains", "$team_job != null", "RecordTeamRun"),
    (TRAIN, "IsOwnRun", "$states.input.duplicate", "Duplicate"),
]


@pytest.mark.parametrize(("name", "state", "condition", "leads"), REFUSALS)
def test_an_answer_that_refuses_does_not_go_on(name, state, condition, leads):
    (choice,) = STATES[name][state]["Choices"]

    assert (f"{{% {condition} %}}", leads) == (choice["Condition"], choice["Next"])


def test_only_what_is_planned_is_judged_and_what_is_decided_trains_no_more():
    (planned,) = STATES[EVALUATE]["IsPlanned"]["Choices"]

    assert ("{% $verdict = 'continue' %}", "JudgeArms") == (planned["Condition"], planned["Next"])
    assert "RecordDecision" == STATES[EVALUATE]["IsPlanned"]["Default"]
    assert ROUNDS.isdisjoint(reachable(DEFINITIONS[EVALUATE], "RecordDecision"))


@pytest.mark.parametrize(
    ("name", "last", "aborts"),
    [(EVALUATE, "ApplyFlag", "AbortTrial"), (TRAIN, "Train", "TrainBroke")],
)
def test_every_error_before_the_flag_or_a_job_aborts(name, last, aborts):
    """But where a message could not be sent, which holds nothing up."""
    machine = DEFINITIONS[name]
    steps = {
        step: state
        for step, state in machine["States"].items()
        if state["Type"] in ("Task", "Map") and last in reachable(machine, step)
    }
    assert last in steps
    for step, state in steps.items():
        expected = state["Next"] if "sns:publish" in state.get("Resource", "") else aborts
        assert ("States.ALL", expected) == list(catchers(state).items())[-1], step


def test_an_error_after_the_flag_aborts_nothing_and_the_lock_is_given_back():
    after = reachable(DEFINITIONS[EVALUATE], "ReleaseModels")

    assert "AbortTrial" not in after
    assert {"ReleaseModels", "WriteReport", "Notify", "ReleaseLock", "Done"} == after


def test_jobs_and_the_flag_have_no_other_states():
    """What starts a job or writes the flag stands in the tables above."""
    made = {
        (name, state)
        for name, states in STATES.items()
        for state, content in states.items()
        if "createTrainingJob" in content.get("Resource", "")
    }

    assert {(EVALUATE, "SpeedTrain"), (EVALUATE, "QualityTrain"), (TRAIN, "Train")} == made
