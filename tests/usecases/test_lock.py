"""A workload's lock: who takes it, who loses it, and that none stays behind."""

from __future__ import annotations

import json
from contextlib import nullcontext
from typing import Any
from unittest.mock import Mock, call

import pytest

from compilegate.domain import naming
from compilegate.domain.errors import WorkloadLockedError
from compilegate.domain.flag_change import Override
from compilegate.domain.production.orphans import FORGOTTEN, GRACE_SECONDS, NOT_ENDED, ExecutionEnd
from compilegate.domain.records.trials import TrialFailed, TrialStarted
from compilegate.usecases.trial.abort_trial import abort_trial
from compilegate.usecases.trial.lock import acquire_lock, release_lock
from compilegate_operating.drainage import unlock
from tests import fakes
from tests.usecases.trial_builder import SPEC

WORKLOAD = "bert-docs"
STATES = "arn:aws:states:us-east-1:111122223333:execution:compilegate-dev-evaluate"


def trial(name: str) -> dict[str, str]:
    """The event of a trial's first step."""
    execution = f"{STATES}:{WORKLOAD}-{name}"
    return {"workload": WORKLOAD, "trial": name, "spec_key": SPEC, "execution": execution}


FIRST, SECOND = trial("0mabc123"), trial("0mabc124")


def ended(event: dict[str, str], status: str | None, at: int = 1) -> ExecutionEnd:
    given = {name: event[name] for name in ("workload", "trial", "spec_key")}
    detail = {
        "executionArn": event["execution"], "status": status, "input": json.dumps(given),
    }  # fmt: skip
    return ExecutionEnd(status, at, detail) if status else FORGOTTEN


@pytest.fixture
def services() -> Any:
    """The first trial holds the lock and has a job in progress."""
    made: Any = fakes.services()
    acquire_lock(FIRST, services=made)
    fakes.start_job(made, WORKLOAD, FIRST["trial"], "q1a17")
    return made


def job(event: dict[str, str]) -> str:
    return f"{naming.job_base(WORKLOAD, event['trial'], 'q1a17')}-r0"


LONG_AGO = GRACE_SECONDS + 1


@pytest.mark.parametrize(
    ("status", "began", "taken"),
    [
        ("RUNNING", {FIRST["execution"]: LONG_AGO}, False),
        ("FAILED", {}, True),
        # Step Functions does not know it yet, or no longer.
        (None, {FIRST["execution"]: GRACE_SECONDS}, False),
        (None, {FIRST["execution"]: LONG_AGO}, True),
        (None, {FIRST["execution"]: GRACE_SECONDS, SECOND["execution"]: LONG_AGO}, False),
        (None, {FIRST["execution"]: LONG_AGO, SECOND["execution"]: 1}, True),
    ],
)
def test_a_lock_is_taken_over_and_cleaned_up_after_once_its_execution_has_surely_ended(
    services: Any, status: str | None, began: dict[str, int], *, taken: bool
) -> None:
    services.clock.seconds += 2 * LONG_AGO
    services.ledger.raw.items.clear()
    for execution, ago in began.items():
        services.ledger.append(WORKLOAD, TrialStarted(services.clock.now() - ago, execution))
    if status != "RUNNING":
        services.ends[FIRST["execution"]] = ended(FIRST, status, services.clock.now())
    third = trial("0mabc125")
    with nullcontext() if taken else pytest.raises(WorkloadLockedError, match="0mabc123"):
        acquire_lock(third, services=services)

    assert (third if taken else FIRST)["execution"] == services.locks.holder(WORKLOAD)
    stopped = services.jobs.describe(job(FIRST))["TrainingJobStatus"] == "Stopped"
    assert stopped is (taken and status is not None)


