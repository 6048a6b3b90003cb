"""Begins a production run: which arm it trains is settled here, once, in the ledger."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any

from compilegate.domain import ledger_keys, naming
from compilegate.domain.errors import InvalidInputError
from compilegate.domain.flag import Flag
from compilegate.domain.metrics import FLAG_PROBLEMS
from compilegate.domain.production.begun import Attempt, BegunRun, begun_runs
from compilegate.domain.production.canary import job_digest, open_slot
from compilegate.domain.production.next_arm import (
    UNFIT,
    Choice,
    FlagReading,
    Situation,
    next_arm,
)
from compilegate.domain.production.runs import production_runs
from compilegate.domain.production.waiting import longest_run_seconds
from compilegate.domain.workload.model import BASELINE
from compilegate.ports import Services
from compilegate.usecases.drain_mark import refuse_if_drained
from compilegate.usecases.metrics import count
from compilegate.usecases.production.flag_reading import read_flag
from compilegate.usecases.production.production_job import (
    Registered,
    load_registered,
    request_of,
    spec_of,
)
from compilegate.usecases.production.staleness import before_the_run

WATCH = "watch"

Entries = Sequence[Mapping[str, Any]]


@dataclass(frozen=True)
class _Start:
    """One execution at the beginning of a run; ``started`` in epoch milliseconds."""

    workload: str
    execution: str
    started: int
    scheduled: str | None

    @property
    def run(self) -> str:
        return naming.trial_id(self.started)


def begin_run(event: Mapping[str, Any], *, services: Services) -> dict[str, Any]:
    """Settle what the run trains, or say that another execution has begun it (``duplicate``).

    ``event``: workload, execution, ``started`` (ISO time) and ``scheduled`` (ISO time) or None.
    Safe to repeat: the ledger's entry decides. Raises NotFoundError for a workload that is not
    registered, InvalidInputError for one that is retired or whose job cannot be built, and
    DrainedError while the deployment is drained.
    """
    start = _start(event)
    entries = services.ledger.entries(start.workload)
    begun = _known(start, entries)
    if begun is None:
        refuse_if_drained(services)
        begun = _begin(start, entries, services)
    return {
        "duplicate": begun.execution != start.execution,
        "run": begun.run,
        "arm": begun.arm,
        "why": begun.why,
        "attempt": Attempt().to_dict(),
        "owner": spec_of(begun, start.workload, services).workload.owner,
    }


def _start(event: Mapping[str, Any]) -> _Start:
    scheduled = event.get("scheduled")
    return _Start(
        workload=str(event["workload"]),
        execution=str(event["execution"]),
        started=_milliseconds(str(scheduled or event["started"])),
        scheduled=None if scheduled is None else str(scheduled),
    )


def _milliseconds(text: str) -> int:
    try:
        found = datetime.fromisoformat(text)
    except ValueError as error:
        fix = "give an ISO time such as 2026-11-20T02:00:00Z"
        raise InvalidInputError("is no time", field="scheduled", value=text, fix=fix) from error
    dated = found if found.tzinfo else found.replace(tzinfo=UTC)
    return int(dated.timestamp() * 1000)


def _known(start: _Start, entries: Entries) -> BegunRun | None:
    return next((begun for begun in begun_runs(entries) if begun.run == start.run), None)


def _begin(start: _Start, entries: Entries, services: Services) -> BegunRun:
    registered = load_registered(start.workload, services)
    reading = read_flag(start.workload, services)
    reading = before_the_run(reading, start.workload, registered.spec, services)
    now = services.clock.now()
    job = job_digest(registered.spec.workload, registered.spec.code)
    recent = now - longest_run_seconds(registered.spec.workload)
    situation = _situation(reading, entries, recent)
    choice = next_arm(replace(situation, canary=open_slot(entries, now=now, job=job)))
    number = 1 + len(begun_runs(entries))
    wanted = _begun(start, choice, reading, registered, number=number, at=now)
    fitting = _fitting(wanted, registered, services)
    entry = services.ledger.put_once(
        start.workload, ledger_keys.begun_entry(start.run), fitting.to_entry()
    )
    begun = BegunRun.from_entry(entry)
    if begun == fitting and begun.flag_problem is not None:
        message = f"{start.workload} trains the baseline: {begun.flag_told}"
        fields = {"workload": start.workload, "run": begun.run, "problem": begun.flag_problem}
        count(FLAG_PROBLEMS, message, services=services, **fields)
    return begun


def _situation(reading: FlagReading, entries: Entries, recent: float) -> Situation:
    """What has happened since the flag took its present value.

    A run that began before ``recent`` (epoch seconds) is not on its way any more: its execution
    was lost, and whatever it should have answered is asked again.
    """
    since = _since(reading.flag)
    runs = production_runs(entries)
    ended = {run.run for run in runs}
    watches = [e for e in entries if e.get("kind") == WATCH and e["at"] >= since]
    return Situation(
        reading=reading,
        runs=[run for run in runs if run.started_at >= since],
        in_flight=[
            begun
            for begun in begun_runs(entries)
            if begun.run not in ended and begun.at >= max(since, recent)
        ],
        watch=max(watches, key=lambda entry: (entry["at"], entry["run"]), default=None),
    )


def _since(flag: Flag) -> int:
    """Epoch second from which the flag holds; what it does not say, or not as a time, is 0."""
    try:
        return _milliseconds(flag.since or "") // 1000
    except InvalidInputError:
        return 0


def _begun(
    start: _Start,
    choice: Choice,
    reading: FlagReading,
    registered: Registered,
    *,
    number: int,
    at: int,
) -> BegunRun:
    return BegunRun(
        at=at,
        run=start.run,
        execution=start.execution,
        arm=choice.arm,
        why=choice.why,
        # Another one for every run, so that chance shows; a trial that wants pairs says which.
        seed=number if choice.seed is None else choice.seed,
        number=number,
        spec_key=registered.spec_key,
        source_key=registered.spec.source_key,
        overrides=choice.overrides,
        confirm=choice.confirm,
        canary=choice.canary,
        decision_id=choice.decision_id,
        scheduled=start.scheduled,
        flag=reading.text,
        flag_problem=reading.problem,
        flag_told=reading.told,
        tags=choice.tags,
    )


def _fitting(begun: BegunRun, registered: Registered, services: Services) -> BegunRun:
    """The run as chosen, or of the baseline where the candidate's job cannot be built any more.

    Raises InvalidInputError where the baseline's cannot either.
    """
    try:
        request_of(begun, Attempt(), registered.spec, services)
    except InvalidInputError as error:
        if begun.arm == BASELINE:
            raise
        told = f"{begun.arm} does not fit the registered job: {error}"
    else:
        return begun
    baseline = replace(
        begun, arm=BASELINE, why=UNFIT, overrides={}, confirm=False, canary=None, decision_id=None,
        flag_problem=UNFIT, flag_told=told, tags={},
    )  # fmt: skip
    request_of(baseline, Attempt(), registered.spec, services)
    return baseline
