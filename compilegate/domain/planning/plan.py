"""The trial plan: arms, how they are measured, what that may cost, and what it needs of quotas.

What is expected must fit ``max_trial_usd``, which a running trial never exceeds; a trial that
could hardly prove the margin, or whose jobs no quota holds, is refused before anything is spent.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import reduce
from typing import Any

from compilegate.domain.errors import InvalidInputError
from compilegate.domain.facts import Facts, Price
from compilegate.domain.flag import Flag, Layer
from compilegate.domain.followers import PERMANENT
from compilegate.domain.formats import money
from compilegate.domain.judging.comparison import baseline_needed
from compilegate.domain.judging.design import Design, looks
from compilegate.domain.judging.evidence_file import ID_LENGTH
from compilegate.domain.judging.speed import SPEED_LOOKS
from compilegate.domain.judging.whole_job import LEAST_UNSEEN
from compilegate.domain.notes import SCRIPT_COMPILES, Note, note_documents
from compilegate.domain.planning.arms import (
    CANDIDATE,
    CONTROL,
    FOLLOWS,
    UNCOMPILED_LABEL,
    UNCOMPILED_WHY,
    ArmPlan,
    plan_arms,
    promoted,
)
from compilegate.domain.planning.estimate import (
    BLOCKS_PER_ROUND,
    NEVER_READ,
    SHADOW,
    STARTUP_HOURS,
    Estimate,
    Need,
    Proof,
    QuotaLookup,
    RoundLayout,
    block_usd,
    estimate,
    layouts,
    needs,
    plan_proof,
    possible_rho,
    too_low,
    unlimited,
)
from compilegate.domain.planning.rounds import SEGMENT_SECONDS
from compilegate.domain.reasons import Reason
from compilegate.domain.spreads import ASSUMED, PRIOR_DF, UNSEEN_SD, Spreads
from compilegate.domain.workload.model import BASELINE, HOUR, Candidate, Workload

SPEED_STEPS = 320
SHORT_SPEED_STEPS = 160
SHORT_RUN_HOURS = 1.0
# Of a whole run's steps: an epoch's smaller last batch may be left out.
SHARE_OF_A_RUN = 0.9


@dataclass(frozen=True)
class Pairs:
    """Runs of a candidate that a proof takes in pairs, and their price; the same ``apart``."""

    runs: int
    usd: float
    runs_apart: int
    usd_apart: float


@dataclass(frozen=True)
class Plan:
    """Everything that is fixed before a trial starts.

    ``quality_runs`` of each candidate are expected, up to ``max_quality_runs`` allowed;
    ``runs_basis`` says what that rests on. ``usd_per_block`` includes start-up, ``prices`` are
    of one instance. ``layout`` says how many jobs of a round run at the same time, for the rounds
    that take most turns. ``left_out`` are levers that are not tried, with the reason.
    ``notes`` are remarks about the job. ``spreads`` are those that were learned. ``pairs`` where
    full runs are made in pairs.
    """

    workload: str
    region: str
    arms: tuple[ArmPlan, ...]
    quality_runs: int
    max_quality_runs: int
    runs_basis: str
    speed_steps: int
    blocks_per_round: int
    max_blocks: int
    usd_per_block: float
    usd_per_quality_run: float
    estimate: Estimate
    max_trial_usd: float
    prices: tuple[Price, ...] = ()
    quotas: tuple[Need, ...] = ()
    layout: tuple[RoundLayout, ...] = ()
    left_out: tuple[tuple[str, str], ...] = ()
    notes: tuple[Note, ...] = ()
    spreads: Spreads = ASSUMED
    pairs: Pairs | None = None

    def to_dict(self) -> dict[str, Any]:
        """The plan as it is stored and shown."""
        arms = [{**asdict(arm), "label": self.label(arm)} for arm in self.arms]
        left_out = [{"name": name, "why": why} for name, why in self.left_out]
        document = {"schema": 1, **asdict(self), "arms": arms, "left_out": left_out}
        del document["notes"]
        if self.spreads == ASSUMED:
            del document["spreads"]
        if not self.pairs:
            del document["pairs"]
        return {**document, **note_documents(self.notes)}

    def label(self, arm: ArmPlan) -> str:
        """What one of its arms changes; of the baseline also what it leaves out."""
        return UNCOMPILED_LABEL if self._leaves_compiling_out(arm) else arm.label

    def with_notes(self, notes: tuple[Note, ...]) -> Plan:
        """The plan of a job about which that is known."""
        noted = replace(self, notes=notes)
        arms = (
            replace(arm, why=UNCOMPILED_WHY) if noted._leaves_compiling_out(arm) else arm
            for arm in self.arms
        )
        return replace(noted, arms=tuple(arms))

    def _leaves_compiling_out(self, arm: ArmPlan) -> bool:
        own = any(note.code == SCRIPT_COMPILES for note in self.notes)
        return own and arm.name == BASELINE


@dataclass(frozen=True)
class Choice:
    """The candidates that may be tried, in order; ``why`` says what each is there for, by name.

    ``left_out`` are the other candidates and levers, each with the reason. ``on`` is the candidate
    that is on, where the others are tried on top of it.
    """

    candidates: tuple[Candidate, ...]
    why: Mapping[str, str] = field(default_factory=dict)
    left_out: tuple[tuple[str, str], ...] = ()
    on: str = ""


@dataclass(frozen=True)
class TrialDesign:
    """What would be run, how often, and what that may cost."""

    arms: tuple[ArmPlan, ...]
    proof: Proof
    estimate: Estimate


def design_trial(
    workload: Workload,
    candidates: Sequence[Candidate],
    facts: Facts,
    *,
    region: str,
    why: Mapping[str, str] | None = None,
    mode: str = SHADOW,
    quota: QuotaLookup = unlimited,
    on: str = "",
) -> TrialDesign | Reason:
    """The trial of these candidates, or why there is none; ``mode`` says who makes full runs.

    ``quota`` lays its rounds out, which makes them longer, never dearer. ``on`` names the one that
    is on.
    """
    arms = plan_arms(workload, candidates, facts, region=region, why=why, on=on)
    if isinstance(arms, Reason):
        return arms
    tried = [one for one in candidates if one.name != on]
    rho = possible_rho(workload, tried, facts)
    proof = plan_proof(workload, candidates=len(tried), mode=mode, rho=rho)
    if proof is None:
        runs = f"{workload.schedule.runs_per_week:g}"
        text = f"{runs} runs a week leave too few to prove quality on"
        return Reason("saving_below_trial_cost", text)
    estimated = estimate(
        arms,
        run_hours=workload.schedule.run_hours,
        proof=proof,
        cap_usd=workload.policy.max_trial_usd,
        runs_per_week=workload.schedule.runs_per_week,
        quota=quota,
    )
    return TrialDesign(arms, proof, estimated)


def expected_usd(
    workload: Workload, candidates: Sequence[Candidate], facts: Facts, *, region: str
) -> float | None:
    """Expected price of a trial, as ``plan`` computes it; None where none could be planned."""
    if not candidates:
        return None
    design = design_trial(workload, candidates, facts, region=region)
    return None if isinstance(design, Reason) else design.estimate.usd


def plan_trial(
    workload: Workload,
    choice: Choice,
    facts: Facts,
    *,
    region: str,
    quota: QuotaLookup = NEVER_READ,
    mode: str = SHADOW,
) -> Plan | Reason:
    """Plan the candidates that may be tried, or say why there is nothing to plan.

    ``mode`` is who makes the full runs: shadow, canary or hybrid.
    """
    if not choice.candidates:
        why_not = "; ".join(f"{name}: {text}" for name, text in choice.left_out[:1])
        return Reason("ineligible", f"no candidate is eligible; {why_not}")
    design = design_trial(
        workload, choice.candidates, facts, region=region, why=choice.why, mode=mode, quota=quota,
        on=choice.on,
    )  # fmt: skip
    if isinstance(design, Reason):
        return design
    required = needs(design.arms, design.proof, spot=workload.training.spot, quota=quota)
    refused = design.proof.refused or too_low(required) or _over_budget(workload, design)
    if refused is not None:
        return refused
    arms, run_hours = design.arms, workload.schedule.run_hours
    kinds = dict.fromkeys(arm.instance_type for arm in arms)
    return Plan(
        workload=workload.name,
        region=region,
        arms=arms,
        quality_runs=design.proof.runs,
        max_quality_runs=design.proof.n_max,
        runs_basis=design.proof.basis,
        speed_steps=_speed_steps(workload, arms),
        blocks_per_round=BLOCKS_PER_ROUND,
        max_blocks=SPEED_LOOKS[-1],
        usd_per_block=block_usd(arms, run_hours),
        # A candidate gets full runs only once it is faster by its price as well.
        usd_per_quality_run=arms[0].usd_per_hour * run_hours,
        estimate=design.estimate,
        max_trial_usd=workload.policy.max_trial_usd,
        prices=tuple(price for kind in kinds if (price := facts.price(kind))),
        quotas=required,
        layout=layouts(arms, design.proof, quota),
        left_out=choice.left_out,
    )


# Whether one job makes whole runs of both arms (whole_job.py). Before both spreads were learned, of
# whole jobs over nodes and of blocks on one, nothing is known to cancel. A spot job may go on on
# another node, and a launcher's processes share folders that are emptied between runs.

# Runs of a job, and how many times their hours it needs; one may take twice as long as it should.
RUNS_OF_A_JOB, ROOM = 4, 1.5
LONGEST_HOURS = SEGMENT_SECONDS / HOUR / 2
# The least gain that a policy without a bar is after.
LEAST_GAIN = 0.005


def pairs_for(workload: Workload, plan: Plan, *, beside: bool) -> Pairs | None:
    """The pairs of a trial that makes its full runs itself, None where they do not cost less.

    ``beside``: production makes baseline runs meanwhile, which cost nothing.
    """
    policy, training, hours = workload.policy, workload.training, workload.schedule.run_hours
    arms, spreads = [arm for arm in plan.arms if arm.role != CONTROL], plan.spreads
    fits = (
        len({arm.shares_nodes for arm in arms}) == 1
        and (arms[0].distribution, arms[0].instance_count, training.spot) == ("none", 1, False)
        and hours <= min(LONGEST_HOURS, training.max_runtime_hours / ROOM / RUNS_OF_A_JOB)
    )
    if not (fits and spreads.whole_job and spreads.block):
        return None
    error = policy.alpha / (len(arms) - 1)
    design = Design(int(PRIOR_DF) + 1, plan.max_quality_runs, error)
    gain = max(math.log(policy.min_mean_speedup / policy.min_proven_speedup), LEAST_GAIN)
    unseen = max(spreads.unseen.sd, LEAST_UNSEEN) if spreads.unseen else UNSEEN_SD
    predicted = 1 / (spreads.block.sd**2 / SPEED_LOOKS[0] + unseen**2)
    apart, paired = (
        [
            n
            for n in looks(design.n_max)
            if design.provable_margin(n) * math.sqrt(n / (n / sd**2 + 2 * predicted)) <= gain
        ]
        for sd in (spreads.whole_job.sd, spreads.block.sd)
    )
    if not paired:
        return None
    # A job has two runs of each arm, and one alone proves nothing.
    runs = 2 * max(2, math.ceil(max(paired[0], plan.quality_runs) / 2))
    alone = max(plan.quality_runs, *(apart[:1] or [design.n_max]))
    base = max(baseline_needed(alone) - 1, 0) if beside else alone
    rate = arms[0].usd_per_hour
    usd = round(rate * runs * (2 * hours + STARTUP_HOURS / 2), 4)
    usd_apart = round(rate * (alone + base) * (hours + STARTUP_HOURS), 4)
    return Pairs(runs, usd, alone, usd_apart) if usd < usd_apart else None


def _speed_steps(workload: Workload, arms: Sequence[ArmPlan]) -> int:
    """Steps of a segment, which no arm's data ends before, as far as the file tells."""
    short = workload.schedule.run_hours < SHORT_RUN_HOURS
    ends = [SHORT_SPEED_STEPS if short else SPEED_STEPS]
    for arm in arms:  # of a whole run, by the launcher's own hyperparameters
        values = {**workload.training.hyperparameters, **arm.hyperparameters}
        steps, samples = values.get("full_run_steps"), values.get("full_run_samples")
        if isinstance(steps, int | float) and steps > 0:
            ends.append(int(SHARE_OF_A_RUN * steps))
        elif isinstance(samples, int | float) and samples > 0:
            ends.append(int(SHARE_OF_A_RUN * (samples / arm.global_batch)))
    return max(1, min(ends))


