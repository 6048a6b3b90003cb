"""A trial as OpenMetrics text, for Prometheus' textfile collector or a push gateway.

https://github.com/prometheus/OpenMetrics/blob/main/specification/OpenMetrics.md
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from compilegate.domain.decision import Verdict
from compilegate.domain.formats import number
from compilegate.report.trial_report import TrialReport

ESCAPES = str.maketrans({"\\": "\\\\", "\n": "\\n", '"': '\\"'})
# Suffix, labels and value; a value that is no number is left out.
Sample = tuple[str, Mapping[str, str], Any]
# Name, kind, unit, help and samples of a metric family.
Family = tuple[str, str, str, str, Sequence[Sample]]
# Figures of an arm in a decision (docs/contracts.md#decision): name, unit, help, key. A family's
# name ends with its unit.
ARM_FIGURES = (
    ("compilegate_arm_samples_per_second", "", "Throughput in the steady state.",
     "samples_per_second"),
    ("compilegate_arm_step_seconds", "seconds", "Steady step, the mean over short blocks.",
     "step_seconds_median"),
    ("compilegate_arm_compile_seconds", "seconds", "Compilation with a warm cache.",
     "compile_seconds_warm"),
    ("compilegate_arm_run_usd", "usd",
     "Price of a production run; the candidate's is the baseline's less the saving.",
     "usd_per_run"),
    ("compilegate_arm_metric", "", "Mean of the quality metric over full runs.", "metric_mean"),
    ("compilegate_arm_full_runs", "", "Full runs of the trial.", "runs"),
    ("compilegate_arm_failed_runs", "", "Full runs that failed.", "failed_runs"),
)  # fmt: skip


def openmetrics(report: TrialReport, *, trial: str, at: int) -> str:
    """The exposition; ``at`` is when it was decided, epoch seconds.

    Labels name the workload and, where it is one's, the arm; the trial is a label of the info
    alone, so that a new trial continues the series.
    """
    arms = [
        (name, "gauge", unit, about, [
            ("", {"workload": report.workload, "arm": arm.name}, getattr(arm, key))
            for arm in report.arms
        ])
        for name, unit, about, key in ARM_FIGURES
    ]  # fmt: skip
    families = (*_of_the_decision(report, trial, at), *_of_the_candidate(report), *arms)
    lines = [line for family in families for line in _lines(*family)]
    return "\n".join([*lines, "# EOF", ""])


def _lines(name: str, kind: str, unit: str, about: str, samples: Sequence[Sample]) -> Iterator[str]:
    """The lines of a family; none where nothing is known."""
    figures = ((suffix, labels, number(value)) for suffix, labels, value in samples)
    numbers = [one for one in figures if one[2] is not None]
    if not numbers:
        return
    yield f"# TYPE {name} {kind}"
    if unit:
        yield f"# UNIT {name} {unit}"
    yield f"# HELP {name} {about}"
    for suffix, labels, value in numbers:
        listed = ",".join(f'{key}="{text.translate(ESCAPES)}"' for key, text in labels.items())
        yield f"{name}{suffix}{{{listed}}} {value!r}"


def _of_the_decision(report: TrialReport, trial: str, at: int) -> Iterator[Family]:
    of = {"workload": report.workload}
    described = {
        "trial": trial, "verdict": str(report.verdict), "candidate": report.candidate or "",
        "decision_id": report.judged.decision_id, "judge_version": report.judged.judge_version,
    }  # fmt: skip
    info = [("_info", of | described, 1)]
    yield "compilegate_decision", "info", "", "The newest decision.", info
    time = "compilegate_decision_timestamp_seconds"
    yield time, "gauge", "seconds", "When it was decided.", [("", of, at)]
    states = [
        ("", {**of, "compilegate_verdict": str(one)}, float(one is report.verdict))
        for one in Verdict
    ]
    yield "compilegate_verdict", "stateset", "", "The verdict.", states


def _of_the_candidate(report: TrialReport) -> Iterator[Family]:
    decision = report.judged
    if report.candidate is None:
        return
    of = {"workload": report.workload, "arm": report.candidate}
    for name, unit, about, figures, key, ends in (
        ("compilegate_speedup_ratio", "ratio", "Speed-up of whole jobs.", decision.speedup,
         "estimate", "interval"),
        ("compilegate_quality_difference", "", "Candidate less baseline, positive is better.",
         decision.quality, "estimate", "interval"),
        ("compilegate_quality_margin", "", "The loss to rule out.", decision.quality, "margin", ""),
        ("compilegate_saving_usd_per_year", "", "What it saves if it is on; proven amounts only.",
         decision.saving if report.claims.money.has_amount else None,
         "usd_per_year", "interval_usd_per_year"),
    ):  # fmt: skip
        low, high = getattr(figures, ends, None) or (None, None)
        values = {"estimate": getattr(figures, key, None), "low": low, "high": high}
        samples = [("", {**of, "bound": end}, value) for end, value in values.items()]
        yield name, "gauge", unit, about, samples
