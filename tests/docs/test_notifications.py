"""The page on notifications shows every kind as the code makes it today."""

from __future__ import annotations

import json

from compilegate.domain.notification import KINDS
from tests.docs.notification_examples import EXAMPLES, PAGE, SHOWN, refreshed

HINT = "write it anew: python -m tests.docs.notification_examples"


def test_every_kind_is_shown_once() -> None:
    shown = [match["name"] for match in SHOWN.finditer(PAGE.read_text())]

    assert sorted([*KINDS, "chat"]) == sorted(shown)


def test_the_page_shows_what_is_sent() -> None:
    assert refreshed(PAGE.read_text()) == PAGE.read_text(), HINT


def test_an_example_is_of_the_kind_it_stands_for() -> None:
    assert {kind: kind for kind in KINDS} == {name: make().kind for name, make in EXAMPLES.items()}


def test_the_measured_digest_is_the_one_that_the_page_tells_of() -> None:
    stored = json.loads((PAGE.parents[1] / "benchmarks" / "digests.json").read_text())

    told = f"read in {round(stored['seconds'])} seconds with {stored['peak_memory_mib']} MiB"
    assert told in " ".join(PAGE.read_text().split())
