"""Is a run long enough to earn back what compiling costs it?"""

from __future__ import annotations

from dataclasses import dataclass

from compilegate.domain.economics import break_even_seconds
from compilegate.domain.eligibility.context import WORKLOAD_FILE, Context
from compilegate.domain.eligibility.reason import Reason, block, info, warn

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
    found = [
        break_even_seconds(seconds, plausible.high)
        for seconds in (overhead.sure_seconds, overhead.warm_seconds, overhead.cold_seconds)
    ]
    sure, warm, cold = found
    return None if sure is None or warm is None or cold is None else BreakEven(sure, warm, cold)


def amortisation_rule(context: Context) -> tuple[Reason, ...]:
    """A run must outlast the break-even of what is known, or of the worst that is assumed."""
    found, overhead = break_even(context), context.overhead
    if found is None or overhead is None:
        return ()
    run = context.workload.schedule.run_hours * 3600
    if run <= found.sure_seconds:
        known = "is measured to cost" if overhead.known else "may cost"
        fix = "compile longer runs only; this one is best left alone"
        if not overhead.known:
            fix += (
                ", unless compiling is measured to take less: put the seconds a compiled run took "
                "for it under profile.compile_seconds"
            )
        return (
            block(
                "run_too_short", "schedule.run_hours",
                f"a run of {_time(run)} is too short: compiling {known} a run "
                f"{_time(overhead.sure_seconds)}, and then, at best, only runs longer than "
                f"{_time(found.sure_seconds)} come out ahead",
                fix=fix, source=overhead.basis,
            ),
        )  # fmt: skip
    if run <= found.cold_seconds:
        return (
            warn(
                "run_too_short", "schedule.run_hours",
                f"a run of {_time(run)} at best pays when compiling takes the measured "
                f"{_time(overhead.warm_seconds)} (break-even {_time(found.warm_seconds)}), not "
                f"when it takes {_time(overhead.cold_seconds)} without a cache (break-even "
                f"{_time(found.cold_seconds)})",
                fix="keep the compile cache between runs, and judge whole runs",
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
                "max-autotune compiles for a long time; the overhead that is assumed here is the "
                "default mode's",
                fix="try the default mode first, or measure and give profile.compile_seconds",
                source=MODES_SOURCE,
            ),
        )  # fmt: skip
    if mode == "reduce-overhead":
        static = context.workload.shapes.static
        found = info if static else warn
        doubt = "" if static else "; it records CUDA graphs, one for each shape"
        return (
            found(
                "compile_mode_cost", context.field("compile_mode"),
                f"reduce-overhead takes some more GPU memory than the default mode{doubt}",
                fix="watch peak memory" + ("" if static else ", and keep shapes static"),
                source=MODES_SOURCE if static else f"{MODES_SOURCE}; {WORKLOAD_FILE}",
            ),
        )  # fmt: skip
    return ()


def _time(seconds: float) -> str:
    if seconds < 120:
        return f"{seconds:.3g} s"
    return f"{seconds / 60:.3g} min" if seconds < 7200 else f"{seconds / 3600:.3g} h"
