"""What was measured as the judge's document, and the figures that the judge's functions give."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks.gpu.runs import trained, whole_blocks
from benchmarks.gpu.workloads import BASELINE, FULL_RUN_STEPS, Workload
from compilegate.adapters.job_outputs import read_steps
from compilegate.domain.arithmetic import deviation, mean, median
from compilegate.domain.errors import InvalidEvidenceError
from compilegate.domain.job_output import JobOutput, quality_run, speed_runs
from compilegate.domain.judging.comparison import Samples, compare
from compilegate.domain.judging.evidence import Arm, Evidence, metrics
from compilegate.domain.judging.evidence_file import read_evidence
from compilegate.domain.judging.figures import arm_figures
from compilegate.domain.judging.judge import judge
from compilegate.domain.judging.speed import judge_speed
from compilegate.domain.judging.student import quantile
from compilegate.domain.workload.quality import Quality

CARDS = Path(__file__).with_name("cards.json")
ERROR = 0.025  # of each side of an interval
KEPT = (
    "samples_per_second", "compile_seconds_cold", "compile_seconds_warm", "graphs", "recompiles",
    "graph_breaks", "peak_memory_gib", "metric_mean", "runs",
)  # fmt: skip


def document(workload: Workload, folder: Path) -> dict[str, Any]:
    """The evidence document of everything that is whole below ``folder``."""
    arms = {
        arm.name: {
            "name": arm.name,
            "overrides": workload.overrides(arm),
            "full_run_steps": workload.hyperparameters(arm, FULL_RUN_STEPS)["steps"],
            "runs": [],
        }
        for arm in workload.arms
    }
    for job in sorted(folder.glob("speed-*")):
        whole = whole_blocks(job)
        for name, run in speed_runs(_output(job), job=f"{workload.name}-{job.name}"):
            if name in whole.get(run.block, ()):
                cold = _cold(folder, name)
                arms[name]["runs"].append({**run.record, "cold_compile_seconds": cold})
    for order, (_, name, path) in enumerate(trained(folder)):
        quality = Quality(workload.metric, workload.goal, workload.margin)
        run = quality_run(_output(path), job=path.name, quality=quality)
        arms[name]["runs"].append({**run.record, "order": order})
    measured = [arm for arm in arms.values() if arm["runs"] or arm["name"] == BASELINE]
    judged = {"metric": workload.metric, "goal": workload.goal, "margin": workload.margin}
    return {"schema": 1, "workload": workload.name, "quality": judged, "arms": measured}


def _cold(folder: Path, arm: str) -> float | None:
    """Seconds of an arm's first compilation: a later job finds the cache that it filled."""
    primed = [
        json.loads(path.read_text())["compiler"]["compile_seconds"]
        for path in folder.glob(f"speed-*/evidence/cold/{arm}/summary.json")
    ]
    return max(primed, default=None)


def _output(job: Path) -> JobOutput:
    """A job's evidence as it would have come out of its tarball."""
    files = sorted((job / "evidence").rglob("*.json*"))
    names = {path: path.relative_to(job).as_posix() for path in files}
    summaries = {names[p]: json.loads(p.read_text()) for p in files if p.name == "summary.json"}
    steps = {}
    for path in files:
        if path.name == "steps.jsonl":
            with path.open("rb") as lines:
                steps[names[path]] = read_steps(lines)
    return JobOutput(summaries, steps)


def figures(
    workload: Workload,
    document: Mapping[str, Any],
    flops: Mapping[str, Any] | None,
    card: str | None,
) -> dict[str, Any]:
    """Every arm's figures and the judge's verdict."""
    if len(document["arms"]) < 2 or not document["arms"][0]["runs"]:
        return {"arms": [], "verdict": None, "reasons": ["nothing measured yet"]}
    try:
        evidence = read_evidence(document)
        decision = judge(evidence)
    except InvalidEvidenceError as error:  # measuring continues; the record says so
        return {"arms": [], "verdict": None, "reasons": [str(error)]}
    per_step = (flops or {}).get("flops")
    return {
        "verdict": decision.verdict.value,
        "reasons": [reason.message for reason in decision.reasons],
        "flops_per_step": per_step,
        "flops_over_6_parameters_tokens": _over_6n(workload, flops),
        "arms": [
            {**_speed(arm, evidence), **_quality(arm, evidence)}
            | _mfu(workload, arm, evidence, per_step, card)
            for arm in evidence.arms
        ],
    }


