"""Could the saving ever pay for the trial, and may the trial cost that much?"""

from __future__ import annotations

from compilegate.domain.economics import annual_training_usd, saved_share, trial_usd
from compilegate.domain.eligibility.context import WORKLOAD_FILE, Context
from compilegate.domain.eligibility.reason import Reason, block, warn

PRICE_FIX = "give its price per hour under facts.prices here, or under price_overrides in cdk.json"


def saving_rule(context: Context) -> tuple[Reason, ...]:
    """The best plausible year must pay for the trial, else the honest answer is not to measure."""
    base, own, plausible = (
        context.base_usd_per_hour,
        context.usd_per_hour,
        context.plausible_speedup,
    )
    if base is None or own is None or plausible is None:
        return ()
    schedule = context.workload.schedule
    share = saved_share(plausible.high)
    annual = annual_training_usd(base, schedule.run_hours, schedule.runs_per_week)
    trial = trial_usd([base, own], schedule.run_hours)
    if annual * share >= trial:
        return ()
    return (
        block(
            "saving_below_trial_cost", "schedule.runs_per_week",
            f"the best plausible saving, {_usd(annual * share)} a year, is less than the "
            f"{_usd(trial)} that measuring it may cost",
            fix="not worth a benchmark at this schedule; ask again when the job runs more often",
            source="price facts and the workload's schedule",
        ),
    )  # fmt: skip


def budget_rule(context: Context) -> tuple[Reason, ...]:
    """A trial above the cap will be refused at planning; better known now."""
    base, own = context.base_usd_per_hour, context.usd_per_hour
    if base is None or own is None:
        return ()
    cap = context.workload.policy.max_trial_usd
    trial = trial_usd([base, own], context.workload.schedule.run_hours)
    if trial <= cap:
        return ()
    return (
        warn(
            "trial_over_budget", "policy.max_trial_usd",
            f"a trial of this candidate may cost {_usd(trial)}, the cap is {_usd(cap)}",
            fix="raise policy.max_trial_usd, or measure on a shorter or smaller run",
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


def _usd(amount: float) -> str:
    return f"${amount:,.2f}"
