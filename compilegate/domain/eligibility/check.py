"""Asks every rule about every candidate and adds up the answers (docs/contracts.md).

Where the workload names no candidate, those are asked about that the facts allow, one factor at a
time: first the compiler alone at the same batch, which is the control for the larger batch that
comes next, then other levers, if a compiler applies. Each says why it is there; what is left out
says why not. At most three, because they share the trial's error, and only as many as
policy.max_trial_usd is likely to pay.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any

from compilegate.domain.arithmetic import mean
from compilegate.domain.compilers import COMPILERS
from compilegate.domain.decision import Decision, Verdict
from compilegate.domain.eligibility import frameworks, payoff, rules
from compilegate.domain.eligibility.job import NO_GRAPH_FRAMEWORKS, CandidateJob, MeasuredOverhead
from compilegate.domain.eligibility.payoff import Economics, economics_of
from compilegate.domain.errors import InvalidInputError
from compilegate.domain.facts import Facts
from compilegate.domain.formats import money
from compilegate.domain.judging.quality import ENOUGH_HISTORY
from compilegate.domain.optional import map_optional, with_known
from compilegate.domain.planning.arms import plan_arms
from compilegate.domain.planning.estimate import plan_proof, possible_rho
from compilegate.domain.planning.plan import Choice, expected_usd
from compilegate.domain.reasons import Reason, Severity, finding
from compilegate.domain.request.build import JobSite, quality_request
from compilegate.domain.workload.model import BASELINE, OWN_LINE, PREVIOUS, Candidate, Workload

# In the order of questions: where is the time, does it fit, do shapes repeat, is a run
# long enough, precision, side effects, cost.
RULES: tuple[Callable[[CandidateJob], Iterable[Reason]], ...] = (
    payoff.bottleneck_rule,
    rules.instance_rule,
    frameworks.compiler_rule,
    frameworks.image_rule,
    frameworks.change_rule,
    frameworks.managed_rule,
    rules.launcher_rule,
    frameworks.hyperparameters_rule,
    frameworks.script_rule,
    rules.shapes_rule,
    rules.blocks_rule,
    payoff.amortisation_rule,
    rules.mode_rule,
    rules.precision_rule,
    rules.learning_rate_rule,
    rules.memory_rule,
    rules.step_count_rule,
    payoff.money_rule,
)
# Warnings of these codes question the benefit itself: measure before believing. Others
# (an unscaled learning rate, unpatched images) concern the side effects, not the benefit.
DOUBTS = frozenset({
    "batch_may_shrink", "blocks_unknown", "communication_bound", "custom_loader", "data_bound",
    "distribution_unsupported", "dynamic_shapes", "family_unproven", "low_gpu_utilization",
    "memory_headroom", "no_same_version_baseline", "padding_longest", "run_too_short",
    "script_needs_port", "shapes_by_augmentation",
})  # fmt: skip
DEFAULT_REGION = "us-east-1"
# Of the metric's level: what a margin may be before it is doubted.
WIDE = 0.5


class EligibilityVerdict(StrEnum):
    """Closed set of answers, best first."""

    ELIGIBLE = "eligible"
    BENCHMARK = "benchmark"
    INELIGIBLE = "ineligible"


@dataclass(frozen=True)
class CandidateEligibility:
    """One candidate's answer; ``why`` says why a derived one is there."""

    candidate: Candidate
    compiler: str
    reasons: tuple[Reason, ...]
    why: str = ""

    @property
    def verdict(self) -> EligibilityVerdict:
        """Any block is ineligible; a warning that questions the benefit asks for a benchmark."""
        if blocking(self.reasons):
            return EligibilityVerdict.INELIGIBLE
        if any(one.severity is Severity.WARN and one.code in DOUBTS for one in self.reasons):
            return EligibilityVerdict.BENCHMARK
        return EligibilityVerdict.ELIGIBLE


