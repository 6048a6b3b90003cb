"""A decision's reasons as people read them: a failure comes first, with its cause and what helps.

The judge's words stay as recorded; what the jobs said of a failure stands behind them. Where whole
jobs speak against a candidate whose short blocks were fast, the blocks' figure is called theirs;
so is what they rule out, which the whole job's interval beside it may contain.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType

from compilegate.domain.arithmetic import ratio
from compilegate.domain.claims import ON
from compilegate.domain.decision import JUDGE_VERSION, SIGNS, Decision, Speedup
from compilegate.domain.errors import InvalidEvidenceError
from compilegate.domain.formats import MINUS, plural
from compilegate.domain.judging.evidence import PROBATION, Arm, Evidence, FullRun, SpeedRun
from compilegate.domain.judging.monitor import Look, Outcome
from compilegate.domain.judging.probation import replay_probation
from compilegate.domain.judging.validity import is_unapplied
from compilegate.domain.reasons import Reason, advice
from compilegate.domain.trial.silent_arms import MISSING
from compilegate.domain.workload.model import BASELINE
from compilegate.report import statements
from compilegate.report.measured import compiler_proof, reason_of

OF_SPEED = ("speedup_proven", "full_run_disagrees")
RULED_OUT = "the short blocks rule out an average of "
# Pieces of recorded messages, and how they are read.
READ_AS = (
    (", significantly below the required ", f"; {RULED_OUT}"),
    ("but significantly below the required ", f"but {RULED_OUT}"),
    ("at a difference of -", f"at a difference of {MINUS}"),
)
CRASHED = ("candidate_crashed", "baseline_failed")
WAITS_FOR_BLOCKS = "speed_unsettled"
NOT_APPLIED = "treatment_not_applied"
FAILURES = frozenset({
    *CRASHED, NOT_APPLIED, "arms_differ", "arms_continue_each_other", "numerics_wrong",
    "runs_repeated", "unequal_initial_loss", "unequal_initial_weights", "unequal_work",
    "evaluation_sets_differ",
    "evidence_invalid", "evidence_missing", "clock_implausible", "evidence_overwritten",
    "request_refused", "quota_too_low", "flag_too_large",
})  # fmt: skip


def shown_reasons(
    decision: Decision,
    evidence: Evidence | None,
    *,
    silent: Mapping[str, Reason] = MappingProxyType({}),
) -> tuple[Reason, ...]:
    """The deciding reason first, then failures, then the others, in the judge's order.

    A candidate of ``silent`` was given up, for the reason that stands there: the judge, who saw no
    blocks of it, waited for them.
    """
    ended = {reason.arm for reason in decision.reasons if reason.code == MISSING}
    given_up = {arm: reason for arm, reason in silent.items() if arm not in ended}
    reasons = [
        given_up.get(str(reason.arm), reason) if reason.code == WAITS_FOR_BLOCKS else reason
        for reason in decision.reasons
    ]
    shown = [_shown(reason, decision, evidence) for reason in reasons]
    first, others = shown[:1], shown[1:]
    return (*first, *sorted(others, key=lambda reason: reason.code not in FAILURES))


def _shown(reason: Reason, decision: Decision, evidence: Evidence | None) -> Reason:
    if reason.code in OF_SPEED and decision.verdict not in ON and reason.arm == decision.candidate:
        return _of_speed(reason, decision.speedup, evidence)
    if reason.code not in FAILURES:
        return replace(reason, message=_as_read(reason.message))
    cause = _cause(reason, evidence) if evidence else ""
    message = f"{reason.message.rstrip('.')} ({cause})" if cause else reason.message
    return replace(reason, message=message, fix=reason.fix or advice(reason.code))


def _as_read(message: str) -> str:
    for recorded, read in READ_AS:
        message = message.replace(recorded, read)
    return message


def _of_speed(reason: Reason, speed: Speedup | None, evidence: Evidence | None) -> Reason:
    """The gate's proof is of short blocks, whatever full runs say; both agree in a promotion."""
    if not speed or not speed.full_runs or not speed.predicted or speed.lower_bound is None:
        return reason
    blocks = f"the short blocks alone predict {ratio(speed.predicted.estimate)}"
    if reason.code == "speedup_proven":
        proven = f"and prove more than {ratio(speed.lower_bound)}; whole jobs decide"
        return replace(reason, message=f"{reason.arm}: {blocks} {proven}")
    arm = evidence and evidence.arm(str(reason.arm))
    if not evidence or not arm:
        return reason
    bar = ratio(evidence.policy.reject_speedup * evidence.price_ratio(arm))
    whole = f"whole jobs, start-up and evaluation included, are {statements.speedup(speed)}"
    return replace(reason, message=f"{reason.arm}: {whole}, required is {bar}; {blocks}")


def _cause(reason: Reason, evidence: Evidence) -> str:
    arm = evidence.arm(reason.arm or BASELINE)
    if arm is None:
        return ""
    said = _not_applied(arm) if reason.code == NOT_APPLIED else _crashes(arm)
    return next(said, "")


def _crashes(arm: Arm) -> Iterator[str]:
    """What the runs that did not finish said."""
    for run in arm.runs:
        said = reason_of(run)
        if not run.finished and said:
            yield f"{_place(run)}: {said.rstrip('.')}"


def _not_applied(arm: Arm) -> Iterator[str]:
    """What the compiler said where it was not applied."""
    for run in arm.runs:
        said = compiler_proof(run)
        if run.finished and is_unapplied(run, arm) and said:
            yield f"{_place(run)}: {said.rstrip('.')}"


def _place(run: SpeedRun | FullRun) -> str:
    if isinstance(run, SpeedRun):
        return f"short block {run.block}"
    return "full run" if run.seed is None else f"full run with seed {run.seed}"


# The check that confirmed an alarm, repeated from the evidence: the figure that decided a revert.
#
# A decision says it only in its reason's words; its own figures are over all production runs.


@dataclass(frozen=True)
class ConfirmedFall:
    """What the runs that checked the alarm showed; one of the two figures is None.

    ``delta`` is the candidate minus the baseline in the metric's own unit, ``speedup`` the ratio of
    their full jobs' times.
    """

    look: Look
    delta: float | None = None
    speedup: float | None = None

    @property
    def words(self) -> str:
        """``Δ +0.054 in the 3 runs of each arm that checked the alarm``."""
        fall = self.look.fall
        each = "each arm" if fall.theirs == fall.ours else "the candidate"
        size = statements.delta(self.delta) if self.speedup is None else ratio(self.speedup)
        return f"{size} in the {plural(fall.ours, 'run')} of {each} that checked the alarm"


def confirmed_fall(decision: Decision, evidence: Evidence) -> ConfirmedFall | None:
    """The fall that turned the candidate off; None where no check did, or another judge's."""
    if decision.judge_version != JUDGE_VERSION or evidence.phase != PROBATION:
        return None
    try:
        finding = replay_probation(evidence, lambda *_: None)
    except InvalidEvidenceError:
        return None
    if tuple(reason.code for reason in finding.reasons) != decision.codes:
        return None
    confirmed = [one for one in finding.checks if one.look.outcome is Outcome.REVERT]
    if not confirmed:
        return None
    deciding = confirmed[-1]
    if deciding.monitor == "speed":
        return ConfirmedFall(deciding.look, speedup=math.exp(-deciding.look.fall.size))
    delta = -deciding.look.fall.size * SIGNS[evidence.quality.goal]
    return ConfirmedFall(deciding.look, delta=delta)
