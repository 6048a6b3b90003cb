"""Decides, before any spend, whether a compiler could apply and pay at all."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any

from compilegate.domain.eligibility import MeasuredOverhead
from compilegate.domain.eligibility import check_eligibility as check
from compilegate.domain.eligibility.overhead import measured_overheads
from compilegate.domain.errors import NotFoundError, UnreadableRecordError
from compilegate.domain.production.history import WorkloadHistory, history
from compilegate.domain.records.trials import TrialDecided
from compilegate.domain.trial.refusals import ineligible
from compilegate.ports import ObjectStore, Services
from compilegate.usecases.registration.load import facts_for_workload
from compilegate.usecases.trial.documents import (
    Trial,
    load_decision,
    load_plan,
    load_spec,
    save_decision,
    save_record,
)

# Older ones would be of another model before they would be of use.
TRIALS_READ = 3
# What reading an old document may raise: another schema, a missing key, no object, no JSON.
UNREADABLE = (UnreadableRecordError, KeyError, TypeError, AttributeError, ValueError)
logger = logging.getLogger("compilegate")


def check_eligibility(event: Mapping[str, Any], *, services: Services) -> dict[str, Any]:
    """Record the eligibility; where nothing is eligible, record that as the decision."""
    trial = Trial.from_event(event)
    workload = load_spec(services.store, trial).workload
    past = history(services.ledger.entries(trial.workload))
    eligibility = check(
        workload,
        facts_for_workload(workload, services.settings),
        region=services.settings.region,
        measured=past_overheads(trial.workload, past, services.store),
    )
    save_record(services.store, trial, "eligibility", eligibility.to_dict())
    decision_key = None
    if eligibility.verdict == "ineligible":
        decision = ineligible(eligibility, workload=trial.workload, trial=trial.trial)
        decision_key = save_decision(services, trial, decision)
    return {"verdict": eligibility.verdict, "decision_key": decision_key}


def past_overheads(
    workload: str, past: WorkloadHistory, store: ObjectStore
) -> tuple[MeasuredOverhead, ...]:
    """Compile seconds that the last decided trials of a workload measured, oldest first."""
    decided = sorted(past.decided, key=lambda one: one.key)
    return tuple(
        overhead
        for decision in decided[-TRIALS_READ:]
        for overhead in _measured(store, workload, decision)
    )


def _measured(
    store: ObjectStore, workload: str, decided: TrialDecided
) -> tuple[MeasuredOverhead, ...]:
    """One trial's arms; nothing where it ended before a plan, or its documents are gone.

    They only improve an estimate: a document that cannot be read counts as one that is gone.
    """
    trial = Trial(workload, decided.trial, spec_key="")
    try:
        figures = load_decision(store, decided.decision_key).arms
        return tuple(measured_overheads(trial.trial, figures, load_plan(store, trial).arms))
    except NotFoundError:
        return ()
    except UNREADABLE as error:
        logger.warning(
            "trial %s: compile times not used, its documents cannot be read: %s",
            trial.trial,
            error,
            extra={"workload": workload},
        )
        return ()
