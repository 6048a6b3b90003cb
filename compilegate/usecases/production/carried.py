"""A trial whose full runs production carries: the rounds asked for, the runs taken in.

The ledger has every production run; those of the trial's rounds become evidence, and so do the
baseline runs that production makes of the same job meanwhile. They cost the trial nothing, but
for a candidate that was lost: its night is trained again with the baseline.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from compilegate.domain.decision import Decision, Reason, Verdict
from compilegate.domain.errors import NotFoundError
from compilegate.domain.judging.validity import alike_but_for_time
from compilegate.domain.planning import rounds
from compilegate.domain.planning.arm_plan import CONTROL
from compilegate.domain.production.canary import (
    CHANGED,
    OVERDUE,
    RETIRED,
    Entries,
    carried_runs,
    job_digest,
)
from compilegate.domain.production.runs import ProductionRun, production_runs
from compilegate.domain.workload.model import BASELINE
from compilegate.usecases import evidence_document
from compilegate.usecases.job_limits import CANARY, is_carried
from compilegate.usecases.trial import OpenTrial, spec_at

PRODUCTION = "production"
REASONS = {
    OVERDUE: (
        "canary_overdue",
        "production did not make the runs that the trial asked for in time; look for what stopped "
        "its schedule, or set policy.quality_runs: shadow",
    ),
    CHANGED: (
        "production_changed",
        "production trains another job by now than the trial measures; begin a new trial",
    ),
    RETIRED: (
        "production_retired",
        "the workload was taken out of production while the trial waited for its runs; register "
        "it again, or set policy.quality_runs: shadow, and begin a new trial",
    ),
}


def carried_round(step: Mapping[str, Any], opened: OpenTrial, round_number: int) -> dict[str, Any]:
    """What the state machine asks production for: ``runs`` are {arm, seed} in the judge's order."""
    workload, runs = opened.spec.workload, list(step["runs"])
    timeout = rounds.carried_timeout_seconds(
        len(runs),
        workload.schedule.runs_per_week,
        rounds.longest_job_hours(workload.training),
        elapsed_seconds=opened.services.clock.now() - opened.plan["started_at"],
    )
    return {"round": round_number, "runs": runs, "timeout_seconds": timeout}


def while_carried(decision: Decision, ended: str | None) -> Decision:
    """The decision, or ``inconclusive`` where production would not carry what it asks for next.

    ``ended`` says why the last round that production carried ended, None without one.
    """
    step = decision.next
    if decision.verdict is not Verdict.CONTINUE or step is None or not is_carried(step):
        return decision
    if ended not in REASONS:
        return decision
    reasons = (Reason(*REASONS[ended]), *decision.reasons)
    return replace(decision, verdict=Verdict.INCONCLUSIVE, reasons=reasons, next=None)


def take_in_production(document: dict[str, Any], opened: OpenTrial) -> None:
    """Add the production runs that are evidence, in the order of time; repeating adds nothing."""
    if not _is_carried(document):
        return
    entries = opened.services.ledger.entries(opened.trial.workload)
    names = {str(arm["name"]) for arm in opened.plan["arms"] if arm.get("role") != CONTROL}
    found = [(run, CANARY) for run in carried_runs(entries, opened.trial.trial)]
    found += [(run, PRODUCTION) for run in _beside(document, opened, entries)]
    for run, mode in sorted(found, key=lambda one: (one[0].started_at, one[0].job)):
        if run.arm not in names:
            continue
        order = evidence_document.next_order(document)
        evidence_document.add_run(document, run.arm, _as_evidence(run, mode, order))
        if mode == CANARY and run.arm != BASELINE and not run.finished:
            evidence_document.charge(document, run.job, _usd(run, opened))
    evidence_document.count_down(document)


def _is_carried(document: Mapping[str, Any]) -> bool:
    plan = document["plan"]
    return bool(plan["production_beside"] or document["policy"]["quality_runs"] != "shadow")


def _beside(
    document: Mapping[str, Any], opened: OpenTrial, entries: Entries
) -> Iterator[ProductionRun]:
    """Production's own baseline runs of the same job since the trial began.

    One that crashed says nothing of the candidate and nothing new of the baseline. One that is
    made of something else is no evidence, and no reason either to call the trial's invalid.
    """
    measured = [
        run
        for run in evidence_document.find_arm(dict(document), BASELINE)["runs"]
        if run.get("mode") != PRODUCTION
    ]
    if not document["plan"]["production_beside"] or not measured:
        return
    reference = next((found for run in measured if (found := run.get("fingerprint"))), None)
    same = _runs_of_the_job(opened, entries)
    for run in production_runs(entries):
        own = run.arm == BASELINE and run.canary is None and run.counts and run.finished
        if not own or run.run not in same or run.started_at < opened.plan["started_at"]:
            continue
        if reference is None or alike_but_for_time(run.result.get("fingerprint") or {}, reference):
            yield run


def _runs_of_the_job(opened: OpenTrial, entries: Entries) -> set[str]:
    """Production runs that began with what the trial measures."""
    wanted = job_digest(opened.spec.workload, opened.spec.code)
    digests: dict[str, str | None] = {}
    same = set()
    for entry in entries:
        if entry.get("kind") != "run_begun":
            continue
        key = str(entry["spec_key"])
        if key not in digests:
            digests[key] = _digest(opened, key)
        if digests[key] == wanted:
            same.add(str(entry["run"]))
    return same


def _digest(opened: OpenTrial, spec_key: str) -> str | None:
    try:
        spec = spec_at(opened.services.store, spec_key)
    except NotFoundError:
        return None
    return job_digest(spec.workload, spec.code)


def _as_evidence(run: ProductionRun, mode: str, order: int) -> dict[str, Any]:
    """The run as the judge reads it; what it cost production is kept for the report."""
    return {
        "metric": None,
        "wall_seconds": None,
        **run.result,
        "stage": "quality",
        "mode": mode,
        "order": order,
        "job": run.job,
        "finished": run.finished,
        "production_run": run.run,
        "started_at": run.started_at,
        "usd": run.usd,
        "billable_seconds": run.billable_seconds,
    }


def _usd(run: ProductionRun, opened: OpenTrial) -> float:
    """What the run cost, by its own record, else by its billed or elapsed time."""
    if run.usd is not None:
        return run.usd
    rates = {str(arm["name"]): float(arm["usd_per_hour"]) for arm in opened.plan["arms"]}
    seconds = run.billable_seconds
    if seconds is None:
        seconds = max(run.ended_at - run.started_at, 0.0)
    return seconds / 3600 * rates[run.arm]
