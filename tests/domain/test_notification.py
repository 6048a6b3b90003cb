"""Every subscriber gets the text that it can read, within what SNS takes."""

from __future__ import annotations

import json
from typing import Any

import pytest

from compilegate.domain.claims import BYTES_MAX, TEXT_MAX, Notification


def notification(**changes: Any) -> Notification:
    values: dict[str, Any] = {
        "kind": "revert", "stage": "prod", "subject": "[compilegate prod] bert-docs: turned off",
        "text": "bert-docs: turned back off.", "workload": "bert-docs", "owner": "ml-platform",
        "verdict": "revert", "decision_id": "d1",
        "flag": {"name": "/f", "enabled": False, "state": "reverted"},
        "figures": {"quality": {"estimate": -0.01}}, "report": "s3://data/report.html",
        "act": "compilegate report bert-docs",
    }  # fmt: skip
    return Notification(**{**values, **changes})


def texts(message: Notification) -> dict[str, str]:
    return json.loads(message.envelope())


def test_what_is_not_known_is_left_out_of_chat_and_attributes_and_null_for_programs():
    message = notification(owner=None, verdict=None, act=None, report=None)

    event = json.loads(texts(message)["https"])
    assert "nextSteps" not in event["content"]
    assert ["revert", "bert-docs"] == event["content"]["keywords"]
    assert {"kind", "stage", "workload"} == set(message.attributes())
    assert None is json.loads(texts(message)["default"])["owner"]


@pytest.mark.parametrize("text", ["x", "ü" * 3 * TEXT_MAX, '\x01"\\' * TEXT_MAX])
def test_figures_that_would_not_fit_are_left_out_and_missed(text):
    message = notification(text=text, figures={"many": ["figure"] * 30_000})

    assert len(message.envelope().encode()) <= BYTES_MAX
    body = json.loads(texts(message)["default"])
    assert ({}, True) == (body["figures"], body["figures_left_out"])


def test_an_unknown_kind_is_a_mistake_of_ours():
    with pytest.raises(ValueError, match="news"):
        notification(kind="news")


def test_nothing_in_a_mail_acts_on_the_reader():
    """What may act in a chat is tried in tests/report/test_hostile_texts.py."""
    message = notification(text="a\x1b[31mb\u202ec\ud800d\ne <!channel>")

    assert "a\\x1b[31mb\\u202ec\\ud800d\ne <!channel>" == texts(message)["email"]
    message.envelope().encode()
