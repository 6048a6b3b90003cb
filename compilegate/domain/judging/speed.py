"""The speed gate: full-run speed-up from replicated blocks.

The unit of replication is the block, in which every arm ran in a fresh process back to back
on one node, so that the node's own speed cancels. Steps inside a process are correlated and
never counted as replicates (Kalibera and Jones 2013, section 6). For block b

    L_b = ln[(O_B + N_B m_B + W) / (O_C + N_C m_C + W)]

with overhead O (compilation included), steady step m and steps N of a full run. Rare slow steps
add a time that a few hundred steps measure poorly, and that mostly no compiler shortens: the
same W is added to both arms, the mean over all segments of both of N x (mean - steady step).
The gate's bound is Student's t over blocks; its three looks share the error evenly (Bonferroni).
Where a candidate's cluster has another price per hour, dollars per run are compared in place of
hours: the log of the price ratio is taken off every L. A cheaper cluster must not take longer,
either.

An arm that cannot share the baseline's nodes has nodes of its own in every block. They differ
in speed, so that its blocks spread wider; the interval measures that.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from compilegate.domain.arithmetic import deviation, mean, ratio
from compilegate.domain.decision import Interval
from compilegate.domain.judging.evidence import Arm, Evidence, runs_apart
from compilegate.domain.judging.steady_state import MIN_STEPS
from compilegate.domain.judging.student import CONFIDENCE, half_width, interval_of
from compilegate.domain.judging.target import timed_to_target, to_target
from compilegate.domain.spreads import BLOCK_SD
from compilegate.domain.workload.model import Policy

# Numbers of blocks at which it looks.
SPEED_LOOKS = (3, 4, 6)
# Spread of L over blocks assumed where the arms run on nodes of their own: identical GPUs differ by
# about 8 % (Sinha et al. 2022, arXiv 2208.11035), and two sets of them are compared.
ASSUMED_APART_SD = 0.08 * math.sqrt(2)
# Share of alpha at which a candidate that falls short is rejected; no promotion rests on it.
HOPELESS_SHARE = 0.2
# Blocks that agree to this are one measurement copied, not precision.
COPIED = 1e-9


class SpeedOutcome(StrEnum):
    """Outcomes of the speed gate for one candidate."""

    PASSED = "passed"
    TOO_SLOW = "too_slow"
    BELOW_PROMOTE = "below_promote"
    CRASHED = "crashed"
    MORE_BLOCKS = "more_blocks"
    OTHER_STEPS = "other_steps"
    INCONCLUSIVE = "inconclusive"


@dataclass(frozen=True)
class SpeedFinding:
    """What the gate says; ``logs`` are the blocks' L_b, ``level`` the error one look may spend."""

    outcome: SpeedOutcome
    logs: tuple[float, ...]
    level: float
    reason: str
    confidence: float = CONFIDENCE

    @property
    def blocks(self) -> int:
        """Usable blocks."""
        return len(self.logs)

    @property
    def estimate(self) -> float | None:
        """Speed-up as a ratio of full-run times."""
        return math.exp(mean(self.logs)) if self.logs else None

    @property
    def interval(self) -> Interval | None:
        """Its two-sided interval, None before two blocks."""
        ends = interval_of(self.logs)
        return None if ends is None else (math.exp(ends[0]), math.exp(ends[1]))

    @property
    def lower_bound(self) -> float | None:
        """The one-sided bound at ``level``, None before two blocks."""
        lower = lower_bound(self.logs, self.level) if self.blocks >= 2 else -math.inf
        return math.exp(lower) if math.isfinite(lower) else None


