"""What a production run is made of: the registered spec, its arm, its job's request."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from compilegate.domain import ledger_keys, naming
from compilegate.domain.errors import InvalidInputError, NotFoundError
from compilegate.domain.planning.arm_plan import ArmPlan
from compilegate.domain.production.arm import baseline_arm, on_instance, with_overrides
from compilegate.domain.production.begun import Attempt, BegunRun
from compilegate.domain.request.production import ProductionJob, production_request
from compilegate.domain.workload.model import BASELINE
from compilegate.ports import Services
from compilegate.usecases.job_context import job_context
from compilegate.usecases.known_facts import known_facts
from compilegate.usecases.registration import load_registration
from compilegate.usecases.request_check import check_request
from compilegate.usecases.trial import Spec, Trial, load_spec


@dataclass(frozen=True)
class Registered:
    """What production trains today: ``spec_key`` names the spec."""

    spec_key: str
    spec: Spec


def load_registered(workload: str, services: Services) -> Registered:
    """The registered spec; raises NotFoundError, or InvalidInputError for a retired workload."""
    found = load_registration(services.store, workload)
    if not found.active:
        raise InvalidInputError(
            "was retired from production",
            field="workload",
            value=workload,
            fix="register its file again with `compilegate register`",
        )
    return Registered(found.spec_key, _spec(workload, found.spec_key, services))


def spec_of(begun: BegunRun, workload: str, services: Services) -> Spec:
    """The spec as it was when the run began."""
    return _spec(workload, begun.spec_key, services)


def load_begun(workload: str, run: str, services: Services) -> BegunRun:
    """How a run began; raises NotFoundError."""
    key = ledger_keys.begun_entry(run)
    for entry in services.ledger.entries(workload, key):
        return BegunRun.from_entry(entry)
    raise NotFoundError(f"production run {run} of {workload} was never begun")


def arm_of(begun: BegunRun, attempt: Attempt, spec: Spec, services: Services) -> ArmPlan:
    """The arm that an attempt trains.

    Raises InvalidInputError for overrides that do not fit the registered job.
    """
    facts, region = known_facts(spec.workload, services.settings), services.settings.region
    baseline = baseline_arm(spec.workload, facts, region=region)
    if attempt.instance_type is not None:
        return on_instance(baseline, attempt.instance_type, facts)
    name = BASELINE if attempt.trains_baseline else begun.arm
    return with_overrides(baseline, name, begun.overrides, facts)


def request_of(begun: BegunRun, attempt: Attempt, spec: Spec, services: Services) -> dict[str, Any]:
    """The complete request of an attempt, which SageMaker would take.

    Raises InvalidInputError for one that it would refuse, or that cannot be built.
    """
    arm = arm_of(begun, attempt, spec, services)
    job = ProductionJob(
        run=begun.run,
        number=attempt.number,
        replicate=begun.number,
        seed=begun.seed,
        variables=_variables(begun, attempt, arm, services),
        tags=_tags(begun, attempt),
    )
    context = job_context(
        services, trial=begun.run, execution=begun.execution, source_key=begun.source_key
    )
    request = production_request(spec.workload, arm, job, context)
    check_request(request)
    return request


def _decided(begun: BegunRun, attempt: Attempt) -> str | None:
    """The decision behind the attempt's arm."""
    return None if attempt.trains_baseline else begun.decision_id


def _tags(begun: BegunRun, attempt: Attempt) -> dict[str, str]:
    if attempt.trains_baseline:
        return {}
    decided = _decided(begun, attempt)
    return {**begun.tags, **({naming.TAG_DECISION: decided} if decided else {})}


def _variables(
    begun: BegunRun, attempt: Attempt, arm: ArmPlan, services: Services
) -> Mapping[str, str]:
    """What the script may want to know; the stage is where its flag lies."""
    decided = _decided(begun, attempt)
    return {
        "COMPILEGATE_STAGE": services.settings.stage,
        "COMPILEGATE_RUN": begun.run,
        "COMPILEGATE_ARM": arm.name,
        "COMPILEGATE_WHY": attempt.why(begun),
        **({"COMPILEGATE_DECISION_ID": decided} if decided else {}),
    }


def _spec(workload: str, key: str, services: Services) -> Spec:
    return load_spec(services.store, Trial(workload, "", key))
