"""Reads a job's description, the evidence in its output tarball, and the runs that it is.

A full run writes a line per step, millions of them; each is kept as four numbers.
"""

from __future__ import annotations

import json
import math
import re
import tarfile
import zlib
from array import array
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from gzip import BadGzipFile
from typing import IO, Any

from compilegate.domain.errors import InvalidEvidenceError, NotFoundError, shown
from compilegate.domain.judging.evidence import FullRun, SpeedRun
from compilegate.domain.judging.evidence_file import read_full_run, read_speed_run
from compilegate.domain.judging.outcomes import outcomes_document
from compilegate.ports import TrainingJobs

BLOCK = re.compile(r"evidence/block-(\d+)/([a-z0-9-]+)/summary\.json")
COLD = re.compile(r"evidence/cold/([a-z0-9-]+)/summary\.json")
FULL = "evidence/summary.json"
CURVE_POINTS = 200
FOLDER = "evidence/"
SUMMARY = "summary.json"
STEPS = "steps.jsonl"
# Bytes. The reader has five minutes and a gigabyte of memory: a stream of this size goes
# through in less than two minutes, and steps of this size take a third of the memory.
LARGEST_OUTPUT, LARGEST_UNPACKED = 4 * 2**30, 16 * 2**30
LARGEST_SUMMARY, LARGEST_STEPS, LONGEST_LINE = 2**20, 2**29, 2**16


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
    steps_with_samples: int = 0

    def add(self, line: Mapping[str, Any]) -> None:
        """Add one line; raises KeyError, TypeError or ValueError for one that is not a step."""
        loss, samples = line.get("loss"), line.get("samples")
        seconds, number, count = float(line["seconds"]), float(line["step"]), line.get("steps", 1)
        self.counts.append(count)
        self.seconds.append(seconds)
        self.numbers.append(number)
        self.losses.append(math.nan if loss is None else float(loss))
        if samples:
            self.samples += float(samples) * count
            self.steps_with_samples += count

    @property
    def samples_per_step(self) -> float | None:
        """Mean over the steps that recorded it, None when none did."""
        return self.samples / self.steps_with_samples if self.steps_with_samples else None

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


@dataclass(frozen=True)
class JobOutput:
    """What one job left: summaries and steps by file name."""

    summaries: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    steps: Mapping[str, Steps] = field(default_factory=dict)

    def summary(self, name: str) -> Mapping[str, Any]:
        """The summary of that name; raises InvalidEvidenceError when it is not there."""
        if name not in self.summaries:
            raise InvalidEvidenceError(f"{name} is missing from the job's output")
        return self.summaries[name]

    def steps_beside(self, summary: str) -> Steps:
        """The steps recorded beside a summary, none when the job was killed before the first."""
        return self.steps.get(summary.removesuffix(SUMMARY) + STEPS) or Steps()


def tags_of(job: str, jobs: TrainingJobs) -> Mapping[str, str]:
    """A job's tags, empty for one that is gone."""
    try:
        return jobs.tags(job)
    except NotFoundError:
        return {}


def describe(job: str, jobs: TrainingJobs) -> Mapping[str, Any]:
    """SageMaker's description of a job, empty where it never saw it."""
    try:
        return jobs.describe(job)
    except NotFoundError:
        return {}


def read_output(stream: IO[bytes], size: int) -> JobOutput:
    """Read an output tarball of ``size`` bytes from front to back, keeping the evidence only.

    Raises InvalidEvidenceError for a tarball or a summary that is broken, and for an output, or
    a part of it, that is too large to be gone through.
    """
    _bound("the job's output", size, LARGEST_OUTPUT)
    try:
        return _read(stream)
    except (tarfile.TarError, EOFError, BadGzipFile, zlib.error) as error:
        raise InvalidEvidenceError(f"the job's output is broken: {error}") from error


def _read(stream: IO[bytes]) -> JobOutput:
    summaries: dict[str, Mapping[str, Any]] = {}
    steps: dict[str, Steps] = {}
    unpacked = 0
    with tarfile.open(fileobj=stream, mode="r|*") as tar:
        for member in tar:
            name = member.name.removeprefix("./")
            unpacked += member.size
            _bound("the job's output, unpacked,", unpacked, LARGEST_UNPACKED)
            own = member.isfile() and name.startswith(FOLDER)
            handle = tar.extractfile(member) if own else None
            if handle is None:
                continue
            if name.endswith(SUMMARY):
                _bound(name, member.size, LARGEST_SUMMARY)
                summaries[name] = _summary(name, handle.read())
            elif name.endswith(STEPS):
                _bound(name, member.size, LARGEST_STEPS)
                steps[name] = read_steps(_lines(handle))
    return JobOutput(summaries, steps)


