"""Where does a step's time go? A compiler speeds up computing, and nothing else (Amdahl)."""

from __future__ import annotations

from compilegate.domain.eligibility.context import Context
from compilegate.domain.eligibility.reason import Reason, Severity

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
    if waiting < WORTH_SAYING:
        return _idle(context)
    code, share, name = max(
        ("data_bound", data, "data_wait_fraction"),
        ("communication_bound", communication, "communication_fraction"),
        key=lambda found: found[1],
    )
    threshold = context.workload.policy.promote_speedup
    hopeless = plausible.high < threshold
    message = (
        f"{waiting:.0%} of a step waits for data or communication, so a compiler could make the "
        f"job at most {plausible.high:.2f} times as fast (Amdahl's law)"
    )
    if hopeless:
        message += f", less than the {threshold:.2f} that policy.promote_speedup asks for"
    return (
        Reason(
            code,
            Severity.BLOCK if hopeless else Severity.WARN,
            f"profile.{name}",
            message,
            f"{FIXES[code]}: worth up to {share:.0%} of a run's time",
            "the workload's profile",
        ),
    )


def _idle(context: Context) -> tuple[Reason, ...]:
    """An idle GPU that nobody has explained: small kernels would gain, host work would not."""
    profile = context.workload.profile
    used = None if profile is None else profile.gpu_utilization
    if used is None or used >= LOW_UTILIZATION:
        return ()
    return (
        Reason(
            "low_gpu_utilization",
            Severity.WARN,
            "profile.gpu_utilization",
            f"the GPU is busy {used:.0%} of the time and the profile does not say why",
            "find out what it waits for: a compiler helps against many small kernels, not "
            "against slow data or work on the host",
            "the workload's profile",
        ),
    )
