"""What a job left of its evidence, and the runs that it is.

A full run writes a line per step, millions of them; each is kept as four numbers. What is wrong
with a summary is an InvalidEvidenceError.
"""

from __future__ import annotations

import json
import math
import operator
import re
from array import array
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from compilegate.domain.errors import InvalidEvidenceError, shown
from compilegate.domain.fields import LARGEST
from compilegate.domain.formats import number
from compilegate.domain.judging.evidence import FullRun, SpeedRun, reported
from compilegate.domain.judging.evidence_file import read_full_run, read_speed_run
from compilegate.domain.judging.outcomes import outcomes_document
from compilegate.domain.optional import without_none
from compilegate.domain.outside import shorten
from compilegate.domain.records.production import METRIC_NAME
from compilegate.domain.workload.quality import Quality

BLOCK = re.compile(r"evidence/block-([0-9]{1,6})/([a-z0-9-]{1,64})/summary\.json")
COLD = re.compile(r"evidence/cold/([a-z0-9-]{1,64})/summary\.json")
FULL = "evidence/summary.json"
# A whole run among those of a job of pairs, by its place in the job.
PAIRED = re.compile(r"evidence/run-([0-9]{1,2})/([a-z0-9-]{1,64})/summary\.json")
# What is kept of a bundle of compiled code that a run left, or was to restore.
BUNDLE_KEYS = (
    "state", "sha256", "bytes", "ranks", "restored", "differs", "cache_hits", "cache_misses",
    "seconds",
)  # fmt: skip
CURVE_POINTS = 200
SUMMARY = "summary.json"
STEPS = "steps.jsonl"
# Steps that one line stands for; more than a job of 28 days can make.
MOST_STEPS = 10**9


