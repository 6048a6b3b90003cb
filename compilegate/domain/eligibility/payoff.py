"""Could compiling pay: where a step's time goes, how long a run is, money.

A compiler speeds up computing and nothing else (Amdahl).
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from compilegate.domain.codec import write
from compilegate.domain.economics import WEEKS_PER_YEAR, Range, amdahl_speedup, payback_days
from compilegate.domain.eligibility.job import BreakEven, CandidateJob, Overhead
from compilegate.domain.formats import significant
from compilegate.domain.judging.design import allowed_runs, design_for
from compilegate.domain.optional import map_optional
from compilegate.domain.planning.plan import expected_usd
from compilegate.domain.reasons import Reason, Severity
from compilegate.domain.workload.model import Profile

WORTH_SAYING = 0.25  # below a quarter of a step, waiting hardly moves the ceiling
LOW_UTILIZATION = 0.5
UNPROVEN_FAMILIES = ("custom", "diffusion")
# Upper bound on the hours of the speed blocks of baseline, candidate and control.
BLOCK_HOURS = 4.0
# A cluster that must be faster than that to be promoted is hardly worth its trial.
UNLIKELY_SPEEDUP = 3.0


def bottleneck_rule(job: CandidateJob) -> Iterator[Reason]:
    """The largest speed-up this job could see, and whether that could ever be promoted."""
    assumed = job.descriptor.compute_speedup
    if job.plausible_speedup is not None and assumed is not None:
        most, required = job.plausible_speedup.high, job.workload.policy.min_mean_speedup
        data, communication = job.waits
        waiting, below = min(1.0, data + communication), most < required
        if waiting >= WORTH_SAYING:
            yield job.finds(
                "data_bound" if data >= communication else "communication_bound",
                severity=Severity.BLOCK if below else Severity.WARN, waiting=waiting, most=most,
                required=required if below else None, share=max(data, communication),
            )  # fmt: skip
        elif below:
            yield job.finds(
                "speedup_below_policy", basis=assumed.basis, waiting=waiting or None, most=most,
                required=required, reachable=math.floor(most * 100) / 100,
            )  # fmt: skip
        # An idle GPU: small kernels would gain, host work would not. A wait that explains most of
        # it is reported on its own.
        used = job.workload.profile.gpu_utilization
        if used is not None and used < LOW_UTILIZATION and waiting <= (1 - used) / 2:
            busy = amdahl_speedup(used, assumed.high)
            yield job.finds("low_gpu_utilization", used=used, explained=waiting, busy=busy)
    if job.compiled and job.workload.model.family in UNPROVEN_FAMILIES:
        yield job.finds("family_unproven")


def amortisation_rule(job: CandidateJob) -> Iterator[Reason]:
    """A run must outlast the measured break-even, or the one of the worst assumption."""
    run, limits = job.workload.schedule.run_hours * 3600, job.break_even
    if limits is None:
        return
    overhead = limits.overhead
    if run <= limits.sure_seconds:
        measured, fix = overhead.warm_is_measured, "compile longer runs only"
        if not measured:
            fix += "; if compiling is measured to take less, set profile.compile_seconds"
        yield job.finds(
            "run_too_short", "always", source=overhead.basis, fix=fix, run=run,
            costs="is measured to cost" if measured else "may cost", overhead=overhead.sure_seconds,
            break_even=limits.sure_seconds,
        )  # fmt: skip
    elif run <= limits.cold_seconds:
        yield job.finds(
            "run_too_short", "cold", source=overhead.basis, run=run, warm=overhead.warm_seconds,
            warm_break_even=limits.warm_seconds, cold=overhead.cold_seconds,
            cold_break_even=limits.cold_seconds,
        )  # fmt: skip


def money_rule(job: CandidateJob) -> Iterator[Reason]:
    """The best plausible year must pay for the trial, a dearer cluster for itself."""
    policy, runs_per_week = job.workload.policy, job.workload.schedule.runs_per_week
    # An unknown saving is no reason, nor is an unknown price.
    best = job.plausible_saving.high if job.plausible_saving else math.inf
    remaining = runs_per_week * WEEKS_PER_YEAR
    if design_for(policy, history=0, candidates=1, runs_remaining=remaining) is None:
        yield job.finds("saving_below_trial_cost", "few_runs", runs_per_week=runs_per_week)
    elif best < most_trial_usd(job) and best < (job.trial_usd or 0.0):
        yield job.finds("saving_below_trial_cost", "small_saving", saving=best, trial=job.trial_usd)
    price = job.usd_per_hour
    if price is None:
        yield job.finds("price_unknown")
    elif not job.same_cluster:
        times = price / (job.baseline.usd_per_hour or math.inf)
        needed = times * policy.min_mean_speedup
        if needed > UNLIKELY_SPEEDUP:
            yield job.finds("cluster_too_dear", price=times, needed=needed)


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


# The economics of a workload before any run (docs/contracts.md).

OF_PRICES = (
    "annual_training_usd", "plausible_annual_saving_usd", "trial_usd", "payback_days",
    "prices_as_of", "prices_region",
)  # fmt: skip
OF_SAVING = (
    "plausible_annual_saving_usd", "plausible_speedup", "break_even_run_minutes",
    "break_even_run_minutes_warm", "break_even_run_minutes_cold", "payback_days",
    "largest_speedup", "compile_seconds",
)  # fmt: skip


@dataclass(frozen=True)
class Economics:
    """USD, minutes and days; ``unknown`` says why a figure is None.

    ``largest_speedup`` is Amdahl's bound from the profile, ``payback_speedup`` the speed-up that
    ``payback_days`` is at; ``region`` is the job's, ``run_hours`` are those of its schedule.
    """

    annual_training_usd: float | None
    trial_usd: float | None
    region: str
    prices_region: str | None
    prices_as_of: str | None
    price_source: str | None
    plausible_annual_saving_usd: Range | None = None
    plausible_speedup: Range | None = None
    largest_speedup: float | None = None
    break_even: BreakEven | None = None
    overhead: Overhead | None = None
    payback_days: float | None = None
    assumptions: tuple[str, ...] = ()
    unknown: Mapping[str, str] = field(default_factory=dict)
    payback_speedup: float | None = None
    run_hours: float | None = None

    def to_dict(self) -> dict[str, Any]:
        """The contract's keys, and beside them what the figures rest on.

        ``break_even_run_minutes`` is the one that a run must exceed to be eligible.
        """
        limits = self.break_even
        return {
            "annual_training_usd": self.annual_training_usd,
            "plausible_annual_saving_usd": write(self.plausible_annual_saving_usd),
            "trial_usd": self.trial_usd,
            "run_hours": self.run_hours,
            "break_even_run_minutes": map_optional(limits, lambda one: one.sure_seconds / 60),
            "payback_days": self.payback_days,
            "region": self.region,
            "prices_region": self.prices_region,
            "prices_as_of": self.prices_as_of,
            "price_source": self.price_source,
            "plausible_speedup": write(self.plausible_speedup),
            "largest_speedup": self.largest_speedup,
            "break_even_run_minutes_warm": map_optional(limits, lambda one: one.warm_seconds / 60),
            "break_even_run_minutes_cold": map_optional(limits, lambda one: one.cold_seconds / 60),
            "compile_seconds": map_optional(self.overhead, lambda one: {
                "warm": one.warm_seconds, "cold": one.cold_seconds, "measured": one.measured,
            }),
            "assumptions": list(self.assumptions),
            "unknown": dict(self.unknown),
        }  # fmt: skip


def economics_of(jobs: Sequence[CandidateJob], tried: Sequence[CandidateJob]) -> Economics:
    """Economics of the candidates a trial would include; of all, if none may be tried.

    Saving, ceiling and break-even are the most promising candidate's: the largest plausible
    speed-up first, then the cheapest compilation. Payback is the trial's price over the saving at
    the speed-up that just earns promotion, None where none is plausible.
    """
    first, unknown = jobs[0], dict[str, str]()
    tried = tried or [job for job in jobs if job.plausible_speedup]
    candidates = [job.candidate for job in tried]
    trial = expected_usd(first.workload, candidates, first.facts, region=first.region)
    price = first.facts.price(first.workload.training.instance_type)
    if price is None:
        no_price = f"there is no price of {first.workload.training.instance_type}"
        unknown |= dict.fromkeys(OF_PRICES, no_price)
    else:
        if not price.as_of:
            unknown["prices_as_of"] = f"the price's source is undated: {price.source}"
        if not price.region:
            unknown["prices_region"] = f"the price's source names no region: {price.source}"
    economics = Economics(
        annual_training_usd=first.annual_usd,
        trial_usd=trial,
        region=first.region,
        prices_region=price.region if price else None,
        prices_as_of=price.as_of if price else None,
        price_source=price.source if price else None,
        run_hours=first.workload.schedule.run_hours,
    )
    lead = max((job for job in tried if job.plausible_speedup), key=_promise, default=None)
    if lead is None:
        why = (
            "no candidate turns on a compiler and changes nothing else"
            if first.has_graph
            else "there is no graph to compile"
        )
        more = dict.fromkeys(OF_SAVING, why)
    else:
        economics = _with_saving(economics, lead)
        more = _unknown_saving(economics, lead)
    if trial is None:
        why = "a candidate could not be planned" if tried else "there is no candidate"
        more |= {key: why for key in ("trial_usd", "payback_days") if key not in more}
    return replace(economics, unknown={**unknown, **more, **unknown})


def _promise(job: CandidateJob) -> tuple[float, float]:
    plausible, overhead = job.plausible_speedup, job.overhead
    return plausible.high if plausible else 0.0, -overhead.sure_seconds if overhead else 0.0


def _with_saving(economics: Economics, lead: CandidateJob) -> Economics:
    """What the most promising candidate may bring.

    Amdahl's law bounds its speed-up where a share of a step is known to wait. How busy the GPU is
    bounds nothing: fusing many small kernels also fills what was idle.
    """
    profile, plausible = lead.workload.profile, lead.plausible_speedup
    most = plausible.high if plausible else 0.0
    waits = (profile.data_wait_fraction, profile.communication_fraction) != (None, None)
    required, trial = lead.workload.policy.min_mean_speedup, economics.trial_usd
    saving = (lead.saving_usd(required) or 0.0) if required <= most else 0.0
    return replace(
        economics,
        plausible_annual_saving_usd=lead.plausible_saving,
        plausible_speedup=plausible,
        largest_speedup=most if waits else None,
        break_even=lead.break_even,
        overhead=lead.overhead,
        payback_days=None if trial is None else payback_days(trial, saving),
        payback_speedup=required,
        assumptions=tuple(_assumptions(lead)),
    )


def _assumptions(lead: CandidateJob) -> Iterator[str]:
    overhead, speedup = lead.overhead, lead.descriptor.compute_speedup
    if overhead:
        warm, cold = f"{overhead.warm_seconds:g} s of a run", f"{overhead.cold_seconds:g} s"
        same = overhead.warm_seconds == overhead.cold_seconds
        seconds = warm if same else f"{warm} with a cache, {cold} without"
        yield f"compiling takes {seconds}; {overhead.basis}"
    if speedup:
        yield f"compute {speedup.low:g} to {speedup.high:g} times as fast; {speedup.basis}"


def _unknown_saving(economics: Economics, lead: CandidateJob) -> dict[str, str]:
    """Why figures of the most promising candidate are None."""
    unknown, required = {}, lead.workload.policy.min_mean_speedup
    most = economics.plausible_speedup.high if economics.plausible_speedup else 0.0
    if economics.largest_speedup is None:
        none = lead.workload.profile == Profile()
        why = "there is no profile" if none else "the profile gives no share of a step that waits"
        unknown["largest_speedup"] = why
    if economics.trial_usd is not None and economics.payback_days is None:
        unknown["payback_days"] = (
            f"policy.min_mean_speedup requires {required:g} times the speed, and at most "
            f"{significant(most)} is plausible"
            if required > most
            else f"at {required:g} times the speed a run saves no more than compiling costs it"
        )
    return unknown
