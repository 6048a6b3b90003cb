"""The evidence as the charts need it, through the same steady-state analysis as the judge's."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from compilegate.domain.errors import InvalidEvidenceError
from compilegate.domain.judging.evidence import Arm, Evidence, FullRun, SpeedRun, runs_apart
from compilegate.domain.judging.evidence_file import read_evidence
from compilegate.domain.judging.speed import Segments, analyse_segments
from compilegate.domain.judging.steady_state import Segment


@dataclass(frozen=True)
class Block:
    """One arm's segment in one block; ``segment`` is None where it has no steady state."""

    run: SpeedRun
    segment: Segment | None

    @property
    def samples_per_second(self) -> float | None:
        """Throughput of the steady state."""
        if self.segment is None or not self.run.samples_per_step:
            return None
        return self.run.samples_per_step / self.segment.steady_step_seconds


@dataclass(frozen=True)
class MeasuredArm:
    """One arm with its blocks and full runs."""

    arm: Arm
    blocks: Mapping[int, Block]

    @property
    def name(self) -> str:
        """The arm's name."""
        return self.arm.name

    @property
    def quality(self) -> Sequence[FullRun]:
        """Full runs, oldest first."""
        return self.arm.quality

    @property
    def steady(self) -> list[Segment]:
        """The segments that have a steady state."""
        return [block.segment for block in self.blocks.values() if block.segment]


@dataclass(frozen=True)
class Measured:
    """All arms, the baseline first, and the chosen candidate next."""

    evidence: Evidence
    arms: Sequence[MeasuredArm]
    candidate: str | None

    @property
    def baseline(self) -> MeasuredArm:
        """The arm that everything is compared with."""
        return self.arms[0]

    @property
    def candidates(self) -> Sequence[MeasuredArm]:
        """Every other arm."""
        return self.arms[1:]

    @property
    def lead(self) -> MeasuredArm:
        """The candidate that the decision is about, else the first."""
        return self.arms[1]

    def speedups(self, arm: MeasuredArm) -> dict[int, float]:
        """Full-run speed-up of ``arm`` in every block that both arms completed."""
        found = {}
        for number, block in arm.blocks.items():
            base = self.baseline.blocks.get(number)
            if base and base.segment and block.segment:
                ours = block.segment.full_run_seconds(arm.arm.full_run_steps or 1)
                theirs = base.segment.full_run_seconds(self.baseline.arm.full_run_steps or 1)
                found[number] = theirs / ours
        return found

    @property
    def price_ratio(self) -> float:
        """The lead's price per hour over the baseline's; 1 where either is unknown."""
        return self.evidence.price_ratio(self.lead.arm)

    @property
    def apart(self) -> bool:
        """Whether the lead's blocks ran on nodes of their own."""
        return runs_apart(self.lead.arm, self.baseline.arm)

    @property
    def has_speed(self) -> bool:
        """Whether any block was measured."""
        return any(arm.blocks for arm in self.arms)


def measure(document: Mapping[str, Any] | None, candidate: str | None) -> Measured | str:
    """The measured arms, or a sentence that says why there are none."""
    if document is None:
        return "No job was started, so nothing was measured."
    try:
        evidence = read_evidence(document)
    except InvalidEvidenceError as error:
        return f"The evidence could not be read: {error}"
    others = sorted(evidence.candidates, key=lambda arm: arm.name != candidate)
    segments = _segments(evidence)
    arms = [_measured(arm, segments) for arm in (evidence.baseline, *others)]
    return Measured(evidence, arms, candidate)


def _segments(evidence: Evidence) -> Segments:
    """A broken segment must not take the whole report with it: the verdict says what is wrong."""
    steps = (x for arm in evidence.arms for run in arm.speed for x in run.step_seconds)
    if all(math.isfinite(x) and x > 0 for x in steps):
        return analyse_segments(evidence)
    return {arm.name: {} for arm in (*evidence.arms, *evidence.controls)}


def _measured(arm: Arm, segments: Segments) -> MeasuredArm:
    steady = segments[arm.name]
    return MeasuredArm(arm, {run.block: Block(run, steady.get(run.block)) for run in arm.speed})
