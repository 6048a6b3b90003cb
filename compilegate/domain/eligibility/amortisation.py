"""Is a run long enough to earn back what compiling costs it?"""

from __future__ import annotations

from dataclasses import dataclass

from compilegate.domain.economics import break_even_seconds
from compilegate.domain.eligibility.context import Context
from compilegate.domain.eligibility.reason import Reason, block, warn


@dataclass(frozen=True)
class BreakEven:
    """Seconds of a baseline run from which compiling pays, at the best plausible speed-up."""

    warm_seconds: float
    cold_seconds: float


def break_even(context: Context) -> BreakEven | None:
    """None where there is nothing to compile or nothing to gain."""
    overhead, plausible = context.overhead, context.plausible_speedup
    if overhead is None or plausible is None:
        return None
    warm = break_even_seconds(overhead.warm_seconds, plausible.high)
    cold = break_even_seconds(overhead.cold_seconds, plausible.high)
    return None if warm is None or cold is None else BreakEven(warm, cold)


def amortisation_rule(context: Context) -> tuple[Reason, ...]:
    """Too short even with a warm cache stands in the way; too short without one is a doubt."""
    found, overhead = break_even(context), context.overhead
    if found is None or overhead is None:
        return ()
    run = context.workload.schedule.run_hours * 3600
    if run <= found.warm_seconds:
        return (
            block(
                "run_too_short", "schedule.run_hours",
                f"a run of {_time(run)} is over before compiling has paid: even at "
                f"{_time(overhead.warm_seconds)} a run for compiling, break-even is "
                f"{_time(found.warm_seconds)}",
                fix="compile longer runs only; this one is best left alone",
                source=overhead.basis,
            ),
        )  # fmt: skip
    if run <= found.cold_seconds:
        return (
            warn(
                "run_too_short", "schedule.run_hours",
                f"a run of {_time(run)} can pay if compiling costs it "
                f"{_time(overhead.warm_seconds)} (break-even {_time(found.warm_seconds)}), not "
                f"if it costs {_time(overhead.cold_seconds)} (break-even "
                f"{_time(found.cold_seconds)})",
                fix="keep a compile cache between runs where the compiler has one, and judge "
                "whole runs",
                source=overhead.basis,
            ),
        )  # fmt: skip
    return ()


def _time(seconds: float) -> str:
    if seconds < 120:
        return f"{seconds:.3g} s"
    return f"{seconds / 60:.3g} min" if seconds < 7200 else f"{seconds / 3600:.3g} h"
