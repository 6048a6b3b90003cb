"""Draining a deployment in memory: the mark, the schedules, what is stopped, and what refuses."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from compilegate.domain import ledger_keys, naming
from compilegate.domain.errors import DrainedError, WorkloadLockedError
from compilegate.domain.ledger_keys import CLOCKS_APART_SECONDS
from compilegate.domain.records.production import CapacityWait
from compilegate.usecases.drain_mark import put_mark, refuse_if_drained
from compilegate.usecases.production.begin_run import begin_run
from compilegate.usecases.trial.lock import acquire_lock
from compilegate_operating.drainage import Deployment, Drainage, begin_drain, end_drain
from compilegate_operating.work import (
    DrainSteps,
    HeldLock,
    RunningExecution,
    RunPhase,
    UnfinishedJob,
)
from tests.fake_clouds import MACHINE, TRAIN, ScriptedExecutions, cloud
from tests.fakes import MemorySchedules
from tests.usecases.production_ledger import ran, register

TRIAL = {"workload": "lm", "trial": "0mabc123", "spec_key": "s"}
RUN = {"workload": "lm", "execution": f"{TRAIN}lm-run", "started": "2026-11-20T02:00:00Z"}


class Clock:
    def __init__(self) -> None:
        self.seconds = 0.0

    def __call__(self) -> float:
        return self.seconds


@pytest.fixture
def deployment() -> Deployment:
    made = cloud()
    assert made.production is not None
    register(made.services, "lm", None)
    made.production.schedules.put("lm", "rate(1 day)")
    made.production.schedules.put("ads", "rate(1 day)")
    jobs: Any = made.services.jobs
    return Deployment(
        services=made.services,
        trials=made.executions,
        runs=made.production.executions,
        schedules=made.production.schedules,
        listing=jobs,
        locks=lambda: [(name, owner) for name, (owner, _) in made.services.locks.held.items()],
    )


def scripted(machine: Any) -> ScriptedExecutions:
    assert isinstance(machine, ScriptedExecutions)
    return machine


def job(deployment: Deployment, name: str, execution: str, status: str = "InProgress") -> None:
    jobs: Any = deployment.services.jobs
    jobs.add(name, status, 1000.0)
    jobs.tag(name, {naming.TAG_EXECUTION: execution})


def test_nothing_starts_until_it_is_undone(deployment: Deployment) -> None:
    services = deployment.services
    for name in ("ads", "lm"):
        deployment.schedules.remove(name)
    begin_drain(deployment, "human:ada")

    with pytest.raises(DrainedError, match=r"compilegate-dev has been drained since .* human:ada"):
        refuse_if_drained(services)
    with pytest.raises(WorkloadLockedError, match="drain --undo"):
        acquire_lock({**TRIAL, "execution": f"{MACHINE}lm-0mabc123"}, services=services)
    with pytest.raises(DrainedError):
        begin_run(RUN, services=services)
    assert [] == deployment.locks()

    assert () == end_drain(deployment, "human:ada")
    assert not begin_run(RUN, services=services)["duplicate"]
    acquire_lock({**TRIAL, "execution": f"{MACHINE}lm-0mabc123"}, services=services)


def test_a_run_that_had_begun_is_answered_as_before(deployment: Deployment) -> None:
    first = begin_run(RUN, services=deployment.services)
    begin_drain(deployment, "human:ada")

    assert first == begin_run(RUN, services=deployment.services)


def test_schedules_are_disabled_and_only_those_are_enabled_again(deployment: Deployment) -> None:
    schedules = deployment.schedules
    assert isinstance(schedules, MemorySchedules)
    schedules.switch("ads", on=False)  # by somebody, before

    mark = begin_drain(deployment, "human:ada")

    assert (("lm",), []) == (mark.schedules, schedules.enabled())
    assert ("lm",) == end_drain(deployment, "human:ada")
    assert ["lm"] == schedules.enabled()

    begin_drain(deployment, "human:ada")
    schedules.switch("ads", on=True)  # by somebody, meanwhile
    mark = begin_drain(deployment, "human:bo")
    assert (("ads", "lm"), []) == (mark.schedules, schedules.enabled())


def test_repeating_it_changes_nothing(deployment: Deployment) -> None:
    first = begin_drain(deployment, "human:ada")

    assert first == begin_drain(deployment, "human:bo")
    end_drain(deployment, "human:ada")
    assert end_drain(deployment, "human:ada") is None
    marks = deployment.services.ledger.raw.entries(ledger_keys.DEPLOYMENT)
    assert [(1, True), (2, False), (3, False)] == [(e["version"], e["drained"]) for e in marks]


def test_an_undo_that_broke_off_is_completed_by_the_next_call(deployment: Deployment) -> None:
    mark = begin_drain(deployment, "human:ada")
    put_mark(deployment.services, mark, drained=False, by="human:ada", schedules=mark.schedules)

    assert ("ads", "lm") == end_drain(deployment, "human:ada")


def test_draining_again_while_an_undo_is_incomplete_drains(deployment: Deployment) -> None:
    services = deployment.services
    mark = begin_drain(deployment, "human:ada")
    put_mark(services, mark, drained=False, by="human:ada", schedules=mark.schedules)

    assert begin_drain(deployment, "human:ada").drained
    with pytest.raises(DrainedError):
        refuse_if_drained(services)


def test_jobs_are_listed_as_far_back_as_one_can_train_and_then_the_new_ones(
    deployment: Deployment, monkeypatch: pytest.MonkeyPatch
) -> None:
    listed = []

    def unfinished(_: str, since: float) -> dict[str, str]:
        listed.append(since)
        return {}

    monkeypatch.setattr(deployment.listing, "unfinished", unfinished)
    drainage, now = Drainage(deployment, Clock()), deployment.services.clock.now()
    drainage.read()
    drainage.read()

    # Two of SageMaker's 28 days: one of waiting for a spot machine, one of training.
    assert [now - 2 * 28 * 86_400, now - CLOCKS_APART_SECONDS] == listed


def test_a_lock_without_a_running_execution_ages(deployment: Deployment) -> None:
    clock, locks = Clock(), deployment.services.locks
    run = scripted(deployment.runs).start("lm-2", {"workload": "lm"})
    locks.acquire("lm", run, now=1, expires_at=9)
    locks.acquire("ads", f"{MACHINE}ads-0mabc123", now=1, expires_at=9)
    drainage = Drainage(deployment, clock)
    ages = []
    for clock.seconds in (100.0, 107.0):
        ages.append({one.workload: one.ended_for for one in drainage.read().locks})

    assert [{"lm": None, "ads": 0.0}, {"lm": None, "ads": 7.0}] == ages


def test_a_lock_whose_execution_was_named_by_a_person_is_released(deployment: Deployment) -> None:
    owner = f"{MACHINE}by-hand"
    deployment.services.locks.acquire("lm", owner, now=1, expires_at=9)
    Drainage(deployment, Clock()).take(DrainSteps((), (), (HeldLock("lm", owner, 999.0),)))

    assert [] == deployment.locks()


def test_what_a_trial_left_is_cleaned_up_before_its_lock_is_released(
    deployment: Deployment,
) -> None:
    services, trial = deployment.services, f"{MACHINE}lm-0mabc123"
    acquire_lock({**TRIAL, "execution": trial}, services=services)
    Drainage(deployment, Clock()).take(DrainSteps((), (), (HeldLock("lm", trial, 999.0),)))

    assert [] == deployment.locks()
    assert [trial] == [one.execution for one in services.ledger.history("lm").failed]


def test_a_look_tells_this_stages_work_from_all_other(deployment: Deployment) -> None:
    trial = scripted(deployment.trials).start("lm-1", TRIAL)
    training = scripted(deployment.runs).start("lm-2", {"workload": "lm"})
    waiting = scripted(deployment.runs).start("lm-3", {"workload": "lm"})
    team = scripted(deployment.runs).start("event", {"detail": {}})
    known = scripted(deployment.runs).start("job", {"job": "team-1"})
    job(deployment, "cg-lm-1-q1a0-r0", trial)
    job(deployment, "cg-lm-2-p0-r0", training, "Stopping")
    job(deployment, "cg-lm-9-q1a0-r0", "arn:of:another:stage")
    job(deployment, "cg-lm-0-q1a0-r0", trial, "Completed")
    deployment.services.locks.acquire("lm", trial, now=1, expires_at=9)

    drainage = Drainage(deployment, Clock())
    work = drainage.read()

    assert [trial] == [one.arn for one in work.trials]
    assert {
        training: RunPhase.TRAINING, waiting: RunPhase.WAITING, team: RunPhase.RECORDING,
        known: RunPhase.RECORDING,
    } == {one.arn: one.phase for one in work.runs}  # fmt: skip
    assert {("cg-lm-1-q1a0-r0", False, False), ("cg-lm-2-p0-r0", True, True)} == {
        (one.name, one.production, one.stopping) for one in work.jobs
    }
    assert [("lm", None)] == [(one.workload, one.ended_for) for one in work.locks]
    job(deployment, "cg-lm-1-q1a0-r0", trial, "Failed")  # ended since
    assert ["cg-lm-2-p0-r0"] == [one.name for one in drainage.read().jobs]


def test_what_is_to_stop_is_stopped_in_its_own_machine(deployment: Deployment) -> None:
    trials, runs = scripted(deployment.trials), scripted(deployment.runs)
    trial, run = trials.start("lm-1", TRIAL), runs.start("lm-2", {"workload": "lm"})
    job(deployment, "cg-lm-1-q1a0-r0", trial)
    executions = (RunningExecution(trial), RunningExecution(run, RunPhase.WAITING))
    steps = DrainSteps(executions, (UnfinishedJob("cg-lm-1-q1a0-r0", trial, production=False),))
    Drainage(deployment, Clock()).take(steps)

    cause = "the deployment was drained"
    assert ({trial: cause}, {run: cause}) == (trials.stopped, runs.stopped)
    assert "Stopped" == deployment.services.jobs.describe("cg-lm-1-q1a0-r0")["TrainingJobStatus"]


def test_a_run_whose_only_jobs_found_no_machine_waits_and_one_that_trained_records(
    deployment: Deployment,
) -> None:
    services = deployment.services
    arn = scripted(deployment.runs).start("lm-2", {"workload": "lm"})
    run = begin_run({**RUN, "execution": arn}, services=services)["run"]
    name = naming.job_base("lm", run, "p0") + "-r0"
    job(deployment, name, arn, "Failed")
    drainage = Drainage(deployment, Clock())

    assert [RunPhase.RECORDING] == [one.phase for one in drainage.read().runs]
    wait = CapacityWait(1, run, 0, name, "baseline", None, 0.0, 300, None).to_entry()
    services.ledger.raw.put_once("lm", CapacityWait.key_of(run=run, attempt=0), wait)
    assert [RunPhase.WAITING] == [one.phase for one in drainage.read().runs]
    ran(services, "lm", 1_000_000.0, "baseline")  # another run
    assert [RunPhase.WAITING] == [one.phase for one in drainage.read().runs]
    (other,) = services.ledger.history("lm").runs
    services.ledger.append("lm", replace(other, run=run))
    assert [RunPhase.RECORDING] == [one.phase for one in drainage.read().runs]
