"""A trial whose full runs production carries, and production that makes them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from compilegate.domain import naming
from compilegate.domain.codec import write
from compilegate.domain.decision import Decision, QualityStep, RequestedFullRun
from compilegate.domain.production.canary import open_slot
from compilegate.domain.production.history import history
from compilegate.domain.production.registration import Registration, TrainedJob
from compilegate.domain.records.production import BegunRun, CanarySlot, ProductionRun
from compilegate.usecases.canary import close_after_run, open_canary
from compilegate.usecases.planning import plan_trial
from compilegate.usecases.records import read_document, to_json
from compilegate.usecases.trial.lock import acquire_lock
from tests.domain.workload_builder import SOUND, change
from tests.usecases.trial_builder import (
    EVENT,
    SPEC,
    TRIAL,
    call_judge,
    evidence,
    load,
    put_spec,
    says,
)

CARRIED = change(SOUND, schedule__cron="rate(1 day)")
JOB = TrainedJob(read_document(CARRIED.to_dict()), "workloads/bert-docs/s.tgz").digest


def register(services: Any, **changes: Any) -> None:
    """What production trains is what the trial measures, unless said otherwise."""
    values: dict[str, Any] = {
        "workload": "bert-docs", "spec_key": SPEC, "source_digest": "d",
        "schedule": CARRIED.schedule.cron, **changes,
    }  # fmt: skip
    document = write(Registration(**values))
    services.store.put(naming.registration_key("bert-docs"), to_json(document))


def asks(*runs: str) -> Decision:
    pairs = [run.split() for run in runs]
    planned_runs = tuple(RequestedFullRun(arm, int(seed)) for arm, seed in pairs)
    step = QualityStep(mode="canary", runs=planned_runs, usd=0.0, why="")
    return says("continue", step)


def begin(services: Any, workload: Any = CARRIED) -> dict[str, Any]:
    """A planned trial whose judge asks production for one run of each arm."""
    put_spec(services, workload)
    register(services)
    acquire_lock(EVENT, services=services)
    plan_trial(EVENT, services=services)
    return call_judge(services, 4, [], asks("compile 17", "baseline 17"))


def open_round(services: Any, answer: dict[str, Any], token: str = "first") -> dict[str, Any]:
    services.tokens.waiting.add(token)
    return open_canary({**EVENT, **answer["canary"], "token": token}, services=services)


def begun_round(services: Any) -> None:
    open_round(services, begin(services))


def produce(
    services: Any,
    run: str,
    arm: str,
    position: int | None,
    *,
    job: str | None = JOB,
    **changes: Any,
) -> ProductionRun:
    """A production run in the ledger, and the step that follows it."""
    services.clock.seconds += 3600
    now = services.clock.now()
    result = {
        "stage": "quality", "finished": True, "applied": True, "seed": 17, "metric": 0.91,
        "wall_seconds": 1800.0, "fingerprint": {"gpu": "g"}, **changes.pop("result", {}),
    }  # fmt: skip
    slot = None if position is None else CanarySlot(TRIAL, 4, position)
    values = {
        "run": run, "job": f"cg-bert-docs-{run}-p0-r0", "arm": arm, "started_at": now - 1800.0,
        "ended_at": float(now), "result": result, "counts": True, "why": "canary", "canary": slot,
        "usd": 10.0, "billable_seconds": 1800.0, **changes,
    }  # fmt: skip
    made = ProductionRun(**values)
    begun = BegunRun(
        at=now - 1800, run=run, execution="e", arm="baseline", why="scheduled", seed=1, number=1,
        spec_key=SPEC, source_key="s",
    )  # fmt: skip
    for record in (begun, replace(made, at=now)):
        services.ledger.append("bert-docs", record)
    services.jobs.add(made.job, "Completed", now - 1800, now)
    services.jobs.descriptions[made.job]["TrainingJobArn"] = f"arn:{made.job}"
    close_after_run("bert-docs", made, job=job, services=services)
    return made


def next_slot(services: Any) -> Any:
    entries = services.ledger.raw.entries("bert-docs")
    return open_slot(history(entries), now=services.clock.now(), job=JOB)


def ended_with(services: Any) -> str | None:
    return list(services.ledger.history("bert-docs").rounds)[-1].closed


def reason(services: Any) -> str:
    return str(load(services, "decision")["reasons"][0]["code"])


def tag_of(services: Any, job: str) -> str | None:
    tags = {tag["Key"]: tag["Value"] for tag in services.jobs.describe(job).get("Tags", ())}
    return tags.get(naming.TAG_RELEASE)


def measured(services: Any, fingerprint: dict[str, Any]) -> None:
    """The trial has a first block of its baseline."""
    document = evidence(services)
    speed = {
        "job": "j", "stage": "speed", "block": 0, "fingerprint": fingerprint,
        "node": "n", "finished": True, "step_seconds": [1.0], "compile_seconds": 0.0,
    }  # fmt: skip
    document["arms"][0]["runs"].append(speed)
    services.store.put(naming.record_key("bert-docs", TRIAL, "evidence"), to_json(document))
