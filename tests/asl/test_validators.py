"""The synthesised state machines pass two validators and the documented rules for expressions."""

import copy

import pytest

from tests.asl.definitions import expressions
from tests.asl.node import run_script

LANGUAGE_SERVICE, ASL_VALIDATOR = "amazon-states-language-service", "asl-validator"


def test_both_validators_accept_every_state_machine(definitions):
    assert {"evaluate": [], "train": []} == run_script("check_definitions.js", definitions)


# A mistake in the state PlanTrial, and who reports it.
MISTAKES = {
    "missing target": ({"Next": "Nowhere"}, {LANGUAGE_SERVICE, ASL_VALIDATOR}),
    "expression that does not parse": (
        {"Output": "{% $states.result. %}"}, {ASL_VALIDATOR},
    ),
    "operator newer than Step Functions": (
        {"Output": "{% $states.result.Payload ?? 0 %}"}, {ASL_VALIDATOR},
    ),
    "jitter that does not exist": (
        {"Retry": [{"ErrorEquals": ["States.ALL"], "JitterStrategy": "SOME"}]}, {LANGUAGE_SERVICE},
    ),
}  # fmt: skip


@pytest.fixture(scope="module")
def reports(definitions):
    """Who reports each mistake, in one run for all of them."""
    broken = {}
    for name, (changes, _) in MISTAKES.items():
        broken[name] = copy.deepcopy(definitions["evaluate"])
        broken[name]["States"]["PlanTrial"] |= changes
    answers = run_script("check_definitions.js", broken)
    return {name: {one["source"] for one in problems} for name, problems in answers.items()}


@pytest.mark.slow
@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_is_reported(reports, mistake):
    """Why both are run: each finds what the other lets pass."""
    assert MISTAKES[mistake][1] == reports[mistake]


def test_every_expression_keeps_to_the_documented_rules(definitions):
    every = [item for name, document in definitions.items() for item in expressions(name, document)]

    answers = run_script(
        "check_expressions.js", [{"text": one.text, "readable": one.readable} for one in every]
    )

    assert len(every) > 300
    assert {} == {one: problems for one, problems in zip(every, answers, strict=True) if problems}


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("$states.result.Payload", "$states.result does not exist here"),
        ("$states.errorOutput.Cause", "$states.errorOutput does not exist here"),
        ("$string($states)", "$states as a whole depends on where it stands"),
        ("$eval('1')", "$eval is not available"),
        ("$.workload", "$ refers to nothing at the top level"),
        ("workload", "workload is an unqualified name"),
    ],
)
def test_a_broken_rule_is_reported(text, problem):
    (problems,) = run_script("check_expressions.js", [{"text": text, "readable": ["input"]}])

    assert problem in problems
