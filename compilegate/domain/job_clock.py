"""Whether what a job says of its own time can be true, by what the service measured from outside.

A job's processes write their wall clock and the time of their steps themselves. Contradicted is
only what no job can do; the service's own times hold start-up, downloads and uploads as well.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from compilegate.domain.errors import InvalidEvidenceError

CODE = "clock_implausible"
WALL, STEPS = "wall_seconds", "step_seconds"
# The service rounds to seconds and its machines' clocks may run apart (NTP: far below a second).
ROUNDING_SECONDS, ROUNDING = 60.0, 0.01
# Seconds: Linux counts a process's age in hundredths (proc(5), SC_CLK_TCK), and the recorder's own
# two calls around a step take microseconds.
SHORTEST_RUN, SHORTEST_STEP = 0.01, 1e-6
# The service's phase Training is the container's life: the run, what starts it, and what a script
# does first in a process of its own. Fifteen minutes and a hundred times the run are neither.
UNEXPLAINED_SECONDS, LEAST_SHARE = 900.0, 0.01


def check_run(described: Mapping[str, Any], wall: float | None, record: Mapping[str, Any]) -> None:
    """Raises InvalidEvidenceError for a wall clock, in seconds, that cannot be true.

    ``described`` is SageMaker's description of the job, ``record`` the run as evidence has it; what
    they lack is not compared.
    """
    if wall is None:
        return
    longest, phase, stepping = _longest(described), _training_phase(described), _stepping(record)
    if wall < SHORTEST_RUN:
        raise _implausible(described, WALL, f"its run took {wall:g} s")
    if longest is not None and wall > longest:
        text = f"its run took {wall:,.0f} s, and the job {longest:,.0f} s"
        raise _implausible(described, WALL, text)
    if phase - wall > UNEXPLAINED_SECONDS and wall < LEAST_SHARE * phase:
        text = f"its run took {wall:,.1f} s of the {phase:,.0f} s in which its container trained"
        raise _implausible(described, WALL, text)
    if stepping > _with_room(wall):
        text = f"its run took {wall:,.1f} s, and the run's steps {stepping:,.1f} s"
        raise _implausible(described, WALL, text)


def check_steps(described: Mapping[str, Any], seconds: float, *, shortest: float | None) -> None:
    """As ``check_run`` for segments one after the other: all of their steps, and the shortest."""
    longest = _longest(described)
    if longest is not None and seconds > longest:
        text = f"its steps took {seconds:,.0f} s, and the job {longest:,.0f} s"
        raise _implausible(described, STEPS, text)
    if shortest is not None and shortest < SHORTEST_STEP:
        raise _implausible(described, STEPS, f"a step of it took {shortest:g} s")


def trained_seconds(described: Mapping[str, Any]) -> float | None:
    """How long the job's container trained by the service's own clock, in seconds.

    None where it says nothing of it, and where the container began more than once: what lies
    between two beginnings is no run's.
    """
    phases = [_between(one, "StartTime", "EndTime") for one in _training_phases(described)]
    return phases[0] if len(phases) == 1 else None


def _implausible(described: Mapping[str, Any], field: str, what: str) -> InvalidEvidenceError:
    job = described.get("TrainingJobName", "the job")
    return InvalidEvidenceError(f"{job}: {field} cannot be true: {what}", code=CODE)


def _longest(described: Mapping[str, Any]) -> float | None:
    """Seconds that a process of the job can have lived at most, None where unknown.

    ``TrainingTimeInSeconds`` is there once a job has ended. An interrupted spot job starts more
    than once: it has lived no longer than since it was created.
    """
    trained = described.get("TrainingTimeInSeconds")
    if not isinstance(trained, int | float):
        return None
    spot = described.get("EnableManagedSpotTraining") is True
    between = _between(
        described, "CreationTime" if spot else "TrainingStartTime", "TrainingEndTime"
    )
    return _with_room(max(trained, between or 0.0))


def _with_room(seconds: float) -> float:
    return seconds * (1 + ROUNDING) + ROUNDING_SECONDS


def _stepping(record: Mapping[str, Any]) -> float:
    """Seconds of the run's steps, by their sum and by the end of its loss curve; 0 if unknown."""
    summed, curve = record.get("seconds"), record.get("loss_curve")
    own = float(summed) if isinstance(summed, int | float) else 0.0
    return max(own, float(curve[-1][2]) if curve else 0.0)


def _training_phase(described: Mapping[str, Any]) -> float:
    """Seconds of the service's phase Training, 0 where it reports none."""
    phases = _training_phases(described)
    return sum(_between(phase, "StartTime", "EndTime") or 0.0 for phase in phases)


def _training_phases(described: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    phases = described.get("SecondaryStatusTransitions") or ()
    return [phase for phase in phases if phase.get("Status") == "Training"]


def _between(times: Mapping[str, Any], first: str, last: str) -> float | None:
    began, ended = times.get(first), times.get(last)
    if not isinstance(began, datetime) or not isinstance(ended, datetime):
        return None
    return (ended - began).total_seconds()
