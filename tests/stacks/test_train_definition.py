"""TRAIN as a document: where every edge goes, what is retried, what travels."""

import pytest

from compilegate.domain.planning.rounds import QUEUE_AND_TRANSFER_SECONDS
from compilegate.domain.production.recorded_run import END, FAILED, RERUN, WAIT
from compilegate.domain.workload.model import MOST_HOURS
from stacks.functions import TRAIN
from stacks.train import EVENT_FIELDS
from tests.stacks.asl import catchers, edges, reachable
from tests.stacks.test_definitions import DEFINITIONS

MACHINE = DEFINITIONS[TRAIN]
STATES = MACHINE["States"]
# What tells people must hold nothing up.
TELLING = {
    "TellOfWaiting": "WaitForCapacity",
    "TellOfWatch": "HasModel",
    "NotifyFailure": "RunFailed",
    "NotifyBroken": "Broken",
}
BREAKING = ("ReadFlag", "BuildRequest", "LoadRequest", "Train", "RecordRun", "RecordTeamRun")


def test_whose_workload_it_is_is_known_from_the_first_answer_that_tells():
    assert "{% null %}" == STATES["Begin"]["Assign"]["owner"]
    for name in ("ReadFlag", "RecordRun", "RecordTeamRun"):
        assert "{% $states.result.Payload.owner %}" == STATES[name]["Assign"]["owner"]
    assert "{% $owner %}" == STATES["TrainBroke"]["Output"]["owner"]


@pytest.mark.parametrize("name", BREAKING)
def test_any_error_of_a_step_is_reported_and_fails_the_execution(name):
    assert "TrainBroke" == catchers(STATES[name])["States.ALL"]
    assert "States.ALL" == list(catchers(STATES[name]))[-1]
    assert {"TrainBroke", "NotifyBroken", "Broken"} == reachable(MACHINE, "TrainBroke")


def test_whatever_a_job_ends_with_is_recorded():
    train = STATES["Train"]

    assert "RecordRun" == train["Next"]
    assert {
        "States.TaskFailed": "RecordRun",
        "States.Timeout": "RecordRun",
        "States.ALL": "TrainBroke",
    } == catchers(train)


def test_no_job_starts_but_from_a_request_and_a_run_that_is_this_executions_own():
    leading = {
        target: [name for name, state in STATES.items() if target in edges(state)]
        for target in ("Train", "LoadRequest", "BuildRequest")
    }

    assert ["LoadRequest"] == leading["Train"]
    assert ["BuildRequest"] == leading["LoadRequest"]
    assert ["IsOwnRun", "WaitForCapacity", "WhatNext"] == sorted(leading["BuildRequest"])
    (duplicate,) = STATES["IsOwnRun"]["Choices"]
    assert "Duplicate" == duplicate["Next"]
    assert "Succeed" == STATES["Duplicate"]["Type"]


def test_a_teams_job_starts_nothing():
    assert "RecordTeamRun" in {choice["Next"] for choice in STATES["WhoTrains"]["Choices"]}


def test_every_answer_of_record_run_leads_somewhere():
    conditions = " ".join(choice["Condition"] for choice in STATES["WhatNext"]["Choices"])

    for step in (WAIT, RERUN, END):
        assert f"$next_step = '{step}'" in conditions
    assert "Watch" == STATES["WhatNext"]["Default"]  # WATCH and FAILED: both are looked at
    (failed,) = STATES["HasModel"]["Choices"]
    assert (f"{{% $next_step = '{FAILED}' %}}", "TellOfFailure") == (
        failed["Condition"], failed["Next"],
    )  # fmt: skip


@pytest.mark.parametrize(("name", "then"), sorted(TELLING.items()))
def test_a_message_that_cannot_be_sent_holds_nothing_up(name, then):
    assert then == STATES[name]["Next"]
    assert {"States.ALL": then} == catchers(STATES[name])


def test_a_run_that_could_not_be_judged_is_reported_and_ends_as_it_would():
    (catcher,) = STATES["Watch"]["Catch"]

    assert {"States.ALL": "TellOfWatch"} == catchers(STATES["Watch"])
    assert {"subject", "message", "owner"} == set(catcher["Output"])
    assert {"error", "cause"} == set(catcher["Assign"]["watch_failed"])


def test_the_longest_run_ends_before_the_machines_own_limit():
    """A candidate at its time limit, its rerun, and the longest wait that a file may name."""
    longest = 3 * MOST_HOURS * 3600 + 2 * QUEUE_AND_TRANSFER_SECONDS

    assert longest < MACHINE["TimeoutSeconds"]


def test_the_output_tells_what_became_of_the_run():
    assert set(EVENT_FIELDS) == set(STATES["Done"]["Output"])
    assert set(EVENT_FIELDS) <= set(STATES["Begin"]["Assign"])
