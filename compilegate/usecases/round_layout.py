"""How the jobs of a trial's next round are laid out within the quotas that its plan recorded."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from compilegate.domain import naming
from compilegate.domain.planning.arm_plan import ArmPlan
from compilegate.domain.planning.layout import Cluster, max_concurrency, waves
from compilegate.domain.planning.speed_jobs import cluster
from compilegate.usecases import evidence_document
from compilegate.usecases.job_limits import speed_jobs_of
from compilegate.usecases.trial import OpenTrial


@dataclass(frozen=True)
class Layout:
    """How many jobs of the round run at the same time, and how many in turn in one place."""

    at_once: int
    waves: int


def layout_of_step(
    step: Mapping[str, Any], document: evidence_document.Document, opened: OpenTrial
) -> Layout:
    """The layout of a step that the judge asks for, before its requests are written."""
    if step["stage"] == "speed":
        clusters = [job.arms[0].cluster for job in speed_jobs_of(step, document, opened)]
    else:
        by_name = {arm.name: arm for arm in _arms(opened.plan)}
        clusters = [by_name[run["arm"]].cluster for run in step["runs"]]
    return _layout(clusters, opened.plan)


def layout_of_runs(runs: Sequence[Mapping[str, str]], plan: Mapping[str, Any]) -> Layout:
    """The layout of the runs that a round consists of."""
    arms = _arms(plan)
    return _layout([cluster(naming.parse_run(run["run"]), arms) for run in runs], plan)


def _layout(clusters: Sequence[Cluster], plan: Mapping[str, Any]) -> Layout:
    quotas = {str(need["instance_type"]): need["quota"] for need in plan.get("quotas", ())}
    at_once = max_concurrency(clusters, quotas.get)
    return Layout(at_once, waves(len(clusters), at_once))


def _arms(plan: Mapping[str, Any]) -> list[ArmPlan]:
    return [ArmPlan.from_dict(arm) for arm in plan["arms"]]
