"""Is a run long enough to earn back what compiling costs it?"""

from __future__ import annotations

from dataclasses import dataclass

from compilegate.domain.economics import break_even_seconds
from compilegate.domain.eligibility.context import WORKLOAD_FILE, Context
from compilegate.domain.formats import duration
from compilegate.domain.reasons import Reason, block, info, warn

MODES_SOURCE = "pytorch.org/get-started/pytorch-2.0, section on the compile modes"


@dataclass(frozen=True)
class BreakEven:
    """Seconds of a baseline run from which compiling pays, at the best plausible speed-up.

    ``sure_seconds`` is what a run must exceed: from the measured overhead where there is one,
    else from the largest that is assumed.
    """

    sure_seconds: float
    warm_seconds: float
    cold_seconds: float


def break_even(context: Context) -> BreakEven | None:
    """None where there is nothing to compile or nothing to gain."""
    overhead, plausible = context.overhead, context.plausible_speedup
    if overhead is None or plausible is None:
        return None
    limits = [
        break_even_seconds(seconds, plausible.high)
        for seconds in (overhead.sure_seconds, overhead.warm_seconds, overhead.cold_seconds)
    ]
    sure, warm, cold = limits
    return None if sure is None or warm is None or cold is None else BreakEven(sure, warm, cold)


def amortisation_rule(context: Context) -> tuple[Reason, ...]:
    """A run must outlast the break-even of what is known, or of the worst that is assumed."""
    breaks_even, overhead = break_even(context), context.overhead
    if breaks_even is None or overhead is None:
        return ()
    run = context.workload.schedule.run_hours * 3600
    if run <= breaks_even.sure_seconds:
        price = "is measured to cost" if overhead.warm_is_measured else "may cost"
        fix = "compile longer runs only"
        if not overhead.warm_is_measured:
            fix += "; if compiling is measured to take less, set profile.compile_seconds"
        return (
            block(
                "run_too_short", "schedule.run_hours",
                f"a run of {duration(run)} is too short: compiling {price} a run "
                f"{duration(overhead.sure_seconds)}, and at best only runs longer than "
                f"{duration(breaks_even.sure_seconds)} save time",
                fix=fix, source=overhead.basis,
            ),
        )  # fmt: skip
    if run <= breaks_even.cold_seconds:
        return (
            warn(
                "run_too_short", "schedule.run_hours",
                f"a run of {duration(run)} at best pays when compiling takes the measured "
                f"{duration(overhead.warm_seconds)} (break-even "
                f"{duration(breaks_even.warm_seconds)}), not when it takes "
                f"{duration(overhead.cold_seconds)} without a cache (break-even "
                f"{duration(breaks_even.cold_seconds)})",
                fix="keep the compile cache between runs and compare full runs",
                source=overhead.basis,
            ),
        )  # fmt: skip
    return ()


def mode_rule(context: Context) -> tuple[Reason, ...]:
    """Two of torch.compile's modes have a price of their own."""
    mode = context.candidate.compile_mode
    if mode == "max-autotune":
        return (
            info(
                "compile_mode_cost", context.field("compile_mode"),
                "max-autotune compiles for a long time; the assumed overhead is that of the "
                "default mode",
                fix="try the default mode first, or measure it and set profile.compile_seconds",
                source=MODES_SOURCE,
            ),
        )  # fmt: skip
    if mode == "reduce-overhead":
        static = context.workload.shapes.static
        make = info if static else warn
        doubt = "" if static else "; it records one CUDA graph for each shape"
        return (
            make(
                "compile_mode_cost", context.field("compile_mode"),
                f"reduce-overhead uses more GPU memory than the default mode{doubt}",
                fix="watch peak memory" + ("" if static else ", and keep shapes static"),
                source=MODES_SOURCE if static else f"{MODES_SOURCE}; {WORKLOAD_FILE}",
            ),
        )  # fmt: skip
    return ()
