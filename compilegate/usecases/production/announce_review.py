"""Announces a review of production: its report, the workload's history, and the message.

The review and its effect on the flag are already recorded; repeating this writes the same pages.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from compilegate.domain import naming
from compilegate.domain.claims import command_at
from compilegate.domain.decision import Decision
from compilegate.domain.errors import CompilegateError, NotFoundError, ProblemWithFix
from compilegate.domain.flag import Flag
from compilegate.domain.formats import money
from compilegate.domain.planning.arms import Refusal
from compilegate.domain.production.history import WorkloadHistory
from compilegate.domain.production.promotion import latest_promotion
from compilegate.domain.production.registration import injected_fault
from compilegate.domain.production.watch import PERMANENT, STALE
from compilegate.domain.reasons import with_fix
from compilegate.domain.records.reviews import Review
from compilegate.domain.trial.plan import RecordedPlan
from compilegate.ports import ObjectStore, Services
from compilegate.report.history.render import render_history
from compilegate.report.history.view import HistoryReport, HistoryView
from compilegate.report.notifications.decision import decision_notification
from compilegate.report.notifications.review import ReviewNews, paragraphs, subject
from compilegate.report.render import Report, render
from compilegate.report.trial_report import ReportInput
from compilegate.usecases.flag.change_flag import Changed, latest_flag
from compilegate.usecases.planning import past_overheads, plan_for
from compilegate.usecases.records import (
    Trial,
    console_region,
    find_decision,
    find_plan,
    link_to,
    of_plan,
)
from compilegate.usecases.registered import load_registered, load_registration, owner_of

# The history page of a workload: its ledger, and the documents that the ledger names.

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


def _decision(past: WorkloadHistory, store: ObjectStore) -> Decision | None:
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


logger = logging.getLogger("compilegate")


@dataclass(frozen=True)
class _Page:
    """The report on a decision, its S3 URI, and the link that shows it."""

    report: Report
    place: str
    link: str | None


@dataclass(frozen=True)
class _NewTrial:
    """What a new trial would cost, in one sentence, and the command that starts it."""

    text: str
    command: str


def announce_review(
    workload: str, review: Review, change: Changed | None, services: Services
) -> dict[str, Any]:
    """Write the pages and return the message for the state machine to publish."""
    # Staleness has its own text; the judge's report explains every other review.
    judged = review.decision_key is not None and review.message_kind != STALE
    of_trial = Trial(workload, review.trial, "")
    plan = find_plan(services.store, of_trial)
    page = _report(workload, review, plan, services) if judged else None
    trial = _new_trial(workload, services) if review.action == STALE else None
    news = _news(workload, review, change, services)
    report, price = page.report if page else None, trial.text if trial else None
    stage = services.settings.stage
    history = _history(workload, services)
    lines = [*paragraphs(news, report, price)]
    lines += [f"The whole history: {history}"] if history else []
    notification = decision_notification(
        report.decision if report else None,
        stage=stage,
        workload=workload,
        subject=subject(news, report),
        text="\n\n".join(lines) + "\n",
        owner=owner_of(of_plan(of_trial, plan), services.store),
        report=page.place if page else None,
        link=page.link if page else None,
        act=trial.command if trial else command_at(f"compilegate flag history {workload}", stage),
        flag_enabled=news.flag.enabled,
        flag_state=news.flag.state,
        kind=review.message_kind,
        more_links=[history] if history else [],
    )
    return notification.to_answer()


def _news(workload: str, review: Review, change: Changed | None, services: Services) -> ReviewNews:
    stage = services.settings.stage
    if change is None:
        flag: Flag = latest_flag(workload, services)[0]
        return ReviewNews(workload, stage, review, flag)
    return ReviewNews(
        workload,
        stage,
        review,
        change.flag,
        held_by=change.held_by,
        superseded_by=change.superseded_by,
        overrode=change.overrode,
    )


def _report(workload: str, review: Review, plan: RecordedPlan | None, services: Services) -> _Page:
    """Renders the report with its charts, and leaves it beside the trial's own."""
    store, name = services.store, str(review.decision_id)
    key = naming.probation_report_key(workload, review.trial, name, "html")
    place, link = f"s3://{store.bucket}/{key}", link_to(key, services)
    records: ReportInput = {
        "decision": json.loads(store.get(str(review.decision_key))),
        "evidence": json.loads(store.get(str(review.evidence_key))),
        "eligibility": None,
        "plan": plan,
        "context": {
            "stage": services.settings.stage,
            "trial": review.trial,
            "workload": workload,
            "simulated": services.settings.simulated,
            "place": link or place,
            "region": console_region(services),
            "bucket": store.bucket,
        },
    }
    report = render(records)
    markdown = naming.probation_report_key(workload, review.trial, name, "md")
    store.put(key, report.html.encode(), "text/html; charset=utf-8")
    store.put(markdown, report.markdown.encode(), "text/markdown; charset=utf-8")
    return _Page(report, place, link)


def _history(workload: str, services: Services) -> str | None:
    """Where the workload's history is; a failure to write it must not hold up the message."""
    try:
        return write_history(workload, services)
    except Exception:
        logger.exception("the history of %s was not written", workload)
        return None


def _new_trial(workload: str, services: Services) -> _NewTrial:
    """A new trial of what is registered now; without a registration only how to start one."""
    stage = services.settings.stage
    command = command_at(f"compilegate run workloads/{workload}.yaml", stage)
    try:
        origin = load_registration(services.store, workload).origin
        command = command_at(f"compilegate run {origin}", stage) if origin else command
        registered = load_registered(workload, services.store).spec.workload
        past = services.ledger.history(workload)
        measured = past_overheads(workload, past, services.store)
        plan = plan_for(registered, services.settings, measured=measured)
    except CompilegateError as error:
        text = f"The cost of a new trial is unknown: {error}\nStart it with: {command}"
        return _NewTrial(text, command)
    if isinstance(plan, Refusal):
        refusal = with_fix(plan.reason.message, plan.reason.fix)
        text = f"A new trial would currently be refused: {refusal}"
        return _NewTrial(text, command)
    cost = plan.estimate
    text = (
        f"A new trial would cost about {money(cost.usd)} ({money(cost.low_usd)} to "
        f"{money(cost.high_usd)}). Start it with: {command}"
    )
    return _NewTrial(text, command)
