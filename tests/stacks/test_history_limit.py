"""No execution's history exceeds the 25,000 events at which Step Functions ends it.

Events of states are counted after the types of HistoryEvent in the API reference of Step Functions:
every state is entered and exited; a task is scheduled, started and succeeds, or is submitted in
between where it is waited for; every failed attempt is scheduled, started and fails; a Map starts
and succeeds, and so does each of its iterations.
"""

import json

from hypothesis import given
from hypothesis import strategies as st

from compilegate.domain import naming
from compilegate.domain.planning import rounds as planned
from compilegate.domain.production.attempts import MOST_ATTEMPTS, next_wait
from compilegate.domain.records.production import CapacityWait
from compilegate.domain.workload.model import MOST_HOURS
from compilegate.facts import read
from stacks.functions import TRAIN
from tests.stacks.asl import edges
from tests.stacks.test_definitions import DEFINITIONS
from tests.stacks.test_evaluate_definition import MACHINE as EVALUATE
from tests.stacks.test_evaluate_definition import ROUNDS

STATES = DEFINITIONS[TRAIN]["States"]
CYCLE = ("BuildRequest", "LoadRequest", "Train", "RecordRun", "WhatNext", "WaitForCapacity")
THROTTLED = STATES["Train"]["Retry"][0]["MaxAttempts"]


WAITED_FOR = (".sync", ".waitForTaskToken")
ATTEMPT = 3


def events_of(state, *, retries=0):
    """Events of one visit to a state that succeeds in the end."""
    if state["Type"] == "Task":
        return 2 + ATTEMPT + state["Resource"].endswith(WAITED_FOR) + retries * ATTEMPT
    return {"Map": 4, "Fail": 1}.get(state["Type"], 2)


def longest_way(machine, start, ends):
    """The most events on any way from ``start`` to one of ``ends``, catchers included, no loops."""

    def walk(name, seen):
        here = events_of(machine["States"][name])
        if name in ends:
            return here
        ways = [
            walk(after, {*seen, name})
            for after in set(edges(machine["States"][name])) - seen - {name}
        ]
        return here + max(ways, default=0)

    return walk(start, set())


def waited(seconds, spent):
    return CapacityWait(
        at=0, run="r", attempt=0, job="j", arm="baseline", reason=None, spent_seconds=spent,
        wait_seconds=seconds, next_instance_type=None,
    )  # fmt: skip


def attempts(most_seconds, fallbacks, first_seconds=300.0, spent=0.0):
    """How often a run asks for a machine until it gives up."""
    waits = []
    while True:
        wait = next_wait(waits, fallbacks, most_seconds, first_seconds=first_seconds)
        if wait is None:
            return len(waits) + 1
        waits.append(waited(wait.seconds, spent))


def test_the_limit_is_the_one_on_file():
    (row,) = [r for r in read("limits")["rows"] if r["name"] == "events in an execution's history"]

    assert planned.MOST_EVENTS == row["value"]


def test_the_longest_wait_of_a_production_run_fits_into_its_history():
    """Every attempt throttled as often as it may be, and a rerun of the baseline in the end."""
    cycle = sum(events_of(STATES[name]) for name in CYCLE) + THROTTLED * ATTEMPT
    around = sum(events_of(state) for state in STATES.values()) + 2 * cycle

    assert 40 >= cycle
    assert MOST_ATTEMPTS * cycle + around <= planned.MOST_EVENTS - 4_000


@given(
    first=st.floats(0.0, 10.0), hours=st.floats(0.0, MOST_HOURS), count=st.integers(0, 8),
    spent=st.floats(0.0, 60.0),
)  # fmt: skip
def test_whatever_pause_a_rehearsal_begins_with(first, hours, count, spent):
    """A pause of no time at all would otherwise go on for ever."""
    types = [f"ml.{n}" for n in range(count)]

    assert attempts(hours * 3600, types, first, spent) <= MOST_ATTEMPTS


def test_a_round_and_a_job_take_as_many_events_as_the_planner_counts():
    states = EVALUATE["States"]
    judged = events_of(states["JudgeArms"]) + events_of(states["NextStep"])
    around = max(events_of(states[name]) for name in (*ROUNDS, "CanaryRuns"))
    longest = max(
        2 + longest_way(machine, machine["StartAt"], set())
        for machine in (states[name]["ItemProcessor"] for name in ROUNDS)
    )

    assert (planned.EVENTS_PER_ROUND, planned.EVENTS_PER_JOB) == (judged + around, longest)
    assert planned.EVENTS_PER_RETRY == ATTEMPT
    for name, stage in ROUNDS.items():
        train = states[name]["ItemProcessor"]["States"][f"{stage}Train"]
        assert planned.MOST_RETRIES == sum(policy["MaxAttempts"] for policy in train["Retry"])


@given(st.lists(st.tuples(st.integers(1, 60), st.integers(0, 29)), max_size=400))
def test_a_trial_that_begins_no_round_without_room_stays_within_its_history(rounds):
    """Whatever its rounds look like, and however often each of their jobs is asked for."""
    jobs = []
    begun = 0
    for count, retries in rounds:
        if not planned.has_room(begun, jobs, count):
            break
        begun += 1
        jobs += [f"cg-w-t-s{begun}a{n}-r{naming.RETRY_DIGITS[retries]}" for n in range(count)]

    assert planned.events(begun, jobs) + planned.RESERVE <= planned.MOST_EVENTS


def test_what_is_before_and_after_the_rounds_fits_into_the_reserve():
    outside = {
        name: state for name, state in EVALUATE["States"].items()
        if name not in {*ROUNDS, "JudgeArms", "NextStep", "CanaryRuns"}
    }  # fmt: skip
    text = json.dumps(outside)

    assert "Map" not in text
    retries = sum(p["MaxAttempts"] for s in outside.values() for p in s.get("Retry", ()))
    total = sum(events_of(state) for state in outside.values()) + ATTEMPT * retries
    assert total < planned.RESERVE