@dataclass(frozen=True)
class Eligibility:
    """A workload's answer; its verdict is the best of its candidates'.

    ``left_out`` names what was not derived, with the reason.
    """

    workload: str
    candidates: tuple[CandidateEligibility, ...]
    reasons: tuple[Reason, ...]
    economics: Economics
    left_out: tuple[tuple[str, str], ...] = ()

    @property
    def verdict(self) -> EligibilityVerdict:
        """The best of the candidates'."""
        order = list(EligibilityVerdict)
        return min((one.verdict for one in self.candidates), key=order.index)

    @property
    def choice(self) -> Choice:
        """What a trial may be planned with."""
        blocks = [(one.candidate, blocking(one.reasons)) for one in self.candidates]
        why_not = ((candidate.name, why[0].message) for candidate, why in blocks if why)
        return Choice(
            candidates=tuple(candidate for candidate, why in blocks if not why),
            why={one.candidate.name: one.why for one in self.candidates if one.why},
            left_out=(*why_not, *self.left_out),
        )

    def refusal(self, *, workload: str, trial: str) -> Decision:
        """The decision by what blocks the trial, the workload's own reasons first, each once."""
        reasons = [*self.reasons, *(r for one in self.candidates for r in one.reasons)]
        why = [Reason(one.code, one.message, fix=one.fix) for one in blocking(reasons)]
        return Decision.of_this_judge(
            workload, f"{trial}-ineligible", "eligibility", Verdict.INELIGIBLE, why
        )

    def to_dict(self) -> dict[str, Any]:
        """The contract's document."""
        return {
            "workload": self.workload,
            "verdict": str(self.verdict),
            "candidates": [
                {
                    "name": one.candidate.name,
                    "compiler": one.compiler,
                    "verdict": str(one.verdict),
                    "reasons": [reason.to_finding() for reason in one.reasons],
                    "why": one.why,
                }
                for one in self.candidates
            ],
            "reasons": [reason.to_finding() for reason in self.reasons],
            "left_out": [{"name": name, "why": why} for name, why in self.left_out],
            "economics": self.economics.to_dict(),
        }


def blocking(reasons: Sequence[Reason]) -> list[Reason]:
    """Those that make a candidate, or the workload, ineligible."""
    return [reason for reason in reasons if reason.severity is Severity.BLOCK]


def check_eligibility(
    workload: Workload,
    facts: Facts,
    *,
    region: str = DEFAULT_REGION,
    measured: Sequence[MeasuredOverhead] = (),
) -> Eligibility:
    """Whether each candidate may be tried, and what the workload could gain; USD, no I/O.

    ``measured`` are compile times of this workload's earlier trials, oldest first.
    """

    def job_of(candidate: Candidate, place: str = "") -> CandidateJob:
        return CandidateJob(workload, candidate, place, facts, region, tuple(measured))

    jobs = [job_of(one, f"candidates[{place}]") for place, one in enumerate(workload.candidates)]
    derived, left_out = list[Lever](), dict[str, str]()
    if not jobs:
        baseline = job_of(Candidate(name=BASELINE))
        derived, left_out = _derive(baseline, lambda one: reasons_of(job_of(one)))
        jobs = [job_of(lever.candidate) for lever in derived]
    why = {lever.name: lever.why for lever in derived}
    answers: list[CandidateEligibility] = []
    tried: list[CandidateJob] = []
    for job in jobs:
        reasons = (*_same_job(job, [job.baseline, *tried]), *reasons_of(job))
        named = why.get(job.candidate.name, "")
        answers.append(CandidateEligibility(job.candidate, job.compiler, reasons, named))
        if not blocking(reasons):
            tried.append(job)
    economics = economics_of(jobs, tried)
    about_all = _of_a_trial(tried, economics) if tried else _no_graph(jobs[0])
    return Eligibility(
        workload.name, tuple(answers), tuple(about_all), economics, tuple(left_out.items())
    )


def reasons_of(job: CandidateJob) -> tuple[Reason, ...]:
    """Every rule's reasons without repetition, the weightiest first."""
    reasons = dict.fromkeys(reason for rule in RULES for reason in rule(job))
    order = list(Severity)
    return tuple(sorted(reasons, key=lambda reason: order.index(reason.severity or Severity.BLOCK)))


def _same_job(job: CandidateJob, others: Sequence[CandidateJob]) -> Iterator[Reason]:
    """A setting may have two names: the same job twice would be measured twice."""
    for other in others if job.place else ():
        if _always_differ(job) == _always_differ(other) and _request(job) == _request(other):
            twin = "the baseline" if other.candidate.name == BASELINE else other.candidate.name
            yield job.finds("same_job", field=job.place, twin=twin)
            return


def _always_differ(job: CandidateJob) -> tuple[Any, ...]:
    """What always makes a difference in a request; a quick comparison before the requests'."""
    training = replace(job.training, distribution="")
    return training, job.compiler, job.candidate.compile_mode


def _request(job: CandidateJob) -> dict[str, Any] | object:
    """The request of a full run under a common name; equal to nothing where there is none."""
    change = job.candidate
    changes = () if change.name == BASELINE else (change,)
    arms = plan_arms(job.workload, changes, job.facts, region=job.region)
    if isinstance(arms, Reason):
        return object()
    arm = replace(arms[len(changes)], name=BASELINE)
    site = JobSite(stage="", bucket="", region=job.region, job_roles="")
    where = site.context("", trial="", execution="", source_key="")
    try:
        return quality_request(job.workload, arm, run="", replicate=0, seed=0, context=where)
    except InvalidInputError:
        return object()


