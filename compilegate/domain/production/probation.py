"""The probation of a promotion: its evidence, and what its review cannot see.

The evidence is a pure function of the trial's and of what production has run since. Runs are put
in the order in which they started, so that events which came late or twice make the same document,
and the judge's replay of time is that of the clock.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import takewhile
from operator import attrgetter
from typing import Any

from compilegate.domain.decision import Decision, Verdict
from compilegate.domain.errors import InvalidEvidenceError
from compilegate.domain.failures import COMPLETED
from compilegate.domain.flag import OFF, Flag
from compilegate.domain.flag_change import REVERT
from compilegate.domain.judging.evidence import PROBATION
from compilegate.domain.judging.evidence_file import read_full_run
from compilegate.domain.optional import map_optional, without_none
from compilegate.domain.production.fingerprint import recorded, stale_reasons
from compilegate.domain.production.history import Promotion
from compilegate.domain.production.savings import metric_of, wall_seconds_of
from compilegate.domain.reasons import Reason
from compilegate.domain.records.ledger import DamagedRecord
from compilegate.domain.records.production import METRIC_NAME, PlannedTransition, ProductionRun
from compilegate.domain.workload.model import BASELINE, KEEP

Document = dict[str, Any]

# Past baseline runs of production that are taken as history: more would be of another season.
HISTORY_RUNS = 24
# After permanence one run that fails may be bad luck; so many in a row are judged.
ROW = 2
# Of a result: what the judge never reads and a chart of a probation does not show.
LEFT_OUT = ("loss_curve", "outcomes", "stage", "block")
# The order of time.
WHEN = attrgetter("started_at", "run", "job")
# So many runs of the candidate in a row that leave nothing to judge are reported.
UNSEEN = 3
# So many of them that trained to their end: what production trains has not been observed since.
UNWATCHED = 6


@dataclass(frozen=True)
class Watched:
    """The runs that bear on a promotion, in the order of time.

    Baseline and promoted candidate since the candidate was turned on, not a candidate that another
    trial has under test. ``runs`` are judged: not what was trained on other machines or left no
    record. ``unreadable`` recorded what the judge cannot read, with what is wrong: the ledger keeps
    a run permanently, so that judged, one would end every later review. ``unseen`` are the
    candidate's latest runs as far back as none left anything to judge.
    """

    runs: tuple[ProductionRun, ...]
    unreadable: tuple[tuple[ProductionRun, str], ...]
    unseen: tuple[ProductionRun, ...]


def watched_runs(runs: Iterable[ProductionRun], promotion: Promotion) -> Watched:
    """What of production's runs bears on the promotion."""
    judged, unread, unseen = [], [], list[ProductionRun]()
    for run in sorted(runs, key=WHEN):
        mine = run.arm == promotion.candidate and run.canary is None
        if run.started_at < promotion.at or not (mine or run.arm == BASELINE):
            continue
        problem = unreadable(run, promotion.metric) if run.counts else ""
        if problem:
            unread.append((run, problem))
        elif run.counts:
            judged.append(run)
        unnamed = run.finished and not run.result.get(METRIC_NAME)
        if mine and not unnamed:  # that an earlier release named no metric is no fault of the run
            unseen = [] if run.counts and not problem else [*unseen, run]
    return Watched(tuple(judged), tuple(unread), tuple(unseen))


def unreadable(run: ProductionRun, metric: str) -> str:
    """What keeps the judge from reading a run of the trial's metric, empty where nothing does."""
    name = run.result.get(METRIC_NAME)
    if run.finished and name != metric:
        return f"it recorded {name or 'a metric of no name'}, and the trial measured {metric}"
    try:
        read_full_run(_evidence(run, 0))
    except InvalidEvidenceError as error:
        return str(error)
    return ""


def row_at_the_end(runs: Sequence[ProductionRun], promotion: Promotion) -> list[ProductionRun]:
    """The candidate's latest runs since its present state that failed or did without the change.

    Empty while there are fewer than ROW of them: they end with the first that went well.
    """
    mine = [
        run for run in runs if run.arm == promotion.candidate and run.started_at >= promotion.since
    ]
    bad = list(takewhile(lambda run: not run.finished or run.without_change, reversed(mine)))
    return bad[::-1] if len(bad) >= ROW else []


