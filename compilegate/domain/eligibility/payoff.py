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
from compilegate.domain.formats import percent
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
            source=f"{WORKLOAD_FILE}; {assumed.basis if assumed else ''}", waits=waits, most=most,
            required=required, reachable=math.floor(most * 100) / 100,
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
        "low_gpu_utilization", "profile.gpu_utilization", source=PROFILE, used=used,
        explained=explained, busy=busy,
    )  # fmt: skip


def family_rule(job: CandidateJob) -> Iterator[Reason]:
    """Families without a published gain."""
    family = job.workload.model.family
    if job.compiled and family in UNPROVEN_FAMILIES:
        yield warn(
            "family_unproven", "model.family",
            source="the managed compiler's tested models list no diffusion or custom model",
            family=family,
        )  # fmt: skip


def shapes_rule(job: CandidateJob) -> Iterator[Reason]:
    """Each new tensor shape compiles again."""
    shapes = job.workload.shapes
    if not job.compiled or not job.has_graph:
        return
    if not shapes.static:
        yield warn("dynamic_shapes", "shapes.static", source=WORKLOAD_FILE)
    if shapes.padding == "longest":
        yield warn("padding_longest", "shapes.padding", source=PITFALLS)
    if not shapes.drop_last:
        yield info("ragged_last_batch", "shapes.drop_last", source=WORKLOAD_FILE)
    augmented = job.workload.model.family in AUGMENTED_FAMILIES
    if shapes.static and shapes.padding == "none" and augmented:
        yield warn("shapes_by_augmentation", "shapes.padding", source=WORKLOAD_FILE)
    if shapes.loader == "custom":
        yield warn("custom_loader", "shapes.loader", source=WORKLOAD_FILE)


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
            "run_too_short", "schedule.run_hours", "cold", source=overhead.basis, run=run,
            warm=overhead.warm_seconds, warm_break_even=limits.warm_seconds,
            cold=overhead.cold_seconds, cold_break_even=limits.cold_seconds,
        )  # fmt: skip


def _too_short(run: float, limits: BreakEven, overhead: Overhead) -> Reason:
    measured, fix = overhead.warm_is_measured, "compile longer runs only"
    if not measured:
        fix += "; if compiling is measured to take less, set profile.compile_seconds"
    return block(
        "run_too_short", "schedule.run_hours", "always", source=overhead.basis, fix=fix, run=run,
        costs="is measured to cost" if measured else "may cost", overhead=overhead.sure_seconds,
        break_even=limits.sure_seconds,
    )  # fmt: skip


def mode_rule(job: CandidateJob) -> Iterator[Reason]:
    """Two of torch.compile's modes have a price of their own."""
    mode, static = job.candidate.compile_mode, job.workload.shapes.static
    if mode == "max-autotune":
        yield info(
            "compile_mode_cost", job.field("compile_mode"), "max_autotune", source=MODES_SOURCE,
        )  # fmt: skip
    elif mode == "reduce-overhead" and static:
        yield info("compile_mode_cost", job.field("compile_mode"), "memory", source=MODES_SOURCE)
    elif mode == "reduce-overhead":
        yield warn(
            "compile_mode_cost", job.field("compile_mode"), "shapes",
            source=f"{MODES_SOURCE}; {WORKLOAD_FILE}",
        )  # fmt: skip


def saving_rule(job: CandidateJob) -> Iterator[Reason]:
    """The best plausible year must pay for the trial, else the trial is not worth its price."""
    saving = job.plausible_saving
    if job.too_few_runs:
        yield block(
            "saving_below_trial_cost", "schedule.runs_per_week", "few_runs", source=POWER,
            runs_per_week=job.workload.schedule.runs_per_week,
        )  # fmt: skip
    elif (
        saving is not None
        and saving.high < most_trial_usd(job)
        and job.trial_usd is not None
        and saving.high < job.trial_usd
    ):
        yield block(
            "saving_below_trial_cost", "schedule.runs_per_week", "small_saving",
            source="price facts and the workload's schedule", saving=saving.high,
            trial=job.trial_usd,
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
            source=f"price facts as of {job.facts.as_of}",
            instance_type=job.training.instance_type,
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
            source="price facts and policy.promote_speedup", price=then / now, needed=needed,
        )  # fmt: skip
