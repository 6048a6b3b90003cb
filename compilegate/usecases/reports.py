"""Reads a trial's records for its report, renders it and leaves it where people find it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from functools import partial
from itertools import takewhile
from typing import TYPE_CHECKING, Any

from compilegate.domain import naming
from compilegate.domain.claims import Claims, claims_of, command_at, decision_notification
from compilegate.domain.codec import read
from compilegate.domain.decision import Decision
from compilegate.domain.flag_change import EVALUATE, Versions
from compilegate.domain.judging.measured import measure
from compilegate.domain.planning.rounds import MOST_WITHOUT_RESULT, missing_evidence
from compilegate.domain.production.history import promotions
from compilegate.domain.reasons import Reason
from compilegate.domain.records.flags import FlagVersion
from compilegate.ports import Services
from compilegate.report.statements import shown_reasons
from compilegate.report.trial_report import UNDECIDED, ReportInput, TrialReport
from compilegate.usecases import records

if TYPE_CHECKING:
    from compilegate.report.render import Report

MOST_EARLIER = 8


def write_report(event: Mapping[str, Any], *, services: Services) -> dict[str, Any]:
    """Store HTML, Markdown and JSON; returns where, and the notification."""
    trial, stage = records.Trial.from_event(event), services.settings.stage
    report, place, link = save_report(trial, services)
    notification = decision_notification(
        report.decision,
        stage=stage,
        workload=trial.workload,
        subject=report.subject,
        text=f"{report.message}\n\nReport: {link or place}",
        owner=records.owner_of(trial, services.store),
        report=place,
        link=link,
        act=command_at(f"compilegate report {trial.workload} --trial {trial.trial}", stage),
        flag_enabled=event.get("flag_enabled"),
    )
    key = naming.report_key(trial.workload, trial.trial, "html")
    return {"report_key": key, **notification.to_answer()}


def save_report(
    trial: records.Trial, services: Services, changes: Versions = ()
) -> tuple[Report, str, str | None]:
    """The report as it stands now, where its HTML lies and the link to it."""
    # What reads a report alone, such as an export, needs no templates.
    from compilegate.report.render import render  # noqa: PLC0415

    report = render(trial_report(trial, services, changes))
    key_of = partial(naming.report_key, trial.workload, trial.trial)
    return report, *records.save_pages(report.texts, key_of, services)


def rewrite_reports(workload: str, changes: Versions, services: Services) -> None:
    """Write the pages of the trials whose candidate the flag's latest change is about, with it."""
    for name in dict.fromkeys(str(one.trial) for one in promotions(changes)):
        trial = records.Trial(workload, name, "")
        if _followed(trial, changes) is changes[-1]:
            save_report(trial, services, changes)


def trial_report(trial: records.Trial, services: Services, changes: Versions = ()) -> TrialReport:
    """What the kept documents of a trial say; raises ValueError where none says how it ended.

    ``changes`` are the flag's, of which the page shows what followed its own.
    """
    store, plan = services.store, records.find_plan(services.store, trial)
    spec = records.readable_spec(records.of_plan(trial, plan), store)
    # The latest trials of the workload before this one; their ids sort by time.
    names = store.folders(f"{naming.DECISIONS_PREFIX}{trial.workload}/")
    before = sorted((name for name in names if name < trial.trial), reverse=True)[:MOST_EARLIER]
    keys = {name: records.Trial(trial.workload, name, "").record_key("decision") for name in before}
    return read_trial_report({
        "decision": records.find_record(store, trial, "decision"),
        "evidence": records.find_record(store, trial, "evidence"),
        "eligibility": records.find_record(store, trial, "eligibility"),
        "plan": plan,
        "flag": records.find_flag_outcome(store, trial),
        "earlier": [(name, records.find_decision(store, key)) for name, key in keys.items()],
        "followed": _followed(trial, changes),
        "context": {
            **records.report_context(trial.workload, trial.trial, services),
            "owner": spec.workload.owner if spec else None,
            "origin": spec.origin if spec else None,
        },
    })  # fmt: skip


def _followed(trial: records.Trial, changes: Versions) -> FlagVersion | None:
    """The last change before another trial's of what the trial, or a person by it, turned on."""
    own = [one for one in promotions(changes) if one.trial == trial.trial]
    if not own:
        return None
    since = (one for one in changes if one.version >= own[0].version + (not own[0].by_human))
    return next(reversed([*takewhile(lambda one: one.by != EVALUATE, since)]), None)


def read_trial_report(source: ReportInput) -> TrialReport:
    """Read the records.

    Raises ValueError for a verdict outside the closed set, and when there is neither a
    decision nor a failure to report.
    """
    decision = read(Decision, source["decision"]) if source["decision"] else None
    if decision is None and not source["context"].get("failure"):
        raise ValueError("a report needs a decision, or context.failure saying why there is none")
    judged = decision or UNDECIDED
    measured, not_measured = measure(source["evidence"], judged)
    return TrialReport(
        source=source,
        decision=decision,
        judged=judged,
        reasons=shown_reasons(judged, measured, silent=silent_arms(source["evidence"])),
        measured=measured,
        not_measured=not_measured,
        verdict=decision.verdict if decision else None,
        candidate=judged.candidate,
        eligibility=source["eligibility"] or {},
        plan=source["plan"],
        flag=source.get("flag"),
        earlier=[
            (name, before, claims_of(before) if before else Claims())
            for name, before in source.get("earlier") or ()
        ],
    )


def silent_arms(evidence: object) -> dict[str, Reason]:
    """The reason of each arm that was given up, by an evidence document, which need not be valid.

    The judge sees its blocks alone: of such an arm there are none, or too few.
    """
    plan = evidence.get("plan") if isinstance(evidence, Mapping) else None
    unmeasured = plan.get("unmeasured_by_job") if isinstance(plan, Mapping) else None
    jobs: dict[str, list[str]] = defaultdict(list)
    for job, arms in unmeasured.items() if isinstance(unmeasured, Mapping) else ():
        for arm in arms if isinstance(arms, list) else ():
            jobs[str(arm)].append(str(job))
    enough = {arm: silent for arm, silent in jobs.items() if len(silent) >= MOST_WITHOUT_RESULT}
    return {arm: missing_evidence(arm, silent) for arm, silent in enough.items()}
