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
from operator import itemgetter
from typing import Any

from compilegate.domain.compilers import COMPILERS
from compilegate.domain.eligibility.candidate_job import PROFILE, WORKLOAD_FILE, CandidateJob
from compilegate.domain.eligibility.frameworks import compiler_instead
from compilegate.domain.formats import money
from compilegate.domain.planning.arms import scaled_learning_rate
from compilegate.domain.planning.plan import expected_usd
from compilegate.domain.reasons import Reason, Severity, block, info, warn
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
    used, instance = baseline.workload.profile.peak_memory_gib, baseline.instance
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


# What else changes with the batch: learning rate, number of steps, warm-up and memory.

TESTED = "training-compiler-support.md of the SageMaker developer guide"
SCALING_SOURCE = "Goyal et al. 2017, linear scaling with gradual warm-up"
# Bytes of a number, to tell which precisions take more memory; masters and optimizer aside.
WIDTHS = {"fp32": 4, "tf32": 4, "fp16": 2, "bf16": 2, "fp8": 1}
# Hyperparameters that count steps, each of more samples in a larger batch; the reason's code.
COUNTS_OF_STEPS = {
    **dict.fromkeys(
        ("steps", "full_run_steps", "max_steps", "max_train_steps", "num_train_steps",
         "num_training_steps", "max_iters"),
        "run_length_unscaled",
    ),
    **dict.fromkeys(
        ("warmup_steps", "num_warmup_steps", "lr_warmup_steps", "warmup_iters"),
        "warmup_unscaled",
    ),
}  # fmt: skip
# Batches that one optimizer step adds up.
ACCUMULATION = "gradient_accumulation_steps"


def learning_rate_rule(job: CandidateJob) -> Iterator[Reason]:
    """Another global batch is another training recipe: the learning rate must follow, warmed up."""
    devices, base_devices = job.devices, job.baseline.devices
    if devices is None or base_devices is None:
        return
    base, scaling = job.workload.training, job.candidate.learning_rate_scaling
    before, after = base.batch_size * base_devices, job.training.batch_size * devices
    if before == after:
        return
    change = f"the global batch goes from {before} to {after} samples"
    if scaling in ("linear", "sqrt"):
        rate = scaled_learning_rate(base.learning_rate, after / before, scaling)
        yield info(
            "learning_rate_warmup", job.field("learning_rate_scaling"), source=SCALING_SOURCE,
            change=change, learning_rate=base.learning_rate, rate=rate, scaling=scaling,
        )  # fmt: skip
        return
    keep, same = "keep the global batch", before / devices
    if devices != base_devices and same.is_integer():
        keep += f" with batch_size: {same:.0f}"
    yield warn(
        "learning_rate_unscaled", job.field("batch_size"),
        source=f"{WORKLOAD_FILE}; {SCALING_SOURCE}", change=change, keep=keep,
    )  # fmt: skip


def tested_rule(job: CandidateJob) -> Iterator[Reason]:
    """For some models the managed compiler fits a smaller batch than the framework alone."""
    model, where = job.workload.model.name, job.training.instance_type
    rows = job.facts.tested(job.framework, model, where) if job.runs_managed else []
    ratio, row = min(rows, key=itemgetter(0), default=(1.0, None))
    if row is None or ratio >= 1:
        return
    instead = compiler_instead(job)
    keep = "keep the batch size and watch peak memory"
    if job.training.batch_size > row.compiled_batch:
        keep = f"set batch_size: {row.compiled_batch} on the candidate, with learning_rate_scaling"
    length = f" at sequence length {row.sequence_length}" if row.sequence_length else ""
    yield warn(
        "batch_may_shrink", job.field("batch_size"), source=TESTED,
        fix=f"{keep}, or try {instead}" if instead else keep, model=row.model,
        instance_type=row.instance_type, length=length, compiled_batch=row.compiled_batch,
        native_batch=row.native_batch,
    )  # fmt: skip


def memory_rule(job: CandidateJob) -> Iterator[Reason]:
    """Whether the batch fits the GPU, judged by the baseline's peak memory.

    Weights and optimizer do not grow with the batch, so the peak times the batch's growth is an
    upper bound, and the peak itself a lower one for a batch no smaller.
    """
    peak, instance = job.workload.profile.peak_memory_gib, job.instance
    memory = None if instance is None else instance.gpu_memory_gib
    own, base = job.training, job.workload.training
    width, base_width = WIDTHS[own.precision], WIDTHS[base.precision]
    if peak is None or memory is None or instance is None or width > base_width:
        return
    growth, source = own.batch_size / base.batch_size, f"{PROFILE}; {instance.source}"
    if growth >= 1 and peak > memory and width == base_width:
        yield block(
            "memory_headroom", job.field("instance_type"), "too_small", source=source, peak=peak,
            memory=memory, instance_type=instance.instance_type,
        )  # fmt: skip
    elif peak * max(growth, 1.0) > memory:
        yield warn(
            "memory_headroom", job.field("batch_size"), "may_be_too_small", source=source,
            batch_size=own.batch_size, grown=peak * max(growth, 1.0),
            instance_type=instance.instance_type, memory=memory, peak=peak,
            fitting=int(base.batch_size * memory / peak),
        )  # fmt: skip


def step_count_rule(job: CandidateJob) -> Iterator[Reason]:
    """The same number of larger steps is a longer run, or a longer warm-up."""
    growth = _growth(job)
    own, base = job.candidate.hyperparameters, job.workload.training.hyperparameters
    if growth is None or growth == 1:
        return
    for name, code in COUNTS_OF_STEPS.items():
        count = _count(base.get(name))
        ignored = name == "steps" and _count(base.get("epochs"))  # as this project's scripts do
        if name not in own and count and not ignored:
            yield warn(
                code, job.field("batch_size"), source=WORKLOAD_FILE, name=name, count=count,
                growth=growth, fewer=max(1, round(count / growth)),
            )  # fmt: skip


def _growth(job: CandidateJob) -> float | None:
    """Samples of a step, the candidate's over the baseline's; None where devices are unknown."""

    def samples(run: CandidateJob) -> int | None:
        added = _count(run.training.hyperparameters.get(ACCUMULATION)) or 1
        return None if run.devices is None else run.training.batch_size * run.devices * added

    after, before = samples(job), samples(job.baseline)
    return None if after is None or before is None else after / before


def _count(value: Any) -> int:
    """A whole number above 0, however it is written; 0 where it is not one."""
    try:
        number = 0.0 if isinstance(value, bool) else float(value)
    except (TypeError, ValueError):
        return 0
    return int(number) if number > 0 and number.is_integer() else 0
