"""What may not change about the ways of the state machines, wherever else they lead."""

import pytest

from stacks.functions import EVALUATE, TRAIN
from tests.stacks.asl import build, catchers, reachable
from tests.stacks.test_definitions import DEFINITIONS

STATES = {name: build(definition) for name, definition in DEFINITIONS.items()}


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
