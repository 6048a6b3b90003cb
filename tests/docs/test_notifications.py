"""The page on notifications has every kind, and shows a message as the code makes it today."""

from __future__ import annotations

import re

from compilegate.domain.notification import KINDS
from tests.docs.notification_examples import PAGE, SHOWN, decision, refreshed

HINT = "write it anew: python -m tests.docs.notification_examples"


def test_every_kind_has_a_row() -> None:
    rows = re.findall(
        r"^\| `(\w+)` \| .* \| .* \| `compilegate .*` \|$", PAGE.read_text(), re.MULTILINE
    )

    assert list(KINDS) == rows


def test_the_page_shows_what_is_sent() -> None:
    assert ["decision", "chat"] == [match["name"] for match in SHOWN.finditer(PAGE.read_text())]
    assert refreshed(PAGE.read_text()) == PAGE.read_text(), HINT


def test_the_example_is_of_the_kind_it_stands_for() -> None:
    assert decision().kind == "decision"