def _no_graph(job: CandidateJob) -> Iterator[Reason]:
    """A workload that no graph compiler can help, with what can."""
    if not job.has_graph:
        framework, instance_type = job.workload.framework.name, job.baseline.training.instance_type
        situation = framework if framework in NO_GRAPH_FRAMEWORKS else "no_graph"
        yield job.finds("not_gpu", situation, framework=framework, instance_type=instance_type)


def _of_a_trial(tried: Sequence[CandidateJob], economics: Economics) -> Iterator[Reason]:
    """Its budget, its proof of quality, and what its runs start from."""
    workload, trial = tried[0].workload, economics.trial_usd
    cap, quality = workload.policy.max_trial_usd, workload.quality
    if (trial or 0.0) > cap:
        by_price = with_known(tried, lambda one: one.trial_usd)
        alone = [(usd, one.candidate.name) for one, usd in by_price]
        usd, name = min(alone) if len(tried) > 1 and alone else (None, "")
        yield finding("trial_over_budget", trial=trial, cap=cap, cheapest=name, alone=usd)
    rho = possible_rho(workload, [one.candidate for one in tried], tried[0].facts)
    proof = plan_proof(workload, candidates=len(tried), rho=rho)
    refused = map_optional(proof, lambda one: one.refused)
    if refused is not None:
        yield finding("underpowered", fix=refused.fix, why=refused.message)
    else:
        share = quality.goal == "maximize" and all(0 <= value <= 1 for value in quality.history)
        # A share that may fall by half: most likely the margin is written in percent.
        if share and quality.history and quality.margin > WIDE * mean(quality.history):
            yield finding(
                "margin_wide", margin=quality.margin, metric=quality.metric,
                mean=mean(quality.history),
            )  # fmt: skip
        if len(quality.history) < ENOUGH_HISTORY:
            yield finding(
                "history_missing", runs=len(quality.history), ENOUGH_HISTORY=ENOUGH_HISTORY,
                metric=quality.metric,
            )  # fmt: skip
    # Runs that go on from earlier ones are no independent trials of a candidate.
    training = workload.training
    if training.starts_from == PREVIOUS:
        yield finding("starts_from_previous")
    elif training.starts_from == OWN_LINE:
        yield finding("starts_from_own_line")
    elif training.unsaid_start:
        yield finding("start_unsaid", field=training.unsaid_start, unsaid=training.unsaid_start)


# Candidates for a workload that names none.

# Each further candidate takes its share of alpha from the others.
MOST = 3
# Memory that allocator, fragmentation and a compiler's own buffers may need.
MEMORY_USED = 0.9
# A smaller increase is not worth an arm; a larger one is another training recipe.
LEAST_GROWTH, MOST_GROWTH = 1.25, 2.0
# Tensor cores like multiples of eight.
BATCH_MULTIPLE = 8
# What no compiler may need to be proposed unasked.
WORK_TO_DO = ("script_needs_port", "no_same_version_baseline")


@dataclass(frozen=True)
class Lever:
    """A candidate and why it is tried, or why it is not (``why_not``)."""

    name: str
    changes: Mapping[str, Any] = field(default_factory=dict)
    why: str = ""
    why_not: str = ""

    @property
    def candidate(self) -> Candidate:
        """The candidate that the workload file could have named."""
        return Candidate(name=self.name, **self.changes)


def _derive(
    baseline: CandidateJob, judge: Callable[[Candidate], Sequence[Reason]]
) -> tuple[list[Lever], dict[str, str]]:
    """The candidates of a workload that names none, and what is left out with the reason.

    ``judge`` gives a candidate's reasons. Where none applies the first compiler alone is returned,
    so that its reasons are shown.
    """
    kept: list[Lever] = []
    left: dict[str, str] = {}
    for lever in _levers(baseline, kept):
        why_not = lever.why_not or _obstacle(lever, judge(lever.candidate))
        if not why_not and len(kept) == MOST:
            why_not = f"at most {MOST} candidates are derived; name it under candidates to include "
            "it"
        if why_not:
            left[lever.name] = why_not
        else:
            kept.append(lever)
    while len(kept) > 1 and (over := _over_the_cap(baseline, kept)):
        left[kept.pop().name] = over
    shown = kept or _compilers(baseline)[:1]
    for lever in shown:
        left.pop(lever.name, None)
    return shown, left


def _levers(baseline: CandidateJob, kept: Sequence[Lever]) -> Iterator[Lever]:
    """In the order of the plan; ``kept`` grows while this runs."""
    if not baseline.has_graph:
        return
    yield from _compilers(baseline)
    if kept:  # else show first what keeps a compiler from paying, before any other lever
        yield _larger_batch(baseline, kept[0])
        yield from _precisions(baseline)


