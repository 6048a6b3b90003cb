"""The watch over a promotion: the evidence of its probation, and what the watch cannot see.

The evidence is a pure function of the trial's and of what production has run since. Runs are put
in the order in which they started, so that events which came late or twice make the same document,
and the judge's replay of time is that of the clock.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import takewhile
from typing import Any

from compilegate.domain.codec import read
from compilegate.domain.decision import Decision, Verdict
from compilegate.domain.errors import InvalidEvidenceError
from compilegate.domain.failures import COMPLETED
from compilegate.domain.flag import Flag
from compilegate.domain.flag_change import REVERT
from compilegate.domain.judging.evidence import PROBATION
from compilegate.domain.judging.evidence_file import read_full_run
from compilegate.domain.production.fingerprint import Fingerprint, recorded, stale_reasons
from compilegate.domain.production.promotion import Promotion
from compilegate.domain.production.savings import metric_of, wall_seconds_of
from compilegate.domain.reasons import Reason
from compilegate.domain.records.ledger import DamagedRecord
from compilegate.domain.records.runs import ProductionRun
from compilegate.domain.workload.model import BASELINE, KEEP, Policy

Document = dict[str, Any]

# Past baseline runs of production that are taken as history: more would be of another season.
HISTORY_RUNS = 24
# After permanence one run that fails may be bad luck; so many in a row are judged.
ROW = 2
# Of a result: what the judge never reads and a chart of a probation does not show.
LEFT_OUT = ("loss_curve", "outcomes", "stage", "block")
# So many runs of the candidate in a row that leave nothing to judge are reported.
UNSEEN = 3
# So many of them that trained to their end: what production trains has not been observed since.
UNWATCHED = 6


def watched_runs(runs: Iterable[ProductionRun], promotion: Promotion) -> list[ProductionRun]:
    """The runs that a promotion is judged on, in the order of time.

    Baseline and promoted candidate since the candidate was turned on; not what was trained on
    other machines or left no record that the judge can read, and not a candidate that another
    trial has under test.
    """
    return [run for run in _counted(runs, promotion) if unreadable(run) is None]


def unreadable_runs(
    runs: Iterable[ProductionRun], promotion: Promotion
) -> list[tuple[ProductionRun, str]]:
    """The runs that would be watched, had they recorded what a judge can read; and what is wrong.

    The ledger keeps a run permanently: left in, one such run would end every later review.
    """
    problems = [(run, unreadable(run)) for run in _counted(runs, promotion)]
    return [(run, problem) for run, problem in problems if problem is not None]


def unreadable(run: ProductionRun) -> str | None:
    """What keeps the judge from reading a run, None where nothing does."""
    try:
        read_full_run(_evidence(run, 0))
    except InvalidEvidenceError as error:
        return str(error)
    return None


def _counted(runs: Iterable[ProductionRun], promotion: Promotion) -> list[ProductionRun]:
    return sorted(
        (
            run
            for run in runs
            if run.counts
            and run.started_at >= promotion.at
            and (run.arm == BASELINE or (run.arm == promotion.candidate and run.canary is None))
        ),
        key=_when,
    )


def row_at_the_end(runs: Sequence[ProductionRun], promotion: Promotion) -> list[ProductionRun]:
    """The candidate's latest runs since its present state that failed or did without the change.

    Empty while there are fewer than ROW of them: they end with the first that went well.
    """
    mine = [run for run in runs if run.arm == promotion.candidate]
    mine = [run for run in mine if run.started_at >= promotion.since]
    bad = list(takewhile(_went_wrong, reversed(mine)))
    return bad[::-1] if len(bad) >= ROW else []


def unseen_at_the_end(runs: Iterable[ProductionRun], promotion: Promotion) -> list[ProductionRun]:
    """The candidate's latest runs as far back as none left anything to judge, newest first."""
    mine = [run for run in runs if run.arm == promotion.candidate and run.canary is None]
    latest = sorted((run for run in mine if run.started_at >= promotion.at), key=_when)
    return list(takewhile(_is_unseen, reversed(latest)))


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
    first = max(tried, default=-1) + 1
    rest = {key: value for key, value in evidence.items() if key != "controls"}
    return {
        **rest,
        "phase": PROBATION,
        "promoted": promotion.candidate,
        "quality": _quality(evidence, arms[BASELINE], earlier),
        "arms": [_with_runs(arms[name], runs, first) for name in (BASELINE, promotion.candidate)],
    }


