"""Could the saving ever pay for the trial, and may the trial cost that much?"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

from compilegate.domain.economics import Range, annual_saving_usd, annual_training_usd
from compilegate.domain.eligibility.context import WORKLOAD_FILE, Context
from compilegate.domain.formats import money, significant
from compilegate.domain.judging.power import allowed_runs
from compilegate.domain.reasons import Reason, block, warn

BLOCK_HOURS = 4.0
# A cluster that must be faster than that to be promoted is hardly worth its trial.
UNLIKELY_SPEEDUP = 3.0
PRICE_FIX = "give its price per hour under facts.prices here, or under price_overrides in cdk.json"


def saving_rule(context: Context) -> tuple[Reason, ...]:
    """The best plausible year must pay for the trial, else the honest answer is not to measure."""
    if context.too_few_runs:
        runs = context.workload.schedule.runs_per_week
        return (
            block(
                "saving_below_trial_cost", "schedule.runs_per_week",
                f"not worth a benchmark: {runs:g} runs a week leave too few in a year to prove "
                "quality on",
                fix="leave things as they are; ask again when the job runs more often",
                source="the judge's own design (domain/judging/power.py)",
            ),
        )  # fmt: skip
    saving = plausible_saving(context)
    if saving is None or saving.high >= most_trial_usd(context):
        return ()
    trial = context.trial_usd
    if trial is None or saving.high >= trial:
        return ()
    return (
        block(
            "saving_below_trial_cost", "schedule.runs_per_week",
            f"not worth a benchmark: the best plausible saving, {money(saving.high)} a year, is "
            f"less than the {money(trial)} that measuring it is expected to cost",
            fix="leave the compiler off at this schedule; ask again when the job runs more often",
            source="price facts and the workload's schedule",
        ),
    )  # fmt: skip


def most_trial_usd(context: Context) -> float:
    """A bound that no expected price of this candidate's trial exceeds, USD; quick to reckon.

    Every full run that policy allows, of baseline and candidate, and twice the hours that the
    blocks of both and of a control take (estimate.py), with a first compilation as long as the
    profile says, all at the baseline's price or the candidate's, whichever is higher.
    """
    rates = (context.baseline.usd_per_hour or math.inf, context.usd_per_hour or math.inf)
    runs = allowed_runs(replace(context.workload.policy, quality_runs="shadow"))
    full = 2 * runs * context.workload.schedule.run_hours
    profile = context.workload.profile
    compiling = 0.0 if profile is None else (profile.compile_seconds_cold or 0.0) / 3600
    return max(rates) * (full + BLOCK_HOURS + compiling)


def plausible_saving(context: Context) -> Range | None:
    """USD a year at the ends of the plausible speed-up, what compiling costs each run deducted.

    None where price or speed-up are unknown.
    """
    annual, plausible, overhead = annual_usd(context), context.plausible_speedup, context.overhead
    if annual is None or plausible is None:
        return None
    seconds = 0.0 if overhead is None else overhead.warm_seconds
    hours = context.workload.schedule.run_hours
    return Range(*(
        annual_saving_usd(annual, hours, speedup, seconds)
        for speedup in (plausible.low, plausible.high)
    ))  # fmt: skip


def annual_usd(context: Context) -> float | None:
    """What the job costs a year as it runs today, None without a price."""
    base, schedule = context.baseline.usd_per_hour, context.workload.schedule
    if base is None:
        return None
    return annual_training_usd(base, schedule.run_hours, schedule.runs_per_week)


def budget_reason(tried: Sequence[Context], trial: float | None) -> tuple[Reason, ...]:
    """A trial above the cap will be refused at planning; better known now."""
    cap = tried[0].workload.policy.max_trial_usd if tried else 0.0
    if trial is None or trial <= cap:
        return ()
    alone = [(one.trial_usd, one.candidate.name) for one in tried if one.trial_usd is not None]
    fewer = ""
    if len(tried) > 1 and alone:
        usd, name = min(alone)
        fewer = f", or name fewer candidates ({name} alone: {money(usd)})"
    return (
        warn(
            "trial_over_budget", "policy.max_trial_usd",
            f"measuring is expected to cost {money(trial)}, the cap is {money(cap)}",
            fix=f"raise policy.max_trial_usd, measure on a shorter or smaller run{fewer}",
            source=WORKLOAD_FILE,
        ),
    )  # fmt: skip


def price_rule(context: Context) -> tuple[Reason, ...]:
    """Without a price there are no economics, and none are made up."""
    if context.usd_per_hour is not None:
        return ()
    return (
        warn(
            "price_unknown", context.field("instance_type"),
            f"no price is known for {context.instance_type}; economics stay empty and no trial "
            "can be planned",
            fix=PRICE_FIX, source=f"price facts as of {context.facts.as_of}",
        ),
    )  # fmt: skip


def cluster_rule(context: Context) -> tuple[Reason, ...]:
    """A dearer cluster must be faster by its price as well before it can be promoted."""
    now, then = context.baseline.usd_per_hour, context.usd_per_hour
    if context.same_cluster or now is None or then is None:
        return ()
    dearer = then / now
    needed = dearer * context.workload.policy.promote_speedup
    if needed <= UNLIKELY_SPEEDUP:
        return ()
    return (
        warn(
            "cluster_too_dear", context.field("instance_type"),
            f"the cluster costs {significant(dearer)} times as much an hour, so it would have to "
            f"be {significant(needed)} times as fast to be promoted",
            fix="use a smaller or cheaper cluster, unless you expect such a speed-up",
            source="price facts and policy.promote_speedup",
        ),
    )  # fmt: skip
