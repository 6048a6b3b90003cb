"""What a run pays for compilation, and from which length on a run earns it back."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from compilegate.domain.compilers import COMPILERS, DEFAULT, keeps_cache
from compilegate.domain.compilers.descriptor import CompileOverhead
from compilegate.domain.economics import break_even_seconds
from compilegate.domain.planning.arm_plan import ArmPlan
from compilegate.domain.workload.model import Candidate, Workload


@dataclass(frozen=True)
class MeasuredOverhead:
    """Compile seconds per run that an earlier trial measured on one arm, None where it did not."""

    trial: str
    compiler: str
    compile_mode: str | None
    image: str
    warm_seconds: float | None
    cold_seconds: float | None


def measured_overheads(
    trial: str, figures: Iterable[Mapping[str, Any]], arms: Iterable[ArmPlan]
) -> Iterator[MeasuredOverhead]:
    """What a trial measured, by the judge's figures of its arms; raises KeyError for unnamed ones.

    A compiler that counted no time at all was not measured.
    """
    by_name = {arm.name: arm for arm in arms}
    for measured in figures:
        arm = by_name.get(str(measured["name"]))
        warm, cold = (measured.get(f"compile_seconds_{key}") or None for key in ("warm", "cold"))
        if arm is None or arm.compiler == "none" or (warm, cold) == (None, None):
            continue
        yield MeasuredOverhead(
            trial=trial,
            compiler=arm.compiler,
            compile_mode=arm.compile_mode,
            image=arm.image,
            warm_seconds=warm,
            cold_seconds=cold,
        )


@dataclass(frozen=True)
class Overhead:
    """Seconds per run with a compile cache (``warm``) and without (``cold``).

    ``warm_is_measured`` where the warm seconds were measured on this job; otherwise only the cold
    ones bound what a run pays. ``measured`` where either was.
    """

    warm_seconds: float
    cold_seconds: float
    warm_is_measured: bool
    basis: str
    measured: bool = True

    @property
    def sure_seconds(self) -> float:
        """What every run must be expected to pay: the measured figure, or the worst assumption."""
        return self.warm_seconds if self.warm_is_measured else self.cold_seconds


@dataclass(frozen=True)
class BreakEven:
    """Seconds of a baseline run from which compiling pays, at the best plausible speed-up.

    A run must exceed ``sure_seconds``: from the measured overhead where there is one, else from
    the largest that is assumed.
    """

    sure_seconds: float
    warm_seconds: float
    cold_seconds: float


def break_even(overhead: Overhead, speedup: float) -> BreakEven | None:
    """None where nothing is gained."""
    if speedup <= 1:
        return None
    return BreakEven(*(
        break_even_seconds(seconds, speedup) or 0.0
        for seconds in (overhead.sure_seconds, overhead.warm_seconds, overhead.cold_seconds)
    ))  # fmt: skip


def overhead_of(
    workload: Workload,
    candidate: Candidate,
    assumed: CompileOverhead | None,
    measured: Sequence[MeasuredOverhead],
    image: str | None,
) -> Overhead | None:
    """Profile first, then the last trial on the same image, then what is assumed of the compiler.

    None where the compiler has neither.
    """
    warm, cold, basis = _profiled(workload, candidate) or _from_trial(candidate, measured, image)
    if not keeps_cache(candidate.compiler):
        warm = cold = max((one for one in (warm, cold) if one is not None), default=None)
    if assumed is None:
        if warm is None:
            return None
        return Overhead(warm, max(warm, cold or 0.0), warm_is_measured=True, basis=basis)
    if warm is None and cold is None:
        return Overhead(
            assumed.warm_seconds, assumed.cold_seconds, False, assumed.basis, measured=False
        )
    if warm is None:
        return Overhead(min(assumed.warm_seconds, cold or 0.0), cold or 0.0, False, basis)
    if cold is None:
        cold, basis = assumed.cold_seconds, f"{basis}; without a cache: {assumed.basis}"
    return Overhead(warm, max(warm, cold), warm_is_measured=True, basis=basis)


# Warm and cold seconds, None where not measured, and where they come from.
_Measured = tuple[float | None, float | None, str]


def _profiled(workload: Workload, candidate: Candidate) -> _Measured | None:
    """The profile's figures; of two compilers they are taken to be the first one's."""
    profile = workload.profile
    seconds = profile and (profile.compile_seconds, profile.compile_seconds_cold)
    if profile is None or seconds == (None, None):
        return None
    used = {one.compiler for one in workload.candidates}
    profiled = next((name for name in COMPILERS if name in used), DEFAULT.name)
    if candidate.compiler != profiled:
        return None
    return profile.compile_seconds, profile.compile_seconds_cold, "measured: the profile"


def _from_trial(
    candidate: Candidate, measured: Sequence[MeasuredOverhead], image: str | None
) -> _Measured:
    """The largest figures of the newest trial that ran this compiler on this image."""
    alike = [
        one
        for one in measured
        if one.compiler == candidate.compiler
        and one.compile_mode == candidate.compile_mode
        and one.image == image
    ]
    if not alike:
        return None, None, ""
    trial = alike[-1].trial
    last = [one for one in alike if one.trial == trial]
    warm = [one.warm_seconds for one in last if one.warm_seconds is not None]
    cold = [one.cold_seconds for one in last if one.cold_seconds is not None]
    return max(warm, default=None), max(cold, default=None), f"measured in trial {trial}"
