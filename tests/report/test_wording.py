"""Every sentence that the report says has a template, and every template a place that says it."""

import ast
import re
from dataclasses import fields
from pathlib import Path
from typing import get_args

import pytest

import compilegate
from compilegate.domain.records.ledger import Record
from compilegate.domain.wording import names, sentences
from compilegate.report.history.timeline import PLAIN, event_row
from compilegate.report.markup import ASSETS
from compilegate.report.wording import FILE

REPORT = Path(compilegate.__file__).parent / "report"
# What the messages of an attempt name.
ATTEMPT = {"run", "workload", "arm"}
# What an event's row may say, beside what it is like.
PARTS = {"title", "text", "tone", "mark", "kind"}
# What records hold of themselves; a name that a record lacks is an error (test_timeline.py).
RECORDED = {field.name for kind in get_args(Record) for field in fields(kind)} | {"by"}


def calls(*functions):
    """Each call of one of these functions in the report, with its module."""
    for file in sorted(REPORT.rglob("*.py")):
        tree = ast.parse(file.read_text(encoding="utf-8"))
        for node in ast.walk(tree):
            if isinstance(node, ast.Call):
                name = getattr(node.func, "id", None) or getattr(node.func, "attr", "")
                if name in functions:
                    yield tree, node


def group_of(tree):
    """The group that a module's ``say`` is bound to."""
    (name,) = (
        ast.literal_eval(node.args[1])
        for node in ast.walk(tree)
        if isinstance(node, ast.Call) and ast.unparse(node).startswith("partial(wording.say,")
    )
    return str(name)


def kinds(kind):
    """The kinds that a call may name."""
    if isinstance(kind, ast.IfExp):
        return [*kinds(kind.body), *kinds(kind.orelse)]
    return [kind.value] if isinstance(kind, ast.Constant) else []


def given(call):
    """The values that a call gives by name; those of every attempt's message stand once."""
    spread = [keyword for keyword in call.keywords if keyword.arg is None]
    named = {keyword.arg for keyword in call.keywords if keyword.arg}
    return named | (ATTEMPT if spread else set())


def test_what_is_said_has_a_template_and_every_template_is_said():
    said = {(group_of(tree), kind) for tree, call in calls("say") for kind in kinds(call.args[0])}
    written = {
        (name, kind)
        for name in sentences(FILE)
        if name != "events"
        for kind in sentences(FILE)[name]
    }

    assert said == written


@pytest.mark.parametrize(
    ("kind", "call"),
    [(f"{group_of(tree)}.{kind}", call)
     for tree, call in calls("say") for kind in kinds(call.args[0])],
    ids=lambda value: value if isinstance(value, str) else "",
)  # fmt: skip
def test_a_sentence_is_given_the_values_that_its_template_names(kind, call):
    alternatives = [f"{kind.partition('.')[0]}.{one}" for one in kinds(call.args[0])]

    assert given(call) == {
        name
        for one in alternatives
        for name in names(sentences(FILE)[one.partition(".")[0]][one.partition(".")[2]])
    }


def test_every_event_has_a_row_with_values_that_its_call_gives():
    used = {}
    for _, call in calls("event", "_event"):
        kind = call.args[0 if len(call.args) == 1 else 2]
        computed = [
            row
            for row in sentences(FILE)["events"]
            if row.startswith(("flag", "by_hand", "canary_"))
        ]
        plain = PLAIN.values() if ast.unparse(kind).startswith("PLAIN") else computed
        for one in kinds(kind) or plain:
            used.setdefault(one, set()).update(given(call))
    rows = {kind: event_row(kind) for kind in sentences(FILE)["events"]}

    assert set(rows) == set(used)
    for kind, row in rows.items():
        assert {"title", "text"} <= set(row) <= PARTS
        assert {name for text in row.values() for name in names(text)} <= used[kind] | RECORDED


def test_every_template_of_a_text_is_used_and_every_one_used_is_there():
    named = [call.args[0] for _, call in calls("paragraph", "paragraphs", "rows", "lines")]
    used = {name.value for name in named if isinstance(name, ast.Constant)}
    files = {file.name.removesuffix(".txt.j2"): file for file in ASSETS.glob("*.txt.j2")}
    texts = " ".join(file.read_text(encoding="utf-8") for file in files.values())
    included = set(re.findall(r'include "(\w+)', texts))

    assert set(files) == used | included
