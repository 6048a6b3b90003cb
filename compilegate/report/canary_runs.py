"""Who made the full runs, what that cost beyond production's own training, and what was exposed."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from typing import Any

from compilegate.domain.decision import Verdict
from compilegate.domain.formats import UNKNOWN, fixed, money, number, plural, shown, significant
from compilegate.domain.judging.evidence import Evidence, FullRun
from compilegate.domain.workload.model import BASELINE
from compilegate.report.tables import Table
from compilegate.report.trial_report import TrialReport

SHADOW, CANARY, PRODUCTION = "shadow", "canary", "production"
WORDS = {SHADOW: "extra", CANARY: "as canary", PRODUCTION: "in production"}


@dataclass(frozen=True)
class Spent:
    """USD and GPU-hours (hours of the cluster times its devices); None where not all is known."""

    usd: float | None
    gpu_hours: float | None

    @property
    def words(self) -> str:
        """Both figures, a dash where one is unknown."""
        hours = shown(self.gpu_hours, significant)
        return f"{shown(self.usd, money)} and {hours} GPU-hours"


def canary_rows(trial: TrialReport) -> Iterator[tuple[str, str]]:
    """How it was measured, as name and value: rows that tell of a trial's full runs."""
    runs = _full_runs(trial)
    mode = _mode(trial)
    if mode:
        yield "Full runs made by", mode
    if not any(run.mode != SHADOW for _, run in runs):
        return
    yield "Extra full runs", f"{_counts(runs, (SHADOW,)) or 'none'}; {extra(trial).words}"
    yield (
        "Canary and production runs",
        f"{_counts(runs, (CANARY, PRODUCTION))}; {_production_cost(trial).words}",
    )
    yield "Exposed", _exposed(trial)


def full_runs(trial: TrialReport) -> dict[str, Any] | None:
    """The same for programs; None where the trial made every run itself, as policy asks."""
    made_by = _mode(trial)
    if not made_by or isinstance(trial.measured, str):
        return None
    evidence: Evidence = trial.measured.evidence
    runs = Counter(run.mode for _, run in _full_runs(trial))
    return {
        "asked": evidence.plan.asked_quality_runs or evidence.policy.quality_runs,
        "used": evidence.policy.quality_runs,
        "made_by": made_by,
        "extra": {"runs": runs[SHADOW], **asdict(extra(trial))},
        "carried": {"runs": runs[CANARY] + runs[PRODUCTION], **asdict(_production_cost(trial))},
        "exposed": _exposed(trial),
    }


def canary_table(trial: TrialReport) -> Table | None:
    """Every production run that became evidence, in the order of time."""
    found = [(name, run) for name, run in _full_runs(trial) if run.mode != SHADOW]
    if not found:
        return None
    rows = [_row(name, run) for name, run in sorted(found, key=lambda one: one[1].order)]
    return Table(
        "canary-runs", "Canary and production runs used as evidence",
        ("Begun (UTC)", "Arm", trial.metric, "Price", "As", "Job"), rows, stacked=True,
        note="These runs cost the trial nothing extra.",
    )  # fmt: skip


def extra(trial: TrialReport) -> Spent:
    """What the trial's full runs cost beyond production's own training.

    Of production's own runs only a candidate that was lost counts: its night was made again.
    """
    by_job: Mapping[str, Any] = (trial.evidence.get("plan") or {}).get("usd_by_job") or {}
    charged = [
        (name, number(by_job.get(str(run.detail.get("job")))))
        for name, run in _full_runs(trial)
        if run.mode == SHADOW or _is_lost(name, run)
    ]
    return _sum(trial, charged)


def _production_cost(trial: TrialReport) -> Spent:
    own = [
        (name, number(run.detail.get("usd")))
        for name, run in _full_runs(trial)
        if run.mode != SHADOW and not _is_lost(name, run)
    ]
    return _sum(trial, own)


def _is_lost(name: str, run: FullRun) -> bool:
    return run.mode == CANARY and name != BASELINE and not run.finished


def _sum(trial: TrialReport, charged: Sequence[tuple[str, float | None]]) -> Spent:
    """Hours follow from dollars: both are of billable time, at the arm's price per hour."""
    arms = {} if isinstance(trial.measured, str) else {a.name: a.arm for a in trial.measured.arms}
    usd, hours = [], []
    for name, price in charged:
        rate = arms[name].usd_per_hour
        if price is None or not rate:
            return Spent(None, None)
        usd.append(price)
        hours.append(price / rate * arms[name].devices)
    return Spent(math.fsum(usd), math.fsum(hours))


def _full_runs(trial: TrialReport) -> list[tuple[str, FullRun]]:
    if isinstance(trial.measured, str):
        return []
    return [(arm.name, run) for arm in trial.measured.arms for run in arm.quality]


def _mode(trial: TrialReport) -> str:
    """Who made the full runs where policy or the trial used another mode than shadow."""
    if isinstance(trial.measured, str) or not _full_runs(trial):
        return ""
    evidence: Evidence = trial.measured.evidence
    asked, used = evidence.plan.asked_quality_runs, evidence.policy.quality_runs
    who = {
        SHADOW: "the trial, as extra runs (shadow)",
        CANARY: "production, as canary runs",
        "hybrid": "the trial at first, then production as canary runs (hybrid)",
    }[used]
    if asked in (None, used):
        return "" if used == SHADOW else who
    why = evidence.plan.runs_as_shadow_because
    return f"{who}; policy asks for {asked}" + (f", but {why}" if why else "")


def _counts(runs: Sequence[tuple[str, FullRun]], modes: Sequence[str]) -> str:
    found = Counter((name, run.mode) for name, run in runs if run.mode in modes)
    return ", ".join(
        f"{name} {count}" + (f" {WORDS[mode]}" if mode != SHADOW else "")
        for (name, mode), count in found.items()
    )


def _exposed(trial: TrialReport) -> str:
    """Models that production made with a candidate before anything was proven."""
    made = sum(name != BASELINE and run.mode == CANARY and run.finished
               for name, run in _full_runs(trial))  # fmt: skip
    if not made:
        return "no candidate model was made in production"
    models = f"{plural(made, 'candidate model')} made in production"
    if trial.policy.get("hold_models", True) is False:
        return f"{models}, not held back (policy.hold_models is false)"
    if trial.verdict in (None, Verdict.CONTINUE):
        return f"{models}, held back until the verdict"
    kept = trial.flag.get("approved") is False or bool(trial.flag.get("held_by"))
    if trial.verdict is Verdict.PROMOTE and not kept:
        return f"{models}, held back until this verdict released those of {trial.candidate}"
    return f"{models}, held back and not released by this verdict"


def _row(name: str, run: FullRun) -> tuple[str, ...]:
    begun = number(run.detail.get("started_at"))
    moment = UNKNOWN if begun is None else f"{datetime.fromtimestamp(begun, tz=UTC):%Y-%m-%d %H:%M}"
    metric = shown(run.metric, lambda x: fixed(x, 5)) if run.finished else "failed"
    return (
        moment, name, metric, shown(run.detail.get("usd"), money), WORDS[run.mode],
        str(run.detail.get("job") or UNKNOWN),
    )  # fmt: skip
