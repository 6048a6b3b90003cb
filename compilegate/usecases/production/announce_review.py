"""Announces a review of production: its report, the workload's history, and the message.

The review and its effect on the flag are already recorded; repeating this writes the same pages.
"""

from __future__ import annotations

import json
import logging
from dataclasses import dataclass
from typing import Any

from compilegate.domain import naming
from compilegate.domain.errors import CompilegateError
from compilegate.domain.flag import Flag
from compilegate.domain.formats import money
from compilegate.domain.notification import command_at
from compilegate.domain.planning.arms import Refusal
from compilegate.domain.production.flag_transition import STALE
from compilegate.domain.reasons import with_fix
from compilegate.domain.records.reviews import Review
from compilegate.domain.trial.plan import RecordedPlan
from compilegate.ports import Services
from compilegate.report.notifications.decision import decision_notification
from compilegate.report.notifications.review import ReviewNews, paragraphs, subject
from compilegate.report.render import Report, render
from compilegate.report.trial_report import ReportInput
from compilegate.usecases.flag.change_flag import Changed, latest_flag
from compilegate.usecases.links import console_region, link_to
from compilegate.usecases.planning import past_overheads, plan_for
from compilegate.usecases.production.history_page import write_history
from compilegate.usecases.records import Trial, find_plan, of_plan
from compilegate.usecases.registered import load_registered, load_registration, owner_of

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