@pytest.mark.parametrize(
    ("aborted", "end", "goes_on"),
    [
        (SECOND, NOT_ENDED, True),
        (SECOND, FORGOTTEN, True),
        (FIRST, NOT_ENDED, False),
        (FIRST, FORGOTTEN, False),
        (SECOND, ended(FIRST, "ABORTED"), False),
    ],
)
def test_a_stopped_trial_gives_its_lock_back_and_every_other_may_repeat_the_step(
    services: Any, aborted: dict[str, str], end: ExecutionEnd, *, goes_on: bool
) -> None:
    services.ledger.append(WORKLOAD, TrialFailed(1, aborted["trial"]))
    services.ends[FIRST["execution"]] = end
    with nullcontext() if goes_on else pytest.raises(WorkloadLockedError, match="0mabc123"):
        acquire_lock(FIRST, services=services)

    assert (FIRST["execution"] if goes_on else None) == services.locks.holder(WORKLOAD)


def test_a_lock_that_is_free_again_is_taken_and_no_execution_asked_about(
    services: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(services.locks, "holder", lambda _: services.locks.held.clear())
    object.__setattr__(services, "ends", Mock(end_of=Mock(return_value=NOT_ENDED)))
    acquire_lock(SECOND, services=services)

    assert [call(SECOND["execution"])] == services.ends.end_of.mock_calls


class Denied(fakes.MemoryEnds):
    """Step Functions does not say whether an execution runs."""

    def end_of(self, execution: str) -> ExecutionEnd:
        raise PermissionError(f"AccessDenied: states:DescribeExecution on {execution}")


def test_a_lock_stays_with_a_trial_that_may_run(services: Any) -> None:
    object.__setattr__(services, "ends", Denied())
    with pytest.raises(WorkloadLockedError, match="0mabc123"):
        acquire_lock(SECOND, services=services)

    assert FIRST["execution"] == services.locks.holder(WORKLOAD)
    assert "InProgress" == services.jobs.describe(job(FIRST))["TrainingJobStatus"]


def test_a_clean_up_that_fails_does_not_keep_the_lock(
    services: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object, **__: object) -> None:
        raise RuntimeError("SageMaker does not answer")

    monkeypatch.setattr("compilegate.usecases.trial.abort_trial.jobs_of_trial", broken)
    services.ends[FIRST["execution"]] = ended(FIRST, "FAILED")
    acquire_lock(SECOND, services=services)

    assert SECOND["execution"] == services.locks.holder(WORKLOAD)


def test_a_trial_runs_once_and_a_copy_that_fails_keeps_no_lock() -> None:
    """Started again with the same input: its jobs and documents are those of the first."""
    services: Any = fakes.services()
    acquire_lock(FIRST, services=services)
    release_lock(FIRST, services=services)
    copy = {**FIRST, "execution": f"{STATES}:by-hand"}

    with pytest.raises(WorkloadLockedError, match="0mabc123"):
        acquire_lock(copy, services=services)
    assert services.locks.holder(WORKLOAD) is None
    services.locks.acquire(WORKLOAD, copy["execution"], now=0, expires_at=10)
    abort_trial({**copy, "error": "X", "cause": ""}, services=services)
    assert services.locks.holder(WORKLOAD) is None


def test_a_lock_released_by_hand_is_recorded_and_cleaned_up_after(services: Any) -> None:
    end = ended(FIRST, "ABORTED")
    made = unlock(
        WORKLOAD, FIRST["execution"], end, Override("ana", "stuck"), stopped=True,
        services=services,
    )  # fmt: skip

    assert services.locks.holder(WORKLOAD) is None
    assert "Stopped" == services.jobs.describe(job(FIRST))["TrainingJobStatus"]
    (entry,) = services.ledger.raw.entries(WORKLOAD, "unlocked#")
    assert ("unlocked", "human:ana", "stuck", FIRST["execution"], "ABORTED", True) == tuple(
        entry[name] for name in ("kind", "by", "reason", "execution", "status", "stopped")
    )
    assert made.to_entry() == entry


@pytest.mark.parametrize("status", ["SUCCEEDED", None])
def test_a_lock_is_released_though_its_execution_left_nothing_to_clean_up(
    services: Any, status: str | None
) -> None:
    made = unlock(
        WORKLOAD, FIRST["execution"], ended(FIRST, status), Override("ana", " stuck "),
        stopped=False, services=services,
    )  # fmt: skip

    assert (status, "stuck", False) == (made.status, made.reason, made.stopped)
    assert services.locks.holder(WORKLOAD) is None
    assert "InProgress" == services.jobs.describe(job(FIRST))["TrainingJobStatus"]
