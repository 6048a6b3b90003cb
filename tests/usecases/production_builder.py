"""A workload in production whose flag a trial has turned on, on in-memory services."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from compilegate.domain import naming
from compilegate.domain.flag import Flag, parse_flag
from compilegate.domain.flag_change import EVALUATE
from compilegate.domain.planning.arms import promoted
from compilegate.domain.records.flags import FlagVersion
from compilegate.domain.records.production import ProductionRun
from compilegate.domain.workload.model import Workload
from compilegate.ports import Services
from compilegate.usecases.flag.change_flag import change_flag
from compilegate.usecases.planning import plan_trial
from compilegate.usecases.production.review_production import review_production
from compilegate.usecases.records import Trial, load_plan, to_json
from tests.domain.evidence_builder import (
    BASE_WALL,
    CENTRE,
    FINGERPRINT,
    MINE_WALL,
    PROBATION_MARGIN,
    document,
    sample,
)
from tests.domain.production.run_builder import BEGIN, DAY, production_run
from tests.domain.workload_builder import SOUND
from tests.usecases.trial_builder import EVENT, FLAG, SPEC, TRIAL, put_spec

WORKLOAD = "bert-docs"
TWO_MARGINS = 2 * PROBATION_MARGIN


def promote(services: Any, workload: Workload = SOUND) -> Flag:
    """A trial of ``workload`` that ended well, its records, its flag, and a registration."""
    put_spec(services, workload)
    services.clock.seconds = BEGIN
    assert plan_trial(EVENT, services=services)["plan_key"], "the trial was refused"
    plan = load_plan(services.store, Trial(WORKLOAD, TRIAL, SPEC))
    services.store.put(
        naming.record_key(WORKLOAD, TRIAL, "evidence"), to_json(trial_evidence(workload))
    )
    register(services, SPEC)
    flag = promoted(plan.arm("compile"), plan.baseline, decision_id="d1")
    change = FlagVersion(
        version=0, at=0, change_id=f"trial#{TRIAL}#flag", by=EVALUATE, action="enable",
        reason="proven", value=flag.to_json(), decided_at=BEGIN, decision_id="d1",
        details={"trial": TRIAL},
    )  # fmt: skip
    return change_flag(WORKLOAD, change, services=services).flag


def trial_evidence(workload: Workload = SOUND) -> dict[str, Any]:
    evidence = document(
        metrics={"baseline": sample(3, CENTRE, 0.004), "compile": sample(3, CENTRE, 0.004)},
        margin=PROBATION_MARGIN,
        goal="maximize",
        policy={
            "probation_runs": workload.policy.probation_runs, "on_stale": workload.policy.on_stale,
        },
    )  # fmt: skip
    evidence |= {"workload": WORKLOAD, "usd_per_hour": 30.0, "runs_per_week": 3}
    evidence["quality"]["history"] = sample(20, CENTRE, 0.004)
    for arm in evidence["arms"]:
        wall = BASE_WALL if arm["name"] == "baseline" else MINE_WALL
        for run in arm["runs"]:
            if run["stage"] == "quality":
                run["wall_seconds"] = wall
    return evidence


def register(services: Any, spec_key: str) -> None:
    """What production trains from now on."""
    registration = {
        "schema": 1, "workload": WORKLOAD, "spec_key": spec_key, "source_digest": "x",
        "schedule": None, "active": True, "origin": "workloads/bert-docs.yaml", "revision": 1,
    }  # fmt: skip
    services.store.put(naming.registration_key(WORKLOAD), to_json(registration))


def put_other_spec(services: Any, workload: Workload, source_key: str) -> str:
    key = "workloads/bert-docs/specs/other.json"
    services.store.put(key, to_json({"workload": workload.to_dict(), "source_key": source_key}))
    return key


def record(services: Services, number: int, arm: str = "compile", **changed: Any) -> ProductionRun:
    """The run ``number``, in the ledger; the clock stands a little after its end."""
    wall = BASE_WALL if arm == "baseline" else MINE_WALL
    usual = {"metric": CENTRE, "wall_seconds": wall, "fingerprint": dict(FINGERPRINT)}
    run = production_run(number, arm, **(usual | changed))
    assert hasattr(services.clock, "seconds")
    services.clock.seconds = max(services.clock.seconds, BEGIN + number * DAY + 30_000)
    services.ledger.raw.put_once(
        WORKLOAD,
        ProductionRun.key_of(run=run.run, job=run.job),
        replace(run, at=services.clock.now()).to_entry(),
    )
    return run


def watch(services: Services, run: str) -> dict[str, Any]:
    """What TRAIN's state ReviewProduction does after the run."""
    return review_production({"workload": WORKLOAD, "run": run}, services=services)


def run_and_watch(
    services: Any, number: int, arm: str = "compile", **changed: Any
) -> dict[str, Any]:
    """A run, recorded and watched."""
    run = record(services, number, arm, **changed)
    return review_production({"workload": WORKLOAD, "run": run.run}, services=services)


def follow(services: Any, numbers: range, **candidates: Any) -> dict[str, Any]:
    """Each time the run that is asked for; ``candidates`` says what is wrong with theirs."""
    answer: dict[str, Any] = {}
    for number in numbers:
        watches = [e for e in entries(services) if e["kind"] == "review"]
        step = max(watches, key=lambda e: e["at"])["next"] if watches else None
        run = (step or {"runs": [{"arm": "compile", "confirm": False}]})["runs"][0]
        wrong = candidates if run["arm"] == "compile" else {}
        answer = run_and_watch(services, number, run["arm"], confirm=run["confirm"], **wrong)
        if not flag_of(services).enabled:
            break
    return answer


def flag_of(services: Any) -> Flag:
    return parse_flag(services.flags.read(FLAG))


def entries(services: Any) -> list[Any]:
    return list(services.ledger.raw.entries(WORKLOAD))


def flag_entries(services: Any) -> list[Any]:
    return list(services.ledger.raw.entries(WORKLOAD, "flag#"))


def say(services: Any, flag: Flag, at: int = BEGIN + 100) -> None:
    """A person changes the flag."""
    services.clock.seconds = max(services.clock.seconds, at)
    said = FlagVersion(
        version=0, at=0, change_id=f"human#{at}", by="human:ann", action="set",
        reason="I want it", value=flag.to_json(), decided_at=at,
        details={"trial": TRIAL} if flag.candidate == "compile" else {},
    )  # fmt: skip
    change_flag(WORKLOAD, said, services=services)
