"""Jobs of controls decide nothing: whatever they do leaves the round and the verdict alone.

A job that failed, was stopped, cut off or lost, or whose evidence is missing, broken or not its
own, leaves its control unmeasured in that block, with the reason.
"""

from __future__ import annotations

import copy
import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from compilegate.domain import naming
from compilegate.domain.errors import CompilegateError
from compilegate.domain.judging.judge import judge
from compilegate.domain.planning.arm_plan import ArmPlan
from compilegate.domain.planning.speed_jobs import controls_of
from compilegate.usecases import evidence_document
from compilegate.usecases.outcome import COMPLETED, Outcome

logger = logging.getLogger("compilegate")

# (arm, run) for every segment that a job left.
Segments = Callable[[], Iterable[tuple[str, Mapping[str, Any]]]]


def controls_of_run(run: naming.RunId, plan: Mapping[str, Any]) -> tuple[str, ...]:
    """Names of the controls that a run's job may measure, none for a job that decides."""
    return controls_of(run, [ArmPlan.from_dict(arm) for arm in plan["arms"]])


def deciding(outcomes: Sequence[Outcome], plan: Mapping[str, Any]) -> list[Outcome]:
    """The outcomes that may end a round or a trial: those of no control."""
    return [
        outcome
        for outcome in outcomes
        if not controls_of_run(naming.parse_run(str(outcome["run"])), plan)
    ]


def take_in_control(
    outcome: Outcome, document: dict[str, Any], block: int, names: Sequence[str], left: Segments
) -> None:
    """Add the segments that a control's job left, or why there are none; never raises."""
    job, reason = str(outcome["job"]), str(outcome.get("reason") or "no reason given")
    if outcome["status"] == COMPLETED:
        try:
            grown = _with_runs(document, left())
        except CompilegateError as error:
            reason = str(error)
        except Exception as error:  # a file that is no tarball, or breaks off
            logger.exception("no evidence of %s", job)
            reason = f"its evidence cannot be read: {error}"
        else:
            document["controls"] = grown
            return
    for name in names:
        evidence_document.add_failed_block(document, job, block, reason, name)


def _with_runs(
    document: Mapping[str, Any], runs: Iterable[tuple[str, Mapping[str, Any]]]
) -> list[dict[str, Any]]:
    """The controls with these runs; raises InvalidEvidenceError for what no judge can read."""
    grown = {**document, "controls": copy.deepcopy(document["controls"])}
    for name, run in runs:
        evidence_document.add_run(grown, name, run)
    judge(grown)
    return list(grown["controls"])