@dataclass
class Steps:
    """The steps of one process, in order; a loss that was not recorded is NaN.

    Very long runs leave lines that stand for several ``steps``, with their means.
    """

    seconds: array[float] = field(default_factory=lambda: array("d"))
    numbers: array[float] = field(default_factory=lambda: array("d"))
    losses: array[float] = field(default_factory=lambda: array("d"))
    counts: array[int] = field(default_factory=lambda: array("l"))
    samples: float = 0.0
    tokens: float = 0.0
    steps: int = 0

    def add(self, line: object) -> None:
        """Add one line; raises TypeError or ValueError for one that is not a step."""
        if not isinstance(line, dict):
            raise TypeError("it is no mapping")
        seconds, number = _figure(line.get("seconds")), _figure(line.get("step"))
        count = int(_figure(line.get("steps", 1), MOST_STEPS))
        samples, tokens = _figure(line.get("samples") or 0), _figure(line.get("tokens") or 0)
        self.losses.append(_loss(line.get("loss")))
        self.counts.append(count)
        self.seconds.append(seconds)
        self.numbers.append(number)
        self.steps += count
        self.samples += samples * count
        self.tokens += tokens * count

    @property
    def samples_per_step(self) -> float | None:
        """Mean over all steps, None when none recorded any: one without samples trained on none."""
        return self.samples / self.steps if self.samples else None

    @property
    def tokens_per_step(self) -> float | None:
        """As ``samples_per_step``, of the tokens that are no padding."""
        return self.tokens / self.steps if self.tokens else None

    def work(self) -> dict[str, Any]:
        """What they add up to, as a full run has it (docs/contracts.md)."""
        return {
            "steps": self.steps,
            "seconds": round(sum(map(operator.mul, self.seconds, self.counts)), 6),
            "samples_per_step": self.samples_per_step,
            "tokens_per_step": self.tokens_per_step,
        }

    def loss_curve(self) -> list[list[float]]:
        """[step, loss, seconds since the first step began], thinned to what a chart can show."""
        count = len(self.seconds)
        stride = max(1, count // CURVE_POINTS)
        curve, elapsed = [], 0.0
        for index, seconds in enumerate(self.seconds):
            elapsed += seconds * self.counts[index]
            charted = index % stride == 0 or index == count - 1
            if charted and not math.isnan(self.losses[index]):
                step = self.numbers[index]
                curve.append([int(step), self.losses[index], round(elapsed, 4)])
        return curve


def _figure(value: Any, most: float = LARGEST) -> float:
    """A number of a step, from 0 to ``most``; raises ValueError for anything else."""
    if type(value) not in (int, float) or not 0 <= value <= most:
        raise ValueError("it is no figure of a step")
    return float(value)


def _loss(value: Any) -> float:
    """A loss, NaN where none was recorded or it is not finite; raises TypeError for no number."""
    if value is None:
        return math.nan
    if type(value) not in (int, float):
        raise TypeError("it is no loss")
    return float(value) if abs(value) <= LARGEST else math.nan


@dataclass(frozen=True)
class JobOutput:
    """What one job left: summaries and steps by file name; ``identity`` of the object it lay in."""

    summaries: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    steps: Mapping[str, Steps] = field(default_factory=dict)
    identity: Mapping[str, str] = field(default_factory=dict)

    def summary(self, name: str) -> Mapping[str, Any]:
        """The summary of that name; raises InvalidEvidenceError when it is not there."""
        if name not in self.summaries:
            raise InvalidEvidenceError(f"{name} is missing from the job's output")
        return self.summaries[name]

    def steps_beside(self, summary: str) -> Steps:
        """The steps recorded beside a summary, none when the job was killed before the first."""
        return self.steps.get(summary.removesuffix(SUMMARY) + STEPS) or Steps()


def is_evidence(summary: str) -> bool:
    """Whether the recorder writes a summary of that name."""
    return summary == FULL or any(kind.fullmatch(summary) for kind in (BLOCK, COLD, PAIRED))


def paired_runs(output: JobOutput, *, job: str, quality: Quality) -> dict[tuple[int, str], FullRun]:
    """The whole runs of a job of pairs, by place and arm.

    ``job_seconds`` are those for which its process lived.
    """
    runs = {}
    for name, summary in output.summaries.items():
        if match := PAIRED.fullmatch(name):
            run = quality_run(output, job=job, quality=quality, name=name)
            seconds = number(summary.get("process_seconds"))
            runs[int(match[1]), match[2]] = run.recorded_as(job_seconds=seconds)
    return runs


def speed_runs(output: JobOutput, *, job: str) -> Iterator[tuple[str, SpeedRun]]:
    """(arm, run) for every segment of a speed job."""
    cold = {
        match[1]: summary
        for name, summary in output.summaries.items()
        if (match := COLD.fullmatch(name))
    }
    for name in sorted(output.summaries):
        match = BLOCK.fullmatch(name)
        if not match:
            continue
        block, arm = int(match[1]), match[2]
        summary, steps = output.summary(name), output.steps_beside(name)
        record = {
            **_common(summary, job),
            **output.identity,
            "stage": "speed",
            "block": block,
            "node": job,
            "step_seconds": steps.seconds.tolist(),
            "samples_per_step": steps.samples_per_step,
            "tokens_per_step": steps.tokens_per_step,
            "compile_seconds": _compile_seconds(summary) or 0.0,
            "cold_compile_seconds": _compile_seconds(cold.get(arm, {})),
            "full_run_steps": summary.get("full_run_steps"),
        }
        if "profile" in summary:
            record["profile"] = summary["profile"]
        # The check that was made while the cache was filled.
        record |= _checks(cold.get(arm, {}))
        yield arm, read_speed_run(record, job)


def quality_run(output: JobOutput, *, job: str, quality: Quality, name: str = FULL) -> FullRun:
    """The run of a full job; its position in time is given when it is recorded.

    It may lack all metrics but the first: the judge names those that it does. ``name`` is that of
    its summary.

    It is ``examining`` where the job ended in the equivalence check, after the run.
    """
    summary, (metric, *others) = output.summary(name), quality.reported
    metrics = _section(summary, "metrics", job)
    finished = summary.get("finished") is True
    if finished and metrics.get(metric) is None:
        recorded = ", ".join(sorted(metrics)) or "nothing"
        raise InvalidEvidenceError(
            f"{job} finished without recording quality.metric {metric!r} as a finite number; "
            f"it recorded {shorten(recorded)}",
            fix="name a metric that the script records, or give launch.py the line that prints it "
            "in the hyperparameter metric_patterns",
        )
    steps = output.steps_beside(name)
    record = {
        **_common(summary, job),
        **output.identity,
        "stage": "quality",
        "mode": "shadow",
        "order": 0,
        "seed": summary.get("seed"),
        "metric": metrics.get(metric) if finished else None,
        "wall_seconds": summary.get("wall_seconds"),
        "steps": summary.get("steps"),
        "seconds": summary.get("seconds"),
        "compile_seconds": _compile_seconds(summary),
        "work": steps.work(),
        "loss_curve": steps.loss_curve(),
        "final_weights_sha256": summary.get("final_weights_sha256"),
        "final_start_sha256": summary.get("final_start_sha256"),
        **_checks(summary),
    }
    if others:
        record["metrics"] = {other: reported(metrics.get(other)) for other in others if finished}
    evaluations = summary.get("evaluations")
    if without_none([quality.target]) and isinstance(evaluations, Mapping):
        record["evaluations"] = evaluations.get(metric)
    if finished and summary.get("examining") is True:
        record["examining"] = True
    bundle = summary.get("compile_bundle")
    if isinstance(bundle, Mapping):
        record["compile_bundle"] = {key: bundle[key] for key in BUNDLE_KEYS if key in bundle}
    outcomes = summary.get("outcomes")
    kept = outcomes_document(outcomes.get(metric)) if isinstance(outcomes, Mapping) else None
    if kept is not None:
        record["outcomes"] = kept
    return read_full_run(record, job)


def _common(summary: Mapping[str, Any], job: str) -> dict[str, Any]:
    compiler, reason = _section(summary, "compiler", job), summary.get("reason")
    finished = summary.get("finished") is True
    applied = compiler.get("applied")
    if not isinstance(applied, bool):
        # A run that crashed early could not tell, and one without a compiler has nothing to
        # prove; any other had to.
        asked = compiler.get("requested") not in (None, "none")
        applied = False if finished and asked else None
    return {
        "job": job,
        "finished": finished,
        "applied": applied,
        "compiler": compiler,
        "fingerprint": _section(summary, "fingerprint", job),
        "initial_loss": summary.get("initial_loss"),
        "initial_weights_sha256": summary.get("initial_weights_sha256"),
        "peak_memory_gib": summary.get("peak_memory_gib"),
        "reason": shorten(reason) if isinstance(reason, str) else None,
    }


def _checks(summary: Mapping[str, Any]) -> dict[str, Mapping[str, Any]]:
    """What was found of compiled arithmetic; release 0.2.0 left ``numerics``."""
    documents = {key: summary.get(key) for key in ("equivalence", "numerics")}
    return {key: one for key, one in documents.items() if isinstance(one, Mapping)}


def _section(summary: Mapping[str, Any], key: str, job: str) -> Mapping[str, Any]:
    """A mapping of a summary, empty where it is absent."""
    section = summary.get(key)
    if section is not None and not isinstance(section, Mapping):
        raise InvalidEvidenceError(
            f"{job}: {key} in its summary must map names to values, got {shown(section)}",
            fix="let the recorder write the summary",
        )
    return section or {}


def _compile_seconds(summary: Mapping[str, Any]) -> float | None:
    compiler = summary.get("compiler")
    value = compiler.get("compile_seconds") if isinstance(compiler, Mapping) else None
    return float(value) if isinstance(value, int | float) else None


# Whether what a job says of its own time can be true, by what the service measured from outside.
#
# A job's processes write their wall clock and the time of their steps themselves. Contradicted is
# only what no job can do; the service's own times hold start-up, downloads and uploads as well.
CODE = "clock_implausible"


class ImplausibleClockError(InvalidEvidenceError):
    """A job's times that cannot be true together."""

    code = CODE


WALL, STEP_SECONDS = "wall_seconds", "step_seconds"
# The service rounds to seconds and its machines' clocks may run apart (NTP: far below a second).
ROUNDING_SECONDS, ROUNDING = 60.0, 0.01
# Seconds: Linux counts a process's age in hundredths (proc(5), SC_CLK_TCK), and the recorder's own
# two calls around a step take microseconds.
SHORTEST_RUN, SHORTEST_STEP = 0.01, 1e-6
# The service's phase Training is the container's life: the run, what starts it, and what a script
# does first in a process of its own. Fifteen minutes and a hundred times the run are neither.
UNEXPLAINED_SECONDS, LEAST_SHARE = 900.0, 0.01


def check_run(described: Mapping[str, Any], wall: float | None, record: Mapping[str, Any]) -> None:
    """Raises InvalidEvidenceError for a wall clock, in seconds, that cannot be true.

    ``described`` is SageMaker's description of the job, ``record`` the run as evidence has it; what
    they lack is not compared.
    """
    if wall is None:
        return
    longest = _longest(described)
    phase = sum(filter(None, _training_phases(described)))
    # The run's steps by their sum and by the end of its loss curve.
    summed, curve = record.get("seconds"), record.get("loss_curve")
    stepping = max(
        float(summed) if isinstance(summed, int | float) else 0.0,
        float(curve[-1][2]) if curve else 0.0,
    )
    unexplained = phase - wall > UNEXPLAINED_SECONDS and wall < LEAST_SHARE * phase
    _refuse(described, WALL, {
        f"its run took {wall:g} s": wall < SHORTEST_RUN,
        f"its run took {wall:,.0f} s, and the job {longest:,.0f} s": wall > longest,
        f"its run took {wall:,.1f} s of the {phase:,.0f} s in which its container trained":
            unexplained,
        f"its run took {wall:,.1f} s, and the run's steps {stepping:,.1f} s":
            stepping > _with_room(wall),
    })  # fmt: skip


def check_steps(described: Mapping[str, Any], seconds: float, *, shortest: float) -> None:
    """As ``check_run`` for segments one after the other: all of their steps, and the shortest."""
    longest = _longest(described)
    _refuse(described, STEP_SECONDS, {
        f"its steps took {seconds:,.0f} s, and the job {longest:,.0f} s": seconds > longest,
        f"a step of it took {shortest:g} s": shortest < SHORTEST_STEP,
    })  # fmt: skip


def _refuse(described: Mapping[str, Any], field: str, contradictions: Mapping[str, bool]) -> None:
    for what, holds in contradictions.items():
        if holds:
            job = described.get("TrainingJobName", "the job")
            raise ImplausibleClockError(f"{job}: {field} cannot be true: {what}")


def trained_seconds(described: Mapping[str, Any]) -> float | None:
    """How long the job's container trained by the service's own clock, in seconds.

    None where it says nothing of it, and where the container began more than once: what lies
    between two beginnings is no run's.
    """
    phases = _training_phases(described)
    return phases[0] if len(phases) == 1 else None


def _longest(described: Mapping[str, Any]) -> float:
    """Seconds that a process of the job can have lived at most, infinite where unknown.

    ``TrainingTimeInSeconds`` is there once a job has ended. An interrupted spot job starts more
    than once: it has lived no longer than since it was created.
    """
    trained = described.get("TrainingTimeInSeconds")
    if not isinstance(trained, int | float):
        return math.inf
    spot = described.get("EnableManagedSpotTraining") is True
    began = "CreationTime" if spot else "TrainingStartTime"
    return _with_room(max(trained, _between(described, began, "TrainingEndTime") or 0.0))


def _with_room(seconds: float) -> float:
    return seconds * (1 + ROUNDING) + ROUNDING_SECONDS


def _training_phases(described: Mapping[str, Any]) -> list[float | None]:
    """Seconds of each of the service's phases Training, None where it lacks a time."""
    phases = described.get("SecondaryStatusTransitions") or ()
    return [
        _between(phase, "StartTime", "EndTime")
        for phase in phases
        if phase.get("Status") == "Training"
    ]


def _between(times: Mapping[str, Any], first: str, last: str) -> float | None:
    began, ended = times.get(first), times.get(last)
    if not isinstance(began, datetime) or not isinstance(ended, datetime):
        return None
    return (ended - began).total_seconds()


# What a production job left behind, as the ledger keeps it.

# Of a trial's full run only: the probation says itself which stage and order a run has, and the
# loss curve stays in the job's output.
NOT_KEPT = ("stage", "mode", "order", "loss_curve")
# Characters of a run in the ledger, whose entries may have 400 KB each; a recorder's has 5,000.
LARGEST_RUN = 100_000


def output_uri(described: Mapping[str, Any]) -> str:
    """Where SageMaker leaves a job's output data, by the job's own description."""
    place = str(described["OutputDataConfig"]["S3OutputPath"]).rstrip("/")
    return f"{place}/{described['TrainingJobName']}/output/output.tar.gz"


def kept_run(
    output: JobOutput, described: Mapping[str, Any], quality: Quality
) -> Mapping[str, Any]:
    """The run of a completed job.

    ``described`` is SageMaker's description of it. Raises InvalidEvidenceError for a run that the
    judge could not read: kept, it would make every later review fail.
    """
    job = str(described["TrainingJobName"])
    run = quality_run(output, job=job, quality=quality)
    check_run(described, run.wall_seconds, run.record)
    run = run.recorded_as(job_seconds=trained_seconds(described))
    kept = {key: value for key, value in run.record.items() if key not in NOT_KEPT}
    kept[METRIC_NAME] = quality.metric
    size = len(json.dumps(kept))
    if size > LARGEST_RUN:
        raise InvalidEvidenceError(
            f"its summary has {size} characters, and the ledger takes {LARGEST_RUN} of a run"
        )
    return kept
