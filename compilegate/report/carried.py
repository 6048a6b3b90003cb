"""Who made the full runs, what that cost beyond production's own training, and what was exposed."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from typing import Any

from compilegate.domain.decision import Verdict
from compilegate.domain.judging.evidence import Evidence, FullRun
from compilegate.domain.workload.model import BASELINE
from compilegate.report.case import Case
from compilegate.report.formats import UNKNOWN, fixed, money, number, plural, shown, significant
from compilegate.report.tables import Table

SHADOW, CANARY, PRODUCTION = "shadow", "canary", "production"
WORDS = {SHADOW: "extra", CANARY: "carried", PRODUCTION: "beside the trial"}


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


def carried_rows(case: Case) -> Iterator[tuple[str, str]]:
    """How it was measured, as name and value: rows that tell of a trial's full runs."""
    runs = _full_runs(case)
    mode = _mode(case)
    if mode:
        yield "Full runs made by", mode
    if not any(run.mode != SHADOW for _, run in runs):
        return
    yield "Extra full runs", f"{_counts(runs, (SHADOW,)) or 'none'}; {extra(case).words}"
    yield "Carried by production", f"{_counts(runs, (CANARY, PRODUCTION))}; {_carried(case).words}"
    yield "Exposed", _exposed(case)


def full_runs(case: Case) -> dict[str, Any] | None:
    """The same for programs; None where the trial made every run itself, as policy asks."""
    made_by = _mode(case)
    if not made_by or isinstance(case.measured, str):
        return None
    evidence: Evidence = case.measured.evidence
    runs = Counter(run.mode for _, run in _full_runs(case))
    return {
        "asked": evidence.plan.asked_quality_runs or evidence.policy.quality_runs,
        "used": evidence.policy.quality_runs,
        "made_by": made_by,
        "extra": {"runs": runs[SHADOW], **asdict(extra(case))},
        "carried": {"runs": runs[CANARY] + runs[PRODUCTION], **asdict(_carried(case))},
        "exposed": _exposed(case),
    }


def carried_table(case: Case) -> Table | None:
    """Every production run that became evidence, in the order of time."""
    found = [(name, run) for name, run in _full_runs(case) if run.mode != SHADOW]
    if not found:
        return None
    rows = [_row(name, run) for name, run in sorted(found, key=lambda one: one[1].order)]
    return Table(
        "carried", "Production runs that carried the trial",
        ("Begun (UTC)", "Arm", case.metric, "Price", "As", "Job"), rows, stacked=True,
        note="Production paid for these as it would have anyway.",
    )  # fmt: skip


def extra(case: Case) -> Spent:
    """What the trial's full runs cost beyond production's own training.

    Of production's own runs only a candidate that was lost counts: its night was made again.
    """
    by_job: Mapping[str, Any] = (case.evidence.get("plan") or {}).get("usd_by_job") or {}
    charged = [
        (name, number(by_job.get(str(run.detail.get("job")))))
        for name, run in _full_runs(case)
        if run.mode == SHADOW or _is_lost(name, run)
    ]
    return _sum(case, charged)


def _carried(case: Case) -> Spent:
    own = [
        (name, number(run.detail.get("usd")))
        for name, run in _full_runs(case)
        if run.mode != SHADOW and not _is_lost(name, run)
    ]
    return _sum(case, own)


def _is_lost(name: str, run: FullRun) -> bool:
    return run.mode == CANARY and name != BASELINE and not run.finished


def _sum(case: Case, charged: Sequence[tuple[str, float | None]]) -> Spent:
    """Hours follow from dollars: both are of billable time, at the arm's price per hour."""
    arms = {} if isinstance(case.measured, str) else {a.name: a.arm for a in case.measured.arms}
    usd, hours = [], []
    for name, price in charged:
        rate = arms[name].usd_per_hour
        if price is None or not rate:
            return Spent(None, None)
        usd.append(price)
        hours.append(price / rate * arms[name].devices)
    return Spent(math.fsum(usd), math.fsum(hours))


def _full_runs(case: Case) -> list[tuple[str, FullRun]]:
    if isinstance(case.measured, str):
        return []
    return [(arm.name, run) for arm in case.measured.arms for run in arm.quality]


def _mode(case: Case) -> str:
    """What policy asked for and what the trial did; nothing where nobody asked for another mode."""
    if isinstance(case.measured, str) or not _full_runs(case):
        return ""
    evidence: Evidence = case.measured.evidence
    asked, used = evidence.plan.asked_quality_runs, evidence.policy.quality_runs
    who = {
        SHADOW: "the trial, as extra runs (shadow)",
        CANARY: "production, as it trains anyway (canary)",
        "hybrid": "the trial at first, then production as it trains anyway (hybrid)",
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


def _exposed(case: Case) -> str:
    """Models that production made with a candidate before anything was proven."""
    made = sum(name != BASELINE and run.mode == CANARY and run.finished
               for name, run in _full_runs(case))  # fmt: skip
    if not made:
        return "no model of a candidate was made in production"
    models = f"{plural(made, 'model')} of a candidate made in production"
    if case.policy.get("hold_models", True) is False:
        return f"{models}, not held back (policy.hold_models is false)"
    if case.verdict in (None, Verdict.CONTINUE):
        return f"{models}, held back until the verdict"
    kept = case.flag.get("approved") is False or bool(case.flag.get("held_by"))
    if case.verdict is Verdict.PROMOTE and not kept:
        return f"{models}, held back until this verdict released those of {case.candidate}"
    return f"{models}, held back and not released by this verdict"


def _row(name: str, run: FullRun) -> tuple[str, ...]:
    begun = number(run.detail.get("started_at"))
    moment = UNKNOWN if begun is None else f"{datetime.fromtimestamp(begun, tz=UTC):%Y-%m-%d %H:%M}"
    metric = shown(run.metric, lambda x: fixed(x, 5)) if run.finished else "failed"
    return (
        moment, name, metric, shown(run.detail.get("usd"), money), WORDS[run.mode],
        str(run.detail.get("job") or UNKNOWN),
    )  # fmt: skip
