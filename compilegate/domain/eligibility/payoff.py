"""Could compiling pay: where a step's time goes, whether shapes repeat, how long a run is, money.

A compiler speeds up computing and nothing else (Amdahl), and compiles again for every new shape.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace

from compilegate.domain.compilers import compute_speedup
from compilegate.domain.economics import amdahl_speedup
from compilegate.domain.eligibility.candidate_job import PROFILE, WORKLOAD_FILE, CandidateJob
from compilegate.domain.eligibility.overhead import BreakEven, Overhead
from compilegate.domain.formats import duration, money, percent, significant
from compilegate.domain.judging.power import allowed_runs
from compilegate.domain.reasons import Reason, Severity, block, info, warn

WORTH_SAYING = 0.25  # below a quarter of a step, waiting hardly moves the ceiling
LOW_UTILIZATION = 0.5
FIXES = {
    "data_bound": "fix the loader first (workers, prefetch, local or sharded data)",
    "communication_bound": "fix communication first (larger batch, fewer syncs, fewer nodes)",
}
AUGMENTED_FAMILIES = ("vision", "diffusion")
UNPROVEN_FAMILIES = ("custom", "diffusion")
# Upper bound on the hours of the speed blocks of baseline, candidate and control.
BLOCK_HOURS = 4.0
# A cluster that must be faster than that to be promoted is hardly worth its trial.
UNLIKELY_SPEEDUP = 3.0
PITFALLS = "training-compiler-tips-pitfalls.md of the SageMaker developer guide"
MODES_SOURCE = "pytorch.org/get-started/pytorch-2.0, section on the compile modes"
POWER = "the judge's own design (domain/judging/power.py)"


def bottleneck_rule(job: CandidateJob) -> Iterator[Reason]:
    """The largest speed-up this job could see, and whether that could ever be promoted."""
    if job.plausible_speedup is None:
        return
    most, required = job.plausible_speedup.high, job.workload.policy.promote_speedup
    data, communication = job.waits
    waiting = min(1.0, data + communication)
    if waiting >= WORTH_SAYING:
        code, share, key = max(
            ("data_bound", data, "data_wait_fraction"),
            ("communication_bound", communication, "communication_fraction"),
            key=lambda wait: wait[1],
        )
        yield Reason(
            code,
            f"{percent(waiting, 2)} of a step waits for data or communication, so a compiler could "
            f"make the job at most {most:.2f} times as fast (Amdahl's law)"
            + (f", below policy.promote_speedup ({required:.2f})" if most < required else ""),
            severity=Severity.BLOCK if most < required else Severity.WARN,
            field=f"profile.{key}",
            fix=f"{FIXES[code]}: worth up to {percent(share, 2)} of a run's time",
            source=PROFILE,
        )
    elif most < required:
        assumed = compute_speedup(job.compiler)
        waits = f", {percent(waiting, 2)} of a step waiting," if waiting else ""
        yield block(
            "speedup_below_policy", "policy.promote_speedup",
            f"a compiler is assumed to make the job{waits} at most {most:.2f} times as fast, less "
            f"than policy.promote_speedup ({required:.2f})",
            fix=f"set it to {math.floor(most * 100) / 100:.2f} or less",
            source=f"{WORKLOAD_FILE}; {assumed.basis if assumed else ''}",
        )  # fmt: skip
    yield from _idle(job, waiting)


def _idle(job: CandidateJob, explained: float) -> Iterator[Reason]:
    """An idle GPU without explanation: small kernels would gain, host work would not."""
    profile = job.workload.profile
    used = None if profile is None else profile.gpu_utilization
    if used is None or used >= LOW_UTILIZATION or explained > (1 - used) / 2:
        return  # a wait that explains most of it is reported on its own
    assumed = compute_speedup(job.compiler)
    busy = amdahl_speedup(used, assumed.high if assumed else 1.0)
    yield warn(
        "low_gpu_utilization", "profile.gpu_utilization",
        f"the GPU is busy {percent(used, 2)} of the time, and waiting for data or "
        f"communication explains only {percent(explained, 2)} of a step; a compiler that "
        f"leaves the rest idle makes the job {busy:.2f} times as fast (Amdahl's law)",
        fix="find out what the GPU waits for: a compiler helps with many small kernels, not "
        "with slow data or host work",
        source=PROFILE,
    )  # fmt: skip


def family_rule(job: CandidateJob) -> Iterator[Reason]:
    """Families without a published gain."""
    family = job.workload.model.family
    if job.compiled and family in UNPROVEN_FAMILIES:
        yield warn(
            "family_unproven", "model.family",
            f"models of family {family} gain from compilation in some cases and lose in others",
            fix="measure it; the speed gate is cheap",
            source="the managed compiler's tested models list no diffusion or custom model",
        )  # fmt: skip


def shapes_rule(job: CandidateJob) -> Iterator[Reason]:
    """Each new tensor shape compiles again."""
    shapes = job.workload.shapes
    if not job.compiled or not job.has_graph:
        return
    if not shapes.static:
        yield warn(
            "dynamic_shapes", "shapes.static",
            "shapes change from step to step; every new one may recompile and use up the gain",
            fix="pad to a few fixed lengths and report non-padding tokens, or measure it as is",
            source=WORKLOAD_FILE,
        )  # fmt: skip
    if shapes.padding == "longest":
        yield warn(
            "padding_longest", "shapes.padding",
            "padding to the longest sample of a batch gives almost every batch a new shape",
            fix="padding: max_length or a few buckets (more padding also slows the baseline)",
            source=PITFALLS,
        )  # fmt: skip
    if not shapes.drop_last:
        yield info(
            "ragged_last_batch", "shapes.drop_last",
            "the last, smaller batch of an epoch has a different shape and recompiles",
            fix="drop_last: true in training", source=WORKLOAD_FILE,
        )  # fmt: skip
    augmented = job.workload.model.family in AUGMENTED_FAMILIES
    if shapes.static and shapes.padding == "none" and augmented:
        yield warn(
            "shapes_by_augmentation", "shapes.padding",
            "only the augmentation (crop, resize) keeps the shapes equal",
            fix="check that every augmentation path ends in one size, evaluation included",
            source=WORKLOAD_FILE,
        )  # fmt: skip
    if shapes.loader == "custom":
        yield warn(
            "custom_loader", "shapes.loader",
            "a custom data loader may be the bottleneck, and may change shapes unnoticed",
            fix="measure it and set profile.data_wait_fraction; the run counts recompilations",
            source=WORKLOAD_FILE,
        )  # fmt: skip


def amortisation_rule(job: CandidateJob) -> Iterator[Reason]:
    """A run must outlast the measured break-even, or the one of the worst assumption."""
    run = job.workload.schedule.run_hours * 3600
    if job.break_even is None or job.overhead is None:
        return
    if run <= job.break_even.sure_seconds:
        yield _too_short(run, job.break_even, job.overhead)
    elif run <= job.break_even.cold_seconds:
        limits, overhead = job.break_even, job.overhead
        yield warn(
            "run_too_short", "schedule.run_hours",
            f"a run of {duration(run)} at best pays when compiling takes the measured "
            f"{duration(overhead.warm_seconds)} (break-even {duration(limits.warm_seconds)}), not "
            f"when it takes {duration(overhead.cold_seconds)} without a cache (break-even "
            f"{duration(limits.cold_seconds)})",
            fix="keep the compile cache between runs and compare full runs",
            source=overhead.basis,
        )  # fmt: skip


def _too_short(run: float, limits: BreakEven, overhead: Overhead) -> Reason:
    measured, fix = overhead.warm_is_measured, "compile longer runs only"
    if not measured:
        fix += "; if compiling is measured to take less, set profile.compile_seconds"
    return block(
        "run_too_short", "schedule.run_hours",
        f"a run of {duration(run)} is too short: compiling "
        f"{'is measured to cost' if measured else 'may cost'} a run "
        f"{duration(overhead.sure_seconds)}, and at best only runs longer than "
        f"{duration(limits.sure_seconds)} save time",
        fix=fix, source=overhead.basis,
    )  # fmt: skip


def mode_rule(job: CandidateJob) -> Iterator[Reason]:
    """Two of torch.compile's modes have a price of their own."""
    mode, static = job.candidate.compile_mode, job.workload.shapes.static
    if mode == "max-autotune":
        yield info(
            "compile_mode_cost", job.field("compile_mode"),
            "max-autotune compiles for a long time; the assumed overhead is that of the "
            "default mode",
            fix="try the default mode first, or measure it and set profile.compile_seconds",
            source=MODES_SOURCE,
        )  # fmt: skip
    elif mode == "reduce-overhead" and static:
        yield info(
            "compile_mode_cost", job.field("compile_mode"),
            "reduce-overhead uses more GPU memory than the default mode",
            fix="watch peak memory", source=MODES_SOURCE,
        )  # fmt: skip
    elif mode == "reduce-overhead":
        yield warn(
            "compile_mode_cost", job.field("compile_mode"),
            "reduce-overhead uses more GPU memory than the default mode; it records one CUDA "
            "graph for each shape",
            fix="watch peak memory, and keep shapes static",
            source=f"{MODES_SOURCE}; {WORKLOAD_FILE}",
        )  # fmt: skip


