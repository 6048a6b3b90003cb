"""The reference implementation of JSONata and the embedded cloud's give the same values.

The reference is run at the version that Step Functions documents and at the newest."""

from __future__ import annotations

import copy
import hashlib
import itertools
import json
import subprocess
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import pytest

from compilegate_localcloud.places import REPOSITORY
from stacks.train import tag_of_event
from tests.asl.node import run_script
from tests.asl.recordings import Evaluation, Steps, references

pytestmark = pytest.mark.slow
DOCUMENTED, NEWEST, EMULATOR = "2.0.6", "newest", "emulator"
FAILED = "failed"
NO_STATES = {"context": {}, "input": None}


_GONE = object()
REPLACEMENTS: tuple[Any, ...] = (
    _GONE, None, True, False, 0, -1, 2.5, 1e-7, 0.1 + 0.2, 123_456_789_012_345,
    "", "7", "naïve “quoted” \"'\\ 😀\n\tend", '{"a": [1, 2.0, null]}', "x" * 3000,
    [], [1], [None], ["a", "b"], [[1], [2]], {}, {"a": 1}, [{"a": 1}, {"b": None}],
)  # fmt: skip
# $states always has these, as objects with these names; what stands below may be anything.
FIXED = (("states",), ("states", "context"), ("states", "context", "Execution"))

# Developer guide, "Transforming data with JSONata": functions provided by Step Functions, $states.
DOCUMENTED_CASES = [
    ("$partition([1,2,3,4], 3)", [[1, 2, 3], [4]]),
    ("$partition([1,2,3,4], 2.9)", [[1, 2], [3, 4]]),
    ("$range(0, 10, 2)", [0, 2, 4, 6, 8, 10]),
    ("$range(5, 1, -3)", [5, 2]),
    ("$range(0.9, 2.9, 1.9)", [0, 1, 2]),
    *(
        (f"$hash('naïve', '{name}')", hashlib.new(name, "naïve".encode()).hexdigest())
        for name in ("MD5", "SHA-1", "SHA-256", "SHA-384", "SHA-512")
    ),
    ("$random(7) = $random(7)", True),
    ("$random() >= 0 and $random() < 1", True),
    ("$contains($uuid(), /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/)", True),
    ("$substring($uuid(), 14, 1)", "4"),
    ("""$parse('{"a": [1, null, 2.5]}')""", {"a": [1, None, 2.5]}),
    ("$parse('null')", None),
    ("$parse('{')", FAILED),
    ("$parse(1)", FAILED),
    ("$eval('1')", FAILED),
    ("$hash('a', 'CRC-32')", FAILED),
    ("$range(1, 2, 0)", FAILED),
    ("$partition([1], 0)", FAILED),
    ("$string(1.5 * 2)", "3"),
    ("$string({'a': 'naïve Δ'})", '{"a":"naïve Δ"}'),
    ("$sum", FAILED),
    ("$exists($states.result)", False),
    ("$exists($states.errorOutput)", False),
    ("$exists($states.context.variables)", False),
    ("$states.input", None),
    ("$states.input.name", FAILED),
]
# AWS's guide shows the tags of an event as a mapping, the event's schema has a list.
TAGS = [
    ({"s": "team", "w": "bert"}, "bert"),
    ([{"Key": "s", "Value": "team"}, {"Key": "w", "Value": "bert"}], "bert"),
    ([{"Key": "w", "Value": "bert"}], "bert"),
    ({"s": "team"}, FAILED),
    ([{"Key": "s", "Value": "team"}], FAILED),
    ([], FAILED),
]


def event_with(tags):
    """What a state sees of an execution that an event has started."""
    return {"context": {"Execution": {"Input": {"detail": {"Tags": tags}}}}, "input": None}


# Expression, states and value.
CASES = [
    *((text, NO_STATES, value) for text, value in DOCUMENTED_CASES),
    *((tag_of_event("w"), event_with(tags), value) for tags, value in TAGS),
]