def _with_runs(arm: Mapping[str, Any], runs: Sequence[ProductionRun], first: int) -> Document:
    """``order`` is the place among the runs of all arms; production's begin with ``first``."""
    own = [_evidence(run, order) for order, run in enumerate(runs, first) if run.arm == arm["name"]]
    return {**arm, "runs": [*arm["runs"], *own]}


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


def _quality(
    evidence: Mapping[str, Any], baseline: Mapping[str, Any], earlier: Iterable[ProductionRun]
) -> Document:
    quality = dict(evidence["quality"])
    if quality.get("history"):
        return quality
    trial = recorded(baseline["runs"])
    own = {run.get("job") for run in baseline["runs"]}
    past = [
        run
        for run in sorted(earlier, key=_when)
        if run.arm == BASELINE and run.counts and run.finished and run.job not in own
        if unreadable(run) is None
        if metric_of(run) is not None
        if not stale_reasons(trial, recorded([run.result]))
    ][-HISTORY_RUNS:]
    walls = [wall for run in past if (wall := wall_seconds_of(run)) is not None]
    quality["history"] = [metric_of(run) for run in past]
    quality.setdefault("history_wall_seconds", walls)
    return quality


def _is_unseen(run: ProductionRun) -> bool:
    return not run.counts or unreadable(run) is not None


def _went_wrong(run: ProductionRun) -> bool:
    return not run.finished or run.without_change


def _when(run: ProductionRun) -> tuple[float, str, str]:
    return run.started_at, run.run, run.job


def blind_spots(
    runs: Sequence[ProductionRun], promotion: Promotion, damaged: Sequence[DamagedRecord] = ()
) -> tuple[Reason, ...]:
    """Notes on runs that could not be judged; some of the ledger's ``damaged`` entries are."""
    reasons = []
    lost = [record for record in damaged if record.kind == ProductionRun.kind]
    if lost:
        text = f"Left out, because the ledger's entries of them cannot be read: {len(lost)} runs"
        reasons.append(Reason("run_unreadable", f"{text}, at last: {lost[-1].problem}"))
    broken = unreadable_runs(runs, promotion)
    if broken:
        run, problem = broken[-1]
        text = (
            f"Left out, because the judge cannot read what they recorded: {len(broken)} "
            f"production runs, at last job {run.job}: {problem}"
        )
        reasons.append(Reason("run_unreadable", text))
    row = unseen_at_the_end(runs, promotion)
    if len(row) >= UNSEEN:
        text = f"The last {len(row)} runs of {promotion.candidate} recorded nothing to judge"
        reasons.append(Reason("nothing_to_judge", text))
    return tuple(reasons)


def not_watched(runs: Sequence[ProductionRun], promotion: Promotion) -> tuple[Reason, ...]:
    """Why a promotion on probation may not stay on: it is used without being observed.

    A job that was stopped or lost made nothing that could be used, so that it is reported only.
    """
    row = unseen_at_the_end(runs, promotion)
    used = sum(run.status == COMPLETED for run in row)
    if used < UNWATCHED:
        return ()
    text = (
        f"the last {len(row)} runs of {promotion.candidate} recorded nothing to judge, although "
        f"{used} of them completed: the change is not observed"
    )
    return (Reason("not_watched", text),)


def measured_fingerprints(evidence: Mapping[str, Any]) -> dict[str, Fingerprint]:
    """What the trial's jobs of each arm recorded."""
    return {arm["name"]: recorded(arm["runs"]) for arm in evidence["arms"]}


