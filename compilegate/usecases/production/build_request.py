"""Writes the CreateTrainingJob request of one attempt where the state machine reads it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from compilegate.domain import naming
from compilegate.domain.codec import read
from compilegate.domain.errors import InvalidInputError, NotFoundError
from compilegate.domain.production.attempts import Attempt
from compilegate.domain.production.begin import SCHEDULED
from compilegate.domain.production.job import RunJobs
from compilegate.domain.production.registration import TrainedJob
from compilegate.domain.records.runs import BegunRun
from compilegate.domain.workload.model import BASELINE
from compilegate.ports import Ledger, Services
from compilegate.usecases.job_requests import job_site, request_limits
from compilegate.usecases.records import Spec, read_document, spec_at, to_json
from compilegate.usecases.registered import deployed_facts


def build_request(event: Mapping[str, Any], *, services: Services) -> dict[str, Any]:
    """The request's key and what its job's name begins with; repeating it writes the same.

    ``event``: workload, run, ``attempt`` as begin_run or record_run gave it out. Raises
    InvalidInputError for a request that SageMaker would refuse.
    """
    workload, run = str(event["workload"]), str(event["run"])
    begun, attempt = load_begun(workload, run, services.ledger), read(Attempt, event["attempt"])
    request = jobs_of(begun, services).request(begun, attempt)
    key = naming.production_request_key(workload, run, attempt.number)
    services.roles.ensure(workload)
    services.store.put(key, to_json(request))
    return {"run": run, "request_key": key, "job_base": request["TrainingJobName"]}


def load_begun(workload: str, run: str, ledger: Ledger) -> BegunRun:
    """How a run began; raises NotFoundError."""
    begun = ledger.history(workload, BegunRun.key_of(run=run)).begun_run(run)
    if begun is None:
        raise NotFoundError(f"production run {run} of {workload} was never begun")
    return begun


def jobs_of(begun: BegunRun, services: Services) -> RunJobs:
    """Builds the jobs of a run from the spec that it began with."""
    return run_jobs(spec_at(services.store, begun.spec_key).job, services)


def run_jobs(trained: TrainedJob, services: Services) -> RunJobs:
    """Builds the jobs of runs that train this, as this deployment makes them."""
    facts = deployed_facts(services.settings)
    return RunJobs(trained, facts, job_site(services), request_limits())


def check_trainable(document: Mapping[str, Any], services: Services) -> None:
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
        run_jobs(spec.job, services).request(begun, Attempt())
    except InvalidInputError as error:
        fix = error.fix or "see what would fit with `compilegate check` and the workload file"
        raise InvalidInputError(
            f"could not be trained: {error.problem}", field=error.field, value=error.value, fix=fix
        ) from error
