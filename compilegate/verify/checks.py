"""What was seen of each assumption: one function per assumption that can be checked.

A check answers with a few words, the assumption's ``expected`` where it holds, and with details
for the record; None where what it looks at is missing.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import PurePosixPath
from typing import Any

from compilegate.adapters.executions import ExecutionState
from compilegate.verify.observed import Job, JobKind, Observations, RefusedKind
from compilegate.verify.run import TASK_OUTPUT

SIGTERM_SEEN = "compilegate-probe-sigterm"
STDOUT_LINE, STDERR_LINE = "compilegate-probe-standard-output", "compilegate-probe-standard-error"
# Generations of sagemaker-training that tests run every kind of request through.
TESTED_TOOLKITS = ("5.1.1",)
SCRIPT_MODE = (
    "SM_HOSTS", "SM_CURRENT_HOST", "SM_NUM_GPUS", "SM_OUTPUT_DATA_DIR", "SM_OUTPUT_DIR",
    "SM_MODEL_DIR", "TRAINING_JOB_NAME",
)  # fmt: skip
OPT_ML = "/opt/ml"
THERE, MISSING, UNCHANGED = "there", "not there", "unchanged"


@dataclass(frozen=True)
class Seen:
    """What was seen: ``value`` is compared with the assumption, ``detail`` is for people."""

    value: str
    detail: str = ""


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


def _differences(sent: Mapping[str, str], got: Mapping[str, str]) -> Seen:
    changed = {name: got.get(name) for name, value in sent.items() if got.get(name) != value}
    if not changed:
        return Seen(UNCHANGED, f"{len(sent)} values")
    return Seen("changed", "; ".join(f"{name}: {value!r}" for name, value in changed.items()))


def _hyperparameters(job: Job) -> Seen:
    own = {name: json.loads(text) for name, text in job.request["HyperParameters"].items()
           if not name.startswith("sagemaker_")}  # fmt: skip
    return _differences({f"--{name}": str(value) for name, value in own.items()},
                        job.report["arguments"])  # fmt: skip


def _environment(job: Job) -> Seen:
    """The embedded cloud has another folder for /opt/ml, and says so to the script as well."""
    got = job.report["environment"]
    root = str(PurePosixPath(got.get("SM_MODEL_DIR", OPT_ML + "/model")).parent)
    sent = {name: root + value.removeprefix(OPT_ML) if value.startswith(OPT_ML) else value
            for name, value in job.request["Environment"].items()}  # fmt: skip
    return _differences(sent, got)


def _script_mode(job: Job) -> Seen:
    absent = [name for name in SCRIPT_MODE if name not in job.report["environment"]]
    return Seen("not all there", ", ".join(absent)) if absent else Seen("all there")


def _toolkit(job: Job) -> Seen:
    version = job.report["packages"]["sagemaker-training"]
    packages = ", ".join(f"{name} {found}" for name, found in job.report["packages"].items())
    tested = version in TESTED_TOOLKITS
    return Seen("tested generation" if tested else "another generation", packages)


def _image(job: Job) -> Seen:
    installed = str(job.report["packages"]["torch"]).partition("+")[0]
    image = job.request["AlgorithmSpecification"]["TrainingImage"]
    tag = image.rpartition(":")[2]
    return Seen(
        "same version" if tag.startswith(f"{installed}-") else "another",
        f"torch {installed} in {tag}",
    )


def _sigterm(job: Job) -> Seen:
    delivered = any(SIGTERM_SEEN in line for line in job.log)
    return Seen("delivered" if delivered else "not delivered",
                f"process 1: {job.report['first_process']}")  # fmt: skip


def _speed_evidence(job: Job) -> Seen:
    arms = sum(name.startswith("arm_") for name in job.request["HyperParameters"])
    complete = job.described["TrainingJobStatus"] == "Completed" and _has_output(job)
    why = str(job.described.get("FailureReason", ""))
    return Seen("evidence of every arm" if complete else "no evidence", why or f"{arms} arms")


def _has_output(job: Job) -> bool:
    return "output/output.tar.gz" in job.files


def _output(job: Job) -> Seen:
    return Seen(THERE if _has_output(job) else MISSING, ", ".join(job.files))


def _metrics(job: Job) -> Seen:
    definitions = job.request["AlgorithmSpecification"]["MetricDefinitions"]
    asked = [definition["Name"] for definition in definitions]
    final = [item["MetricName"] for item in job.described.get("FinalMetricDataList", ())]
    return Seen("quality metric there" if asked[-1] in final else "quality metric not there",
                ", ".join(final) or "no metric")  # fmt: skip


def _billable(observed: Observations) -> Seen | None:
    seconds = {kind: job.described.get("BillableTimeInSeconds")
               for kind, job in observed.jobs.items() if job.described}  # fmt: skip
    if not seconds:
        return None
    return Seen(MISSING if None in seconds.values() else THERE,
                ", ".join(f"{kind} {value} s" for kind, value in seconds.items()))  # fmt: skip


def _failure_class(job: Job) -> Seen:
    reason = str(job.described.get("FailureReason", ""))
    return Seen(reason.partition(":")[0], reason)


def _failure_source(job: Job) -> Seen:
    reason = str(job.described.get("FailureReason", ""))
    streams = {"standard error": STDERR_LINE, "standard output": STDOUT_LINE}
    quoted = [name for name, line in streams.items() if line in reason]
    return Seen(" and ".join(quoted) or "neither", reason)


def _status(job: Job) -> Seen:
    return Seen(str(job.described["TrainingJobStatus"]))


def _both_statuses(job: Job) -> Seen:
    return Seen(f"{job.described['TrainingJobStatus']}, {job.described['SecondaryStatus']}")


def _copied(job: Job) -> Seen | None:
    if job.copied_while_training is None:
        return None
    return Seen("copied while training" if job.copied_while_training else "not while training")


def _copied_at_end(job: Job) -> Seen:
    count = len(job.checkpoints)
    return Seen("copied at the end" if count else "not copied", f"{count} files")


def _restored(job: Job) -> Seen:
    """The job before it left ``wait.txt``, whether or not a file is copied at the end."""
    names = job.report["restored"]
    return Seen("restored" if "wait.txt" in names else "not restored", ", ".join(names))


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


def _sync_times(job: Job) -> Seen | None:
    if not job.execution.output:
        return None
    time = job.execution.output.get("CreationTime")
    created: datetime = job.described["CreationTime"]
    if isinstance(time, int | float):
        near = abs(time / 1000 - created.timestamp()) < 60
        return Seen("epoch milliseconds" if near else "another number", str(time))
    return Seen("text" if isinstance(time, str) else "another type", repr(time))


def _sync_error(job: Job) -> Seen:
    execution = job.execution
    words = _described(execution, job.described["TrainingJobName"])
    return Seen(f"{execution.error or execution.status}, {words}")


def _described(execution: ExecutionState, name: str) -> str:
    try:
        cause = json.loads(execution.cause)
    except ValueError:
        return "cause is another text"
    same = isinstance(cause, Mapping) and cause.get("TrainingJobName") == name
    return "cause is the description" if same else "cause is another document"


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
    "toolkit-version": _of(JobKind.FAILED, _toolkit, probe=True),
    "hyperparameters-arrive": _of(JobKind.FAILED, _hyperparameters, probe=True),
    "speed-gate-runs": _of(JobKind.SPEED, _speed_evidence),
    "environment-arrives": _of(JobKind.FAILED, _environment, probe=True),
    "script-mode-variables": _of(JobKind.FAILED, _script_mode, probe=True),
    "sigterm-not-delivered": _of(JobKind.STOPPED, _sigterm, probe=True),
    "image-version": _of(JobKind.FAILED, _image, probe=True),
    "output-archive": _of(JobKind.QUALITY, _output),
    "output-of-failed-job": _of(JobKind.FAILED, _output),
    "metric-regexes": _of(JobKind.QUALITY, _metrics),
    "billable-seconds": _billable,
    "failure-class": _of(JobKind.FAILED, _failure_class),
    "failure-source": _of(JobKind.FAILED, _failure_source),
    "stopped-status": _of(JobKind.STOPPED, _status),
    "time-limit": _of(JobKind.LIMITED, _both_statuses),
    "checkpoints-copied": _of(JobKind.STOPPED, _copied),
    "checkpoints-copied-at-end": _of(JobKind.SPEED, _copied_at_end),
    "checkpoints-restored": _of(JobKind.LIMITED, _restored, probe=True),
    "integration-fields": _fields,
    "unknown-field": _refusal(RefusedKind.UNKNOWN_FIELD),
    "invalid-request": _refusal(RefusedKind.INVALID),
    "name-in-use": _refusal(RefusedKind.NAME_IN_USE),
    "over-quota": _refusal(RefusedKind.OVER_QUOTA),
    "sync-times": _of(JobKind.QUALITY, _sync_times),
    "sync-failed": _of(JobKind.FAILED, _sync_error),
    "sync-stopped": _of(JobKind.STOPPED, _sync_error),
    "task-token": _token,
    "definitions-valid": _definitions,
    "job-event-tags": _job_event,
    "execution-event": _execution_event,
    "schedule-time": _schedule,
    "quota-lookup": _quota,
}
