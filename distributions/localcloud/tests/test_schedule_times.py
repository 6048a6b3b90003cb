"""For when a schedule fires, by its expression, its zone and its start date."""

import json
import subprocess

import pytest

from compilegate_localcloud.places import REPOSITORY

pytestmark = pytest.mark.e2e

# Runs among the emulator's own libraries, which it imports once: a clock that jumps, and what is
# fired at each look, of each case in a process of its own.
SWEEP = """
import json, os, sys
from ministack.services import eventbridge, scheduler
from compilegate_localcloud.emulator.schedules import Sweep

def fired_by_look(expression, looks, zone, start):
    now, fired, by_look = [1_800_000_000.0], [], []  # 2027-01-15 08:00:00 UTC
    scheduler._now = lambda: now[0]
    target = {"Arn": "arn:x", "RoleArn": "arn:r", "Input": '"<aws.scheduler.scheduled-time>"'}
    body = {"ScheduleExpression": expression, "FlexibleTimeWindow": {"Mode": "OFF"},
            "Target": target, "ScheduleExpressionTimezone": zone, "StartDate": start}
    scheduler._create_schedule("one", body)
    eventbridge._invoke_target = lambda target, *_: fired.append(json.loads(target["Input"]))
    sweep = Sweep(lambda: now[0])
    for seconds in looks:
        now[0] = 1_800_000_000.0 + seconds
        sweep.fire_due()
        by_look.append(fired[:])
        fired.clear()
    return by_look

for case in json.loads(sys.argv[1]):
    if os.fork() == 0:
        print(json.dumps(fired_by_look(*case)), flush=True)
        os._exit(0)
    os.wait()
"""
HALF_PAST = [1799, 1800]
# Expression, seconds after 08:00:00 UTC at which is looked, zone, start date; times of day fired.
CASES = [
    ("rate(1 minute)", [0, 59, 60, 61, 125], "UTC", None,
     [["08:00:00"], [], ["08:01:00"], [], ["08:02:00"]]),
    ("rate(1 minute)", [600, 601, 660], "UTC", None, [["08:00:00"], [], ["08:11:00"]]),
    ("cron(0/10 * * * ? *)", [599, 605, 1200], "UTC", None, [[], ["08:10:00"], ["08:20:00"]]),
    ("at(2027-01-15T08:00:30)", [29, 31, 32], "UTC", None, [[], ["08:00:30"], []]),
    ("at(2027-01-15T07:00:00)", [0, 1], "UTC", None, [["07:00:00"], []]),
    ("rate(1 minute)", [0, 89, 90, 149, 150], "UTC", 1_800_000_090,
     [[], [], ["08:01:30"], [], ["08:02:30"]]),
    # Winter in both zones.
    ("cron(30 9 * * ? *)", HALF_PAST, "Europe/Berlin", None, [[], ["08:30:00"]]),
    ("at(2027-01-15T09:30:00)", HALF_PAST, "Europe/Berlin", None, [[], ["08:30:00"]]),
    ("cron(30 9 * * ? *)", HALF_PAST, "Europe/Berlyn", None, [[], []]),
]  # fmt: skip


@pytest.fixture(scope="module")
def swept():
    """What is fired in each case, by look."""
    python = REPOSITORY / ".venv-localcloud/bin/python"
    asked = json.dumps([case[:-1] for case in CASES])
    done = subprocess.run(
        [python, "-c", SWEEP, asked], cwd=REPOSITORY, capture_output=True, text=True, check=True
    )
    return [json.loads(line) for line in done.stdout.splitlines() if line.startswith("[")]


@pytest.mark.parametrize("number", range(len(CASES)))
def test_a_schedule_names_the_time_it_was_meant_for(swept, number):
    expected = [[f"2027-01-15T{at}Z" for at in look] for look in CASES[number][-1]]

    assert len(CASES) == len(swept)
    assert expected == swept[number], CASES[number]
