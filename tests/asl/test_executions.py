"""Every state is entered and every expression evaluated in an execution, conditions both ways."""

import pytest

from tests.asl.definitions import expressions, keys_of, states
from tests.asl.recordings import MOST, Recordings, references

ADD = "add an execution to tests/asl/executions.py"


@pytest.mark.slow
def test_every_state_is_entered_and_every_expression_evaluated(definitions, observed, evaluations):
    there = {(name, state) for name, one in definitions.items() for state, _ in states(one)}

    assert there == {tuple(one) for one in observed[0]}, ADD
    assert keys_of(definitions) == {one.key for one in evaluations}, ADD


@pytest.mark.slow
def test_every_condition_is_true_once_and_false_once(definitions, evaluations):
    conditions = {
        one.key
        for item in definitions.items()
        for one in expressions(*item)
        if one.field == "Choices"
    }
    values = {(one.key, one.outcome["value"]) for one in evaluations if one.key in conditions}

    assert {(key, value) for key in conditions for value in (True, False)} == values, ADD


TEXT = "$exists($run.control) ? $states.input.error : $max([$limit.Most, 1])"
STATES = {"input": {"error": "E", "cause": "C"}, "context": {}}
VARIABLES = {"run": {"job": "j"}, "limit": [{"Most": 1}], "other": 1}


def test_of_an_evaluation_the_parts_are_kept_that_its_expression_names():
    kept = Recordings()
    kept.add(("train", "Begin", TEXT), STATES, VARIABLES, {"value": 1})

    assert {("run", "control"), ("states", "input", "error"), ("limit", "Most")} == references(TEXT)
    (one,) = kept.by_key["train", "Begin", TEXT]
    assert ({"input": {"error": "E"}}, {"run": {}, "limit": [{"Most": 1}]}, {"value": 1}) == (
        one.states, one.variables, one.outcome,
    )  # fmt: skip


def test_a_few_evaluations_of_each_expression_are_kept_each_of_another_shape():
    kept = Recordings()
    for value in (1, 2, True, False, [1], "text", {"a": 1}):
        kept.add(("train", "Begin", "$a"), {}, {"a": value}, {"value": value})

    values = [one.outcome["value"] for one in kept.by_key["train", "Begin", "$a"]]
    assert [1, True, False] == values
    assert MOST == len(values)
