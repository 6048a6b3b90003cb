"""TRAIN as a document: where every edge goes, what is retried, what travels."""

from compilegate.domain.planning.rounds import QUEUE_AND_TRANSFER_SECONDS
from compilegate.domain.production.recorded_run import END, FAILED, RERUN, WAIT
from compilegate.domain.workload.model import MOST_HOURS
from stacks.functions import TRAIN
from tests.stacks.test_definitions import DEFINITIONS

MACHINE = DEFINITIONS[TRAIN]
STATES = MACHINE["States"]


def test_the_answers_of_record_run_are_those_that_the_machine_asks_for():
    """A run that is neither waited for, made again nor at its end is looked at."""
    conditions = " ".join(choice["Condition"] for choice in STATES["WhatNext"]["Choices"])

    assert [step for step in (WAIT, RERUN, END) if f"$next_step = '{step}'" not in conditions] == []
    (failed,) = STATES["HasModel"]["Choices"]
    assert f"{{% $next_step = '{FAILED}' %}}" == failed["Condition"]


def test_the_longest_run_ends_before_the_machines_own_limit():
    """A candidate at its time limit, its rerun, and the longest wait that a file may name."""
    longest = 3 * MOST_HOURS * 3600 + 2 * QUEUE_AND_TRANSFER_SECONDS

    assert longest < MACHINE["TimeoutSeconds"]
