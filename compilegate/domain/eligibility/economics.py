"""The economics of a workload before any run (docs/contracts.md)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from compilegate.domain.compilers import compute_speedup
from compilegate.domain.economics import Range, payback_days
from compilegate.domain.eligibility.candidate_job import CandidateJob
from compilegate.domain.eligibility.overhead import BreakEven, Overhead
from compilegate.domain.formats import significant
from compilegate.domain.planning.plan import expected_usd

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
    waits_measured = profile is not None and (
        profile.data_wait_fraction is not None or profile.communication_fraction is not None
    )
    return plausible.high if waits_measured and plausible is not None else None


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
        none = first.workload.profile is None
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