def judge_speed(candidate: Arm, evidence: Evidence) -> SpeedFinding:
    """Decide one candidate's speed on the blocks there are; all candidates share the error."""
    level = evidence.policy.alpha / (len(SPEED_LOOKS) * evidence.sharing)
    logs = block_log_speedups(candidate, evidence)
    if any(not run.finished for run in candidate.speed):
        reason = "the candidate crashed in a speed block"
        return SpeedFinding(SpeedOutcome.CRASHED, tuple(logs), level, reason)
    # Blocks that ran count against the limit even if they are unusable: they were paid for.
    ran = {run.block for run in candidate.speed} & {run.block for run in evidence.baseline.speed}
    if ran and timed_to_target(candidate, evidence):
        reason = f"compared in time to {to_target(evidence)}, because its steps differ"
        return SpeedFinding(SpeedOutcome.OTHER_STEPS, (), level, reason)
    most = evidence.plan.max_blocks - (len(ran) - len(logs))
    test = SpeedTest(evidence.policy, level, most, assumed_spread(candidate, evidence))
    calm = block_log_speedups(candidate, evidence, calm=True)
    cost = log_price_ratio(candidate, evidence)
    outcome, reason = test.outcome(logs, calm, cost)
    if logs and cost:
        reason += f" (at {evidence.price_ratio(candidate):.2f} times the price per hour)"
    return SpeedFinding(outcome, tuple(logs), level, reason)


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
        if not logs and self.max_blocks > 0:
            return SpeedOutcome.MORE_BLOCKS, "no block measured yet"
        if not logs:
            text = f"segments are too short (under {MIN_STEPS} steps)"
            return SpeedOutcome.INCONCLUSIVE, f"no block reached a steady state: {text}"
        if cost < 0 and best_case(logs, self.policy.alpha, calm, self.assumed_spread) < 0:
            text = "significantly longer than the baseline, which rules it out at any price"
            return SpeedOutcome.TOO_SLOW, f"it takes {text}"
        outcome, reason = self._net([log - cost for log in logs], [log - cost for log in calm])
        return outcome, f"{reason} in dollars" if cost else reason

    def _net(self, logs: Sequence[float], calm: Sequence[float]) -> tuple[SpeedOutcome, str]:
        policy, n, centre = self.policy, len(logs), mean(logs)
        least, goal = map(math.log, (policy.min_proven_speedup, policy.min_mean_speedup))
        required = f"the required {ratio(policy.min_mean_speedup)}"
        # Rejecting early spends no error: it only takes promotions away.
        if best_case(logs, policy.alpha, calm, self.assumed_spread) < goal:
            if math.exp(centre) < policy.min_proven_speedup:
                return SpeedOutcome.TOO_SLOW, f"significantly below {required}"
            return SpeedOutcome.BELOW_PROMOTE, f"faster, but significantly below {required}"
        look = speed_look_at(n)
        proven = look is not None and lower_bound(logs[:look], self.level) > least
        if proven and centre >= goal:
            return SpeedOutcome.PASSED, f"proven above {ratio(policy.min_proven_speedup)}"
        if n < self.max_blocks:
            blocks = "one block is" if n == 1 else f"{n} blocks are"
            return SpeedOutcome.MORE_BLOCKS, f"{blocks} not conclusive yet"
        if proven:
            return SpeedOutcome.INCONCLUSIVE, f"faster, but not clearly above {required}"
        return SpeedOutcome.INCONCLUSIVE, f"{n} blocks vary too much to be conclusive"


def speed_look_at(blocks: int) -> int | None:
    """The last look of the speed gate that so many blocks have reached, None before the first."""
    return max((look for look in SPEED_LOOKS if look <= blocks), default=None)


def log_price_ratio(candidate: Arm, evidence: Evidence) -> float:
    """ln of the candidate's price per hour over the baseline's, below 0 where it is cheaper.

    By so much its speed-up has to be larger, or may be smaller, for a run to cost the same.
    """
    return math.log(evidence.price_ratio(candidate))


def assumed_spread(candidate: Arm, evidence: Evidence) -> float:
    """Spread of L that one or two blocks are judged by."""
    apart = runs_apart(candidate, evidence.baseline)
    return ASSUMED_APART_SD if apart else BLOCK_SD


def block_log_speedups(
    candidate: Arm,
    evidence: Evidence,
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
    lost = lost_seconds(candidate, evidence)
    n_base, n_mine = evidence.baseline.steps_or_one, candidate.steps_or_one
    return [
        math.log(
            (base.full_run_seconds(n_base) + lost + outside[0])
            / (mine.full_run_seconds(n_mine, calm=calm) + lost + outside[1])
        )
        for base, mine in evidence.steady_pairs(candidate)
    ]


def lost_seconds(candidate: Arm, evidence: Evidence) -> float:
    """W: what rare slow steps add to a whole run of either arm, the mean over both arms' blocks."""
    lost = [
        steps * segment.lost_step_seconds
        for pair in evidence.steady_pairs(candidate)
        for steps, segment in zip(
            (evidence.baseline.steps_or_one, candidate.steps_or_one), pair, strict=True
        )
    ]
    return max(mean(lost), 0.0) if lost else 0.0


def best_case(
    logs: Sequence[float],
    alpha: float,
    calm: Sequence[float] = (),
    assumed: float = BLOCK_SD,
) -> float:
    """The most that the mean of these blocks may still turn out to be; a logarithm.

    ``calm`` are the same blocks without late events extrapolated (block_log_speedups): one or
    two blocks are judged by them, and by the ``assumed`` spread.
    """
    n = len(logs)
    if n <= 2:
        return mean(calm or logs) + 3 * assumed / math.sqrt(n)
    return mean(logs) + half_width(logs, alpha * HOPELESS_SHARE)


def lower_bound(logs: Sequence[float], level: float) -> float:
    """One-sided lower bound of the mean of two or more blocks, error ``level``; a logarithm."""
    return -math.inf if deviation(logs) < COPIED else mean(logs) - half_width(logs, level)
