"""What holds for every state machine as a document: edges, retries, payloads, variables."""

from pathlib import Path

import pytest

from compilegate.domain.failures import RESOURCE_LIMIT_ERROR
from compilegate.domain.planning.rounds import MACHINE_SECONDS
from compilegate.domain.production.attempts import RUN_SECONDS
from stacks import evaluate, train
from stacks.functions import EVALUATE, STEPS, TRAIN
from tests.stacks.asl import (
    assigned_on_every_path,
    build,
    called,
    catchers,
    edges,
    leaves,
    machines,
    reachable,
    reads,
)


def definition_of(module, name):
    functions = {
        step.name: f"arn:aws:lambda:us-east-1:123456789012:function:{step.name}"
        for step in STEPS
        if step.machine == name
    }
    topic = "arn:aws:sns:us-east-1:123456789012:decisions"
    return module.definition(functions, bucket="data", topic_arn=topic)


DEFINITIONS = {EVALUATE: definition_of(evaluate, EVALUATE), TRAIN: definition_of(train, TRAIN)}
SECONDS = {EVALUATE: MACHINE_SECONDS, TRAIN: RUN_SECONDS}
# Keys, names and figures; documents travel through S3.
PAYLOADS = {
    EVALUATE: {
        "workload", "trial", "spec_key", "execution", "decision_key", "round", "runs", "run",
        "job", "status", "error", "cause", "flag_enabled", "token", "timeout_seconds",
    },
    TRAIN: {
        "workload", "run", "execution", "started", "scheduled", "attempt", "job", "error",
        "cause", "wait_seconds",
    },
}  # fmt: skip


# By machine, a line for each state: where each answer and each error of it leads, in the order in
# which they are tried; in brackets the kind of a state that ends.
WAYS = Path(__file__).with_name("ways")


@pytest.fixture(params=DEFINITIONS)
def name(request):
    return request.param


@pytest.fixture
def definition(name):
    return DEFINITIONS[name]


@pytest.fixture
def states(definition):
    """Every state, those inside Maps included; their names are unique."""
    return build(definition)


def test_the_deployed_definition_is_this_one(template, name, definition):
    deployed = template.definition(name)

    assert list(definition["States"]) == list(deployed["States"])
    assert definition["TimeoutSeconds"] == deployed["TimeoutSeconds"] == SECONDS[name]


def ways(state):
    """Every way on from a state."""
    chosen = [f"{one['Condition'][3:-3]}: {one['Next']}" for one in state.get("Choices", ())]
    onwards = state.get("Next") or state.get("Default") or f"({state['Type']})"
    caught = [f"{error.removeprefix('States.')}: {then}" for error, then in catchers(state).items()]
    return " | ".join([*chosen, onwards, *caught])


def test_every_answer_and_every_error_leads_where_the_file_says(name, states):
    """Up to the flag any error aborts, afterwards the next state follows; telling stops nothing."""
    kept = (WAYS / f"{name}.txt").read_text().splitlines()

    assert kept == [f"{one:22}{ways(state)}" for one, state in states.items()]


def test_nothing_is_null_which_synthesis_would_drop(definition):
    assert None not in leaves(definition)


def test_every_state_can_be_reached_and_leads_on_or_ends(definition):
    for machine in machines(definition):
        assert set(machine["States"]) == reachable(machine)
        for name, state in machine["States"].items():
            assert len(name) <= 80, name
            assert set(edges(state)) <= set(machine["States"]), name
            ends = state["Type"] in ("Succeed", "Fail") or state.get("End") is True
            assert ends != bool(edges({**state, "Catch": ()})), name


def test_every_function_is_called_with_keys_and_names_only(name, states):
    invoked = [state for state in states.values() if "lambda" in state.get("Resource", "")]

    assert {step.name for step in STEPS if step.machine == name} == set(map(called, invoked))
    for state in invoked:
        assert set(state["Arguments"]["Payload"]) <= PAYLOADS[name]


def test_every_retry_but_the_one_for_quotas_has_jitter(states):
    policies = [policy for state in states.values() for policy in state.get("Retry", ())]
    others = [policy for policy in policies if policy["ErrorEquals"] != [RESOURCE_LIMIT_ERROR]]

    assert {"FULL"} == {policy["JitterStrategy"] for policy in others}


def test_every_task_has_a_time_limit(states):
    for name, state in states.items():
        assert state["Type"] != "Task" or "TimeoutSeconds" in state, name


def test_variables_are_assigned_on_every_path_before_they_are_read(definition):
    for machine in machines(definition):
        outer = set() if machine is definition else {"runs"}
        for name, state in machine["States"].items():
            for variable in reads(state) - outer:
                assert assigned_on_every_path(machine, name, variable), (name, variable)
