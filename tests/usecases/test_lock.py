"""A workload's lock: who takes it, who loses it, and that none stays behind."""

from __future__ import annotations

import json
from typing import Any

import pytest

from compilegate.domain import naming
from compilegate.domain.errors import WorkloadLockedError
from compilegate.domain.flag_change import Override
from compilegate.domain.production.orphans import FORGOTTEN, ExecutionEnd
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


def kinds(services: Any) -> list[str]:
    return [entry["kind"] for entry in services.ledger.raw.entries(WORKLOAD)]


@pytest.mark.parametrize(
    ("status", "later", "cleaned_up"),
    [
        ("ABORTED", 0, True), ("FAILED", 0, True), ("TIMED_OUT", 0, True),
        # With a verdict, and long forgotten.
        ("SUCCEEDED", 3601, False), (None, 3601, False),
    ],
)  # fmt: skip
def test_a_lock_is_taken_over_from_a_trial_that_ended_and_cleaned_up_after_where_it_did_not(
    services: Any, status: str | None, later: int, cleaned_up: bool
) -> None:
    services.ends[FIRST["execution"]] = ended(FIRST, status)
    services.clock.seconds += later
    acquire_lock(SECOND, services=services)

    assert SECOND["execution"] == services.locks.holder(WORKLOAD)
    assert cleaned_up is ("failed" in kinds(services))
    left = "Stopped" if cleaned_up else "InProgress"
    assert left == services.jobs.describe(job(FIRST))["TrainingJobStatus"]


def test_one_that_step_functions_does_not_know_yet_keeps_its_lock(services: Any) -> None:
    services.ends[FIRST["execution"]] = FORGOTTEN

    with pytest.raises(WorkloadLockedError):
        acquire_lock(SECOND, services=services)
    acquire_lock(FIRST, services=services)  # as a repeated step does
    assert FIRST["execution"] == services.locks.holder(WORKLOAD)


class Denied(fakes.MemoryEnds):
    """Step Functions does not say whether an execution runs."""

    def end_of(self, execution: str) -> ExecutionEnd:
        raise PermissionError(f"AccessDenied: states:DescribeExecution on {execution}")


def test_a_lock_stays_with_a_trial_that_runs_or_may_run(services: Any) -> None:
    with pytest.raises(WorkloadLockedError, match="0mabc123"):
        acquire_lock(SECOND, services=services)
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


@pytest.mark.parametrize("cleaned_up", [True, False], ids=["cleaned up", "clean-up lost"])
def test_an_execution_that_was_stopped_before_it_took_the_lock_gives_it_back(
    cleaned_up: bool,
) -> None:
    services: Any = fakes.services()
    end = ended(FIRST, "ABORTED")
    if cleaned_up:
        abort_trial({"detail": end.detail}, services=services)
    else:
        services.ends[FIRST["execution"]] = end

    with pytest.raises(WorkloadLockedError, match="stopped"):
        acquire_lock(FIRST, services=services)
    assert services.locks.holder(WORKLOAD) is None


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


@pytest.mark.parametrize("name", [f"{WORKLOAD}-0mabc123", "by-hand", "a-0mabc124"])
def test_a_trial_is_the_one_of_its_input_whatever_its_execution_is_called(name: str) -> None:
    services: Any = fakes.services()
    event = {**FIRST, "execution": f"{STATES}:{name}"}
    acquire_lock(event, services=services)

    assert ["0mabc123"] == [one.trial for one in services.ledger.history(WORKLOAD).started]
    abort_trial({**event, "error": "X", "cause": ""}, services=services)
    assert {"0mabc123"} == services.ledger.history(WORKLOAD).ended_trials


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


def test_a_lock_is_released_though_its_execution_left_nothing_to_clean_up(services: Any) -> None:
    unlock(
        WORKLOAD, FIRST["execution"], ended(FIRST, "SUCCEEDED"), Override("ana", "stuck"),
        stopped=False, services=services,
    )  # fmt: skip

    assert services.locks.holder(WORKLOAD) is None
    assert "InProgress" == services.jobs.describe(job(FIRST))["TrainingJobStatus"]