def _compilers(baseline: CandidateJob) -> list[Lever]:
    """Each compiler alone; TensorFlow begins with those that are part of no other framework."""
    tensorflow = baseline.workload.framework.kind == "tensorflow"
    ordered = sorted(COMPILERS.values(), key=lambda one: tensorflow and one.kind is not None)
    return [
        Lever(proposal.candidate, {"compiler": one.name}, proposal.why)
        for one, proposal in with_known(ordered, lambda one: one.proposal)
    ]


def _obstacle(lever: Lever, reasons: Sequence[Reason]) -> str:
    """Why the candidate is not eligible; empty where it is."""
    for reason in reasons:
        work = "compiler" in lever.changes and reason.code in WORK_TO_DO
        if work or reason.severity is Severity.BLOCK:
            return reason.message
    return ""


def _over_the_cap(baseline: CandidateJob, kept: Sequence[Lever]) -> str:
    workload, cap = baseline.workload, baseline.workload.policy.max_trial_usd
    candidates = [lever.candidate for lever in kept]
    usd = expected_usd(workload, candidates, baseline.facts, region=baseline.region) or 0.0
    if usd <= cap:
        return ""
    return (
        f"with it the trial would cost about {money(usd)}, more than the {money(cap)} of "
        "policy.max_trial_usd"
    )


def _larger_batch(baseline: CandidateJob, compiler: Lever) -> Lever:
    """Compiler and batch together: a bundle, read beside the compiler alone."""
    batch, nothing = baseline.workload.training.batch_size, Lever("larger batch")
    managed = compiler.changes["compiler"] == baseline.facts.managed.compiler
    room = _tested(baseline, batch) if managed else _headroom(baseline)
    if isinstance(room, str):
        return replace(nothing, why_not=room)
    growth, basis = room
    larger = math.floor(batch * min(growth, MOST_GROWTH))
    if larger > BATCH_MULTIPLE:
        larger -= larger % BATCH_MULTIPLE
    if larger < LEAST_GROWTH * batch:
        return replace(nothing, why_not=f"{basis}, too little for a batch above {batch}")
    return Lever(
        f"{compiler.name}-b{larger}",
        {**compiler.changes, "batch_size": larger, "learning_rate_scaling": "linear"},
        f"{basis}, so that {larger} samples a device should fit (now {batch}); a bundle of "
        f"compiler and batch, to compare with {compiler.name}; the learning rate grows linearly",
    )


def _headroom(baseline: CandidateJob) -> tuple[float, str] | str:
    """How much larger the batch may be if all memory in use grew with it, which errs low."""
    used, instance = baseline.workload.profile.peak_memory_gib, baseline.instance
    if used is None:
        return "profile.peak_memory_gib is not set, so the headroom is unknown"
    room = map_optional(instance, lambda one: one.gpu_memory_gib)
    if not room:
        return f"the GPU memory of {baseline.training.instance_type} is not on file"
    return MEMORY_USED * room / used, f"{used:g} of {room:g} GiB of GPU memory are in use"


def _tested(baseline: CandidateJob, batch: int) -> tuple[float, str] | str:
    """What the managed compiler's tested models say; the least of several lengths."""
    workload, where = baseline.workload, baseline.training.instance_type
    model = workload.model.name
    options = [
        (ratio, row.native_batch, row.compiled_batch)
        for row, ratio in baseline.facts.tested(workload.framework, model, where)
        if row.native_batch and row.native_batch >= batch
    ]
    if not options:
        return f"no tested model shows which batch of {model} fits {where}"
    growth, native, compiled = min(options)
    return (
        growth,
        f"the tested models list {model} on {where} with {native} samples per GPU without and "
        f"{compiled} with the compiler",
    )


def _precisions(baseline: CandidateJob) -> Iterator[Lever]:
    """Half precision where fp32 is all there is, fp8 for a transformer that has left fp32."""
    gpu = map_optional(baseline.instance, lambda one: one.gpu)
    precision = baseline.training.precision
    if gpu is None:
        return
    has = f"{gpu.name} (compute capability"
    if precision in ("fp32", "tf32"):
        why = f"the job trains in {precision} and the {gpu.name} computes bf16 in its tensor cores"
        lacks = f"{has} {gpu.compute_capability}) does not compute bf16 in hardware"
        yield Lever("bf16", {"precision": "bf16"}, why, "" if gpu.bf16 else lacks)
    elif precision in ("fp16", "bf16") and baseline.workload.model.family == "transformer":
        why = f"a transformer in {precision} on a GPU with fp8 ({gpu.name}); the script needs it"
        lacks = f"{has} {gpu.compute_capability}) has no fp8"
        yield Lever("fp8", {"precision": "fp8"}, why, "" if gpu.fp8 else lacks)
