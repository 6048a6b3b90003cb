"""The economics of a workload before any run (design contract, section 4)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from compilegate.domain.economics import (
    Range,
    annual_training_usd,
    payback_days,
    saved_share,
    trial_usd,
)
from compilegate.domain.eligibility.amortisation import BreakEven, break_even
from compilegate.domain.eligibility.context import Context


@dataclass(frozen=True)
class Economics:
    """USD, minutes and days; what is not known is None and ``unknown`` says why."""

    annual_training_usd: float | None
    plausible_annual_saving_usd: Range | None
    plausible_speedup: Range | None
    trial_usd: float | None
    break_even: BreakEven | None
    payback_days: float | None
    prices_as_of: str | None
    price_source: str | None
    assumptions: tuple[str, ...] = ()
    unknown: Mapping[str, str] = field(default_factory=dict)

    def to_dict(self) -> dict[str, Any]:
        """The contract's keys, and beside them what the figures rest on."""
        broken = self.break_even
        return {
            "annual_training_usd": self.annual_training_usd,
            "plausible_annual_saving_usd": _pair(self.plausible_annual_saving_usd),
            "trial_usd": self.trial_usd,
            "break_even_run_minutes": None if broken is None else broken.warm_seconds / 60,
            "payback_days": self.payback_days,
            "prices_as_of": self.prices_as_of,
            "price_source": self.price_source,
            "plausible_speedup": _pair(self.plausible_speedup),
            "break_even_run_minutes_cold": None if broken is None else broken.cold_seconds / 60,
            "assumptions": list(self.assumptions),
            "unknown": dict(self.unknown),
        }


def economics_of(contexts: Sequence[Context], tried: Sequence[Context]) -> Economics:
    """Economics of the candidates a trial would include; of all, if none may be tried.

    Saving and break-even are the most promising candidate's. Payback is the trial's price
    over the saving at the speed-up that just earns promotion, or the plausible one if lower.
    """
    first = contexts[0]
    tried = tried or [found for found in contexts if found.plausible_speedup is not None]
    schedule, price, base = first.workload.schedule, first.base_price, first.base_usd_per_hour
    hopeful = [found for found in tried if found.plausible_speedup is not None]
    lead = max(hopeful, key=_promise, default=None)
    speedup = lead.plausible_speedup if lead else None
    annual = (
        None
        if base is None
        else annual_training_usd(base, schedule.run_hours, schedule.runs_per_week)
    )
    trial = _trial(base, tried, schedule.run_hours)
    saving = payback = None
    if annual is not None and speedup is not None:
        saving = Range(annual * saved_share(speedup.low), annual * saved_share(speedup.high))
        earned = min(speedup.high, first.workload.policy.promote_speedup)
        payback = None if trial is None else payback_days(trial, annual * saved_share(earned))
    return Economics(
        annual_training_usd=annual,
        plausible_annual_saving_usd=saving,
        plausible_speedup=speedup,
        trial_usd=trial,
        break_even=break_even(lead) if lead else None,
        payback_days=payback,
        prices_as_of=price.as_of if price else None,
        price_source=price.source if price else None,
        assumptions=_assumptions(lead),
        unknown=_unknown(first, lead, tried, trial),
    )


def _promise(context: Context) -> tuple[float, float]:
    """The largest plausible speed-up first, then the cheapest compilation."""
    plausible, overhead = context.plausible_speedup, context.overhead
    return (
        plausible.high if plausible else 0.0,
        -overhead.warm_seconds if overhead else 0.0,
    )


def _trial(base: float | None, tried: Sequence[Context], run_hours: float) -> float | None:
    prices = [context.usd_per_hour for context in tried]
    known = [usd for usd in prices if usd is not None]
    if base is None or not prices or len(known) < len(prices):
        return None
    return trial_usd([base, *known], run_hours)


def _assumptions(lead: Context | None) -> tuple[str, ...]:
    if lead is None:
        return ()
    overhead, speedup = lead.overhead, lead.facts.compute_speedup(lead.compiler)
    return tuple(
        text
        for text in (
            overhead
            and f"compile overhead {overhead.warm_seconds:g} to "
            f"{overhead.cold_seconds:g} s per run; {overhead.basis}",
            speedup
            and f"compute {speedup.low:g} to {speedup.high:g} times as fast; {speedup.basis}",
        )
        if text
    )


def _unknown(
    first: Context, lead: Context | None, tried: Sequence[Context], trial: float | None
) -> dict[str, str]:
    base_type = first.workload.training.instance_type
    reasons: dict[str, str] = {}
    if first.base_price is None:
        no_price = f"no price is known for {base_type}"
        keys = ("annual_training_usd", "plausible_annual_saving_usd", "trial_usd", "payback_days")
        reasons = dict.fromkeys((*keys, "prices_as_of"), no_price)
    elif first.base_price.as_of is None:
        reasons["prices_as_of"] = f"the price's source is undated: {first.base_price.source}"
    if lead is None:
        why = (
            "no candidate switches a compiler on with all else as it is"
            if first.has_graph
            else "there is no graph to compile"
        )
        for key in (
            "plausible_annual_saving_usd", "plausible_speedup", "break_even_run_minutes",
            "break_even_run_minutes_cold", "payback_days",
        ):  # fmt: skip
            reasons.setdefault(key, why)
    if trial is None:
        why = "a candidate's price is not known" if tried else "there is nothing to try"
        reasons.setdefault("trial_usd", why)
        reasons.setdefault("payback_days", why)
    return reasons


def _pair(value: Range | None) -> list[float] | None:
    return None if value is None else [value.low, value.high]