def _bound(what: str, size: int, most: int) -> None:
    if size > most:
        raise InvalidEvidenceError(
            f"{what} has {size} bytes, and {most} can be gone through. Fix: write checkpoints to "
            "/opt/ml/checkpoints and models to SM_MODEL_DIR, not to the output folder"
        )


def _lines(handle: IO[bytes]) -> Iterator[bytes]:
    """Its lines; an overlong one is cut, so that it is not read as a step and ends them."""
    return iter(lambda: handle.readline(LONGEST_LINE), b"")


def _summary(name: str, body: bytes) -> Mapping[str, Any]:
    try:
        summary = json.loads(body)
    except (ValueError, RecursionError) as error:
        raise InvalidEvidenceError(f"{name} is broken: {error}") from error
    if not isinstance(summary, dict) or summary.get("schema") != 1:
        raise InvalidEvidenceError(f"{name} is not evidence of schema 1")
    return summary


def read_steps(lines: Iterable[bytes]) -> Steps:
    """Step lines; a line cut short by a killed job ends them."""
    steps = Steps()
    for line in lines:
        try:
            steps.add(json.loads(line))
        except (ValueError, TypeError, KeyError, AttributeError):
            break
    return steps


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
            "stage": "speed",
            "block": block,
            "node": job,
            "step_seconds": steps.seconds.tolist(),
            "samples_per_step": steps.samples_per_step,
            "compile_seconds": _compile_seconds(summary) or 0.0,
            "cold_compile_seconds": _compile_seconds(cold.get(arm, {})),
            **_numerics(cold.get(arm, {})),
            "full_run_steps": summary.get("full_run_steps"),
        }
        yield arm, read_speed_run(record, job)


def _numerics(cold: Mapping[str, Any]) -> dict[str, Any]:
    """The numerical check made while the cache was filled; nothing where there was none."""
    numerics = cold.get("numerics")
    return {"numerics": numerics} if isinstance(numerics, Mapping) else {}


def quality_run(output: JobOutput, *, job: str, metric: str) -> FullRun:
    """The run of a full job that completed; its position in time is given when it is recorded."""
    summary = output.summary(FULL)
    metrics = _section(summary, "metrics", job)
    finished = summary.get("finished") is True
    if finished and metrics.get(metric) is None:
        recorded = ", ".join(sorted(metrics)) or "nothing"
        raise InvalidEvidenceError(
            f"{job} finished without recording quality.metric {metric!r}; it recorded {recorded}. "
            "Fix: name a metric that the training script records"
        )
    record = {
        **_common(summary, job),
        "stage": "quality",
        "mode": "shadow",
        "order": 0,
        "seed": summary.get("seed"),
        "metric": metrics.get(metric) if finished else None,
        "wall_seconds": summary.get("wall_seconds"),
        "steps": summary.get("steps"),
        "seconds": summary.get("seconds"),
        "compile_seconds": _compile_seconds(summary),
        "loss_curve": output.steps_beside(FULL).loss_curve(),
        "final_weights_sha256": summary.get("final_weights_sha256"),
        "final_start_sha256": summary.get("final_start_sha256"),
        **_outcomes(summary, metric),
    }
    return read_full_run(record, job)


def _outcomes(summary: Mapping[str, Any], metric: str) -> dict[str, Any]:
    """The outcomes per example behind the metric; nothing where they are missing or broken."""
    recorded = summary.get("outcomes")
    kept = outcomes_document(recorded.get(metric)) if isinstance(recorded, Mapping) else None
    return {} if kept is None else {"outcomes": kept}


def _common(summary: Mapping[str, Any], job: str) -> dict[str, Any]:
    compiler = _section(summary, "compiler", job)
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
        "reason": summary.get("reason"),
    }


def _section(summary: Mapping[str, Any], key: str, job: str) -> Mapping[str, Any]:
    """A mapping of a summary, empty where it is absent."""
    section = summary.get(key)
    if section is not None and not isinstance(section, Mapping):
        raise InvalidEvidenceError(
            f"{job}: {key} in its summary must map names to values, got {shown(section)}. "
            "Fix: let the recorder write the summary"
        )
    return section or {}


def _compile_seconds(summary: Mapping[str, Any]) -> float | None:
    compiler = summary.get("compiler")
    value = compiler.get("compile_seconds") if isinstance(compiler, Mapping) else None
    return float(value) if isinstance(value, int | float) else None
