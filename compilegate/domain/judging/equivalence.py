"""The equivalence check: is compiled training eager training up to rounding?

The quality of an arm whose only change is the compiler rests on two proofs. E, the check, looks at
a few training steps; Q, the quality gate (quality.py), at final metrics of full runs with other
seeds. Given that a harmful arm passed E, Q still passes it with its own level a at most, so that

    P(promote | harmful) <= P(E passes | harmful) a <= rho a
    a = min(0.25, alpha / (K rho))        hence rho a <= alpha / K, and alpha over K candidates

rho is measured on a catalogue of n harmful faults, of which E missed x: it passed them, or could
not examine them. It is the upper 95 % bound of Clopper and Pearson (1934, Biometrika 26:404),

    P(Bin(n, rho) <= x) = 0.05            1 - 0.05^(1/n) where x = 0

That a harmful change which a compiler makes is like the faults of the catalogue is assumed. rho is
1, so that a = alpha/K, for every arm that was not examined: see ``equivalence_of``.

A check compares the compiled model with the model as written, both against double precision, part
by part (gradients, buffers, evaluation, ...). ``own`` is in the precision of the job, ``single``
the same model compiled anew in single precision, which alone shows a small fault of a bf16 job.
With e the largest relative error of a part's tensors, it passes where of every part

    e_compiled / max(e_eager, floor) <= bound

and no more of a part than its share was left out. Bounds and shares come with the table of faults.
An arm that fails stays off, whether or not faults of its class were tried, if there are bounds of
its kind of device: were it judged by Q alone, a harmful one would be promoted with rho a + (1 -
rho) alpha/K.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import cache
from typing import Any

from compilegate.domain.arithmetic import median
from compilegate.domain.decision import EquivalenceFigures, FurthestApart
from compilegate.domain.faults import FaultClass, FaultTable
from compilegate.domain.judging.checks import FIRST, LAST, Check, Total, read_older
from compilegate.domain.judging.evidence import Arm, Evidence, finished
from compilegate.domain.judging.student import incomplete_beta
from compilegate.domain.optional import without_none
from compilegate.domain.workload.model import STRICT, Policy

CONFIDENCE = 0.95
OWN, SINGLE = "gradients.own", "gradients.single"
# A change of anything else may be harmful in ways that no fault of a compiler is.
COMPILERS = ("torch_compile", "torch_compile_strict")
ONLY_THE_COMPILER = frozenset(
    {"compiler", "compile_mode", "dynamic", "regions", "compile_optimizer"}
)


@cache
def upper_bound(missed: int, faults: int) -> float:
    """Clopper and Pearson's: the rho with I_rho(x + 1, n - x) = 0.95, by bisection."""
    if missed >= faults:
        return 1.0
    low, high = 0.0, 1.0
    while low < (middle := (low + high) / 2) < high:
        below = incomplete_beta(missed + 1, faults - missed, middle, 1 - middle) < CONFIDENCE
        low, high = (middle, high) if below else (low, middle)
    return high


class State(StrEnum):
    """What the check of an arm has come to, the best first."""

    PASSED = "passed"
    UNEXAMINED = "unexamined"
    FAILED = "failed"


SEVERITY = tuple(State)


@dataclass(frozen=True)
class EquivalenceFinding:
    """One check, or all of an arm; ``reason`` is for people.

    ``known`` are the faults by which it was judged, None where there are none. ``weights`` are
    those at which it was made, empty where that cannot be read.
    """

    state: State
    reason: str
    weights: str = ""
    known: FaultClass | None = None
    worst: FurthestApart | None = None
    unseen: tuple[str, ...] = ()

    @property
    def rho(self) -> float:
        """The chance with which a harmful arm comes as far as this one did, at most."""
        if self.state is not State.PASSED or self.known is None:
            return 1.0
        return upper_bound(self.known.missed, self.known.faults)


