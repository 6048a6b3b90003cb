"""Who owns a workload, so that messages reach them."""

from __future__ import annotations

from compilegate.domain.errors import CompilegateError
from compilegate.ports import Services
from compilegate.usecases.registration.load import load_registration
from compilegate.usecases.trial.documents import Trial, load_spec


def owner_of(trial: Trial, services: Services) -> str | None:
    """Whose workload it is; None where nobody says or the spec cannot be read.

    A message without an owner still reaches everyone who asked for all of them.
    """
    if not trial.spec_key:
        return None
    try:
        return load_spec(services.store, trial).workload.owner
    except (CompilegateError, KeyError, ValueError):
        return None


def owner_of_workload(workload: str, services: Services) -> str | None:
    """The registered owner; None where it was never registered or that cannot be read."""
    try:
        return load_registration(services.store, workload).owner
    except (CompilegateError, KeyError, ValueError):
        return None
