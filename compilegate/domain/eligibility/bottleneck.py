"""Where does a step's time go? A compiler speeds up computing, and nothing else (Amdahl)."""

from __future__ import annotations

import math

from compilegate.domain.economics import amdahl_speedup
from compilegate.domain.eligibility.context import PROFILE, WORKLOAD_FILE, Context
from compilegate.domain.formats import percent
from compilegate.domain.reasons import Reason, Severity, block, warn

WORTH_SAYING = 0.25  # below a quarter of a step, waiting hardly moves the ceiling
LOW_UTILIZATION = 0.5
FIXES = {
    "data_bound": "fix the loader first (workers, prefetch, local or sharded data)",
    "communication_bound": "fix communication first (larger batch, fewer syncs, fewer nodes)",
}


def bottleneck_rule(context: Context) -> tuple[Reason, ...]:
    """The largest speed-up this job could see, and whether that could ever be promoted."""
    plausible = context.plausible_speedup
    if plausible is None:
        return ()
    data, communication = context.waits
    waiting = min(1.0, data + communication)
    threshold = context.workload.policy.promote_speedup
    hopeless = plausible.high < threshold
    if waiting < WORTH_SAYING:
        return (*(_asks_too_much(context, plausible.high) if hopeless else ()), *_idle(context))
    code, share, name = max(
        ("data_bound", data, "data_wait_fraction"),
        ("communication_bound", communication, "communication_fraction"),
        key=lambda wait: wait[1],
    )
    field, fix = (
        f"profile.{name}",
        f"{FIXES[code]}: worth up to {percent(share, 2)} of a run's time",
    )
    message = (
        f"{percent(waiting, 2)} of a step waits for data or communication, so a compiler could "
        f"make the job at most {plausible.high:.2f} times as fast (Amdahl's law)"
    )
    if hopeless:
        message += f", below policy.promote_speedup ({threshold:.2f})"
    severity = Severity.BLOCK if hopeless else Severity.WARN
    return (Reason(code, message, None, severity, field, fix, PROFILE), *_idle(context))


def _asks_too_much(context: Context, most: float) -> tuple[Reason, ...]:
    """No waiting is to blame: policy wants more than any compiler is assumed to bring."""
    required, waiting = context.workload.policy.promote_speedup, min(1.0, sum(context.waits))
    waits = f", {percent(waiting, 2)} of a step waiting," if waiting else ""
    return (
        block(
            "speedup_below_policy", "policy.promote_speedup",
            f"a compiler is assumed to make the job{waits} at most {most:.2f} times as fast, less "
            f"than policy.promote_speedup ({required:.2f})",
            fix=f"set it to {math.floor(most * 100) / 100:.2f} or less",
            source=f"{WORKLOAD_FILE}; {_basis(context)}",
        ),
    )  # fmt: skip


def ceiling(context: Context) -> float | None:
    """The largest speed-up that Amdahl's law leaves this job; None without a share of waiting.

    How busy the GPU is bounds nothing: fusing many small kernels also fills what was idle.
    """
    profile, plausible = context.workload.profile, context.plausible_speedup
    waits_measured = profile is not None and (
        profile.data_wait_fraction is not None or profile.communication_fraction is not None
    )
    return plausible.high if waits_measured and plausible is not None else None


def _idle(context: Context) -> tuple[Reason, ...]:
    """An idle GPU that nobody has explained: small kernels would gain, host work would not."""
    profile = context.workload.profile
    used = None if profile is None else profile.gpu_utilization
    explained = min(1.0, sum(context.waits))
    if used is None or used >= LOW_UTILIZATION or explained > (1 - used) / 2:
        return ()  # most of the waiting is explained, and told apart
    busy = amdahl_speedup(used, _assumed(context))
    return (
        warn(
            "low_gpu_utilization", "profile.gpu_utilization",
            f"the GPU is busy {percent(used, 2)} of the time, and waiting for data or "
            f"communication explains only {percent(explained, 2)} of a step; a compiler that "
            f"leaves the rest idle makes the job {busy:.2f} times as fast (Amdahl's law)",
            fix="find out what the GPU waits for: a compiler helps with many small kernels, not "
            "with slow data or host work",
            source=PROFILE,
        ),
    )  # fmt: skip


def _assumed(context: Context) -> float:
    """How much faster this compiler may make the computing itself, at best."""
    assumed = context.facts.compute_speedup(context.compiler)
    return assumed.high if assumed else 1.0


def _basis(context: Context) -> str:
    assumed = context.facts.compute_speedup(context.compiler)
    return assumed.basis if assumed else ""