def _speed(arm: Arm, evidence: Evidence) -> dict[str, Any]:
    shown = arm_figures(arm, evidence)
    failed = [run.record.get("reason") for run in arm.speed if not run.finished]
    row = {"name": arm.name, "failed": failed[0] if failed else None}
    row |= {key: getattr(shown, key) for key in KEPT}
    if arm is evidence.baseline:
        return {**row, "blocks": len(arm.speed), "full_run": None, "steady": None}
    speed = judge_speed(arm, evidence)
    whole = {"estimate": speed.estimate, "interval": speed.interval} if speed.logs else None
    steady = ratio(_steady_logs(arm, evidence))
    return {**row, "blocks": speed.blocks, "full_run": whole, "steady": steady}


def steady_logs(document: Mapping[str, Any], arm: str) -> list[float]:
    """The arm's blocks in a document of ``document``; empty where none is whole."""
    evidence = read_evidence(document)
    measured = [one for one in evidence.candidates if one.name == arm]
    return _steady_logs(measured[0], evidence) if measured else []


def _steady_logs(arm: Arm, evidence: Evidence) -> list[float]:
    """ln of the steady speed-up of every block, sample for sample: compilation left out."""
    work = evidence.baseline.steps_or_one / arm.steps_or_one
    return [
        math.log(work * base.steady_step_seconds / ours.steady_step_seconds)
        for base, ours in evidence.steady_pairs(arm)
    ]


def ratio(logs: Sequence[float]) -> dict[str, Any] | None:
    """Geometric mean over blocks with Student's interval; None without a block."""
    if not logs:
        return None
    n, centre, interval = len(logs), mean(logs), None
    if n > 1:
        half = quantile(1 - ERROR, n - 1) * deviation(logs) / math.sqrt(n)
        interval = (math.exp(centre - half), math.exp(centre + half))
    return {"estimate": math.exp(centre), "interval": interval}


def _quality(arm: Arm, evidence: Evidence) -> dict[str, Any]:
    """Difference from the baseline, higher is better, and whether it is shown to be no worse."""
    if arm is evidence.baseline or not metrics(arm.full_runs):
        return {"quality": None}
    samples = Samples(
        evidence.oriented(metrics(arm.full_runs)),
        evidence.oriented(metrics(evidence.baseline.full_runs)),
        (),
    )
    comparison = compare(samples)
    if comparison is None or comparison.df < 1 or comparison.spread <= 0:
        return {"quality": None}
    low, high = comparison.interval(ERROR)
    equal = low > -evidence.quality.margin
    difference = {"difference": comparison.difference, "interval": (low, high)}
    return {"quality": {**difference, "within_margin": equal}}


def _mfu(
    workload: Workload, arm: Arm, evidence: Evidence, per_step: float | None, card: str | None
) -> dict[str, Any]:
    setup = next(one for one in workload.arms if one.name == arm.name)
    precision = {**workload.settings, **setup.changes}.get("precision", "fp32")
    steady = [
        one.steady_step_seconds for one in evidence.segments[arm.name].values() if one is not None
    ]
    flops = per_step * setup.batch_times if per_step else None
    peak = peak_tflops(card, precision)
    seconds = median(steady) if steady else None
    return {
        "steady_step_seconds": seconds,
        "mfu": utilisation(flops, seconds, peak),
        "peak_tflops": peak,
    }


def _over_6n(workload: Workload, flops: Mapping[str, Any] | None) -> float | None:
    """Counted FLOPs over 6 x parameters x tokens, the rule of thumb; None where tokens are not."""
    length = workload.settings.get("block") or workload.settings.get("max_length")
    if not flops or not length:
        return None
    tokens = length * workload.settings["batch_size"]
    return float(flops["flops"] / (6 * flops["parameters"] * tokens))


def peak_tflops(card: str | None, precision: str) -> float | None:
    """Dense TFLOPS of the tensor cores, None where no source states them."""
    for row in json.loads(CARDS.read_text()):
        if card and all(word in card for word in row["contains"]):
            peak = row.get(precision)
            return float(peak) if peak else None
    return None


def utilisation(flops: float | None, seconds: float | None, peak: float | None) -> float | None:
    """Model FLOPs utilisation of one step: a share of the peak, None where one is unknown."""
    if not flops or not seconds or not peak:
        return None
    return flops / seconds / (peak * 1e12)
