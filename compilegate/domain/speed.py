"""The speed gate: full-run speed-up from replicated blocks.

The unit of replication is the block, in which every arm ran in a fresh process back to back
on one node, so that the node's own speed cancels. Steps inside a process are correlated and
never counted as replicates (Kalibera and Jones 2013). For block b

    L_b = ln[(O_B + N_B m_B) / (O_C + N_C m_C)]

with overhead O (compilation included), steady step m and steps N of a full run; the interval
is Student's t over blocks. Looks at 3, 4 and 6 blocks share the error by Bonferroni.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from compilegate.domain import student_t
from compilegate.domain.evidence import Arm, SpeedRun
from compilegate.domain.steady_state import MIN_STEPS, Segment, analyse
from compilegate.domain.workload import Policy

LOOKS = (3, 4, 6)
# Spread of L over blocks assumed while there are too few blocks to measure it.
ASSUMED_BLOCK_SD = 0.03


class SpeedOutcome(StrEnum):
    """What the speed gate says of one candidate."""

    PASSED = "passed"
    TOO_SLOW = "too_slow"
    BELOW_PROMOTE = "below_promote"
    CRASHED = "crashed"
    MORE_BLOCKS = "more_blocks"
    INCONCLUSIVE = "inconclusive"


@dataclass(frozen=True)
class SpeedFinding:
    """Speed-up of one candidate as a ratio of full-run times; interval is two-sided."""

    outcome: SpeedOutcome
    blocks: int
    estimate: float | None
    interval: tuple[float, float] | None
    confidence: float
    lower_bound: float | None
    reason: str


def segments(arm: Arm, baseline: Arm) -> dict[int, Segment | None]:
    """Each block's steady state of one arm; None where a segment is too short."""
    medians = _medians(baseline.speed)
    return {
        run.block: analyse(
            run.step_seconds,
            compile_seconds=run.compile_seconds,
            baseline_median=medians[run.block],
            full_run_steps=arm.full_run_steps,
        )
        if run.finished and run.block in medians
        else None
        for run in arm.speed
    }


def judge_speed(
    candidate: Arm, baseline: Arm, policy: Policy, *, candidates: int, max_blocks: int
) -> SpeedFinding:
    """Decide one candidate's speed on the blocks there are; ``candidates`` share the error."""
    level = policy.alpha / (len(LOOKS) * candidates)
    if any(not run.finished for run in candidate.speed):
        return _finding(SpeedOutcome.CRASHED, [], level, "the candidate crashed in a speed block")
    logs = block_log_speedups(candidate, baseline)
    # Blocks that ran count against the limit even if they are of no use: they were paid for.
    ran = len({run.block for run in candidate.speed} & {run.block for run in baseline.speed})
    outcome, reason = _outcome(logs, policy, level, max_blocks - (ran - len(logs)))
    return _finding(outcome, logs, level, reason)


def block_log_speedups(candidate: Arm, baseline: Arm) -> list[float]:
    """L_b of every block in which both arms have a steady state."""
    ours, theirs = segments(candidate, baseline), segments(baseline, baseline)
    return [
        math.log(
            base.full_run_seconds(baseline.full_run_steps)
            / mine.full_run_seconds(candidate.full_run_steps)
        )
        for block in sorted(ours.keys() & theirs.keys())
        if (mine := ours[block]) is not None and (base := theirs[block]) is not None
    ]


def _medians(runs: tuple[SpeedRun, ...]) -> Mapping[int, float]:
    return {
        run.block: statistics.median(run.step_seconds)
        for run in runs
        if run.finished and run.step_seconds
    }


def _outcome(
    logs: list[float], policy: Policy, level: float, max_blocks: int
) -> tuple[SpeedOutcome, str]:
    if not logs:
        return _nothing_usable(max_blocks)
    n, reject, mean = len(logs), math.log(policy.reject_speedup), statistics.fmean(logs)
    if _is_hopeless(logs, mean, reject, policy.alpha):
        return (
            SpeedOutcome.TOO_SLOW,
            f"{math.exp(mean):.2f}x is below {policy.reject_speedup:.2f}x beyond chance",
        )
    proven = n in LOOKS and _lower(logs, level) > reject
    if proven and mean >= math.log(policy.promote_speedup):
        return SpeedOutcome.PASSED, f"proven above {policy.reject_speedup:.2f}x"
    if n < max_blocks:
        return SpeedOutcome.MORE_BLOCKS, f"{n} blocks do not settle it yet"
    if proven:
        return (
            SpeedOutcome.BELOW_PROMOTE,
            f"faster, yet {math.exp(mean):.2f}x is below the {policy.promote_speedup:.2f}x asked",
        )
    return SpeedOutcome.INCONCLUSIVE, f"{n} blocks vary too much to prove either side"


def _nothing_usable(max_blocks: int) -> tuple[SpeedOutcome, str]:
    if max_blocks > 0:
        return SpeedOutcome.MORE_BLOCKS, "no block measured yet"
    reason = f"no block reached a steady state: segments are too short (under {MIN_STEPS} steps)"
    return SpeedOutcome.INCONCLUSIVE, reason


def _is_hopeless(logs: list[float], mean: float, reject: float, alpha: float) -> bool:
    n = len(logs)
    if n <= 2:
        return mean + 3 * ASSUMED_BLOCK_SD / math.sqrt(n) < reject
    margin = student_t.quantile(1 - alpha / 2, n - 1) * statistics.stdev(logs) / math.sqrt(n)
    return mean + margin < reject


def _lower(logs: list[float], level: float) -> float:
    n = len(logs)
    spread = statistics.stdev(logs)
    if spread == 0:  # identical blocks are a copied measurement, not precision
        return -math.inf
    return statistics.fmean(logs) - student_t.quantile(1 - level, n - 1) * spread / math.sqrt(n)


def _finding(outcome: SpeedOutcome, logs: list[float], level: float, reason: str) -> SpeedFinding:
    n, confidence = len(logs), 0.95
    if n < 2:
        estimate = math.exp(logs[0]) if logs else None
        return SpeedFinding(outcome, n, estimate, None, confidence, None, reason)
    mean, error = statistics.fmean(logs), statistics.stdev(logs) / math.sqrt(n)
    half = student_t.quantile(0.5 + confidence / 2, n - 1) * error
    lower = _lower(logs, level)
    return SpeedFinding(
        outcome=outcome,
        blocks=n,
        estimate=math.exp(mean),
        interval=(math.exp(mean - half), math.exp(mean + half)),
        confidence=confidence,
        lower_bound=math.exp(lower) if math.isfinite(lower) else None,
        reason=reason,
    )
