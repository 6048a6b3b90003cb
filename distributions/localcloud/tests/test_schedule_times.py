"""For when a schedule fires, by its expression, its zone and its start date."""

import json
import subprocess

import pytest

from compilegate_localcloud.places import REPOSITORY

pytestmark = pytest.mark.e2e

# Runs among the emulator's own libraries: a clock that jumps, and what is fired at each look.
SWEEP = """
import json, sys
from ministack.services import eventbridge, scheduler
from compilegate_localcloud.emulator.schedules import Sweep

expression, looks, zone, start = json.loads(sys.argv[1])
now = [1_800_000_000.0]  # 2027-01-15 08:00:00 UTC
scheduler._now = lambda: now[0]
target = {"Arn": "arn:x", "RoleArn": "arn:r", "Input": '"<aws.scheduler.scheduled-time>"'}
body = {"ScheduleExpression": expression, "FlexibleTimeWindow": {"Mode": "OFF"}, "Target": target}
body |= {"ScheduleExpressionTimezone": zone, "StartDate": start}
scheduler._create_schedule("one", body)
fired = []
eventbridge._invoke_target = lambda target, *_: fired.append(json.loads(target["Input"]))
sweep = Sweep(lambda: now[0])
fired_by_look = []
for seconds in looks:
    now[0] = 1_800_000_000.0 + seconds
    sweep.fire_due()
    fired_by_look.append(fired[:])
    fired.clear()
print(json.dumps(fired_by_look))
"""


@pytest.mark.parametrize(
    ("expression", "looks", "fired"),
    [
        (
            "rate(1 minute)",
            [0, 59, 60, 61, 125],
            [["08:00:00"], [], ["08:01:00"], [], ["08:02:00"]],
        ),
        ("rate(1 minute)", [600, 601, 660], [["08:00:00"], [], ["08:11:00"]]),
        ("cron(5 8 * * ? *)", [299, 300, 301], [[], ["08:05:00"], []]),
        ("cron(0/10 * * * ? *)", [599, 605, 1200], [[], ["08:10:00"], ["08:20:00"]]),
        ("at(2027-01-15T08:00:30)", [29, 31, 32], [[], ["08:00:30"], []]),
        ("at(2027-01-15T07:00:00)", [0, 1], [["07:00:00"], []]),
    ],
)
def test_each_expression_names_the_time_it_was_meant_for(expression, looks, fired):
    expected = [[f"2027-01-15T{time_of_day}Z" for time_of_day in look] for look in fired]
    assert expected == swept(expression, looks)


def test_a_rate_with_a_start_date_begins_then():
    looks = [0, 89, 90, 149, 150]

    assert [[], [], ["2027-01-15T08:01:30Z"], [], ["2027-01-15T08:02:30Z"]] == swept(
        "rate(1 minute)", looks, start=1_800_000_090
    )


@pytest.mark.parametrize(
    ("expression", "zone", "fired"),
    [
        # Half an hour after the clock starts, 08:30 UTC: winter in both zones.
        ("cron(30 9 * * ? *)", "Europe/Berlin", ["2027-01-15T08:30:00Z"]),
        ("cron(0 14 * * ? *)", "Asia/Kolkata", ["2027-01-15T08:30:00Z"]),
        ("at(2027-01-15T09:30:00)", "Europe/Berlin", ["2027-01-15T08:30:00Z"]),
        ("cron(30 9 * * ? *)", "UTC", []),
        ("cron(30 9 * * ? *)", "Europe/Berlyn", []),
    ],
)
def test_an_expression_is_read_in_its_zone(expression, zone, fired):
    assert [[], fired] == swept(expression, [1799, 1800], zone)


def swept(expression, looks, zone="UTC", start=None):
    """What is fired at each look, seconds after 08:00:00 UTC."""
    python = REPOSITORY / ".venv-localcloud/bin/python"
    arguments = json.dumps([expression, looks, zone, start])
    done = subprocess.run(
        [python, "-c", SWEEP, arguments], cwd=REPOSITORY, capture_output=True, text=True, check=True
    )
    return json.loads(done.stdout.splitlines()[-1])
