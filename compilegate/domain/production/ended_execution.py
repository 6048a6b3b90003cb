"""What ends beside TRAIN's own steps: an execution that ended badly, a job of a team's pipeline."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Self

from compilegate.domain import naming
from compilegate.domain.facts import Facts, Price
from compilegate.domain.failures import ENDED, explain, job_end
from compilegate.domain.fields import Fields
from compilegate.domain.flag_change import Versions
from compilegate.domain.optional import map_optional, without_none
from compilegate.domain.outside import BROKEN
from compilegate.domain.production import attempts
from compilegate.domain.production.history import WorkloadHistory
from compilegate.domain.production.recorded_run import (
    billable_seconds,
    billed_usd,
    judged_result,
    times,
)
from compilegate.domain.records.production import TEAM, BegunRun, IgnoredJob, ProductionRun
from compilegate.domain.workload.model import Training, Workload


@dataclass(frozen=True)
class EndedExecution:
    """How it ended; ``workload`` is None where its input names none, as for a team's job."""

    execution: str
    workload: str | None
    status: str
    why: str

    @classmethod
    def from_event(cls, detail: Mapping[str, Any]) -> Self:
        """Read the ``detail`` of Step Functions' event."""
        execution = Fields(detail, "detail").text("executionArn")
        status = str(detail.get("status"))
        try:  # who starts an execution by hand may write any input
            document = json.loads(str(detail.get("input")))
        except BROKEN:
            document = None
        workload = document.get("workload") if isinstance(document, Mapping) else None
        return cls(
            execution=execution,
            workload=workload if isinstance(workload, str) else None,
            status=status,
            why=explain(str(detail.get("error") or status), str(detail.get("cause") or "")),
        )


def unrecorded_attempts(
    workload: str, begun: BegunRun, history: WorkloadHistory, jobs: Iterable[str]
) -> list[attempts.AttemptEnd]:
    """The attempts of a run that the ledger does not have.

    ``jobs`` are those of the run. Of a run without any job it is the first, which never was.
    """
    waits = history.waits_of(begun.run)
    recorded = {run.job for run in history.runs if run.run == begun.run}
    unrecorded = sorted({*jobs} - recorded - {wait.job for wait in waits})
    if not unrecorded and not recorded:
        unrecorded = [naming.job_base(workload, begun.run, naming.attempt(0))]
    return [
        attempts.AttemptEnd(
            workload, begun.run, job, attempts.attempt_of(attempts.attempt_number(job), waits)
        )
        for job in unrecorded
    ]


# What is recorded of a training job that a team's own pipeline has started: pure functions.

# Why a team's job trains its arm, and its arm where its tag is missing.
TEAM_STARTED, UNKNOWN_ARM = "team", "unknown"


def refusal(
    workload: str, described: Mapping[str, Any], tags: Mapping[str, str], *, stage: str
) -> str:
    """Why a job is not a team's production run of this workload and deployment; empty where it is.

    Every deployment of an account gets the events of every team's job; a job may name whose flag
    it read.
    """
    job, status = str(described["TrainingJobName"]), str(described["TrainingJobStatus"])
    if tags.get(naming.TAG_STAGE) != naming.TEAM_STAGE or tags.get(naming.TAG_WORKLOAD) != workload:
        return (
            f"{job} does not carry the tags {naming.TAG_STAGE}={naming.TEAM_STAGE} and "
            f"{naming.TAG_WORKLOAD}={workload}"
        )
    if status not in ENDED:
        return f"{job} has not ended ({status}): its end will be reported"
    followed = tags.get(naming.TAG_DEPLOYMENT)
    if followed not in (None, stage):
        return f"{job} followed the flag of the deployment {followed}, not of {stage}"
    return ""


def job_of_another_role(
    described: Mapping[str, Any], own: str, workload: Workload, *, now: int
) -> IgnoredJob | None:
    """A job that did not run as a role of its workload: ``own``, or the one that its file names.

    Tags say what a job claims to be, and who may start any job may claim it. Only those who
    may pass a role can run a job as it.
    """
    role = str(described.get("RoleArn"))
    if role in (own, workload.schedule.team_role):
        return None
    return IgnoredJob(now, str(described["TrainingJobName"]), role, "job_of_another_role")


def team_run(
    described: Mapping[str, Any],
    tags: Mapping[str, str],
    evidence: attempts.JobEvidence,
    training: Training,
    versions: Versions,
    *,
    facts: Facts,
    now: int,
) -> ProductionRun:
    """The record of a team's job; ``training`` is what is registered, ``facts`` have prices."""
    end, arm = job_end(described, "", ""), tags.get(naming.TAG_ARM)
    result, counts, reason = judged_result(end, evidence, None)
    cluster = described.get("ResourceConfig") or {}
    used = (cluster.get("InstanceType"), cluster.get("InstanceCount"))
    # An arm trains on the machines that are registered, with its latest flag's overrides.
    overrides = next(
        (one.flag.overrides for one in reversed(versions) if one.flag.candidate == arm), {}
    )
    expected = (
        str(overrides.get("instance_type") or training.instance_type),
        int(overrides.get("instance_count") or training.instance_count),
    )
    if arm is None:
        counts, reason = False, f"its tag {naming.TAG_ARM} is missing: the arm is not known"
    elif used != expected:
        counts = False
        reason = (
            f"it trained on {used[1]} of {used[0]}, and {arm} trains on {expected[1]} of "
            f"{expected[0]}: no evidence"
        )
    began, over = times(described, otherwise=float(now))
    return ProductionRun(
        run=naming.trial_id(int(began * 1000)),
        job=str(described["TrainingJobName"]),
        arm=arm or UNKNOWN_ARM,
        started_at=began,
        ended_at=over,
        result=result,
        counts=counts,
        why=TEAM_STARTED,
        launched_by=TEAM,
        status=end.status,
        reason=reason,
        decision_id=tags.get(naming.TAG_DECISION),
        instance_type=used[0],
        usd=_usd(described, facts.price(str(used[0]))),
        billable_seconds=billable_seconds(described),
        details={"ending": str(end.ending)},
        at=now,
    )


def _usd(described: Mapping[str, Any], price: Price | None) -> float | None:
    """What a job cost; None where it is not billed, has no price, or has groups of instances."""
    instances = (described.get("ResourceConfig") or {}).get("InstanceCount")
    each = billed_usd(described, map_optional(price, lambda one: one.usd_per_hour))
    factors = without_none((each, instances))
    return factors[0] * int(factors[1]) if len(factors) == 2 else None
