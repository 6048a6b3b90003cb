"""docs/doctor.md lists the rules as they are."""

from __future__ import annotations

from tests.docs.doctor_rules import PAGE, refreshed


def test_the_table_of_rules_is_todays() -> None:
    page = PAGE.read_text(encoding="utf-8")

    assert refreshed(page) == page, "write it anew: python -m tests.docs.doctor_rules"
