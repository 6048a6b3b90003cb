"""Every state has been entered and every expression evaluated in a recorded execution."""

import json

import pytest

from compilegate_localcloud.places import REPOSITORY
from tests.asl.definitions import expressions, states
from tests.asl.record import neutral, record
from tests.asl.recordings import (
    MOST_CHARACTERS,
    evaluations,
    joined,
    read,
    reduced,
    references,
    select,
    write,
)
from tests.asl.scenarios import SIDE_BY_SIDE

AGAIN = "record again: .venv/bin/python -m tests.asl.record"
# State machine → states that no execution can enter here, each with the reason.
NEVER_ENTERED = {"evaluate": {}, "train": {}}


def test_every_expression_has_been_recorded_and_no_other(definitions, recorded):
    present = {one.key for name, document in definitions.items()
               for one in expressions(name, document)}  # fmt: skip
    recordings = {one.key for one in evaluations(recorded)}

    assert set() == present - recordings, AGAIN
    assert set() == recordings - present, AGAIN


def test_every_state_has_been_entered(definitions, recorded):
    for machine, definition in definitions.items():
        names = {name for name, _ in states(definition)}

        assert names - set(NEVER_ENTERED[machine]) == set(recorded[machine]), AGAIN


def test_every_condition_has_been_recorded_both_ways(definitions, recorded):
    conditions = {
        one.key
        for name, document in definitions.items()
        for one in expressions(name, document)
        if one.field == "Choices"
    }
    values = {(one.key, one.outcome["value"]) for one in evaluations(recorded)
              if one.key in conditions}  # fmt: skip

    assert {(key, value) for key in conditions for value in (True, False)} == values


def test_recordings_are_small_and_know_nothing_of_the_machine_they_were_made_on(recorded):
    for one in evaluations(recorded):
        assert len(str(one.question)) < 2 * MOST_CHARACTERS
        for place in ("/root/", "/home/", "/Users/", "/work/.", "/workspace/"):
            assert place not in str(one.question)


def test_a_recording_keeps_the_parts_that_its_expression_names():
    text = "$exists($run.control) ? $states.input.error : $max([$limit.Most, 1])"

    assert {("run", "control"), ("states", "input", "error"), ("limit", "Most")} == references(text)
    variables = {
        "run": {"job": "j"},
        "states": {"input": {"error": "E", "cause": "C"}, "context": {}},
        "limit": [{"Most": 1}],
        "other": 1,
    }
    assert {
        "run": {},
        "states": {"input": {"error": "E"}},
        "limit": [{"Most": 1}],
    } == reduced(text, variables)


KEYS = {
    ("train", "Begin", ""),
    ("train", "Begin", "$a"),
    ("train", "Done", ""),
    ("train", "Done", "$b"),
}


def test_what_is_recorded_later_adds_what_is_missing_and_drops_what_is_gone():
    kept = {
        "train": {"Begin": {"$a": [{"value": 1}], "$gone": [{"value": 2}]}, "Removed": {}},
    }
    new = {
        "train": {"Begin": {"$a": [{"value": 3}, {"value": True}]}, "Done": {"$b": [{"value": 4}]}}
    }

    assert {
        "train": {"Begin": {"$a": [{"value": 1}, {"value": True}]}, "Done": {"$b": [{"value": 4}]}},
    } == joined(kept, new, KEYS)


def test_what_is_written_is_read_again(tmp_path):
    one = {"states": {"input": {"b": 1, "a": "naïve\u2028"}}, "variables": {}, "value": [1]}
    other = {"states": {}, "variables": {"x": None}, "error": "D1001"}
    recorded = {"train": {"Begin": {"$a": [one, other]}, "Done": {"$a": [one]}, "Wait": {}}}

    write(recorded, tmp_path)

    assert json.dumps(recorded) == json.dumps(read(tmp_path))
    assert (tmp_path / "train.jsonl").read_text("utf-8").count("\n") == 3


def test_a_replacement_of_another_length_is_refused():
    with pytest.raises(ValueError, match="not as long"):
        select(["{}"], set(), {"/some/place": "/x"})


@pytest.mark.e2e
@pytest.mark.slow
def test_a_scenario_is_recorded(tmp_path, recorded):
    kept = {one.key for one in evaluations(recorded)}
    states = {("evaluate", name, "") for name in recorded["evaluate"]}

    path = record(tmp_path, {"ineligible": SIDE_BY_SIDE["ineligible"]}, {})
    with path.open() as lines:
        chosen = select(lines, kept | states, neutral(str(REPOSITORY), str(tmp_path)))

    assert {"AcquireLock", "RecordDecision", "ApplyFlag", "Done"} < set(chosen["evaluate"])
    assert "PlanTrial" not in chosen["evaluate"]
    for one in evaluations(chosen):
        assert one.key in kept
    assert ["ineligible"] == [
        one.outcome["value"] for one in evaluations(chosen)
        if (one.state, one.expression) == ("Done", "$verdict")
    ]  # fmt: skip
