"""Candidates for a workload that names none: what the facts allow, one factor at a time.

First the compiler alone at the same batch, which is the control for the larger batch that comes
next, then other levers, if a compiler applies. Each says why it is there; what is left out says
why not. At most three, because they share the trial's error, and only as many as
policy.max_trial_usd is likely to pay.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from compilegate.domain.compilers import COMPILERS
from compilegate.domain.eligibility.candidate_job import CandidateJob
from compilegate.domain.formats import money
from compilegate.domain.planning.plan import expected_usd
from compilegate.domain.reasons import Reason, Severity
from compilegate.domain.workload.model import Candidate

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
Judge = Callable[[Candidate], Sequence[Reason]]


@dataclass(frozen=True)
class Option:
    """A candidate and why it is tried, or why it is not (``why_not``)."""

    name: str
    changes: dict[str, Any]
    why: str = ""
    why_not: str = ""

    @property
    def candidate(self) -> Candidate:
        """The candidate that the workload file could have named."""
        return Candidate(name=self.name, **self.changes)


@dataclass(frozen=True)
class Derived:
    """Candidates with why they are there, and what was left out with why not."""

    candidates: tuple[tuple[Candidate, str], ...]
    left_out: tuple[tuple[str, str], ...]


def derive(baseline: CandidateJob, judge: Judge) -> Derived:
    """The candidates of a workload that names none; ``judge`` gives a candidate's reasons.

    Where none applies the first compiler alone is returned, so that its reasons are shown.
    """
    kept: list[Option] = []
    left: list[tuple[str, str]] = []
    for option in _options(baseline, kept):
        why_not = option.why_not or _obstacle(option, judge(option.candidate))
        if not why_not and len(kept) == MOST:
            why_not = f"at most {MOST} candidates are derived; name it under candidates to include "
            "it"
        if why_not:
            left.append((option.name, why_not))
        else:
            kept.append(option)
    while len(kept) > 1 and (over := _over_the_cap(baseline, kept)):
        left.append((kept.pop().name, over))
    shown = kept or _compilers(baseline)[:1]
    names = {option.name for option in shown}
    return Derived(
        tuple((option.candidate, option.why) for option in shown),
        tuple((name, why_not) for name, why_not in left if name not in names),
    )


def _options(baseline: CandidateJob, kept: Sequence[Option]) -> Iterator[Option]:
    """In the order of the plan; ``kept`` grows while this runs."""
    if not baseline.has_graph:
        return
    yield from _compilers(baseline)
    if not kept:
        return  # first show what keeps a compiler from paying, before any other lever
    yield _larger_batch(baseline, kept[0])
    yield from _precisions(baseline)


def _compilers(baseline: CandidateJob) -> list[Option]:
    """Each compiler alone; TensorFlow begins with those that are part of no other framework."""
    tensorflow = baseline.workload.framework.kind == "tensorflow"
    return [
        Option(one.proposal.candidate, {"compiler": one.name}, one.proposal.why)
        for one in sorted(COMPILERS.values(), key=lambda one: tensorflow and one.kind is not None)
        if one.proposal is not None
    ]


def _obstacle(option: Option, reasons: Sequence[Reason]) -> str:
    """Why the candidate is not eligible; empty where it is."""
    for reason in reasons:
        work = "compiler" in option.changes and reason.code in WORK_TO_DO
        if work or reason.severity is Severity.BLOCK:
            return reason.message
    return ""


def _over_the_cap(baseline: CandidateJob, kept: Sequence[Option]) -> str:
    workload, cap = baseline.workload, baseline.workload.policy.max_trial_usd
    candidates = [option.candidate for option in kept]
    usd = expected_usd(workload, candidates, baseline.facts, region=baseline.region)
    if usd is None or usd <= cap:
        return ""
    return (
        f"with it the trial would cost about {money(usd)}, more than the {money(cap)} of "
        "policy.max_trial_usd"
    )


def _larger_batch(baseline: CandidateJob, compiler: Option) -> Option:
    """Compiler and batch together: a bundle, read beside the compiler alone."""
    batch = baseline.workload.training.batch_size
    room = (
        _tested(baseline, batch)
        if compiler.changes["compiler"] == baseline.facts.managed.compiler
        else _headroom(baseline)
    )
    if isinstance(room, str):
        return Option("larger batch", {}, why_not=room)
    growth, basis = room
    larger = math.floor(batch * min(growth, MOST_GROWTH))
    if larger > BATCH_MULTIPLE:
        larger -= larger % BATCH_MULTIPLE
    if larger < LEAST_GROWTH * batch:
        return Option("larger batch", {}, why_not=f"{basis}, too little for a batch above {batch}")
    changes = {**compiler.changes, "batch_size": larger, "learning_rate_scaling": "linear"}
    return Option(
        f"{compiler.name}-b{larger}",
        changes,
        f"{basis}, so that {larger} samples a device should fit (now {batch}); a bundle of "
        f"compiler and batch, to compare with {compiler.name}; the learning rate grows linearly",
    )


def _headroom(baseline: CandidateJob) -> tuple[float, str] | str:
    """How much larger the batch may be if all memory in use grew with it, which errs low."""
    profile, instance = baseline.workload.profile, baseline.instance
    used = None if profile is None else profile.peak_memory_gib
    if used is None:
        return "profile.peak_memory_gib is not set, so the headroom is unknown"
    if instance is None or not instance.gpu_memory_gib:
        return f"the GPU memory of {baseline.training.instance_type} is not on file"
    room = instance.gpu_memory_gib
    return MEMORY_USED * room / used, f"{used:g} of {room:g} GiB of GPU memory are in use"


def _tested(baseline: CandidateJob, batch: int) -> tuple[float, str] | str:
    """What the managed compiler's tested models say; the least of several lengths."""
    workload = baseline.workload
    model, where = workload.model.name, baseline.training.instance_type
    rows = baseline.facts.tested(workload.framework, model, where)
    options = [
        (ratio, row.native_batch, row.compiled_batch)
        for ratio, row in rows
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


def _precisions(baseline: CandidateJob) -> Iterator[Option]:
    """Half precision where fp32 is all there is, fp8 for a transformer that has left fp32."""
    instance, precision = baseline.instance, baseline.training.precision
    if instance is None or instance.gpu is None:
        return
    gpu, has = instance.gpu, f"{instance.gpu.name} (compute capability"
    if precision in ("fp32", "tf32"):
        why = f"the job trains in {precision} and the {gpu.name} computes bf16 in its tensor cores"
        lacks = f"{has} {gpu.compute_capability}) does not compute bf16 in hardware"
        yield Option("bf16", {"precision": "bf16"}, why, "" if gpu.bf16 else lacks)
    elif precision in ("fp16", "bf16") and baseline.workload.model.family == "transformer":
        why = f"a transformer in {precision} on a GPU with fp8 ({gpu.name}); the script needs it"
        lacks = f"{has} {gpu.compute_capability}) has no fp8"
        yield Option("fp8", {"precision": "fp8"}, why, "" if gpu.fp8 else lacks)
