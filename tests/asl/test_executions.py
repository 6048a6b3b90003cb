"""Every state is entered and every expression evaluated in an execution, conditions both ways."""

import pytest

from tests.asl.definitions import expressions, keys_of, states

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
