"""Asks who makes a trial's full runs: what is registered, and what production has trained."""

from __future__ import annotations

from compilegate.domain.errors import InvalidInputError, NotFoundError
from compilegate.domain.production.history import WorkloadHistory
from compilegate.domain.production.quality_mode import SHADOW, QualityMode, quality_mode
from compilegate.domain.production.trained_job import TrainedJob
from compilegate.ports import ObjectStore
from compilegate.usecases.registration.load import load_registration
from compilegate.usecases.trial.documents import Spec, spec_at


def mode_of_trial(spec: Spec, past: WorkloadHistory, store: ObjectStore) -> QualityMode:
    """The mode of a trial of ``spec``, by its registration and its workload's history."""
    name = spec.workload.name
    try:
        registration = load_registration(store, name)
        produced = spec_at(store, registration.spec_key)
    except NotFoundError:
        return quality_mode(_trained(spec), None, None, WorkloadHistory())
    except InvalidInputError as error:
        return QualityMode(spec.workload.policy.quality_runs, SHADOW, str(error))
    return quality_mode(_trained(spec), registration, _trained(produced), past)


def _trained(spec: Spec) -> TrainedJob:
    return TrainedJob(spec.workload, spec.code)
