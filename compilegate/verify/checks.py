"""What was seen of each assumption: one function per assumption that can be checked.

A check answers with a few words, the assumption's ``expected`` where it holds, and with details
for the record; None where what it looks at is missing.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Any

from compilegate.verify import job_checks
from compilegate.verify.job_checks import MISSING, THERE, Seen
from compilegate.verify.observed import Job, JobKind, Observations, RefusedKind
from compilegate.verify.run import TASK_OUTPUT

Check = Callable[[Observations], Seen | None]
JobCheck = Callable[[Job], Seen | None]


def _of(kind: JobKind, look: JobCheck, *, probe: bool = False) -> Check:
    """A check of one job; None where it did not start, or its probe reported nothing."""

    def check(observed: Observations) -> Seen | None:
        job = observed.jobs.get(kind)
        if job is None or not job.described or (probe and not job.report):
            return None
        return look(job)

    return check


def _billable(observed: Observations) -> Seen | None:
    seconds = {kind: job.described.get("BillableTimeInSeconds")
               for kind, job in observed.jobs.items() if job.described}  # fmt: skip
    if not seconds:
        return None
    return Seen(MISSING if None in seconds.values() else THERE,
                ", ".join(f"{kind} {value} s" for kind, value in seconds.items()))  # fmt: skip


def _fields(observed: Observations) -> Seen | None:
    jobs = [observed.jobs[kind] for kind in (JobKind.SPEED, JobKind.QUALITY, JobKind.FAILED)
            if kind in observed.jobs]  # fmt: skip
    if not jobs:
        return None
    refused = [job.execution for job in jobs if not job.described]
    return Seen(refused[0].error, refused[0].cause) if refused else Seen("accepted")


def _refusal(kind: RefusedKind) -> Check:
    def check(observed: Observations) -> Seen | None:
        execution = observed.refused.get(kind)
        if execution is None:
            return None
        return Seen(execution.error or execution.status, execution.cause)

    return check


def _token(observed: Observations) -> Seen | None:
    if observed.task_output is None:
        return None
    same = observed.task_output == TASK_OUTPUT
    return Seen("output as sent" if same else "another output", str(observed.task_output))


def _definitions(observed: Observations) -> Seen | None:
    if not observed.definitions:
        return None
    wrong = {name: answer for name, answer in observed.definitions.items() if answer != "OK"}
    return Seen("not OK", str(wrong)) if wrong else Seen("OK", ", ".join(observed.definitions))


def _job_event(observed: Observations) -> Seen | None:
    details = _details(observed.messages, "aws.sagemaker")
    if not details:
        return None
    tags = details[0].get("Tags")
    if isinstance(tags, Mapping):
        ours = "compilegate:workload" in tags
        return Seen("tags as a mapping" if ours else "other tags", ", ".join(tags))
    return Seen("no tags" if tags is None else "tags as another type", repr(tags))


def _execution_event(observed: Observations) -> Seen | None:
    details = _details(observed.messages, "aws.states")
    if not details:
        return None
    names = [name for name in ("error", "cause") if details[0].get(name)]
    return Seen(" and ".join(names) or "neither", ", ".join(sorted(details[0])))


def _details(messages: Sequence[Mapping[str, Any]], source: str) -> list[Mapping[str, Any]]:
    return [message["detail"] for message in messages if message.get("source") == source]


def _schedule(observed: Observations) -> Seen | None:
    times = [str(message["scheduled"]) for message in observed.messages if "scheduled" in message]
    if not times:
        return None
    try:
        datetime.strptime(times[0], "%Y-%m-%dT%H:%M:%SZ")
    except ValueError:
        return Seen("another form", times[0])
    return Seen("filled in", times[0])


def _quota(observed: Observations) -> Seen | None:
    if observed.quota is None:
        return Seen("unknown")
    return Seen("a number", str(observed.quota))


CHECKS: Mapping[str, Check] = {
    "toolkit-version": _of(JobKind.FAILED, job_checks.toolkit, probe=True),
    "hyperparameters-arrive": _of(JobKind.FAILED, job_checks.hyperparameters, probe=True),
    "speed-gate-runs": _of(JobKind.SPEED, job_checks.speed_evidence),
    "environment-arrives": _of(JobKind.FAILED, job_checks.environment, probe=True),
    "script-mode-variables": _of(JobKind.FAILED, job_checks.script_mode, probe=True),
    "sigterm-not-delivered": _of(JobKind.STOPPED, job_checks.sigterm, probe=True),
    "image-version": _of(JobKind.FAILED, job_checks.image, probe=True),
    "output-archive": _of(JobKind.QUALITY, job_checks.output),
    "output-of-failed-job": _of(JobKind.FAILED, job_checks.output),
    "metric-regexes": _of(JobKind.QUALITY, job_checks.metrics),
    "billable-seconds": _billable,
    "failure-class": _of(JobKind.FAILED, job_checks.failure_class),
    "failure-source": _of(JobKind.FAILED, job_checks.failure_source),
    "stopped-status": _of(JobKind.STOPPED, job_checks.status),
    "time-limit": _of(JobKind.LIMITED, job_checks.both_statuses),
    "checkpoints-copied": _of(JobKind.STOPPED, job_checks.copied),
    "checkpoints-copied-at-end": _of(JobKind.SPEED, job_checks.copied_at_end),
    "checkpoints-restored": _of(JobKind.LIMITED, job_checks.restored, probe=True),
    "integration-fields": _fields,
    "unknown-field": _refusal(RefusedKind.UNKNOWN_FIELD),
    "invalid-request": _refusal(RefusedKind.INVALID),
    "name-in-use": _refusal(RefusedKind.NAME_IN_USE),
    "over-quota": _refusal(RefusedKind.OVER_QUOTA),
    "sync-times": _of(JobKind.QUALITY, job_checks.sync_times),
    "sync-failed": _of(JobKind.FAILED, job_checks.sync_error),
    "sync-stopped": _of(JobKind.STOPPED, job_checks.sync_error),
    "task-token": _token,
    "definitions-valid": _definitions,
    "job-event-tags": _job_event,
    "execution-event": _execution_event,
    "schedule-time": _schedule,
    "quota-lookup": _quota,
}
