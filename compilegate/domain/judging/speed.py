"""The speed gate: full-run speed-up from replicated blocks.

The unit of replication is the block, in which every arm ran in a fresh process back to back
on one node, so that the node's own speed cancels. Steps inside a process are correlated and
never counted as replicates (Kalibera and Jones 2013, section 6). For block b

    L_b = ln[(O_B + N_B m_B + W) / (O_C + N_C m_C + W)]

with overhead O (compilation included), steady step m and steps N of a full run. Rare slow steps
add a time that a few hundred steps measure poorly, and that mostly no compiler shortens: the
same W is added to both arms, the mean over all segments of both of N x (mean - steady step).
The gate's bound is Student's t over blocks; statistics.py shares the error among looks. Where a
candidate's cluster has another price per hour, dollars per run are compared in place of hours:
the log of the price ratio is taken off every L. A cheaper cluster must not take longer, either.

An arm that cannot share the baseline's nodes has nodes of its own in every block. They differ
in speed, so that its blocks spread wider; the interval measures that.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from compilegate.domain.arithmetic import deviation, mean, median, ratio
from compilegate.domain.judging import statistics
from compilegate.domain.judging.evidence import Arm, Evidence, runs_apart
from compilegate.domain.judging.statistics import speed_level, speed_look_at
from compilegate.domain.workload.model import Policy

# Finds the steady state of one segment of step times, by the data and not by a fixed skip.
#
# The warm-up ends where a window of steps has come down into the band that the second half
# of the segment lives in (median and 1.4826 x median absolute deviation, the consistent
# estimate of a normal spread: Rousseeuw and Croux 1993). Whatever the warm-up cost above
# steady steps is overhead of the process (compilation most of all), paid once per run. Steps
# far above the baseline's median are late events (recompilations); how often they recur over
# a longer run is extrapolated as ln N / ln n, because new guards fail ever more rarely.

WINDOW = 15
MIN_WARM_UP = 20
MIN_STEPS = 40
SHORTEST_STEP = 1e-9  # seconds; no clock resolves less, so less was not measured
BAND = 3 * 1.4826
WINSORIZED_SHARE = 0.02
SPIKE_RATIO = 10.0


@dataclass(frozen=True)
class Segment:
    """What one process measured; seconds. ``late_seconds`` is part of the overhead.

    ``lost_step_seconds`` is what rare slow steps (waiting for data, stragglers) add to the mean
    step, which the robust steady step leaves out.
    """

    warm_up_steps: int
    steady_step_seconds: float
    overhead_seconds: float
    spikes: int
    late_seconds: float = 0.0
    lost_step_seconds: float = 0.0

    def full_run_seconds(self, steps: int) -> float:
        """Time of a run of ``steps`` steps by this segment's overhead and steady step."""
        return self.overhead_seconds + steps * self.steady_step_seconds

    def calm_run_seconds(self, steps: int) -> float:
        """The same, were the late events of this segment the only ones of the whole run."""
        return self.full_run_seconds(steps) - self.late_seconds


def analyse(
    step_seconds: Sequence[float],
    *,
    compile_seconds: float,
    baseline_median: float,
    full_run_steps: int,
) -> Segment | None:
    """The segment's steady state, or None when it is too short to have one.

    ``compile_seconds`` is what the job itself counted. It is part of the steps' own time
    where compilation happens inside a step, so the larger of both is the overhead.
    """
    n = len(step_seconds)
    usable = n >= MIN_STEPS and math.isfinite(math.fsum(step_seconds))
    if not usable or min(step_seconds) < SHORTEST_STEP:
        return None
    warm_up = _warm_up_steps(step_seconds)
    spike = SPIKE_RATIO * baseline_median
    tail = step_seconds[warm_up:]
    late_events = [x for x in tail if x > spike]
    calm = sorted(x for x in tail if x <= spike) if late_events else sorted(tail)
    if len(calm) < WINDOW:
        return None
    steady = _winsorized_mean(calm)
    recurrence = math.log(max(full_run_steps, 2)) / math.log(n)
    late = math.fsum(x - steady for x in late_events) * max(1.0, recurrence)
    early = math.fsum(step_seconds[:warm_up]) - warm_up * steady
    return Segment(
        warm_up_steps=warm_up,
        steady_step_seconds=steady,
        overhead_seconds=max(early, compile_seconds, 0.0) + late,
        spikes=len(late_events),
        late_seconds=late,
        lost_step_seconds=mean(calm) - steady,
    )


