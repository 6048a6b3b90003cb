"""The history page of a workload: its ledger, and the documents that the ledger names."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from compilegate.domain import naming
from compilegate.domain.errors import CompilegateError, NotFoundError
from compilegate.domain.problem import ProblemWithFix
from compilegate.domain.production.flag_transition import PERMANENT
from compilegate.domain.production.history import WorkloadHistory
from compilegate.domain.production.promotion import latest_promotion
from compilegate.domain.production.registration import injected_fault
from compilegate.domain.records.reviews import Review
from compilegate.domain.records.trials import RecordedDecision
from compilegate.ports import ObjectStore, Services
from compilegate.report.history.render import render_history
from compilegate.report.history.view import HistoryReport, HistoryView
from compilegate.usecases.links import console_region, link_to
from compilegate.usecases.records import find_decision
from compilegate.usecases.registered import load_registration

FORMATS = {"html": "text/html", "md": "text/markdown", "json": "application/json"}


def history_page(workload: str, services: Services) -> HistoryReport:
    """The page as it stands now.

    Raises NotFoundError for a workload that the ledger knows nothing of.
    """
    past, store = services.ledger.history(workload), services.store
    if not past.records:
        raise NotFoundError(
            ProblemWithFix(
                f"{workload} has no history",
                fix="register its file with `compilegate register`, or list workloads with "
                "`compilegate status`",
            )
        )
    return render_history(HistoryView(
        name=workload,
        history=past,
        stage=services.settings.stage,
        decision=_decision(past, store),
        evidence=_evidence(past, store),
        workload=_registered(workload, store),
        faults=dict(_faults(past, store)),
        simulated=services.settings.simulated,
        region=console_region(services),
        bucket=store.bucket,
    ))  # fmt: skip


def write_history(workload: str, services: Services) -> str:
    """Leave the page where people find it; returns its link, or its S3 URI where there is none."""
    page = history_page(workload, services)
    for extension, body in bodies(page).items():
        key = naming.history_key(workload, extension)
        services.store.put(key, body, f"{FORMATS[extension]}; charset=utf-8")
    key = naming.history_key(workload, "html")
    return link_to(key, services) or f"s3://{services.store.bucket}/{key}"


def bodies(page: HistoryReport) -> dict[str, bytes]:
    """The page's files by their ending."""
    texts = {"html": page.html, "md": page.markdown, "json": page.json}
    return {extension: texts[extension].encode() for extension in FORMATS}


def _decision(past: WorkloadHistory, store: ObjectStore) -> RecordedDecision | None:
    """Of the latest promotion's trial; what others decided the ledger says in a line."""
    promotion = latest_promotion(past.flags)
    keys = [one.decision_key for one in past.decided if promotion and one.trial == promotion.trial]
    return find_decision(store, keys[-1]) if keys else None


def _evidence(past: WorkloadHistory, store: ObjectStore) -> Any:
    """Of the latest promotion's probation, up to its end: later reviews hold a few runs only."""
    promotion = latest_promotion(past.flags)
    if promotion is None:
        return None
    last: Review | None = None
    for review in past.reviews_of(str(promotion.trial), since=promotion.at):
        if review.evidence_key:
            last = review
            if review.action == PERMANENT:
                break
    return None if last is None else _document(store, str(last.evidence_key))


def _registered(workload: str, store: ObjectStore) -> Any:
    try:
        registration = load_registration(store, workload)
    except CompilegateError:
        return None  # a workload that was never registered, or whose document cannot be read
    return (_document(store, registration.spec_key) or {}).get("workload")


def _faults(past: WorkloadHistory, store: ObjectStore) -> Iterator[tuple[str, str]]:
    """The faults that the specs of production's runs request."""
    for key in dict.fromkeys(begun.spec_key for begun in past.begun):
        fault = injected_fault((_document(store, key) or {}).get("workload") or {})
        if fault:
            yield key, fault


def _document(store: ObjectStore, key: str) -> Any:
    try:
        return json.loads(store.get(key))
    except (NotFoundError, ValueError):
        return None
