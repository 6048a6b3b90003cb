"""Schedules are read as EventBridge Scheduler reads them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from compilegate.domain.workload.schedule_expression import schedule_problem, timezone_problem

# The examples of EventBridge's own pages, and their wildcards.
SOUND = [
    "cron(0 10 * * ? *)", "cron(15 12 * * ? *)", "cron(0 18 ? * MON-FRI *)", "cron(0 8 1 * ? *)",
    "cron(0/15 * * * ? *)", "cron(*/10 * ? * MON-FRI *)", "cron(0/5 8-17 ? * mon-fri *)",
    "cron(15 10 ? * 6L 2022-2023)", "cron(0 0 L * ? *)", "cron(0 9 3W * ? *)", "cron(0 9 LW * ? *)",
    "cron(0 9 ? * 3#2 *)", "cron(0 9 ? JAN,FEB,MAR SUN 1970)", "cron(0,30 0-2 1-7 */3 ? 2199)",
    "cron(0   3 * * ? *)", "rate(1 minute)", "rate(5 minutes)", "rate(1 hour)", "rate(7 days)",
]  # fmt: skip
WRONG = [
    "", " ", "daily", "@daily", "0 3 * * 1", "cron()", "cron(0 3 * * ?)", "cron(0 3 * * ? * *)",
    "cron(60 3 * * ? *)", "cron(0 24 * * ? *)", "cron(0 3 32 * ? *)", "cron(0 3 0 * ? *)",
    "cron(0 3 * 13 ? *)", "cron(0 3 ? * 8 *)", "cron(0 3 ? * 0 *)", "cron(0 3 * * ? 1969)",
    "cron(0 3 * * * *)", "cron(0 3 ? * ? *)", "cron(0 3 1 * MON *)", "cron(? 3 * * ? *)",
    "cron(0 3 ? * MOON *)", "cron(0 3 ? * 3#6 *)", "cron(0/0 3 * * ? *)", "cron(-1 3 * * ? *)",
    "cron(0 3 * * ? *", "cron(0 3 * * ? *) ", "rate(0 days)", "rate(-1 days)", "rate(1.5 hours)",
    "rate(5 weeks)", "rate(5)", "rate(5  minutes)", "at(2026-12-01T03:00:00)",
    "cron(1,,2 * * * ? *)",
]  # fmt: skip


@pytest.mark.parametrize("expression", SOUND)
def test_a_sound_schedule_has_no_problem(expression: str) -> None:
    assert schedule_problem(expression) is None


@pytest.mark.parametrize("expression", WRONG)
def test_a_wrong_one_is_told_with_a_way_out(expression: str) -> None:
    found = schedule_problem(expression)

    assert found is not None
    assert all(found)


@given(
    text=st.text(max_size=40)
    | st.lists(st.text("0123456789*?/,-LW#MONJAN", max_size=5), max_size=8).map(
        lambda fields: f"cron({' '.join(fields)})"
    )
)
def test_any_text_is_answered(text: str) -> None:
    schedule_problem(text)


@pytest.mark.parametrize(
    "zone", ["UTC", "Europe/Berlin", "America/Argentina/Buenos_Aires", "Etc/GMT+5", "Asia/Kolkata"]
)
def test_a_cron_may_be_read_in_any_zone(zone: str) -> None:
    assert timezone_problem(zone, "cron(0 3 * * ? *)") is None


@pytest.mark.parametrize("zone", ["", "+02:00", "Europe/", "Europe/Berlin;", "a/b/c/d", "Türkiye"])
def test_what_is_no_name_of_a_zone_is_told_with_a_way_out(zone: str) -> None:
    found = timezone_problem(zone, "cron(0 3 * * ? *)")

    assert found is not None
    assert "Europe/Berlin" in found[1]


@pytest.mark.parametrize("expression", [None, "rate(7 days)"])
def test_a_zone_needs_a_cron_that_it_is_the_zone_of(expression: str | None) -> None:
    assert timezone_problem("Europe/Berlin", expression) is not None
    assert timezone_problem("UTC", expression) is None
