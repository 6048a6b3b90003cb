"""What the topic is told of a decision, whichever machine has made it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from compilegate.domain.errors import CompilegateError
from compilegate.domain.notification import Notification
from compilegate.ports import Services
from compilegate.usecases.trial import Trial, load_spec

# Verdicts that are a kind of their own; every other one ends a trial.
OWN_KINDS = ("revert", "permanent")


@dataclass(frozen=True)
class Told:
    """The words that a report has found, and what became of the flag; None is unknown."""

    subject: str
    text: str
    owner: str | None = None
    report: str | None = None
    act: str | None = None
    flag_enabled: bool | None = None
    flag_state: str | None = None
    kind: str | None = None


def decision_notification(
    decision: Mapping[str, Any], told: Told, *, workload: str, stage: str
) -> Notification:
    """The decision (design contract, section 6) in figures beside its words."""
    verdict = decision.get("verdict")
    flag = decision.get("flag") or {}
    return Notification(
        kind=told.kind or (verdict if verdict in OWN_KINDS else "decision"),
        stage=stage,
        subject=told.subject,
        text=told.text,
        workload=workload,
        owner=told.owner,
        verdict=verdict,
        decision_id=decision.get("decision_id"),
        flag={
            "name": flag.get("name"),
            "action": flag.get("action"),
            "enabled": told.flag_enabled,
            "state": told.flag_state,
        },
        figures={
            "candidate": decision.get("candidate"),
            "reasons": [reason["code"] for reason in decision.get("reasons") or ()],
            **{name: decision.get(name) for name in ("speedup", "quality", "saving")},
        },
        report=told.report,
        act=told.act,
    )


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
