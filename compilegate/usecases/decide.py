"""Writes a decision where every later step finds it."""

from __future__ import annotations

from compilegate.domain import naming
from compilegate.domain.decision import Decision
from compilegate.ports import Services
from compilegate.usecases.trial import Trial, save_record


def save_decision(services: Services, trial: Trial, decision: Decision) -> str:
    """Keep the decision document and return its key."""
    flag_name = naming.flag_parameter(services.settings.stage, trial.workload)
    document = decision.to_dict(flag_name)
    return save_record(services.store, trial, "decision", {**document, "trial": trial.trial})
