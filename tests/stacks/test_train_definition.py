"""TRAIN as a document: where every edge goes, what is retried, what travels."""

from compilegate.domain.planning.rounds import QUEUE_AND_TRANSFER_SECONDS
from compilegate.domain.production.recorded_run import END, FAILED, RERUN, WAIT
from compilegate.domain.workload.model import MOST_HOURS
from stacks.functions import TRAIN
from stacks.train import EVENT_FIELDS
from tests.stacks.test_definitions import DEFINITIONS

MACHINE = DEFINITIONS[TRAIN]
STATES = MACHINE["States"]


def test_whose_workload_it_is_is_known_from_the_first_answer_that_tells():
    assert "{% null %}" == STATES["Begin"]["Assign"]["owner"]
    for name in ("BeginRun", "RecordRun", "RecordTeamRun"):
        assert "{% $states.result.Payload.owner %}" == STATES[name]["Assign"]["owner"]
    assert "{% $owner %}" == STATES["TrainBroke"]["Output"]["owner"]


def test_the_answers_of_record_run_are_those_that_the_machine_asks_for():
    """A run that is neither waited for, made again nor at its end is looked at."""
    conditions = " ".join(choice["Condition"] for choice in STATES["WhatNext"]["Choices"])

    assert [step for step in (WAIT, RERUN, END) if f"$next_step = '{step}'" not in conditions] == []
    (failed,) = STATES["HasModel"]["Choices"]
    assert f"{{% $next_step = '{FAILED}' %}}" == failed["Condition"]


def test_a_run_that_could_not_be_judged_is_reported_and_ends_as_it_would():
    (catcher,) = STATES["ReviewProduction"]["Catch"]

    assert {"subject", "message", "owner"} == set(catcher["Output"])
    assert {"error", "cause"} == set(catcher["Assign"]["review_failed"])


def test_the_longest_run_ends_before_the_machines_own_limit():
    """A candidate at its time limit, its rerun, and the longest wait that a file may name."""
    longest = 3 * MOST_HOURS * 3600 + 2 * QUEUE_AND_TRANSFER_SECONDS

    assert longest < MACHINE["TimeoutSeconds"]


def test_the_output_tells_what_became_of_the_run():
    assert set(EVENT_FIELDS) == set(STATES["Done"]["Output"])
    assert set(EVENT_FIELDS) <= set(STATES["Begin"]["Assign"])
