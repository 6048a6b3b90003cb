"""The published table is what the readings add up to."""

from __future__ import annotations

import re
from pathlib import Path

from compilegate_doctor import BY_ID
from distributions.doctor.tests.readings import LAST, VERDICTS, readings, tables

README = Path(__file__).parents[1] / "README.md"


def test_the_published_table_is_computed_from_the_readings() -> None:
    assert "\n".join(tables(readings())) in README.read_text(encoding="utf-8")


def test_each_reading_names_its_place_and_why_it_is_not_right() -> None:
    for row in readings():
        assert row.verdict in VERDICTS, row
        assert row.rule in BY_ID, row
        assert re.fullmatch(r"[0-9a-f]{40}", row.commit), row
        assert re.fullmatch(r"[\w.-]+/[\w.-]+", row.repository), row
        assert bool(row.why) == (row.verdict != "right"), row


def test_what_is_published_was_never_repaired_on() -> None:
    earlier = {row.repository for row in readings() if row.rules != LAST}
    last = [row for row in readings() if row.rules == LAST]

    assert earlier.isdisjoint(row.repository for row in last)
    assert len({(row.repository, row.path, row.line, row.rule) for row in last}) >= 200
