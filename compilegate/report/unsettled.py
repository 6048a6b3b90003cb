"""What would settle a trial that proved nothing yet."""

from __future__ import annotations

from collections.abc import Iterator

from compilegate.report.case import Case
from compilegate.report.easier_proof import easier_proof, worth_the_price
from compilegate.report.formats import count, money, number, ratio, significant
from compilegate.report.measured import Measured

QUALITY_OPEN = {"quality_inconclusive", "quality_unsettled", "underpowered"}
WHOLE_JOBS = {"full_run_disagrees", "full_run_unmeasured"}
OUT_OF_TIME = {"trial_over_time", "too_many_rounds"}


def would_settle(case: Case) -> Iterator[str]:
    """Sentences, the one about what ended the trial first."""
    codes = case.own_codes
    step = case.decision.get("next")
    if step:
        why = step.get("why") or "more evidence"
        yield f"Next: {why}{_price(number(step.get('usd')))}."
    yield from _limits(codes)
    if "saving_below_trial_cost" in codes:
        yield from worth_the_price(case)
    elif codes & QUALITY_OPEN and not codes & WHOLE_JOBS:
        more = not codes & OUT_OF_TIME
        if more:
            yield from _runs_needed(case)
        yield from easier_proof(case, with_runs=more)
    if codes & {"speed_inconclusive", "speed_unsettled"}:
        yield from _steadier_blocks(case.measured)
    if "baseline_failed" in codes:
        yield "A baseline that trains to the end: mend the job first, then run the trial again."
    if codes & WHOLE_JOBS:
        yield (
            "Whole jobs that gain as the blocks do: start-up, evaluation and saving take their "
            "share; a longer run or faster start-up would show the gain."
        )


def _limits(codes: set[str]) -> Iterator[str]:
    if codes & {"trial_over_budget", "price_unknown"}:
        yield "A trial within its cap: raise policy.max_trial_usd, or name fewer candidates."
    if "trial_over_time" in codes:
        yield (
            "Shorter rounds: a training.max_runtime_hours close to what a run really takes, since "
            "a round begins only if it is sure to end in time; or fewer candidates."
        )
    if "too_many_rounds" in codes:
        yield "Fewer rounds: name fewer candidates; jobs that fail or are stopped use rounds up."


def _runs_needed(case: Case) -> Iterator[str]:
    needed = number(case.quality.get("runs_needed"))
    provable = number(case.quality.get("provable_margin"))
    runs = case.quality.get("runs") or {}
    have = min((number(runs.get(arm)) or 0 for arm in ("baseline", "candidate")), default=0)
    per_run = number((case.evidence.get("plan") or {}).get("usd_per_quality_run"))
    if needed is not None and needed > have:
        more = needed - have
        cost = None if per_run is None else 2 * more * per_run
        yield (
            f"More runs: {count(needed)} per arm would prove a margin of {_margin(case)} with "
            f"80 % chance if nothing is lost, {count(more)} more than there are{_price(cost)}."
        )
    elif needed is None and provable is not None:
        yield (
            f"More runs are hopeless: {case.metric} varies so much from seed to seed that over "
            f"500 runs per arm would be needed for a margin of {_margin(case)}."
        )


def _steadier_blocks(measured: Measured | str) -> Iterator[str]:
    if isinstance(measured, str):
        return
    values = list(measured.speedups(measured.lead).values())
    spread = f" (from {ratio(min(values))} to {ratio(max(values))})" if len(values) > 1 else ""
    yield f"Steadier or more blocks: the speed-up differs from block to block{spread}."


def _margin(case: Case) -> str:
    margin = number(case.quality.get("margin"))
    return "unknown size" if margin is None else significant(margin)


def _price(usd: float | None) -> str:
    return "" if usd is None else f" (about {money(usd)})"