def _over_budget(workload: Workload, design: TrialDesign) -> Reason | None:
    usd, cap = design.estimate.usd, workload.policy.max_trial_usd
    if usd <= cap:
        return None
    return Reason(
        "trial_over_budget",
        f"the trial is expected to cost {money(usd)}, more than the {money(cap)} that "
        "policy.max_trial_usd allows",
        fix="raise the cap, shorten the run or name fewer candidates",
    )


# Figures of a flag in as many digits as they may have: a layer's gain, and the holdback, which is
# added once the flag is permanent.
_LONGEST, _HOLDBACK = 10.0001, 0.0001
_DECIDED = "d" * ID_LENGTH


def flag_too_large(plan: Plan, below: Flag) -> Reason | None:
    """The refusal of a candidate whose flag could not be written if it were proven.

    ``below`` is what is on where the trial stands on it, else a flag that is off.
    """
    baseline, layers = plan.arms[0], below.layers
    if below.enabled and not layers:
        layers = (Layer(str(below.candidate), below.decision_id or _DECIDED, _LONGEST),)
    for arm in plan.arms:
        if arm.role != CANDIDATE:
            continue
        flag = promoted(arm, baseline, decision_id=_DECIDED, since="2026-01-01T00:00:00Z")
        flag = replace(flag, holdback=_HOLDBACK)
        if layers:
            flag = replace(flag, layers=(*layers, Layer(arm.name, _DECIDED, _LONGEST)))
        try:
            flag.to_json()
        except InvalidInputError as error:
            fix = "set fewer or shorter hyperparameters on the candidate, or in its script"
            place = f"candidates ({arm.name})"
            problem = f"has changes whose flag {error.problem}"
            message = str(InvalidInputError(problem, field=place, fix=fix))
            return Reason("flag_too_large", message)
    return None