def trial_policy(evidence: Mapping[str, Any]) -> Policy:
    """The policy that the trial was judged by."""
    return read(Policy, evidence["policy"])


def measures(evidence: Mapping[str, Any], promotion: Promotion) -> bool:
    """Whether the trial's evidence has the promoted candidate."""
    return promotion.candidate in [arm["name"] for arm in evidence["arms"]]


def unmeasured(promotion: Promotion) -> Reason:
    """Why a promotion by a person is not watched at all."""
    return Reason(
        "not_measured",
        f"Trial {promotion.trial} planned {promotion.candidate} but did not measure it: there is "
        "nothing to compare production with, so its runs are not watched",
    )


# The flag transition that follows from a review of production.
#
# Nothing here turns a compiler on that was off. In the order of weight: a proven regression turns
# it off; production that is no longer what was proven is stale, and off or left on as the team's
# policy says; a probation that held becomes permanent. Whatever proves nothing leaves the flag
# alone.

STALE, PERMANENT, RESUME = "stale", "permanent", "resume"
ON_PROBATION, REVERTED = "probation", "reverted"
# What makes a promotion stale beside the fields that differ, and can be restored like them.
TREATMENT, WATCHED = "the change is applied", "runs can be judged"
# A single run without the change may have been unlucky, though it be all that was run.
UNTREATED = 2


@dataclass(frozen=True)
class FlagTransition:
    """A change of the flag: its action, the new flag and why."""

    action: str
    flag: Flag
    reasons: tuple[Reason, ...]


@dataclass(frozen=True)
class Findings:
    """What is known after a run: the judge's decision, None without one, and what has changed.

    ``restored`` says that all that made a promotion stale was compared again and is as it was,
    ``untreated`` how many runs of the candidate did without the change, ``unwatched`` why its
    probation sees nothing.
    """

    decision: Decision | None = None
    changed: Sequence[Reason] = ()
    restored: bool = False
    untreated: int = 0
    unwatched: Sequence[Reason] = ()

    @property
    def verdict(self) -> Verdict | None:
        """The judge's verdict."""
        return self.decision.verdict if self.decision else None

    @property
    def without_change(self) -> bool:
        """Whether most runs do without it: what production trains is not what was proven."""
        return self.verdict is Verdict.INVALID and self.untreated >= UNTREATED


def flag_transition(
    promotion: Promotion, findings: Findings, on_stale: str
) -> FlagTransition | None:
    """The change that follows, None where the flag stays as it is."""
    flag, decision = promotion.flag, findings.decision
    decision_id = decision.decision_id if decision else flag.decision_id
    if decision and findings.verdict is Verdict.REVERT:
        off = _off(flag, REVERTED, decision_id)
        return FlagTransition(REVERT, off, decision.reasons)
    gone = tuple(findings.changed)
    if decision and findings.without_change:
        gone = (*gone, *decision.reasons)
    if flag.state != PERMANENT:
        gone = (*gone, *findings.unwatched)
    if gone:
        return None if flag.state == STALE else FlagTransition(STALE, _stale(flag, on_stale), gone)
    if flag.state == STALE:
        same = (Reason("as_proven", "production again trains what was proven"),)
        again = replace(flag, state=ON_PROBATION, since=None)
        return FlagTransition(RESUME, again, same) if findings.restored else None
    if decision and findings.verdict is Verdict.PERMANENT and flag.state == ON_PROBATION:
        kept = replace(flag, state=PERMANENT, decision_id=decision_id, since=None)
        return FlagTransition(PERMANENT, kept, decision.reasons)
    return None


def _stale(flag: Flag, on_stale: str) -> Flag:
    if on_stale == KEEP:
        return replace(flag, state=STALE, since=None)
    return _off(flag, STALE, flag.decision_id)


def _off(flag: Flag, state: str, decision_id: str | None) -> Flag:
    """Off; the candidate's name is kept."""
    return Flag(enabled=False, state=state, candidate=flag.candidate, decision_id=decision_id)
