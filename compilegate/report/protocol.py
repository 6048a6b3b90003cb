"""How a trial was measured: its arms, rounds and thresholds."""

from __future__ import annotations

from collections.abc import Sequence

from compilegate.domain.formats import UNKNOWN, count, number, plural, ratio, shown, significant
from compilegate.report.canary_runs import canary_rows
from compilegate.report.measured import Measured, MeasuredArm
from compilegate.report.reference import compared_runs, past_runs, reference_of
from compilegate.report.tables import Table
from compilegate.report.trial_report import TrialReport, named


def plan_table(trial: TrialReport) -> Table | None:
    """The arms as they were asked for."""
    arms = named(trial.plan.get("arms"))
    if not arms:
        return None
    names = ("compiler", "instance_type", "instance_count", "precision", "batch_size",
             "learning_rate", "distribution", "usd_per_hour", "image")  # fmt: skip
    rows = [
        (name.replace("_", " ").replace("usd", "USD"),
         *(UNKNOWN if arm.get(name) is None else str(arm[name]) for arm in arms))
        for name in names
        if any(arm.get(name) is not None for arm in arms)
    ]  # fmt: skip
    marked = frozenset(place for place, row in enumerate(rows) if len(set(row[1:])) > 1)
    return Table(
        "plan", "The arms as planned", ("", *(str(arm["name"]) for arm in arms)), rows,
        note="Marked rows are what the candidates change." if marked else "", marked=marked,
    )  # fmt: skip


def protocol(trial: TrialReport) -> list[tuple[str, str]]:
    """How it was measured, as name and value; what never happened is left out."""
    policy, decision, context = trial.policy, trial.decision, trial.source["context"]
    thresholds = (
        f"proven above {shown(policy.get('reject_speedup'), ratio)} and estimated at "
        f"{shown(policy.get('promote_speedup'), ratio)} or more"
        + (", in dollars per run" if trial.price_ratio != 1 else "")
    )
    rows = [
        ("Speed", _speed(trial)),
        ("Quality", _quality(trial)),
        *canary_rows(trial),
        ("Thresholds", thresholds if policy else ""),
        ("Error rate", _error_rate(trial)),
        ("Judge", str(decision.get("judge_version") or "")),
        ("Decision", str(decision.get("decision_id") or "")),
        ("Trial", context["trial"]),
        ("Stage", context["stage"]),
    ]  # fmt: skip
    return [(name, value) for name, value in rows if value]


def _speed(trial: TrialReport) -> str:
    if isinstance(trial.measured, str) or not trial.measured.has_speed:
        return ""
    longest = max(len(b.run.step_seconds) for a in trial.measured.arms for b in a.blocks.values())
    most = number(trial.plan.get("max_blocks"))
    counts = ", ".join(f"{arm.name} {len(arm.blocks)}" for arm in trial.measured.arms)
    text = f"blocks of {count(longest)} steps: {counts}"
    return text if most is None else f"{text}; at most {count(most)} per arm"


def _quality(trial: TrialReport) -> str:
    """Full runs per arm, and what the past ones count for."""
    if isinstance(trial.measured, str):
        return ""
    measured = trial.measured
    found = [text for arm in measured.arms if (text := _runs(measured, arm))]
    parts = [f"full runs: {', '.join(found)}" if found else "no full run"]
    past, reference = len(measured.evidence.quality.history), reference_of(measured, trial.quality)
    if past and reference and found:
        parts.append(past_runs(past, reference.weight))
    elif past:
        parts.append(plural(past, "past run"))
    return "; ".join(parts)


def _runs(measured: Measured, arm: MeasuredArm) -> str:
    runs = compared_runs(measured, arm)
    if not runs:
        return ""
    seeds = sorted(run.seed for run in runs if run.seed is not None)
    known = len(seeds) == len(runs) == len(set(seeds))
    return f"{arm.name} {len(runs)}" + (f" ({_span(seeds)})" if known else "")


def _span(seeds: Sequence[int]) -> str:
    """``seeds 17 to 19``, or each of them where some are left out."""
    if len(seeds) == 1:
        return f"seed {seeds[0]}"
    if len(seeds) > 2 and seeds[-1] - seeds[0] == len(seeds) - 1:
        return f"seeds {seeds[0]} to {seeds[-1]}"
    return f"seeds {', '.join(map(str, seeds))}"


def _error_rate(trial: TrialReport) -> str:
    alpha = number(trial.policy.get("alpha"))
    if alpha is None:
        return ""
    several = 1 if isinstance(trial.measured, str) else len(trial.measured.candidates)
    if several < 2:
        return f"at most {significant(alpha)} per gate, one-sided, shared by all its looks"
    return (
        f"at most {significant(alpha)} in all: {significant(alpha / several)} per gate for each "
        f"of {several} candidates, one-sided, shared by all its looks"
    )