# Candidates on top of what is on, each with one more change (docs/decisions/0024-stacks.md).
#
# What is on is composed again from the candidates of its layers: a layer that may not be tried any
# more, or has become another change, ends the trial before anything is spent.

_VALUES = "hyperparameters"
_AGAIN = "let a trial begin from nothing: turn it off with compilegate flag revert"


def stacked(
    choice: Choice, flag: Flag, check: Callable[[tuple[Candidate, ...]], Choice]
) -> Choice | Reason:
    """What a trial on top of a flag that is on is planned with, or why there is none.

    ``choice`` are the candidates that may be tried alone, ``check`` says which composed ones may.
    """
    top, left_out = str(flag.candidate), list(choice.left_out)
    names = [layer.candidate for layer in flag.layers] or [top]
    by_name = {one.name: one for one in choice.candidates}
    if flag.state != PERMANENT:
        text = f"{top} is on and {flag.state}: a layer is tried once it is permanent"
        return Reason("stack_waits", text)
    for name in names:
        if name not in by_name:
            why = dict(left_out).get(name, "it is not among the candidates")
            return _broken(top, f"its layer {name} may not be tried any more: {why}")
    on = replace(reduce(_on_top, (by_name.pop(name) for name in names)), name=top)
    today, then = dict(on.overrides()), dict(flag.overrides)
    for derived in (FOLLOWS, "learning_rate", "image"):
        today.pop(derived, None)
        then.pop(derived, None)
    if today != then:
        return _broken(top, "its layers make another change today than they did")
    ours, more = _changes(on), []
    for name, one in by_name.items():
        keys = [key for key, value in _changes(one).items() if ours.get(key, value) != value]
        if keys:
            left_out.append((name, f"sets {', '.join(keys)} otherwise than {top}, which is on"))
        else:
            more.append(_on_top(on, one))
    checked = check((on, *more))
    left_out += checked.left_out
    eligible = [one.name for one in checked.candidates]
    if top not in eligible:
        return _broken(top, dict(left_out).get(top, "it is not eligible"))
    if eligible == [top]:
        text = "; ".join(f"{name}: {why}" for name, why in left_out)
        return Reason("stack_ends", f"nothing is left to try on {top}{text and f': {text}'}")
    said = {name: f"{name} on top of {top}, which is on" for name in eligible}
    said[top] = "what is on: a layer has to be faster than that"
    return replace(checked, why=said, left_out=tuple(left_out), on=top)


def _changes(candidate: Candidate) -> dict[str, Any]:
    """What it changes, each hyperparameter on its own."""
    changes = candidate.overrides()
    values = changes.pop(_VALUES, {})
    return {**changes, **{f"{_VALUES}.{name}": value for name, value in values.items()}}


def _on_top(lower: Candidate, upper: Candidate) -> Candidate:
    """Both changes under the upper one's name."""
    keys = lower.overrides().keys() - upper.overrides().keys() - {_VALUES}
    values = {**lower.hyperparameters, **upper.hyperparameters}
    return replace(upper, hyperparameters=values, **{key: getattr(lower, key) for key in keys})


def _broken(top: str, why: str) -> Reason:
    return Reason("stack_broken", f"nothing can be tried on {top}, which is on: {why}", fix=_AGAIN)