def probation_document(
    evidence: Mapping[str, Any],
    promotion: Promotion,
    runs: Sequence[ProductionRun],
    earlier: Iterable[ProductionRun] = (),
) -> Document:
    """The evidence document (docs/contracts.md) of phase ``probation``.

    ``evidence`` is the trial's, ``runs`` are ``watched_runs``. ``earlier`` are production's runs
    from before the promotion: their baseline counts as history where the team gave none of its
    own, which might be the same runs, and where they were made of what the trial measured.
    """
    arms = {arm["name"]: arm for arm in evidence["arms"]}
    tried = [run["order"] for arm in evidence["arms"] for run in arm["runs"] if "order" in run]
    # ``order`` is the place among the runs of all arms; production's follow the trial's.
    ordered = list(enumerate(runs, max(tried, default=-1) + 1))
    apart = ("controls", "on_top_of")
    rest = {key: value for key, value in evidence.items() if key not in apart}
    return {
        **rest,
        "phase": PROBATION,
        "promoted": promotion.candidate,
        "quality": _quality(evidence, earlier),
        "arms": [
            {
                **arms[name],
                "runs": [
                    *arms[name]["runs"],
                    *(_evidence(run, order) for order, run in ordered if run.arm == name),
                ],
            }
            for name in (BASELINE, promotion.candidate)
        ],
    }


def _evidence(run: ProductionRun, order: int) -> Document:
    kept = {key: value for key, value in run.result.items() if key not in LEFT_OUT}
    return {
        **kept,
        "stage": PROBATION,
        "mode": "production",
        "order": order,
        "confirm": run.confirm,
        "run": run.run,
        "job": run.job,
        "started_at": run.started_at,
        "launched_by": run.launched_by,
    }


def _quality(evidence: Mapping[str, Any], earlier: Iterable[ProductionRun]) -> Document:
    quality, runs = dict(evidence["quality"]), history_runs(evidence, earlier)[-HISTORY_RUNS:]
    if quality.get("guardrails"):
        quality["guardrails"] = [
            one if one.get("history") else {**one, "history": _history(runs, one["metric"])}
            for one in quality["guardrails"]
        ]
    if not quality.get("history"):
        quality["history"] = _history(runs)
        quality.setdefault("history_wall_seconds", without_none(map(wall_seconds_of, runs)))
    return quality


def _history(runs: Sequence[ProductionRun], guardrail: str | None = None) -> list[float]:
    return without_none(metric_of(run, guardrail) for run in runs)


def history_runs(
    evidence: Mapping[str, Any], earlier: Iterable[ProductionRun]
) -> list[ProductionRun]:
    """Those of the runs before a promotion that can serve as the baseline's history, in order."""
    (baseline,) = (arm["runs"] for arm in evidence["arms"] if arm["name"] == BASELINE)
    metric = evidence["quality"]["metric"]
    trial, own = recorded(baseline), {run.get("job") for run in baseline}
    return [
        run
        for run in sorted(earlier, key=WHEN)
        if run.arm == BASELINE and run.counts and run.finished and run.job not in own
        if not unreadable(run, metric)
        if metric_of(run) is not None
        if not stale_reasons(trial, recorded([run.result]))
    ]


def blind_spots(
    watched: Watched, promotion: Promotion, damaged: Sequence[DamagedRecord] = ()
) -> tuple[Reason, ...]:
    """Notes on runs that could not be judged; some of the ledger's ``damaged`` entries are."""
    reasons = []
    lost = [record for record in damaged if record.kind == ProductionRun.kind]
    if lost:
        text = f"Left out, because the ledger's entries of them cannot be read: {len(lost)} runs"
        reasons.append(Reason("run_unreadable", f"{text}, at last: {lost[-1].problem}"))
    if watched.unreadable:
        run, problem = watched.unreadable[-1]
        text = (
            "Left out, because the judge cannot read what they recorded: "
            f"{len(watched.unreadable)} production runs, at last job {run.job}: {problem}"
        )
        reasons.append(Reason("run_unreadable", text))
    row = len(watched.unseen)
    if row >= UNSEEN:
        text = f"The last {row} runs of {promotion.candidate} recorded nothing to judge"
        reasons.append(Reason("nothing_to_judge", text))
    return tuple(reasons)


def not_watched(watched: Watched, promotion: Promotion) -> tuple[Reason, ...]:
    """Why a promotion on probation may not stay on: it is used without being observed.

    A job that was stopped or lost made nothing that could be used, so that it is reported only.
    """
    used = sum(run.status == COMPLETED for run in watched.unseen)
    if used < UNWATCHED:
        return ()
    text = (
        f"the last {len(watched.unseen)} runs of {promotion.candidate} recorded nothing to judge, "
        f"although {used} of them completed: the change is not observed"
    )
    return (Reason("not_watched", text),)


