"""Could compiling pay: where a step's time goes, whether shapes repeat, how long a run is, money.

A compiler speeds up computing and nothing else (Amdahl), and compiles again for every new shape.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from compilegate.domain.compilers import compute_speedup
from compilegate.domain.economics import Range, amdahl_speedup, payback_days
from compilegate.domain.eligibility.candidate_job import (
    PROFILE,
    WORKLOAD_FILE,
    BreakEven,
    CandidateJob,
    Overhead,
)
from compilegate.domain.formats import percent, significant
from compilegate.domain.judging.statistics import allowed_runs
from compilegate.domain.planning.plan import expected_usd
from compilegate.domain.reasons import Reason, Severity, block, info, warn
from compilegate.domain.workload.model import Profile

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
POWER = "the judge's own design (domain/judging/statistics.py)"


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
    used = job.workload.profile.gpu_utilization
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
    compiling = (job.workload.profile.compile_seconds_cold or 0.0) / 3600
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


# The economics of a workload before any run (docs/contracts.md).

SAVING_KEYS = (
    "plausible_annual_saving_usd", "plausible_speedup", "break_even_run_minutes",
    "break_even_run_minutes_warm", "break_even_run_minutes_cold", "payback_days",
    "largest_speedup", "compile_seconds",
)  # fmt: skip


@dataclass(frozen=True)
class Economics:
    """USD, minutes and days; ``unknown`` says why a figure is None."""

    annual_training_usd: float | None
    plausible_annual_saving_usd: Range | None
    plausible_speedup: Range | None
    largest_speedup: float | None
    trial_usd: float | None
    break_even: BreakEven | None
    overhead: Overhead | None
    payback_days: float | None
    region: str
    prices_region: str | None
    prices_as_of: str | None
    price_source: str | None
    assumptions: tuple[str, ...] = ()
    unknown: Mapping[str, str] = field(default_factory=dict)
    # The speed-up that ``payback_days`` is at.
    payback_speedup: float | None = None

    def to_dict(self) -> dict[str, Any]:
        """The contract's keys, and beside them what the figures rest on.

        ``break_even_run_minutes`` is the one that a run must exceed to be eligible;
        ``largest_speedup`` is Amdahl's bound from the profile; ``region`` is the job's.
        """
        broken = self.break_even
        return {
            "annual_training_usd": self.annual_training_usd,
            "plausible_annual_saving_usd": _pair(self.plausible_annual_saving_usd),
            "trial_usd": self.trial_usd,
            "break_even_run_minutes": None if broken is None else broken.sure_seconds / 60,
            "payback_days": self.payback_days,
            "region": self.region,
            "prices_region": self.prices_region,
            "prices_as_of": self.prices_as_of,
            "price_source": self.price_source,
            "plausible_speedup": _pair(self.plausible_speedup),
            "largest_speedup": self.largest_speedup,
            "break_even_run_minutes_warm": None if broken is None else broken.warm_seconds / 60,
            "break_even_run_minutes_cold": None if broken is None else broken.cold_seconds / 60,
            "compile_seconds": self.overhead
            and {
                "warm": self.overhead.warm_seconds,
                "cold": self.overhead.cold_seconds,
                "measured": self.overhead.measured,
            },
            "assumptions": list(self.assumptions),
            "unknown": dict(self.unknown),
        }


def economics_of(jobs: Sequence[CandidateJob], tried: Sequence[CandidateJob]) -> Economics:
    """Economics of the candidates a trial would include; of all, if none may be tried.

    Saving, ceiling and break-even are the most promising candidate's. Payback is the trial's
    price over the saving at the speed-up that just earns promotion, None where none is plausible.
    """
    first = jobs[0]
    tried = tried or [job for job in jobs if job.plausible_speedup is not None]
    price = first.baseline.price
    lead = max((job for job in tried if job.plausible_speedup), key=_promise, default=None)
    candidates = [job.candidate for job in tried]
    trial = expected_usd(first.workload, candidates, first.facts, region=first.region)
    return Economics(
        annual_training_usd=first.annual_usd,
        plausible_annual_saving_usd=lead.plausible_saving if lead else None,
        plausible_speedup=lead.plausible_speedup if lead else None,
        largest_speedup=_ceiling(lead) if lead else None,
        trial_usd=trial,
        break_even=lead.break_even if lead else None,
        overhead=lead.overhead if lead else None,
        payback_days=_payback(lead, trial) if lead else None,
        region=first.region,
        prices_region=price.region if price else None,
        prices_as_of=price.as_of if price else None,
        price_source=price.source if price else None,
        assumptions=tuple(_assumptions(lead)) if lead else (),
        unknown=_unknown(first, lead, tried, trial),
        payback_speedup=lead.workload.policy.promote_speedup if lead else None,
    )


def _promise(job: CandidateJob) -> tuple[float, float]:
    """The largest plausible speed-up first, then the cheapest compilation."""
    plausible, overhead = job.plausible_speedup, job.overhead
    return plausible.high if plausible else 0.0, -overhead.sure_seconds if overhead else 0.0


def _ceiling(job: CandidateJob) -> float | None:
    """The largest speed-up that Amdahl's law leaves this job; None without a share of waiting.

    How busy the GPU is bounds nothing: fusing many small kernels also fills what was idle.
    """
    profile, plausible = job.workload.profile, job.plausible_speedup
    waits = (profile.data_wait_fraction, profile.communication_fraction)
    return plausible.high if waits != (None, None) and plausible is not None else None


def _payback(lead: CandidateJob, trial: float | None) -> float | None:
    required, plausible = lead.workload.policy.promote_speedup, lead.plausible_speedup
    saving = lead.saving_usd(required)
    if saving is None or trial is None or plausible is None or required > plausible.high:
        return None
    return payback_days(trial, saving)


def _assumptions(lead: CandidateJob) -> Iterator[str]:
    overhead, speedup = lead.overhead, compute_speedup(lead.compiler)
    if overhead:
        warm, cold = f"{overhead.warm_seconds:g} s of a run", f"{overhead.cold_seconds:g} s"
        same = overhead.warm_seconds == overhead.cold_seconds
        seconds = warm if same else f"{warm} with a cache, {cold} without"
        yield f"compiling takes {seconds}; {overhead.basis}"
    if speedup:
        yield f"compute {speedup.low:g} to {speedup.high:g} times as fast; {speedup.basis}"


def _unknown(
    first: CandidateJob,
    lead: CandidateJob | None,
    tried: Sequence[CandidateJob],
    trial: float | None,
) -> dict[str, str]:
    base_type, price = first.workload.training.instance_type, first.baseline.price
    reasons: dict[str, str] = {}
    if price is None:
        no_price = f"there is no price of {base_type}"
        keys = ("annual_training_usd", "plausible_annual_saving_usd", "trial_usd", "payback_days")
        reasons = dict.fromkeys((*keys, "prices_as_of", "prices_region"), no_price)
    else:
        if price.as_of is None:
            reasons["prices_as_of"] = f"the price's source is undated: {price.source}"
        if price.region is None:
            reasons["prices_region"] = f"the price's source names no region: {price.source}"
    if lead is None:
        why = (
            "no candidate turns on a compiler and changes nothing else"
            if first.has_graph
            else "there is no graph to compile"
        )
        for key in SAVING_KEYS:
            reasons.setdefault(key, why)
    elif _ceiling(lead) is None:
        none = first.workload.profile == Profile()
        why = "there is no profile" if none else "the profile gives no share of a step that waits"
        reasons["largest_speedup"] = why
    if lead is not None and trial is not None and _payback(lead, trial) is None:
        reasons.setdefault("payback_days", _never_paid_back(lead))
    if trial is None:
        why = "a candidate could not be planned" if tried else "there is no candidate"
        reasons.setdefault("trial_usd", why)
        reasons.setdefault("payback_days", why)
    return reasons


def _never_paid_back(lead: CandidateJob) -> str:
    earned, plausible = lead.workload.policy.promote_speedup, lead.plausible_speedup
    if plausible is not None and earned > plausible.high:
        return (
            f"policy.promote_speedup requires {earned:g} times the speed, "
            f"and at most {significant(plausible.high)} is plausible"
        )
    return f"at {earned:g} times the speed a run saves no more than compiling costs it"


def _pair(value: Range | None) -> list[float] | None:
    return None if value is None else [value.low, value.high]
