"""What holds after every fault, once the clean-up that it allows has been made."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from compilegate.domain import ledger_keys, naming
from compilegate.domain.production.history import WorkloadHistory
from compilegate.domain.records.flags import HUMAN
from compilegate.usecases.flag.change_flag import repair_flag
from tests.faults.world import NAME, SPEC_KEY, STAGE, World, execution_arn

DAY = 24 * 3600
# What no text for people may hold.
NOT_WORDS = ("Traceback", "errorMessage", "\n", "{'", '{"')
# What one is to do next, or that somebody wanted it so.
ADVICE = ("again", "Fix: ", "fewer", "Service Quotas", "another instance type", "by hand")
NEXT = "next0001"


def settle(world: World) -> None:
    """A day passes: jobs end by themselves or are swept, a wrong parameter is written again."""
    world.passes(DAY)
    world.step("sweep", {})
    repair_flag(NAME, world.services)  # as the next production run does


def problems(world: World) -> list[str]:
    """What is wrong with a world whose executions have all ended; empty where nothing is."""
    key = world.digest()
    if key not in _seen:
        _seen[key] = _problems(world)
    return [*_seen[key]]


_seen: dict[Any, list[str]] = {}


def _problems(world: World) -> list[str]:
    early = [*before_the_sweep(world.copy(), NAME, SPEC_KEY)]
    settle(world)
    return [*early, *after_a_day(world, NAME, deserves=world.truth.deserves)]


def before_the_sweep(world: World, name: str, spec_key: str) -> Iterator[str]:
    """A lock of a dead trial must not wait for the sweep: the next trial begins at once."""
    event = {"workload": name, "trial": NEXT, "spec_key": spec_key}
    given = {**event, "execution": execution_arn("evaluate", f"{name}-{NEXT}")}
    answer = world.step("acquire_lock", given)
    if answer:
        yield f"the next trial cannot begin: {answer}"


def after_a_day(world: World, name: str, *, deserves: bool) -> Iterator[str]:
    """What is wrong with a workload once everything around it has been made up for."""
    past = world.services.ledger.history(name)
    yield from _flag(world, name, deserves)
    yield from _jobs(world, past, name)
    yield from _locks(world, name)
    yield from _waits(past)
    yield from _trials(world, past, name)
    yield from _words(world, name)


def _flag(world: World, name: str, deserves: bool) -> Iterator[str]:
    entries = world.services.ledger.raw.entries(name, ledger_keys.FLAG_ENTRIES)
    written = world.services.flags.read(naming.flag_parameter(STAGE, name))
    latest = entries[-1]["to"] if entries else None
    if written != latest:
        yield f"the parameter holds {written}, the ledger {latest}"
    if [entry["version"] for entry in entries] != list(range(1, len(entries) + 1)):
        yield "the flag's versions have a gap"
    for entry in entries:
        turned_on = json.loads(entry["to"])["enabled"] and not json.loads(entry["from"])["enabled"]
        if turned_on and not deserves and not entry["by"].startswith(HUMAN):
            yield f"{entry['by']} turned the flag on for a candidate that does not deserve it"


def _jobs(world: World, past: WorkloadHistory, name: str) -> Iterator[str]:
    prefix = f"{naming.JOB_PREFIX}-{name}-"
    described: Mapping[str, Any] = {
        job: one for job, one in world.services.jobs.descriptions.items() if job.startswith(prefix)
    }
    for job, one in described.items():
        if one["TrainingJobStatus"] not in ("Completed", "Failed", "Stopped"):
            yield f"{job} is left {one['TrainingJobStatus']}"
    for job in sorted(set(described) - set(_accounted(world, past, name))):
        yield f"{job} ran and is in no account"
    if world.lists:  # of which there may be thousands; a step asks for its own by name
        yield "a function listed the account's jobs"


def _accounted(world: World, past: WorkloadHistory, name: str) -> Iterator[str]:
    for entry in world.services.ledger.raw.entries(name):
        yield from entry.get("jobs") or ()
        yield from entry.get("stopped_jobs") or ()
        if entry.get("job"):
            yield str(entry["job"])
    for started in past.started:
        key = naming.record_key(name, started.trial, "evidence")
        if key in world.services.store.objects:
            yield from world.get(key)["plan"].get("usd_by_job") or ()


def _locks(world: World, name: str) -> Iterator[str]:
    holder = world.services.locks.holder(name)
    if holder is not None:
        yield f"{holder} still holds the lock"


def _waits(past: WorkloadHistory) -> Iterator[str]:
    for approval in past.approvals:
        if approval.answer is None:
            yield f"the question of {approval.trial} is open"
    for one in past.rounds:
        if one.closed is None:
            yield f"round {one.round} of {one.trial} is open"


def _trials(world: World, past: WorkloadHistory, name: str) -> Iterator[str]:
    for started in past.started:
        if started.trial not in past.ended_trials:
            yield f"trial {started.trial} began and has no end"
    for execution, detail in world.ended.items():
        if detail["status"] == "RUNNING":
            yield f"{execution} did not end"


def _words(world: World, name: str) -> Iterator[str]:
    """Every reason is a sentence for people."""
    for entry in world.services.ledger.raw.entries(name):
        if entry["kind"] == "failed":
            yield from _plain(str(entry["reason"]))
    for detail in world.ended.values():
        if detail.get("error") == "CleanUpFailed":
            yield from _plain(str(detail["cause"]))


def _plain(text: str) -> Iterator[str]:
    if not text.strip():
        yield "a failure has no reason"
    elif not any(words in text for words in ADVICE):
        yield f"a reason without advice: {text[:200]}"
    for part in NOT_WORDS:
        if part in text:
            yield f"a reason is no sentence for people: {text[:200]}"