def evaluate(questions):
    """By evaluator: the value of each question, ``FAILED`` where there is none."""
    done = subprocess.run(
        [REPOSITORY / ".venv-localcloud" / "bin" / "python", "-m", "tests.asl.in_emulator"],
        input=json.dumps(questions),
        capture_output=True,
        check=True,
        cwd=REPOSITORY,
        text=True,
        timeout=120,
    )
    outcomes = {**run_script("evaluate.js", questions), EMULATOR: json.loads(done.stdout)}
    return {
        name: [outcome.get("value", FAILED) for outcome in values]
        for name, values in outcomes.items()
    }


@pytest.fixture(scope="module")
def asked(evaluations):
    """Questions of three kinds, and the values of each kind by evaluator: each starts once."""
    kinds = {
        "executed": [one.question for one in evaluations],
        "cases": [
            {"expression": text, "states": states, "variables": {}} for text, states, _ in CASES
        ],
        "varied": list(variations(evaluations)),
    }
    every = evaluate([*itertools.chain(*kinds.values())])
    ends = [0, *itertools.accumulate(map(len, kinds.values()))]
    return kinds["varied"], {
        kind: {name: values[begin:end] for name, values in every.items()}
        for kind, (begin, end) in zip(kinds, itertools.pairwise(ends), strict=True)
    }


def same(one, other):
    """Equal as JSON: 1 and 1.0 are, 1 and true are not."""
    return typed(one) == typed(other)


def typed(value):
    if isinstance(value, dict):
        return {name: typed(item) for name, item in value.items()}
    if isinstance(value, list):
        return [typed(item) for item in value]
    return isinstance(value, bool), value


def test_what_an_execution_evaluates_is_what_every_implementation_gives(evaluations, asked):
    for name, values in asked[1]["executed"].items():
        differing = [
            (name, one.key, one.outcome, value)
            for one, value in zip(evaluations, values, strict=True)
            if not same(one.outcome.get("value", FAILED), value)
        ]
        assert [] == differing


def test_on_inputs_that_no_execution_has_had_all_agree_as_well(asked):
    questions, values = asked[0], asked[1]["varied"]

    assert len(questions) > 3000
    assert 0.2 < values[DOCUMENTED].count(FAILED) / len(questions) < 0.8
    differing = [
        (question, *answers)
        for question, *answers in zip(
            questions, values[DOCUMENTED], values[NEWEST], values[EMULATOR], strict=True
        )
        if not all(same(answers[0], answer) for answer in answers)
    ]
    assert [] == differing[:5]


def test_the_documented_functions_and_variables_and_the_tags_of_an_event(asked):
    for name, values in asked[1]["cases"].items():
        differing = [
            (name, text, states, expected, value)
            for (text, states, expected), value in zip(CASES, values, strict=True)
            if not same(expected, value)
        ]
        assert [] == differing


def variations(evaluations: Iterable[Evaluation]) -> Iterator[dict[str, Any]]:
    """Questions for the evaluators: each text once, each part it names replaced by everything."""
    seen = set()
    for one in evaluations:
        if one.expression not in seen:
            seen.add(one.expression)
            scope = {**one.variables, "states": one.states}
            for place in sorted(_places(one.expression)):
                for changed in _replaced(scope, place):
                    states = changed.pop("states")
                    yield {"expression": one.expression, "states": states, "variables": changed}


def _places(expression: str) -> set[Steps]:
    every = {path[:end] for path in references(expression) for end in range(1, len(path) + 1)}
    return every - set(FIXED)


def _replaced(scope: Mapping[str, Any], place: Steps) -> Iterator[dict[str, Any]]:
    for value in REPLACEMENTS:
        changed = copy.deepcopy(dict(scope))
        holder: Any = changed
        for name in place[:-1]:
            holder = holder.get(name) if isinstance(holder, dict) else None
        if not isinstance(holder, dict):
            return
        if value is not _GONE:
            holder[place[-1]] = value
        elif place != ("states", "input"):
            holder.pop(place[-1], None)
        yield changed
