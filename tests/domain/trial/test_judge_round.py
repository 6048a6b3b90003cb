"""What the end of one job means for the others of its round."""

from __future__ import annotations

from typing import Any

import pytest

from compilegate.domain import naming
from compilegate.domain.trial.jobs import EndedJob
from compilegate.domain.trial.judge_round import RoundEffect, round_effect
from tests.domain.trial.plans import arm

FULL, SPEED, CONTROL = "q1b17", "s0b0", "s0c0"
ARMS = (arm("baseline"), arm("managed", image="m"), arm("managed-control", image="c"))
INFRASTRUCTURE: dict[str, Any] = {"status": "Failed", "infrastructure": True}
EFFECTS: dict[str, tuple[dict[str, Any], RoundEffect]] = {
    "a full run": ({}, RoundEffect.LOOK),
    "a full run that crashed": ({"status": "Failed"}, RoundEffect.LOOK),
    "a full run at its time limit": ({"status": "Stopped", "timed_out": True}, RoundEffect.LOOK),
    "the only full run": ({"jobs": 1}, RoundEffect.NONE),
    "a speed job": ({"run": SPEED}, RoundEffect.NONE),
    "stopped by this trial": ({"status": "Stopped", "stopped_by_trial": True}, RoundEffect.LOOK),
    "stopped by somebody else": ({"status": "Stopped"}, RoundEffect.STOP),
    "not run by the cloud": (INFRASTRUCTURE, RoundEffect.STOP),
    "a speed job not run by the cloud": ({**INFRASTRUCTURE, "run": SPEED}, RoundEffect.STOP),
    "no quota": ({**INFRASTRUCTURE, "waited": True}, RoundEffect.NONE),
    "a control not run by the cloud": ({**INFRASTRUCTURE, "run": CONTROL}, RoundEffect.NONE),
}


@pytest.mark.parametrize(("ended", "effect"), EFFECTS.values(), ids=EFFECTS)
def test_only_what_says_something_about_the_others_has_an_effect(ended, effect):
    values = {"run": FULL, "status": "Completed", "jobs": 3, **ended}
    run, jobs = (values.pop(key) for key in ("run", "jobs"))
    job = EndedJob(naming.parse_run(run), "j", **values)

    assert effect is round_effect(job, ARMS, jobs_in_round=jobs)


def test_a_full_run_needs_no_arms():
    job = EndedJob(naming.parse_run(FULL), "j", "Completed")

    assert RoundEffect.LOOK is round_effect(job, (), jobs_in_round=2)
