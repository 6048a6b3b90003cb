"""Plan and decision of a trial, read back: apart from documents.py, as most steps need neither."""

from __future__ import annotations

import json
from dataclasses import dataclass

from compilegate.domain.records.decisions import RecordedDecision, read_decision
from compilegate.domain.trial.plan import RecordedPlan, read_plan
from compilegate.ports import ObjectStore, Services
from compilegate.usecases.trial.documents import Spec, Trial, load_record, load_spec


@dataclass(frozen=True)
class OpenTrial:
    """A planned trial with everything a round of it reads."""

    trial: Trial
    spec: Spec
    plan: RecordedPlan
    services: Services


def open_trial(trial: Trial, services: Services) -> OpenTrial:
    """Load a planned trial."""
    store = services.store
    return OpenTrial(trial, load_spec(store, trial), load_plan(store, trial), services)


def load_plan(store: ObjectStore, trial: Trial) -> RecordedPlan:
    """The trial's plan; raises as ``load_record`` does."""
    return read_plan(load_record(store, trial, "plan"))


def load_decision(store: ObjectStore, key: str) -> RecordedDecision:
    """The decision that a key holds; raises NotFoundError."""
    return read_decision(json.loads(store.get(key)))
