"""Who takes, loses and releases a workload's lock at once, in every order of their calls."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import nullcontext, suppress
from copy import deepcopy
from types import SimpleNamespace
from typing import Any

import pytest

from compilegate.domain import naming
from compilegate.domain.errors import WorkloadLockedError
from compilegate.domain.flag_change import Override
from compilegate.domain.production.history import WorkloadHistory
from compilegate.ports import Services
from compilegate.usecases import records
from compilegate.usecases.canary import open_canary
from compilegate.usecases.flag.approval import ask_approval
from compilegate.usecases.operations.sweep import sweep
from compilegate.usecases.planning import plan_trial
from compilegate.usecases.records import to_json
from compilegate.usecases.trial.abort_trial import abort_trial
from compilegate.usecases.trial.lock import acquire_lock
from compilegate_operating.drainage import unlock
from tests import fakes
from tests.decision_builder import decision_document
from tests.domain.workload_builder import SOUND
from tests.usecases.canary_builder import begin
from tests.usecases.interleaving import every_run
from tests.usecases.test_lock import FIRST, SECOND, WORKLOAD, ended, job
from tests.usecases.trial_builder import EVENT, FLAG, put_spec

Work = Callable[[Services], Any]
PORTS = ("ledger", "locks")
ABORTED = "ABORTED"


@pytest.fixture(autouse=True)
def _one_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    """The sweep reads workloads side by side; here there is one, read as a step of its writer."""
    inline = nullcontext(SimpleNamespace(map=map))
    monkeypatch.setattr(records, "ThreadPoolExecutor", lambda _: inline)


def schedules(world: Services, works: Sequence[Work]) -> Iterator[Any]:
    """The services after every order of the calls."""
    for services, _ in every_run(lambda: deepcopy(world), works, ports=PORTS):
        yield services


def begins(event: dict[str, str]) -> Work:
    """A trial's first step; a refusal is an answer."""

    def work(services: Services) -> None:
        with suppress(WorkloadLockedError):
            acquire_lock(event, services=services)

    return work


def aborts(event: dict[str, str]) -> Work:
    """The event of the trial's bad end."""
    return lambda services: abort_trial({"detail": ended(event, ABORTED).detail}, services=services)


def left() -> Services:
    """The first trial was stopped; its lock, its job and its clean-up are left."""
    services: Any = fakes.services()
    acquire_lock(FIRST, services=services)
    fakes.start_job(services, WORKLOAD, FIRST["trial"], "q1a17")
    services.store.put(f"{naming.WORKLOADS_PREFIX}{WORKLOAD}/specs/1.json", b"{}")
    stopped(services)
    services.clock.seconds += 7200
    return services  # type: ignore[no-any-return]


def stopped(services: Any) -> Services:
    services.ends[FIRST["execution"]] = ended(FIRST, ABORTED, at=services.clock.now())
    return services  # type: ignore[no-any-return]


def past(services: Any) -> WorkloadHistory:
    return services.ledger.history(WORKLOAD)


def sweeps(services: Services) -> None:
    sweep({}, services=services, topic=fakes.MemoryTopic())


def unlocks(services: Services) -> None:
    end = services.ends.end_of(FIRST["execution"])
    assert end is not None
    unlock(WORKLOAD, FIRST["execution"], end, Override("ana", "stuck"), stopped=False,
           services=services)  # fmt: skip


@pytest.mark.parametrize("other", [aborts(FIRST), sweeps, unlocks])
def test_who_cleans_up_after_a_trial_never_takes_the_lock_of_the_next(other: Work) -> None:
    for services in schedules(left(), [begins(SECOND), other]):
        assert SECOND["execution"] == services.locks.holder(WORKLOAD)
        assert [FIRST["trial"]] == [one.trial for one in past(services).failed]
        assert "Stopped" == services.jobs.describe(job(FIRST))["TrainingJobStatus"]


def just_stopped(known: bool) -> Services:
    """A trial that is stopped as it begins; Step Functions may not know of its end yet."""
    return stopped(fakes.services()) if known else fakes.services()


@pytest.mark.parametrize("known", [True, False])
def test_a_trial_that_is_stopped_while_it_takes_the_lock_has_none_in_the_end(known: bool) -> None:
    for services in schedules(just_stopped(known), [begins(FIRST), aborts(FIRST)]):
        assert services.locks.holder(WORKLOAD) is None


def test_two_trials_that_take_over_at_once_do_not_both_have_the_workload() -> None:
    third = {**SECOND, "trial": "0mabc125", "execution": SECOND["execution"][:-1] + "5"}
    for services in schedules(left(), [begins(SECOND), begins(third)]):
        running = [one.execution for one in past(services).started if one.trial != FIRST["trial"]]
        assert [services.locks.holder(WORKLOAD)] == running


def test_a_trial_that_is_stopped_while_it_opens_a_round_leaves_none_open() -> None:
    services = fakes.services("prod")
    event = {**EVENT, **begin(services)["canary"], "token": "t"}

    def opens(services: Services) -> None:
        with suppress(WorkloadLockedError):
            open_canary(event, services=services)

    for after in schedules(services, [opens, aborts(EVENT)]):
        assert [] == [one for one in past(after).rounds if one.closed is None]
        assert after.locks.holder(WORKLOAD) is None


def test_a_trial_that_is_stopped_while_it_asks_a_person_leaves_no_question() -> None:
    key = naming.record_key(WORKLOAD, EVENT["trial"], "decision")
    services = fakes.services("prod")
    put_spec(services, SOUND)
    acquire_lock(EVENT, services=services)
    plan_trial(EVENT, services=services)
    flag = {"name": FLAG, "action": "enable"}
    services.store.put(key, to_json(decision_document("promote", flag=flag)))

    def asks(services: Services) -> None:
        with suppress(WorkloadLockedError):
            ask_approval({**EVENT, "decision_key": key}, services=services)

    for after in schedules(services, [asks, aborts(EVENT)]):
        assert all(one.answer and not one.answer.approved for one in past(after).approvals)
        assert after.locks.holder(WORKLOAD) is None