def saving_rule(job: CandidateJob) -> Iterator[Reason]:
    """The best plausible year must pay for the trial, else the trial is not worth its price."""
    saving = job.plausible_saving
    if job.too_few_runs:
        yield block(
            "saving_below_trial_cost", "schedule.runs_per_week",
            f"not worth a benchmark: {job.workload.schedule.runs_per_week:g} runs a week leave "
            "too few in a year to prove quality on",
            fix="leave things as they are; check again when the job runs more often", source=POWER,
        )  # fmt: skip
    elif (
        saving is not None
        and saving.high < most_trial_usd(job)
        and job.trial_usd is not None
        and saving.high < job.trial_usd
    ):
        yield block(
            "saving_below_trial_cost", "schedule.runs_per_week",
            f"not worth a benchmark: the best plausible saving, {money(saving.high)} a year, is "
            f"less than the {money(job.trial_usd)} that measuring it is expected to cost",
            fix="leave the compiler off at this schedule; check again when the job runs more often",
            source="price facts and the workload's schedule",
        )  # fmt: skip


def most_trial_usd(job: CandidateJob) -> float:
    """An upper bound of ``trial_usd``, USD, at a small part of its computation.

    Every full run that policy allows, of baseline and candidate, and twice the hours that the
    blocks of both and of a control take (estimate.py), with a first compilation as long as the
    profile says, all at the baseline's price or the candidate's, whichever is higher.
    """
    rates = (job.baseline.usd_per_hour or math.inf, job.usd_per_hour or math.inf)
    runs = allowed_runs(replace(job.workload.policy, quality_runs="shadow"))
    full = 2 * runs * job.workload.schedule.run_hours
    profile = job.workload.profile
    compiling = 0.0 if profile is None else (profile.compile_seconds_cold or 0.0) / 3600
    return max(rates) * (full + BLOCK_HOURS + compiling)


def price_rule(job: CandidateJob) -> Iterator[Reason]:
    """Without a price there are no economics."""
    if job.usd_per_hour is None:
        yield warn(
            "price_unknown", job.field("instance_type"),
            f"there is no price of {job.training.instance_type}; economics stay empty and no "
            "trial can be planned",
            fix="set its price per hour under facts.prices here, or under price_overrides in "
            "cdk.json",
            source=f"price facts as of {job.facts.as_of}",
        )  # fmt: skip


def cluster_price_rule(job: CandidateJob) -> Iterator[Reason]:
    """A dearer cluster must be faster by its price as well before it can be promoted."""
    now, then = job.baseline.usd_per_hour, job.usd_per_hour
    if job.same_cluster or now is None or then is None:
        return
    needed = then / now * job.workload.policy.promote_speedup
    if needed > UNLIKELY_SPEEDUP:
        yield warn(
            "cluster_too_dear", job.field("instance_type"),
            f"the cluster costs {significant(then / now)} times as much an hour, so it would have "
            f"to be {significant(needed)} times as fast to be promoted",
            fix="use a smaller or cheaper cluster, unless you expect such a speed-up",
            source="price facts and policy.promote_speedup",
        )  # fmt: skip
