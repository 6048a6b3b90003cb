"""A registered workload with a promotion and its production runs, as a ledger keeps them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from compilegate.domain import codec, naming
from compilegate.domain.flag import Flag
from compilegate.domain.production.registration import Registration
from compilegate.domain.records.flags import FlagVersion
from compilegate.domain.records.ledger import Record
from compilegate.domain.records.production import CapacityWait, ProductionRun
from compilegate.domain.records.trials import TrialDecided, TrialStarted
from compilegate.domain.workload.model import Policy
from compilegate.ports import Services
from compilegate.usecases.records import to_json
from tests.decision_builder import decision_document, saving
from tests.domain.workload_builder import SOUND

NOW = 1_790_000_000
DAY = 24 * 3600
TRIAL = "0mabc123"
OFF = Flag(False, "off")
ON = Flag(True, "probation", "compile", {"compiler": "torch_compile"}, "d1", "2026-01-01T00:00:00Z")


def register(
    services: Services, name: str, owner: str | None, *, active: bool = True, runs: int = 9
) -> None:
    """Register a workload whose probation is ``runs`` long."""
    workload = replace(SOUND, name=name, owner=owner, policy=Policy(probation_runs=runs))
    spec = naming.spec_key(name, "d1")
    document = {"workload": workload.to_dict(), "source_key": naming.source_key(name, "d1")}
    services.store.put(spec, to_json(document))
    registration = Registration(name, spec, "d1", active=active, owner=owner)
    services.store.put(naming.registration_key(name), to_json(codec.write(registration)))


def promote(services: Services, name: str, at: float, *, usd_per_run: float | None = 3.0) -> None:
    """Turn the candidate on by a trial that expected so much of each run."""
    flag_entry(services, name, 1, at, ON, OFF, by="evaluate", action="enable", trial=TRIAL)
    decision = decision_document(saving=None if usd_per_run is None else saving(usd_per_run))
    services.store.put(naming.record_key(name, TRIAL, "decision"), to_json(decision))


def flag_entry(
    services: Services, name: str, version: int, at: float, *flags: Flag, **more: Any
) -> None:
    """One change of the flag; ``flags`` are what it becomes and what it was."""
    to, was = flags
    entry = {
        "kind": "flag", "at": at, "version": version, "change_id": f"c{version}",
        "by": "train", "action": "revert", "reason": "r", "decision_id": "d1", "overrode": None,
        "from": was.to_json(), "to": to.to_json(), **more,
    }  # fmt: skip
    services.ledger.raw.put_once(name, FlagVersion.key_of(version=version), entry)


def ran(
    services: Services, name: str, at: float, arm: str, *, usd: float = 10.0, finished: bool = True
) -> None:
    """A production run that ended at ``at``."""
    run = ProductionRun(
        run=naming.trial_id(int(at * 1000)), job=f"cg-{name}-p0", arm=arm, started_at=at - 3600,
        ended_at=at, counts=True, why="flag", usd=usd, billable_seconds=3600.0,
        result={"finished": finished, "wall_seconds": 360 * usd, "metric": 0.9, "applied": True},
    )  # fmt: skip
    write(services, name, replace(run, at=int(at)))


def write(services: Services, name: str, record: Record) -> None:
    """Any other record."""
    services.ledger.append(name, record)


def decided(trial: str, at: float, verdict: str = "promote", **more: Any) -> TrialDecided:
    """A trial's decision."""
    return TrialDecided(int(at), trial, verdict, f"decisions/{trial}.json", **more)


def started(name: str, trial: str, at: float) -> TrialStarted:
    """A trial's beginning."""
    execution = f"arn:aws:states:us-east-1:1:execution:evaluate:{name}-{trial}"
    return TrialStarted(int(at), execution)


def waited(run: str, number: int, at: float) -> CapacityWait:
    """An attempt that found no capacity."""
    return CapacityWait(int(at), run, number, f"j{number}", "compile", "none", 0.0, 300, None)


def body(notification: Any) -> Mapping[str, Any]:
    """What programs get of a message."""
    document: Mapping[str, Any] = json.loads(json.loads(notification.envelope())["default"])
    return document
