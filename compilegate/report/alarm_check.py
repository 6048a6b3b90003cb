"""The check that confirmed an alarm, repeated from the evidence: the figure that decided a revert.

A decision says it only in its reason's words; its own figures are over all production runs.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from compilegate.domain.arithmetic import ratio
from compilegate.domain.decision import JUDGE_VERSION, SIGNS, Decision
from compilegate.domain.errors import InvalidEvidenceError
from compilegate.domain.formats import plural
from compilegate.domain.judging.evidence import PROBATION, Evidence
from compilegate.domain.judging.monitor import Look, Outcome
from compilegate.domain.judging.probation import replay_probation
from compilegate.report import statements


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
