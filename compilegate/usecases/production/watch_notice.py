"""What people are told after a look at production: when something changed, not after every run."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from compilegate.domain import naming
from compilegate.domain.decision import Verdict
from compilegate.domain.errors import NotFoundError
from compilegate.domain.production.consequence import RESUME, STALE
from compilegate.ports import Services
from compilegate.report import Report, ReportInput, render
from compilegate.usecases.change_flag import Changed, latest_flag
from compilegate.usecases.notify_decision import Told, decision_notification, owner_of
from compilegate.usecases.production.new_trial import propose_trial
from compilegate.usecases.production.story import write_story
from compilegate.usecases.production.watch_words import (
    ALARM,
    FAILED,
    Said,
    action,
    codes,
    paragraphs,
    subject,
)
from compilegate.usecases.trial import Trial, load_record

# What a watch does not see is told when it is found, not after every run; by the reason's code.
TOLD_ONCE = (
    "run_unreadable", "nothing_to_judge", "not_measured", "speed_not_watched",
    "quality_not_watched",
)  # fmt: skip

Entry = Mapping[str, Any]
logger = logging.getLogger("compilegate")


@dataclass(frozen=True)
class _Page:
    """The report on a decision, and its S3 URI."""

    report: Report
    place: str


def told_kind(entry: Entry, before: Entry | None) -> str | None:
    """The kind of message that a look is worth, None for one that found nothing new."""
    change, last = entry["change"], (before or {}).get("change")
    if change is not None:
        if last is not None and last["change_id"] == change["change_id"]:
            return None  # a person holds the flag, and was told
        return STALE if change["action"] == RESUME else str(change["action"])
    if _alarmed(entry) and not _alarmed(before):
        return ALARM
    unproven = (str(Verdict.INCONCLUSIVE), str(Verdict.INVALID))
    if entry["verdict"] in unproven and (before or {}).get("verdict") != entry["verdict"]:
        return FAILED
    unseen = codes(entry) & set(TOLD_ONCE)
    return FAILED if unseen - codes(before or {}) else None


def quiet(entry: Entry | None) -> dict[str, Any]:
    """The answer of a look that nobody is told of."""
    return {
        "verdict": entry["verdict"] if entry else None,
        "decision_key": entry["decision_key"] if entry else None,
        "flag_changed": False,
        "tell": False,
    }


def notice(workload: str, entry: Entry, made: Changed | None, services: Services) -> dict[str, Any]:
    """The look's answer, with the message where there is one to send."""
    answer = {**quiet(entry), "flag_changed": made is not None and made.changed}
    if entry["tell"] is None:
        return answer
    flag = made.flag if made else latest_flag(workload, services)[0]
    decision = json.loads(services.store.get(entry["decision_key"])) if _judged(entry) else None
    page = _page(workload, entry, decision, services) if decision else None
    proposal = propose_trial(workload, services) if action(entry) == STALE else None
    stage = services.settings.stage
    said = Said(workload, stage, entry, flag, made)
    report, price = page.report if page else None, proposal.text if proposal else None
    lines = [*paragraphs(said, report, price), *_story(workload, services)]
    told = Told(
        subject=subject(said, report),
        text="\n\n".join(lines) + "\n",
        owner=_owner(workload, entry, services),
        report=page.place if page else None,
        act=proposal.command if proposal else f"compilegate flag history {workload}",
        flag_enabled=flag.enabled,
        flag_state=flag.state,
        kind=str(entry["tell"]),
    )
    message = decision_notification(decision or {}, told, workload=workload, stage=stage)
    return {**answer, "tell": True, **message.to_answer()}


def _judged(entry: Entry) -> bool:
    """Whether the judge's word is what is told; staleness has words of its own."""
    return entry["decision_key"] is not None and entry["tell"] != STALE


def _alarmed(entry: Entry | None) -> bool:
    return "alarm" in codes(entry or {})


def _page(workload: str, entry: Entry, decision: Entry, services: Services) -> _Page:
    """Renders the report with its charts, and leaves it beside the trial's own."""
    trial, store = str(entry["trial"]), services.store
    name = str(entry["decision_id"])
    key = naming.probation_report_key(workload, trial, name, "html")
    place = f"s3://{store.bucket}/{key}"
    records: ReportInput = {
        "decision": decision,
        "evidence": json.loads(store.get(entry["evidence_key"])),
        "eligibility": None,
        "plan": _maybe(services, Trial(workload, trial, ""), "plan"),
        "context": {
            "stage": services.settings.stage,
            "trial": trial,
            "workload": workload,
            "simulated": services.settings.simulated,
            "place": place,
        },
    }
    report = render(records)
    markdown = naming.probation_report_key(workload, trial, name, "md")
    store.put(key, report.html.encode(), "text/html; charset=utf-8")
    store.put(markdown, report.markdown.encode(), "text/markdown; charset=utf-8")
    return _Page(report, place)


def _story(workload: str, services: Services) -> Iterator[str]:
    """How it came to that, as one page; that it cannot be written must not hide the news."""
    try:
        yield f"The whole story: {write_story(workload, services)}"
    except Exception:
        logger.exception("the story of %s was not written", workload)


def _owner(workload: str, entry: Entry, services: Services) -> str | None:
    trial = Trial(workload, str(entry["trial"]), "")
    plan = _maybe(services, trial, "plan") or {}
    return owner_of(Trial(workload, trial.trial, str(plan.get("spec_key", ""))), services)


def _maybe(services: Services, trial: Trial, document: str) -> dict[str, Any] | None:
    try:
        found: dict[str, Any] = load_record(services.store, trial, document)
    except NotFoundError:
        return None
    return found
