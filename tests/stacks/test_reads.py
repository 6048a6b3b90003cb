"""Roles allow what steps of a trial read of the bucket, which the embedded cloud does not check."""

from fnmatch import fnmatchcase

import pytest

from compilegate.usecases.trial.judge_arms import judge_arms
from compilegate.usecases.trial.on_job_ended import on_job_ended
from tests import fakes
from tests.fakes import MemoryStore
from tests.usecases.test_controls import with_control
from tests.usecases.trial_builder import (
    EVENT,
    SOUND,
    asks_speed,
    call_judge,
    ended,
    outcome,
    put_spec,
)


class Watched(MemoryStore):
    """Remembers which objects were read."""

    def __init__(self):
        super().__init__()
        self.read = set()

    def get(self, key):
        self.read.add(key)
        return super().get(key)


@pytest.fixture
def services(monkeypatch):
    monkeypatch.setattr(fakes, "MemoryStore", Watched)
    made = fakes.services("prod")
    put_spec(made, SOUND)
    return made


def refused(template, function, services):
    """Objects that the function read and its role does not allow."""
    arns = [
        arn
        for action in ("s3:GetObject", "s3:GetObjectVersion")
        for arn in template.allowed(action)[function]
    ]
    patterns = [arn.partition(">/")[2] for arn in arns]
    read = sorted(services.store.read)
    assert read
    return [key for key in read if not any(fnmatchcase(key, one) for one in patterns)]


@pytest.mark.parametrize("failed", ["s0b0", "s0c0"], ids=["candidate", "control"])
def test_a_job_on_nodes_of_its_own_is_judged_with_what_the_role_allows(template, services, failed):
    with_control(services)
    call_judge(services, 0, [], asks_speed("managed"))
    broken = outcome(failed, "Failed", reason="ImportError")
    services.jobs.add(broken["job"], "Failed", 1000.0, 1001.0)
    arms = {"s0a0": "baseline", "s0b0": "managed", "s0c0": "managed-native"}
    others = [ended(services, run, arm) for run, arm in arms.items() if run != failed]
    services.store.read.clear()
    judge_arms({**EVENT, "round": 1, "runs": [broken, *others]}, services=services)

    assert [] == refused(template, "judge_arms", services)


def test_a_round_is_stopped_with_what_the_role_allows(template, services):
    with_control(services)
    runs = call_judge(services, 0, [], asks_speed("managed"))["runs"]
    cause = '{"TrainingJobStatus": "Failed", "FailureReason": "CapacityError: none"}'
    services.store.read.clear()
    event = {**EVENT, **outcome("s0b0", "Failed"), "runs": runs, "error": "e", "cause": cause}
    on_job_ended(event, services=services)

    assert [] == refused(template, "on_job_ended", services)
