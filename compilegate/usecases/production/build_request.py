"""Writes the CreateTrainingJob request of one attempt where the state machine reads it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from compilegate.domain import ledger_keys, naming
from compilegate.domain.errors import InvalidInputError, NotFoundError
from compilegate.domain.planning.arm_plan import ArmPlan
from compilegate.domain.production.arm import baseline_arm, on_instance, with_overrides
from compilegate.domain.production.attempts import Attempt
from compilegate.domain.production.history import history
from compilegate.domain.production.next_arm import SCHEDULED
from compilegate.domain.records.runs import BegunRun
from compilegate.domain.request.build import ProductionJob, production_request
from compilegate.domain.workload.model import BASELINE
from compilegate.ports import Ledger, Services, Settings
from compilegate.usecases.job_requests import JobSite, check_request
from compilegate.usecases.records import Spec, read_document, spec_at, to_json
from compilegate.usecases.registered import facts_for_workload


def build_request(event: Mapping[str, Any], *, services: Services) -> dict[str, Any]:
    """The request's key and what its job's name begins with; repeating it writes the same.

    ``event``: workload, run, ``attempt`` as begin_run or record_run gave it out. Raises
    InvalidInputError for a request that SageMaker would refuse.
    """
    workload, run = str(event["workload"]), str(event["run"])
    begun, attempt = load_begun(workload, run, services.ledger), Attempt.from_dict(event["attempt"])
    spec = spec_at(services.store, begun.spec_key)
    request = request_of(begun, attempt, spec, JobSite.of(services))
    key = naming.production_request_key(workload, run, attempt.number)
    services.roles.ensure(workload)
    services.store.put(key, to_json(request))
    return {"run": run, "request_key": key, "job_base": request["TrainingJobName"]}


def load_begun(workload: str, run: str, ledger: Ledger) -> BegunRun:
    """How a run began; raises NotFoundError."""
    begun = history(ledger.entries(workload, ledger_keys.begun_entry(run))).begun_run(run)
    if begun is None:
        raise NotFoundError(f"production run {run} of {workload} was never begun")
    return begun


def arm_of(begun: BegunRun, attempt: Attempt, spec: Spec, settings: Settings) -> ArmPlan:
    """The arm that an attempt trains.

    Raises InvalidInputError for overrides that do not fit the registered job.
    """
    facts = facts_for_workload(spec.workload, settings)
    baseline = baseline_arm(spec.workload, facts, region=settings.region)
    if attempt.instance_type is not None:
        return on_instance(baseline, attempt.instance_type, facts)
    name = BASELINE if attempt.trains_baseline else begun.arm
    return with_overrides(baseline, name, begun.overrides, facts)


def usd_per_hour(begun: BegunRun, attempt: Attempt, spec: Spec, settings: Settings) -> float | None:
    """Price of the attempt's cluster; None where the arm cannot be planned any more."""
    try:
        return arm_of(begun, attempt, spec, settings).usd_per_hour
    except InvalidInputError:  # prices may have changed since the request was built
        return None


def request_of(begun: BegunRun, attempt: Attempt, spec: Spec, site: JobSite) -> dict[str, Any]:
    """The complete request of an attempt, which SageMaker would take.

    Raises InvalidInputError for one that it would refuse, or that cannot be built.
    """
    settings = site.settings
    arm = arm_of(begun, attempt, spec, settings)
    decision_id = None if attempt.trains_baseline else begun.decision_id
    job = ProductionJob(
        run=begun.run,
        number=attempt.number,
        replicate=begun.number,
        seed=begun.seed,
        variables=_variables(begun, attempt, arm, decision_id, settings.stage),
        tags={} if attempt.trains_baseline else _tags(begun, decision_id),
    )
    context = site.context(
        spec.workload.name,
        trial=begun.run,
        execution=begun.execution,
        source_key=begun.source_key,
    )
    request = production_request(spec.workload, arm, job, context)
    check_request(request)
    return request


def check_trainable(document: Mapping[str, Any], site: JobSite) -> None:
    """Build the baseline's request from a spec (workload, source_key) and throw it away.

    Called before a workload is registered. Raises InvalidInputError where there is no image for
    it, or SageMaker would refuse it.
    """
    spec = Spec(read_document(document["workload"]), str(document["source_key"]))
    begun = BegunRun(
        at=0, run=naming.trial_id(0), execution="", arm=BASELINE, why=SCHEDULED, seed=1, number=1,
        spec_key="", source_key=spec.source_key,
    )  # fmt: skip
    try:
        request_of(begun, Attempt(), spec, site)
    except InvalidInputError as error:
        fix = error.fix or "see what would fit with `compilegate check` and the workload file"
        raise InvalidInputError(
            f"could not be trained: {error.problem}", field=error.field, value=error.value, fix=fix
        ) from error


def _tags(begun: BegunRun, decision_id: str | None) -> dict[str, str]:
    return {**begun.tags, **({naming.TAG_DECISION: decision_id} if decision_id else {})}


def _variables(
    begun: BegunRun, attempt: Attempt, arm: ArmPlan, decision_id: str | None, stage: str
) -> dict[str, str]:
    """What the script may want to know; the stage is where its flag lies."""
    return {
        "COMPILEGATE_STAGE": stage,
        "COMPILEGATE_RUN": begun.run,
        "COMPILEGATE_ARM": arm.name,
        "COMPILEGATE_WHY": attempt.why(begun),
        **({"COMPILEGATE_DECISION_ID": decision_id} if decision_id else {}),
    }
