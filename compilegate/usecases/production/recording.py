"""Writes what an attempt at a production run came to into the ledger, once."""

from __future__ import annotations

from typing import Any

from compilegate.domain import ledger_keys
from compilegate.domain.errors import InvalidInputError
from compilegate.domain.production.canary import job_digest
from compilegate.domain.production.ending import Ending
from compilegate.domain.production.runs import ProductionRun
from compilegate.ports import Services
from compilegate.usecases.production.canary import record_canary
from compilegate.usecases.production.ended import Ended
from compilegate.usecases.production.production_job import arm_of
from compilegate.usecases.production.run_evidence import (
    billable_seconds,
    failed,
    read_evidence,
    times,
)

# Status of a run that gave up waiting for capacity, beside SageMaker's own.
NOT_RUN = "NotRun"


def record_attempt(
    ended: Ended, services: Services, *, gave_up: str | None = None
) -> ProductionRun:
    """The run as the ledger has it; ``gave_up`` says why it was not run at all.

    A trial that production carries is told after that, so that it finds the run.
    """
    found = _production_run(ended, services, gave_up)
    entry = services.ledger.put_once(
        ended.workload,
        ledger_keys.run_entry(found.run, found.job),
        found.to_entry(services.clock.now()),
    )
    recorded = ProductionRun.from_entry(entry)
    digest = job_digest(ended.spec.workload, ended.spec.code)
    record_canary(ended.workload, recorded, job=digest, services=services)
    return recorded


def _production_run(ended: Ended, services: Services, gave_up: str | None) -> ProductionRun:
    begun, chosen = ended.begun, ended.as_chosen
    result, counts, reason = _result(ended, services)
    began, over = times(ended.described, otherwise=float(services.clock.now()))
    billable, price = billable_seconds(ended.described), _usd_per_hour(ended, services)
    return ProductionRun(
        run=begun.run,
        job=ended.job,
        arm=ended.arm,
        started_at=began,
        ended_at=over,
        result=result,
        counts=counts and gave_up is None,
        why=ended.attempt.why(begun),
        status=ended.end.status if gave_up is None else NOT_RUN,
        reason=reason if gave_up is None else gave_up,
        confirm=begun.confirm and chosen,
        canary=begun.canary if chosen else None,
        decision_id=begun.decision_id if chosen else None,
        instance_type=_instance_type(ended),
        usd=None if billable is None or price is None else billable / 3600 * price,
        billable_seconds=billable,
        details=_details(ended),
    )


def _result(ended: Ended, services: Services) -> tuple[dict[str, Any], bool, str | None]:
    """The run, whether it is evidence, and why it is not or did not finish."""
    end = ended.end
    if end.ending is not Ending.COMPLETED:
        counts = end.about_arm and not ended.attempt.instance_type
        return failed(ended.begun.seed, end.reason), counts, end.reason
    found, problem = read_evidence(ended.described, ended.spec.workload.quality.metric, services)
    if ended.attempt.instance_type is not None:
        text = f"trained on {ended.attempt.instance_type} for want of capacity: no evidence"
        return found, False, text
    return found, problem is None, problem or found.get("reason")


def _instance_type(ended: Ended) -> str:
    own = ended.begun.overrides.get("instance_type") if ended.as_chosen else None
    registered = ended.spec.workload.training.instance_type
    return str(ended.attempt.instance_type or own or registered)


def _usd_per_hour(ended: Ended, services: Services) -> float | None:
    try:
        return arm_of(ended.begun, ended.attempt, ended.spec, services).usd_per_hour
    except InvalidInputError:  # prices may have changed since the request was built
        return None


def _details(ended: Ended) -> dict[str, Any]:
    begun = ended.begun
    return {
        "attempt": ended.attempt.number,
        "ending": str(ended.end.ending),
        "execution": begun.execution,
        "scheduled": begun.scheduled,
        "spec_key": begun.spec_key,
        "overrides": dict(begun.overrides) if ended.as_chosen else {},
        "model": (ended.described.get("ModelArtifacts") or {}).get("S3ModelArtifacts"),
    }