def equivalence_of(candidate: Arm, evidence: Evidence) -> EquivalenceFinding:
    """What all checks of an arm's jobs say together: the worst of them.

    Before its first full run has ended, one at the first weights is enough. Then there has to be
    one at the last weights of a full run as well. Both are of one class of jobs: no fault was tried
    in two. One that fails does so whatever the arm changes, but not where policy is strict.
    """
    table, policy = evidence.equivalence, evidence.policy
    closed = closed_to(candidate.overrides, policy)
    if table is None:
        return EquivalenceFinding(State.UNEXAMINED, closed or "there is no table of faults")
    runs = (*candidate.speed, *candidate.quality)
    seen = [examined(run.check, table) for run in runs if run.record.get("equivalence") is not None]
    needed = (FIRST, LAST) if finished(candidate.quality) else (FIRST,)
    lacking = set(needed) - {one.weights for one in seen}
    gaps = [f"no check at the {weights} weights" for weights in sorted(lacking)]
    classes = sorted({one.known.words for one in seen if one.known})
    if len(classes) > 1:
        gaps.append(f"its checks are of several classes of jobs: {'; '.join(classes)}")
    seen += [EquivalenceFinding(State.UNEXAMINED, gap) for gap in gaps]
    deciding = max(
        seen,
        key=lambda one: (
            SEVERITY.index(one.state), one.rho, one.worst.share_of_bound if one.worst else 0.0
        ),
    )  # fmt: skip
    if closed and (deciding.state is not State.FAILED or policy.equivalence == STRICT):
        return EquivalenceFinding(State.UNEXAMINED, closed, worst=deciding.worst)
    unseen = dict.fromkeys(name for one in seen for name in one.unseen)
    return replace(deciding, unseen=tuple(unseen))


def rho_of(candidate: Arm, evidence: Evidence) -> float:
    """By the arm's checks; before its first run, of its device's class that would allow it most."""
    table = evidence.equivalence
    if candidate.runs or table is None:
        return equivalence_of(candidate, evidence).rho
    own = table.device
    possible = [one for one in table.classes if own in (None, one.device, one.kind_of_device)]
    return least_rho([candidate.overrides], evidence.policy, possible)


def least_rho(
    changes: Iterable[Mapping[str, Any]], policy: Policy, classes: Iterable[FaultClass]
) -> float:
    """The least that the check may leave one of these changes in jobs of one of these classes."""
    if all(closed_to(changed, policy) for changed in changes):
        return 1.0
    counted = (one for one in classes if one.revoked_at is None)
    return min((upper_bound(one.missed, one.faults) for one in counted), default=1.0)


def equivalence_figures(
    candidate: Arm, evidence: Evidence, level: float
) -> EquivalenceFigures | None:
    """As the decision has it, with the ``level`` of the quality gate; None without a table."""
    if evidence.equivalence is None:
        return None
    seen = equivalence_of(candidate, evidence)
    figures = EquivalenceFigures(
        seen.state, seen.reason, seen.rho, level, worst=seen.worst, unseen=seen.unseen
    )
    known = seen.known
    if known is None:
        return figures
    return replace(
        figures,
        job_class=known.words,
        faults=known.faults,
        missed=known.missed,
        date=known.date,
    )


def closed_to(changed: Mapping[str, Any], policy: Policy) -> str:
    """Why no check counts for what an arm changes; empty where one does."""
    if policy.equivalence == STRICT:
        return "policy.equivalence is strict"
    if changed.get("compiler") not in COMPILERS:
        return "the change is not torch.compile"
    others = sorted(changed.keys() - ONLY_THE_COMPILER)
    return f"the change is also one of {', '.join(others)}" if others else ""


def examined(check: Check | None, table: FaultTable) -> EquivalenceFinding:
    """What one check says by the table; None is one that cannot be read.

    What is beyond its bound fails in every class of its kind of device: other devices round in
    other ways, and bounds are the largest ratios of sound compilations.
    """
    if check is None:
        return EquivalenceFinding(State.UNEXAMINED, "a check cannot be read")
    words = check.job_class.words if check.job_class else ""
    known = max(
        (one for one in table.classes if one.words == words),
        key=lambda one: (one.revoked_at is not None, upper_bound(one.missed, one.faults)),
        default=None,
    )
    bounds = table.bounds_of(check.job_class) if check.check == table.check else {}
    worst = max(
        (
            FurthestApart(one.name, one.where, one.ratio, bounds[one.name])
            for one in check.parts
            if one.name in bounds
        ),
        key=lambda one: one.share_of_bound,
        default=None,
    )
    unseen = tuple(f"{one.part} ({one.code})" for one in check.unseen)
    state, reason = State.UNEXAMINED, _why_void(check, known, table, unseen)
    if worst is not None and worst.share_of_bound > 1:
        state, reason = State.FAILED, worst.words
    elif not reason:
        state, reason = State.PASSED, "it is the same training up to rounding"
    return EquivalenceFinding(state, reason, check.weights, known, worst, unseen)


