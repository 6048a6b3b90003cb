"""The message of a step that failed itself is put together by its state machine, texts included."""

from __future__ import annotations

import json
from typing import Any

import pytest

from stacks.states import notify
from tests.asl.node import run_script
from tests.hostile_texts import HOSTILE
from tests.report.readers import LOOKS, URL, acting

pytestmark = pytest.mark.slow
# Marks that need a pattern are left: they change how a text looks, and nothing else.
MARKS = LOOKS | {"del", "s", "pre", "code", "mention"}
# The service takes no halves of characters.
TEXTS = [text for text in HOSTILE if text.isprintable() or text.isascii()]


def messages(texts: list[str]) -> list[dict[str, Any]]:
    state = notify("arn:topic", then="Next", catches=())
    expression = state["Arguments"]["Message"].removeprefix("{%").removesuffix("%}")
    asked = [
        {
            "expression": expression,
            "states": {"input": {"subject": f"s {text}", "message": f"m {text}"}, "context": {}},
            "variables": {},
        }
        for text in texts
    ]
    (documented, newest) = run_script("evaluate.js", asked).values()
    assert documented == newest
    return [json.loads(outcome["value"]) for outcome in documented]


def test_no_text_of_an_error_becomes_a_link_or_a_mention() -> None:
    for text, message in zip(TEXTS, messages(TEXTS), strict=True):
        content = json.loads(message["https"])["content"]
        for shown in (content["title"], content["description"]):
            assert [] == acting(shown, MARKS), text
            assert not set("<>`") & set(shown)
            assert not URL.search(shown.replace("WWW.", "")), text
        assert not URL.search(message["email"].replace("WWW.", "")), text
