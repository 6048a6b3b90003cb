"""Announces a review of production: its report, the workload's history, and the message.

The review and its effect on the flag are already recorded; repeating this writes the same pages.
"""

from __future__ import annotations

import json
import logging
from functools import partial
from typing import Any

from compilegate.domain import naming
from compilegate.domain.claims import command_at, decision_notification
from compilegate.domain.errors import CompilegateError, NotFoundError
from compilegate.domain.formats import money
from compilegate.domain.optional import map_optional
from compilegate.domain.production.history import WorkloadHistory, latest_promotion
from compilegate.domain.production.probation import PERMANENT, STALE
from compilegate.domain.production.registration import injected_fault
from compilegate.domain.production.review import SLOWER
from compilegate.domain.reasons import Reason, with_fix
from compilegate.domain.records.flags import FlagVersion
from compilegate.domain.records.production import Review
from compilegate.domain.trial.plan import RecordedPlan
from compilegate.ports import ObjectStore, Services
from compilegate.report.history.render import HistoryReport, render_history
from compilegate.report.history.view import HistoryView
from compilegate.report.notifications.review import ReviewNews, paragraphs, subject
from compilegate.report.render import Report, render
from compilegate.usecases import records, reports
from compilegate.usecases.flag.change_flag import Changed, flag_versions, latest_flag
from compilegate.usecases.planning import past_overheads, plan_for
from compilegate.usecases.records import load_registered, load_registration, owner_of
from compilegate.usecases.reports import read_trial_report

logger = logging.getLogger("compilegate")

# The history page of a workload: its ledger, and the documents that the ledger names.


def history_page(workload: str, services: Services) -> HistoryReport:
    """The page as it stands now.

    Raises NotFoundError for a workload that the ledger knows nothing of.
    """
    history, store = services.ledger.history(workload), services.store
    if not history.records:
        raise NotFoundError(
            f"{workload} has no history",
            fix="register its file with `compilegate register`, or list workloads with "
            "`compilegate status`",
        )
    promotion, trained, decision = latest_promotion(history.flags), None, None
    if promotion is not None:  # what other trials decided the ledger says in a line
        decision = records.decision_of(str(promotion.trial), history, store)
    try:
        spec = records.find_json(store, load_registration(store, workload).spec_key)
        trained = (spec or {}).get("workload")
    except CompilegateError:
        pass  # a workload that was never registered, or whose document cannot be read
    faults = {
        key: injected_fault((records.find_json(store, key) or {}).get("workload") or {})
        for key in dict.fromkeys(begun.spec_key for begun in history.begun)
    }
    return render_history(HistoryView(
        name=workload,
        history=history,
        stage=services.settings.stage,
        decision=decision,
        evidence=_evidence(promotion, history, store) if promotion else None,
        workload=trained,
        faults={key: fault for key, fault in faults.items() if fault},
        simulated=services.settings.simulated,
        region=records.console_region(services),
        bucket=store.bucket,
    ))  # fmt: skip


def write_history(workload: str, services: Services) -> str:
    """Leave the page where people find it; returns its link, or its S3 URI where there is none."""
    texts = history_page(workload, services).texts
    place, link = records.save_pages(texts, partial(naming.history_key, workload), services)
    return link or place


def _evidence(promotion: FlagVersion, history: WorkloadHistory, store: ObjectStore) -> Any:
    """Of the promotion's probation, up to its end: later reviews hold a few runs only."""
    last: str | None = None
    for review in history.reviews_of(str(promotion.trial), since=promotion.at):
        last = review.evidence_key or last
        if review.evidence_key and review.action == PERMANENT:
            break
    return map_optional(last, partial(records.find_json, store))


def announce_review(
    workload: str, review: Review, change: Changed | None, services: Services
) -> dict[str, Any]:
    """Write the pages and return the message for the state machine to publish."""
    stage, of_trial = services.settings.stage, records.Trial(workload, review.trial, "")
    plan = records.find_plan(services.store, of_trial)
    report = place = link = price = None
    # Staleness has its own text; the judge's report explains every other review.
    if review.decision_key is not None and review.message_kind != STALE:
        key = naming.probation_report_key(workload, review.trial, str(review.decision_id), "html")
        place, link = f"s3://{services.store.bucket}/{key}", records.link_to(key, services)
        report = _report(workload, review, plan, link or place, services)
    act = command_at(f"compilegate flag history {workload}", stage)
    if review.action == STALE or review.message_kind == SLOWER:
        price, act = _new_trial(workload, services)
    change = change or Changed(False, *latest_flag(workload, services))
    news = ReviewNews(
        workload, stage, review, change.flag, held_by=change.held_by,
        superseded_by=change.superseded_by, overrode=change.overrode,
    )  # fmt: skip
    lines, more_links = [*paragraphs(news, report, price)], list[str]()
    try:
        page = write_history(workload, services)
        lines.append(f"The whole history: {page}")
        more_links.append(page)
        if change.changed:
            reports.rewrite_reports(workload, flag_versions(workload, services), services)
    except Exception:  # a failure to write it must not hold up the message
        logger.exception("the pages of %s were not all written", workload)
    return decision_notification(
        report.decision if report else None,
        stage=stage,
        workload=workload,
        subject=subject(news, report),
        text="\n\n".join(lines) + "\n",
        owner=owner_of(records.of_plan(of_trial, plan), services.store),
        report=place,
        link=link,
        act=act,
        flag_enabled=news.flag.enabled,
        flag_state=news.flag.state,
        kind=review.message_kind,
        more_links=more_links,
    ).to_answer()


def _report(
    workload: str, review: Review, plan: RecordedPlan | None, place: str, services: Services
) -> Report:
    """Renders the report with its charts, and leaves it beside the trial's own."""
    store, name = services.store, str(review.decision_id)
    report = render(read_trial_report({
        "decision": json.loads(store.get(str(review.decision_key))),
        "evidence": json.loads(store.get(str(review.evidence_key))),
        "eligibility": None,
        "plan": plan,
        "context": {
            **records.report_context(workload, review.trial, services),
            "place": place,
        },
    }))  # fmt: skip
    key_of = partial(naming.probation_report_key, workload, review.trial, name)
    records.save_pages({"html": report.html, "md": report.markdown}, key_of, services)
    return report


def _new_trial(workload: str, services: Services) -> tuple[str, str]:
    """What a new trial of what is registered now would cost, and the command that starts it."""
    stage, store = services.settings.stage, services.store
    command = command_at(f"compilegate run workloads/{workload}.yaml", stage)
    try:
        origin = load_registration(store, workload).origin
        command = command_at(f"compilegate run {origin}", stage) if origin else command
        registered = load_registered(workload, store).workload
        measured = past_overheads(workload, services.ledger.history(workload), store)
        plan = plan_for(registered, services.settings, measured=measured)
    except CompilegateError as error:
        return f"The cost of a new trial is unknown: {error}\nStart it with: {command}", command
    if isinstance(plan, Reason):
        refusal = with_fix(plan.message, plan.fix)
        return f"A new trial would currently be refused: {refusal}", command
    cost = plan.estimate
    text = (
        f"A new trial would cost about {money(cost.usd)} ({money(cost.low_usd)} to "
        f"{money(cost.high_usd)}). Start it with: {command}"
    )
    return text, command