def _why_void(
    check: Check, known: FaultClass | None, table: FaultTable, unseen: Sequence[str]
) -> str:
    """Why a check whose figures are within their bounds proves nothing; empty where it does."""
    if check.job_class is None:
        return f"not looked at: {', '.join(unseen)}"
    if known is None:
        return f"{check.job_class.words}: no faults were tried"
    if table.device not in (None, known.device, known.kind_of_device):
        return f"{known.words}: the job's device is {table.device}"
    if known.revoked_at is not None:
        return f"{known.words}: a confirmed alarm ended its use"
    if check.check != table.check:
        return "the table of faults is of another version of the check"
    # The own precision of an fp32 job is single precision: there is nothing else to compare.
    required = {SINGLE} if known.precision == "fp32" else {OWN, SINGLE}
    names = {one.name for one in check.parts}
    lacking = sorted(names - table.bounds_of(known).keys() | required - names)
    both = zip(unseen, check.unseen, strict=True)
    lacking += [name for name, one in both if one.share > table.shares.get(one.part, 0.0)]
    return f"not looked at: {', '.join(lacking)}" if lacking else ""


# The older rule, which needs no table: of the whole gradient, with medians over the first steps,
#
#     r = e_C / max(e_E, eps)        suspicious: r >= 10        wrong: also e_C >= 0.25
#
# 10 is beyond every order of summation: PyTorch's own accuracy test of compilers allows 2 to 3 for
# large tensors and 10 for the smallest (``torch._dynamo.utils.same``). TF32 beside exact fp32
# alone gives a ratio of 1,000 at an error of 0.001, which trains as well as ever. So a ratio
# rejects nothing unless a quarter of the gradient's own length is wrong, which no rounding to eight
# bits makes of it but cancellation, and that hits eager alike. Both are judgement. A step without a
# finite error counts as infinite. The rule never promotes.

WRONG = "numerics_wrong"
RATIO = 10.0
WRONG_ERROR = 0.25
LEAST_STEPS, MOST_STEPS = 3, 100
LARGEST_EPSILON = 0.25  # of fp8


@dataclass(frozen=True)
class Numerics:
    """Medians over the steps of one check; errors are relative to the gradient's length."""

    steps: int
    compiled_error: float
    eager_error: float
    ratio: float

    @property
    def code(self) -> str | None:
        """Of the reason that it gives: far less exact than eager's, or another gradient."""
        if self.ratio < RATIO:
            return None
        return WRONG if self.compiled_error >= WRONG_ERROR else "numerics_differ"

    @property
    def words(self) -> str:
        """What was seen, for people."""
        off = "is not a finite number"
        if math.isfinite(self.compiled_error):
            off = f"is off by {self.compiled_error:.2g} of its length"
        return (
            f"the compiled gradient {off} over {self.steps} steps, the uncompiled one by "
            f"{self.eager_error:.2g}, both against double precision"
        )


def numerics_of(candidate: Arm) -> Numerics | None:
    """The worst of all checks of the candidate's jobs, None without one that can be read."""
    seen = []
    for run in (*candidate.speed, *candidate.quality):
        # The run's own precision comes first.
        totals = [one.total for one in run.check.parts if one.total] if run.check else []
        total = totals[0] if totals else read_older(run.record.get("numerics"))
        seen.append(medians_of(total) if total else None)
    return max(without_none(seen), key=lambda one: (one.code == WRONG, one.ratio), default=None)


def medians_of(total: Total) -> Numerics | None:
    """None where a figure is none that a check can have."""
    compiled, eager = (
        [math.inf if error is None else error for error in side]
        for side in (total.compiled, total.eager)
    )
    sound = (
        0 < total.epsilon <= LARGEST_EPSILON
        and LEAST_STEPS <= len(compiled) <= MOST_STEPS
        and len(compiled) == len(eager)
        # Without a finite error of eager's own the yardstick itself failed.
        and all(map(math.isfinite, eager))
        and min(*compiled, *eager) >= 0
    )
    if not sound:
        return None
    ratios = [
        ours / max(theirs, total.epsilon) for ours, theirs in zip(compiled, eager, strict=True)
    ]
    return Numerics(len(compiled), median(compiled), median(eager), median(ratios))