def _warm_up_steps(x: Sequence[float]) -> int:
    n = len(x)
    second_half = x[n // 2 :]
    middle = median(second_half)
    spread = median(abs(value - middle) for value in second_half)
    limit = middle + BAND * spread
    for start in range(MIN_WARM_UP, n // 2, 5):
        if median(x[start : start + WINDOW]) <= limit:
            return start
    return n // 2


def _winsorized_mean(ordered: Sequence[float]) -> float:
    """Mean of sorted values with the outermost shares pulled in to what lies next to them."""
    cut = int(len(ordered) * WINSORIZED_SHARE)
    inner = ordered[cut : len(ordered) - cut]
    return mean([*inner, *[inner[0]] * cut, *[inner[-1]] * cut])


# Spread of L over blocks assumed while there are too few blocks to measure it.
ASSUMED_BLOCK_SD = 0.03
# The same where the arms run on nodes of their own: identical GPUs differ by about 8 % (Sinha et
# al. 2022, arXiv 2208.11035), and two sets of them are compared.
ASSUMED_APART_SD = 0.08 * math.sqrt(2)
# Share of alpha at which a candidate that falls short is rejected; no promotion rests on it.
HOPELESS_SHARE = 0.2
CONFIDENCE = 0.95
# Blocks that agree to this are one measurement copied, not precision.
COPIED = 1e-9

# Segments[arm][block]; None where a segment is too short for a steady state.
Segments = Mapping[str, Mapping[int, Segment | None]]


class SpeedOutcome(StrEnum):
    """Outcomes of the speed gate for one candidate."""

    PASSED = "passed"
    TOO_SLOW = "too_slow"
    BELOW_PROMOTE = "below_promote"
    CRASHED = "crashed"
    MORE_BLOCKS = "more_blocks"
    INCONCLUSIVE = "inconclusive"


@dataclass(frozen=True)
class SpeedFinding:
    """Speed-up of one candidate as a ratio of full-run times; ``interval`` is two-sided.

    ``logs`` are the blocks' L_b; ``level`` is the error one look may spend; ``lower_bound``
    is the one-sided bound at that level, None before two blocks.
    """

    outcome: SpeedOutcome
    logs: tuple[float, ...]
    estimate: float | None
    interval: tuple[float, float] | None
    confidence: float
    level: float
    lower_bound: float | None
    reason: str

    @property
    def blocks(self) -> int:
        """Usable blocks."""
        return len(self.logs)


def analyse_segments(evidence: Evidence) -> Segments:
    """The steady state of every segment whose block has a baseline."""
    medians = {
        run.block: median(run.step_seconds)
        for run in evidence.baseline.speed
        if run.finished and run.step_seconds
    }
    return {arm.name: _segments(arm, medians) for arm in (*evidence.arms, *evidence.controls)}


def _segments(arm: Arm, medians: Mapping[int, float]) -> dict[int, Segment | None]:
    return {
        run.block: analyse(
            run.step_seconds,
            compile_seconds=run.compile_seconds,
            baseline_median=medians[run.block],
            full_run_steps=arm.full_run_steps or 1,
        )
        if run.finished and run.block in medians
        else None
        for run in arm.speed
    }


def judge_speed(
    candidate: Arm, evidence: Evidence, segments: Segments, *, candidates: int
) -> SpeedFinding:
    """Decide one candidate's speed on the blocks there are; ``candidates`` share the error."""
    level = speed_level(evidence.policy.alpha, candidates)
    logs = block_log_speedups(candidate, evidence, segments)
    if any(not run.finished for run in candidate.speed):
        return _finding(SpeedOutcome.CRASHED, logs, level, "the candidate crashed in a speed block")
    # Blocks that ran count against the limit even if they are unusable: they were paid for.
    ran = {run.block for run in candidate.speed} & {run.block for run in evidence.baseline.speed}
    unusable = len(ran) - len(logs)
    test = SpeedTest(
        evidence.policy, level, evidence.plan.max_blocks - unusable,
        assumed_spread(candidate, evidence),
    )  # fmt: skip
    calm = block_log_speedups(candidate, evidence, segments, calm=True)
    cost = log_price_ratio(candidate, evidence)
    outcome, reason = test.outcome(logs, calm, cost)
    if logs and cost:
        reason += f" (at {evidence.price_ratio(candidate):.2f} times the price per hour)"
    return _finding(outcome, logs, level, reason)


@dataclass(frozen=True)
class SpeedTest:
    """The test of one candidate's blocks; ``level`` is the error that one look may spend."""

    policy: Policy
    level: float
    max_blocks: int
    assumed_spread: float

    def outcome(
        self, logs: Sequence[float], calm: Sequence[float], cost: float = 0.0
    ) -> tuple[SpeedOutcome, str]:
        """What the blocks show, and why; ``cost`` is the log of the price ratio.

        ``calm`` are the same blocks without late events extrapolated (block_log_speedups).
        """
        if not logs:
            return self._without_blocks()
        if cost < 0 and best_case(logs, self.policy.alpha, calm, self.assumed_spread) < 0:
            text = (
                "it takes significantly longer than the baseline, which rules it out at any price"
            )
            return SpeedOutcome.TOO_SLOW, text
        outcome, reason = self._net([log - cost for log in logs], [log - cost for log in calm])
        return outcome, f"{reason} in dollars" if cost else reason

    def _without_blocks(self) -> tuple[SpeedOutcome, str]:
        if self.max_blocks > 0:
            return SpeedOutcome.MORE_BLOCKS, "no block measured yet"
        text = f"no block reached a steady state: segments are too short (under {MIN_STEPS} steps)"
        return SpeedOutcome.INCONCLUSIVE, text

    def _net(self, logs: Sequence[float], calm: Sequence[float]) -> tuple[SpeedOutcome, str]:
        policy, n, centre = self.policy, len(logs), mean(logs)
        reject, promote = math.log(policy.reject_speedup), math.log(policy.promote_speedup)
        required = f"the required {ratio(policy.promote_speedup)}"
        # Rejecting early spends no error: it only takes promotions away.
        if best_case(logs, policy.alpha, calm, self.assumed_spread) < promote:
            if math.exp(centre) < policy.reject_speedup:
                return SpeedOutcome.TOO_SLOW, f"significantly below {required}"
            return SpeedOutcome.BELOW_PROMOTE, f"faster, but significantly below {required}"
        look = speed_look_at(n)
        proven = bool(look) and lower_bound(logs[:look], self.level) > reject
        if proven and centre >= promote:
            return SpeedOutcome.PASSED, f"proven above {ratio(policy.reject_speedup)}"
        if n < self.max_blocks:
            blocks = "one block is" if n == 1 else f"{n} blocks are"
            return SpeedOutcome.MORE_BLOCKS, f"{blocks} not conclusive yet"
        if proven:
            return SpeedOutcome.INCONCLUSIVE, f"faster, but not clearly above {required}"
        return SpeedOutcome.INCONCLUSIVE, f"{n} blocks vary too much to be conclusive"


def log_price_ratio(candidate: Arm, evidence: Evidence) -> float:
    """ln of the candidate's price per hour over the baseline's, below 0 where it is cheaper.

    By so much its speed-up has to be larger, or may be smaller, for a run to cost the same.
    """
    return math.log(evidence.price_ratio(candidate))


def assumed_spread(candidate: Arm, evidence: Evidence) -> float:
    """Spread of L that one or two blocks are judged by."""
    apart = runs_apart(candidate, evidence.baseline)
    return ASSUMED_APART_SD if apart else ASSUMED_BLOCK_SD


def block_log_speedups(
    candidate: Arm,
    evidence: Evidence,
    segments: Segments,
    *,
    calm: bool = False,
    outside: tuple[float, float] = (0.0, 0.0),
) -> list[float]:
    """L_b of every block in which both arms have a steady state, in the order of blocks.

    With ``calm``, as if the candidate's late events in a block were the only ones of its whole
    run: one late recompilation, extrapolated, can make a single block of a good candidate look
    hopeless; whether they recur is for more blocks to say. ``outside`` are the baseline's and the
    candidate's seconds of a job outside its steps.
    """
    pairs = steady_pairs(candidate, evidence, segments)
    lost = lost_seconds(candidate, evidence, segments)
    n_base, n_mine = evidence.baseline.full_run_steps or 1, candidate.full_run_steps or 1
    mine_seconds = Segment.calm_run_seconds if calm else Segment.full_run_seconds
    return [
        math.log(
            (base.full_run_seconds(n_base) + lost + outside[0])
            / (mine_seconds(mine, n_mine) + lost + outside[1])
        )
        for base, mine in pairs
    ]


def steady_pairs(
    candidate: Arm, evidence: Evidence, segments: Segments
) -> list[tuple[Segment, Segment]]:
    """Baseline's and candidate's segment of every block in which both have a steady state."""
    ours, theirs = segments[candidate.name], segments[evidence.baseline.name]
    return [
        (base, mine)
        for block in sorted(ours.keys() & theirs.keys())
        if (mine := ours[block]) is not None and (base := theirs[block]) is not None
    ]


def lost_seconds(candidate: Arm, evidence: Evidence, segments: Segments) -> float:
    """W: what rare slow steps add to a whole run of either arm, the mean over both arms' blocks."""
    n_base, n_mine = evidence.baseline.full_run_steps or 1, candidate.full_run_steps or 1
    lost = [
        seconds
        for base, mine in steady_pairs(candidate, evidence, segments)
        for seconds in (n_base * base.lost_step_seconds, n_mine * mine.lost_step_seconds)
    ]
    return max(mean(lost), 0.0) if lost else 0.0


def best_case(
    logs: Sequence[float],
    alpha: float,
    calm: Sequence[float] = (),
    assumed: float = ASSUMED_BLOCK_SD,
) -> float:
    """The most that the mean of these blocks may still turn out to be; a logarithm.

    ``calm`` are the same blocks without late events extrapolated (block_log_speedups): one or
    two blocks are judged by them, and by the ``assumed`` spread.
    """
    n = len(logs)
    if n <= 2:
        return mean(calm or logs) + 3 * assumed / math.sqrt(n)
    return upper_bound(logs, alpha * HOPELESS_SHARE)


def lower_bound(logs: Sequence[float], level: float) -> float:
    """One-sided lower bound of the mean of two or more blocks, error ``level``; a logarithm."""
    n, spread = len(logs), deviation(logs)
    if spread < COPIED:
        return -math.inf
    return mean(logs) - statistics.quantile(1 - level, n - 1) * spread / math.sqrt(n)


def upper_bound(logs: Sequence[float], level: float) -> float:
    """One-sided upper bound of the mean of two or more blocks, error ``level``; a logarithm."""
    n = len(logs)
    half = statistics.quantile(1 - level, n - 1) * deviation(logs) / math.sqrt(n)
    return mean(logs) + half


def _finding(
    outcome: SpeedOutcome, logs: Sequence[float], level: float, reason: str
) -> SpeedFinding:
    estimate, interval, lower = math.exp(mean(logs)) if logs else None, None, -math.inf
    if len(logs) >= 2:
        n, centre = len(logs), mean(logs)
        half = statistics.quantile(0.5 + CONFIDENCE / 2, n - 1) * deviation(logs) / math.sqrt(n)
        interval = (math.exp(centre - half), math.exp(centre + half))
        lower = lower_bound(logs, level)
    return SpeedFinding(
        outcome=outcome,
        logs=tuple(logs),
        estimate=estimate,
        interval=interval,
        confidence=CONFIDENCE,
        level=level,
        lower_bound=math.exp(lower) if math.isfinite(lower) else None,
        reason=reason,
    )
