"""Asks who makes a trial's full runs: what is registered, and what production has trained."""

from __future__ import annotations

from compilegate.domain.errors import InvalidInputError, NotFoundError
from compilegate.domain.production.quality_mode import SHADOW, QualityMode, Trained, quality_mode
from compilegate.ports import Services
from compilegate.usecases.registration import load_registration
from compilegate.usecases.trial import Spec, spec_at


def mode_of_trial(spec: Spec, services: Services) -> QualityMode:
    """The mode of a trial of ``spec``, by its registration and its workload's ledger."""
    name = spec.workload.name
    try:
        registration = load_registration(services.store, name)
        produced = spec_at(services.store, registration.spec_key)
    except NotFoundError:
        return quality_mode(_trained(spec), None, None, ())
    except InvalidInputError as error:
        return QualityMode(spec.workload.policy.quality_runs, SHADOW, str(error))
    entries = services.ledger.entries(name)
    return quality_mode(_trained(spec), registration, _trained(produced), entries)


def _trained(spec: Spec) -> Trained:
    return Trained(spec.workload, spec.code)
