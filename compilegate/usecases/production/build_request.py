"""Writes the CreateTrainingJob request of one attempt where the state machine reads it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from compilegate.domain import naming
from compilegate.domain.production.begun import Attempt
from compilegate.ports import Services
from compilegate.usecases.production.production_job import load_begun, request_of, spec_of
from compilegate.usecases.trial import to_json


def build_request(event: Mapping[str, Any], *, services: Services) -> dict[str, Any]:
    """The request's key and what its job's name begins with; repeating it writes the same.

    ``event``: workload, run, ``attempt`` as begin_run or record_run gave it out. Raises
    InvalidInputError for a request that SageMaker would refuse.
    """
    workload, run = str(event["workload"]), str(event["run"])
    attempt = Attempt.from_dict(event["attempt"])
    begun = load_begun(workload, run, services)
    request = request_of(begun, attempt, spec_of(begun, workload, services), services)
    key = naming.production_request_key(workload, run, attempt.number)
    services.store.put(key, to_json(request))
    return {"run": run, "request_key": key, "job_base": request["TrainingJobName"]}