# The flag transition that follows from a review of production.
#
# Nothing here turns a compiler on that was off. In the order of weight: a proven regression turns
# it off; production that is no longer what was proven is stale, and off or left on as the team's
# policy says; a probation that held becomes permanent. Whatever proves nothing leaves the flag
# alone.

STALE, PERMANENT, RESUME, HOLDBACK = "stale", "permanent", "resume", "holdback"
ON_PROBATION, REVERTED = "probation", "reverted"
# What makes a promotion stale beside the fields that differ, and can be restored like them.
TREATMENT, WATCHED = "the change is applied", "runs can be judged"
# A single run without the change may have been unlucky, though it be all that was run.
UNTREATED = 2


@dataclass(frozen=True)
class Findings:
    """What is known after a run: the judge's decision, None without one, and what has changed.

    ``restored`` says that all that made a promotion stale was compared again and is as it was,
    ``untreated`` how many runs of the candidate did without the change, ``unwatched`` why its
    probation sees nothing. ``holdback`` is the share of runs on the baseline once it is permanent,
    None where that is not known.
    """

    decision: Decision | None = None
    changed: Sequence[Reason] = ()
    restored: bool = False
    untreated: int = 0
    unwatched: Sequence[Reason] = ()
    holdback: float | None = None

    @property
    def without_change(self) -> bool:
        """Whether most runs do without it: what production trains is not what was proven."""
        verdict = map_optional(self.decision, lambda one: one.verdict)
        return verdict is Verdict.INVALID and self.untreated >= UNTREATED


def flag_transition(
    promotion: Promotion, findings: Findings, on_stale: str
) -> PlannedTransition | None:
    """The change that follows, None where the flag stays as it is."""
    flag, decision = promotion.flag, findings.decision
    decision_id = decision.decision_id if decision else flag.decision_id
    verdict, reasons = (decision.verdict, decision.reasons) if decision else (None, ())
    off = replace(OFF, candidate=flag.candidate)
    if verdict is Verdict.REVERT:
        reverted = replace(off, state=REVERTED, decision_id=decision_id)
        return _planned(promotion, REVERT, reverted, reasons)
    gone = [*findings.changed]
    if findings.without_change:
        gone += reasons
    if flag.state != PERMANENT:
        gone += findings.unwatched
    if gone and flag.state == STALE:
        return None
    if gone:
        kept = flag if on_stale == KEEP else replace(off, decision_id=flag.decision_id)
        return _planned(promotion, STALE, replace(kept, state=STALE, since=None), gone)
    if flag.state == STALE and findings.restored:
        same = (Reason("as_proven", "production again trains what was proven"),)
        return _planned(promotion, RESUME, replace(flag, state=ON_PROBATION, since=None), same)
    if verdict is Verdict.PERMANENT and flag.state == ON_PROBATION:
        kept = replace(
            flag, state=PERMANENT, decision_id=decision_id, since=None, holdback=findings.holdback
        )
        return _planned(promotion, PERMANENT, kept, reasons)
    return _held_back(promotion, findings.holdback)


def _held_back(promotion: Promotion, share: float | None) -> PlannedTransition | None:
    """The flag with another share of baseline runs, which a team's own pipeline reads from it."""
    flag = promotion.flag
    if flag.state != PERMANENT or share in (None, flag.holdback):
        return None
    text = f"{share:.1%} of runs stay on the baseline, to tell what is saved"
    return _planned(promotion, HOLDBACK, replace(flag, holdback=share), (Reason("holdback", text),))


def _planned(
    promotion: Promotion, action: str, flag: Flag, reasons: Sequence[Reason]
) -> PlannedTransition:
    """The transition as the record keeps it; its id is that of the flag's version."""
    # A manual change since the promotion outranks all but a proven regression. Where a person
    # turned the candidate on, a stale promotion is reported to them and the flag stays.
    theirs = promotion.by_human and action == STALE
    return PlannedTransition(
        change_id=f"review#{promotion.version}#{action}",
        action=action,
        value=flag.to_json(),
        reason="; ".join(reason.message for reason in reasons),
        decided_at=promotion.at if theirs else promotion.at + 1,
    )
