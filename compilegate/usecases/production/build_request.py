"""Writes the CreateTrainingJob request of one attempt where the state machine reads it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from compilegate.domain import ledger_keys, naming
from compilegate.domain.errors import NotFoundError
from compilegate.domain.production.attempt import Attempt
from compilegate.domain.production.history import history
from compilegate.domain.records.runs import BegunRun
from compilegate.ports import Ledger, Services
from compilegate.usecases.production.job_request import JobSite, request_of
from compilegate.usecases.trial.documents import spec_at, to_json


def build_request(event: Mapping[str, Any], *, services: Services) -> dict[str, Any]:
    """The request's key and what its job's name begins with; repeating it writes the same.

    ``event``: workload, run, ``attempt`` as begin_run or record_run gave it out. Raises
    InvalidInputError for a request that SageMaker would refuse.
    """
    workload, run = str(event["workload"]), str(event["run"])
    begun, attempt = load_begun(workload, run, services.ledger), Attempt.from_dict(event["attempt"])
    spec, site = (
        spec_at(services.store, begun.spec_key),
        JobSite(services.store.bucket, services.settings),
    )
    request = request_of(begun, attempt, spec, site)
    key = naming.production_request_key(workload, run, attempt.number)
    services.store.put(key, to_json(request))
    return {"run": run, "request_key": key, "job_base": request["TrainingJobName"]}


def load_begun(workload: str, run: str, ledger: Ledger) -> BegunRun:
    """How a run began; raises NotFoundError."""
    begun = history(ledger.entries(workload, ledger_keys.begun_entry(run))).begun_run(run)
    if begun is None:
        raise NotFoundError(f"production run {run} of {workload} was never begun")
    return begun
