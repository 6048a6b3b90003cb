"""Reads the evidence in a job's output tarball.

What a job left is its own word: it is taken by value (compilegate/domain/outside.py) and within
bounds, and whatever is wrong with it is an InvalidEvidenceError.
"""

from __future__ import annotations

import json
import logging
import tarfile
import zlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import IO, TYPE_CHECKING, Any, Protocol

from compilegate.adapters.output_archive import bound, files
from compilegate.domain.errors import InvalidEvidenceError, NotFoundError
from compilegate.domain.failures import COMPLETED
from compilegate.domain.job_output import (
    FULL,
    STEPS,
    SUMMARY,
    JobOutput,
    Steps,
    is_evidence,
    quality_run,
    speed_runs,
)
from compilegate.domain.judging.evidence import FullRun, SpeedRun
from compilegate.domain.outside import BROKEN, once, read_json, shorten
from compilegate.domain.production.attempts import JobEvidence
from compilegate.domain.production.job_evidence import kept_run, output_uri

if TYPE_CHECKING:
    from compilegate.adapters.s3_store import Fetched

# Bytes of one summary, of all of an output, of all its steps, and of a line. A recorder's summary
# has 20 KB, a speed job a hundred of them, and its steps stay below 100 MB
# (training/compilegate_runtime/evidence.py).
LARGEST_SUMMARY, LARGEST_SUMMARIES = 2**20, 2**22
LARGEST_STEPS, LONGEST_LINE = 2**29, 2**16
# Lines of all steps files: three times a recorder's, 64 MB as they are kept.
MOST_LINES = 2_000_000
# Lines of all segments, whose seconds are evidence one by one, and files of evidence: a speed job
# leaves some thousand lines and a hundred files.
MOST_SEGMENT_LINES = 200_000
MOST_EVIDENCE = 10_000
EVIDENCE = "files of evidence"
FULL_STEPS = FULL.removesuffix(SUMMARY) + STEPS
# What of a summary is read; the rest is a team's to look at, and not kept.
READ = frozenset({
    "schema", "seed", "finished", "compiler", "metrics", "outcomes", "fingerprint", "numerics",
    "initial_loss", "initial_weights_sha256", "final_weights_sha256", "final_start_sha256",
    "peak_memory_gib", "reason", "wall_seconds", "steps", "seconds", "full_run_steps",
})  # fmt: skip
logger = logging.getLogger("compilegate")


class Objects(Protocol):
    """Objects by their s3:// URIs, as S3Store has them."""

    def fetch(self, uri: str) -> Fetched:
        """The object; raises NotFoundError, or OverwrittenEvidenceError."""
        ...


@dataclass(frozen=True)
class StoredOutputs:
    """JobOutputs in S3."""

    objects: Objects

    def segments(self, uri: str, job: str) -> Sequence[tuple[str, SpeedRun]]:
        """Arm and run of every segment of a trial's speed job."""
        return tuple(speed_runs(self._left(uri), job=job))

    def full_run(self, uri: str, job: str, metric: str) -> FullRun:
        """A trial's full run."""
        return quality_run(self._left(uri), job=job, metric=metric)

    def production_run(self, described: Mapping[str, Any], metric: str) -> JobEvidence:
        """A production job's run, or why it cannot be read."""
        if described.get("TrainingJobStatus") != COMPLETED:
            return JobEvidence()
        try:
            return JobEvidence(kept_run(self._read(output_uri(described)), described, metric))
        except NotFoundError as error:
            return JobEvidence(problem=f"it left no evidence that can be read: {error}")
        except (InvalidEvidenceError, *BROKEN) as error:
            # Whatever it left, the run is recorded: an error that no reader foresaw is ours to see.
            if not isinstance(error, InvalidEvidenceError):
                logger.exception("no evidence of %s", described["TrainingJobName"])
            return JobEvidence(problem=f"its evidence cannot be read: {shorten(str(error))}")

    def _left(self, uri: str) -> JobOutput:
        """What a job left there, which may be nothing."""
        try:
            return self._read(uri)
        except NotFoundError:
            return JobOutput()

    def _read(self, uri: str) -> JobOutput:
        stored = self.objects.fetch(uri)
        return replace(read_output(stored.stream, stored.size), identity=stored.identity)


def read_output(stream: IO[bytes], size: int) -> JobOutput:
    """Read an output tarball of ``size`` bytes from front to back, keeping the evidence only.

    Raises InvalidEvidenceError for a tarball or a summary that is broken, and for an output, or
    a part of it, that is too large to be gone through.
    """
    try:
        return _read(stream, size)
    except (tarfile.TarError, EOFError, zlib.error, *BROKEN) as error:
        why = shorten(str(error)) or type(error).__name__
        raise InvalidEvidenceError(f"the job's output is broken: {why}") from error


def _read(stream: IO[bytes], size: int) -> JobOutput:
    summaries: dict[str, Mapping[str, Any]] = {}
    steps: dict[str, Steps] = {}
    summaries_size = steps_size = lines = 0
    for file in files(stream, size):
        folder, slash, name = file.name.rpartition("/")
        if name not in (SUMMARY, STEPS) or not is_evidence(f"{folder}{slash}{SUMMARY}"):
            continue
        if file.name in summaries or file.name in steps:
            raise InvalidEvidenceError(f"{file.name} occurs twice in the job's output")
        bound("the job's output", len(summaries) + len(steps) + 1, MOST_EVIDENCE, unit=EVIDENCE)
        if name == SUMMARY:
            summaries_size += file.size
            bound(file.name, file.size, LARGEST_SUMMARY)
            bound("all summaries", summaries_size, LARGEST_SUMMARIES)
            summaries[file.name] = _summary(file.name, file.content())
        else:
            steps_size += file.size
            bound(file.name, steps_size, LARGEST_STEPS)
            most = MOST_LINES if file.name == FULL_STEPS else MOST_SEGMENT_LINES
            steps[file.name] = read_steps(file.lines(LONGEST_LINE), most - lines)
            lines += len(steps[file.name].seconds)
    return JobOutput(summaries, steps)


def _summary(name: str, body: bytes) -> Mapping[str, Any]:
    summary = read_json(body, name)
    if not isinstance(summary, dict) or summary.get("schema") != 1:
        raise InvalidEvidenceError(f"{name} is not evidence of schema 1")
    return {key: value for key, value in summary.items() if key in READ}


def read_steps(lines: Iterable[bytes], most: int = MOST_LINES) -> Steps:
    """Step lines; one that is cut short, as by a killed job, or overlong ends them.

    Raises InvalidEvidenceError where there are more than ``most``, or a key occurs twice.
    """
    steps = Steps()
    for number, line in enumerate(lines, start=1):
        bound("all steps", number, most, unit="lines")
        try:
            steps.add(json.loads(line, object_pairs_hook=once))
        except (ValueError, TypeError, RecursionError):
            break
    return steps
