"""What was seen of each assumption: one function per assumption that can be checked.

A check answers with a few words, the assumption's ``expected`` where it holds, and with details
for the record; None where what it looks at is missing.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from pathlib import PurePosixPath
from typing import Any

from compilegate.domain.job_output import BLOCK
from compilegate_discover.job import Reader
from tools.verify_aws.observed import Job, JobKind, Observations, RefusedKind, Seen

TASK_OUTPUT = {"answer": "as sent"}
SIGTERM_SEEN = "compilegate-probe-sigterm"
STDOUT_LINE, STDERR_LINE = "compilegate-probe-standard-output", "compilegate-probe-standard-error"
# Generations of sagemaker-training that tests run every kind of request through (requirements/).
TESTED_TOOLKITS = ("3.9.2", "5.1.1", "5.1.4")
SCRIPT_MODE = (
    "SM_HOSTS", "SM_CURRENT_HOST", "SM_NUM_GPUS", "SM_OUTPUT_DATA_DIR", "SM_OUTPUT_DIR",
    "SM_MODEL_DIR", "TRAINING_JOB_NAME",
)  # fmt: skip
OPT_ML = "/opt/ml"
SCHEDULED = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ")


Check = Callable[[Observations], Seen | None]


def _seen(holds: bool, yes: str, no: str, detail: object = "") -> Seen:
    return Seen(yes if holds else no, str(detail))


def _of(kind: JobKind, check_job: Callable[[Job], Seen | None], *, probe: bool = False) -> Check:
    """A check of one job; None where it did not start, or its probe reported nothing."""

    def check(observed: Observations) -> Seen | None:
        job = observed.jobs.get(kind)
        if job is None or not job.described or (probe and not job.report):
            return None
        return check_job(job)

    return check


# What a probe job reports of its container.


def _unchanged(sent: Mapping[str, str], got: Mapping[str, str]) -> Seen:
    changed = {name: got.get(name) for name, value in sent.items() if got.get(name) != value}
    listed = "; ".join(f"{name}: {value!r}" for name, value in changed.items())
    return _seen(not changed, "unchanged", "changed", listed or f"{len(sent)} values")


def _hyperparameters(job: Job) -> Seen:
    sent = {
        f"--{name}": str(json.loads(text))
        for name, text in job.request["HyperParameters"].items()
        if not name.startswith("sagemaker_")
    }
    return _unchanged(sent, job.report["arguments"])


def _environment(job: Job) -> Seen:
    """The embedded cloud has another folder for /opt/ml, and names it to the script as well."""
    got = job.report["environment"]
    root = str(PurePosixPath(got.get("SM_MODEL_DIR", f"{OPT_ML}/model")).parent)
    sent = {
        name: root + value.removeprefix(OPT_ML) if value.startswith(OPT_ML) else value
        for name, value in job.request["Environment"].items()
    }
    return _unchanged(sent, got)


def _script_mode(job: Job) -> Seen:
    absent = [name for name in SCRIPT_MODE if name not in job.report["environment"]]
    return _seen(not absent, "all there", "not all there", ", ".join(absent))


def _toolkit(job: Job) -> Seen:
    packages: Mapping[str, str] = job.report["packages"]
    tested = packages["sagemaker-training"] in TESTED_TOOLKITS
    versions = ", ".join(f"{name} {version}" for name, version in packages.items())
    return _seen(tested, "tested generation", "another generation", versions)


def _image(job: Job) -> Seen:
    installed = str(job.report["packages"]["torch"]).partition("+")[0]
    tag = job.request["AlgorithmSpecification"]["TrainingImage"].rpartition(":")[2]
    same = tag.startswith(f"{installed}-")
    return _seen(same, "same version", "another", f"torch {installed} in {tag}")


def _sigterm(job: Job) -> Seen:
    delivered = any(SIGTERM_SEEN in line for line in job.log)
    first = f"process 1: {job.report['first_process']}"
    return _seen(delivered, "delivered", "not delivered", first)


def _restored(job: Job) -> Seen:
    """The job before it left ``wait.txt``, whether or not a file is copied at the end."""
    names = job.report["restored"]
    return _seen("wait.txt" in names, "restored", "not restored", ", ".join(names))


# What a job leaves behind, and how DescribeTrainingJob shows it.


def _speed_evidence(job: Job) -> Seen:
    arms = sum(name.startswith("arm_") for name in job.request["HyperParameters"])
    blocks = sum(BLOCK.fullmatch(name) is not None for name in job.summaries)
    detail = f"{blocks} of {arms} arms {job.failure_reason}"
    return _seen(blocks == arms, "evidence of every arm", "evidence is missing", detail)


def _output(job: Job) -> Seen:
    archived = "output/output.tar.gz" in job.files
    return _seen(archived, "there", "not there", ", ".join(job.files))


def _metrics(job: Job) -> Seen:
    defined = job.request["AlgorithmSpecification"]["MetricDefinitions"]
    final = [item["MetricName"] for item in job.described.get("FinalMetricDataList", ())]
    there = defined[-1]["Name"] in final
    listed = ", ".join(final) or "no metric"
    return _seen(there, "quality metric there", "quality metric not there", listed)


def _search_record(job: Job) -> Seen | None:
    """Whether ``discover`` reads the same of Search's record as of DescribeTrainingJob's answer."""
    every = job.searched or ()
    record = next((one for one in every if one["TrainingJobName"] == job.name), None)
    if record is None:
        return None
    # A name that discover does not leave out; no tags, for DescribeTrainingJob has none.
    searched, described = (
        Reader("").job({**one, "TrainingJobName": "a", "Tags": []})
        for one in (record, job.described)
    )
    tags = [one["Key"] for one in record.get("Tags", ())]
    same = searched == described and "compilegate:workload" in tags
    return _seen(same, "as described, with tags", "otherwise", f"tags {', '.join(tags) or 'none'}")


def _search_times(job: Job) -> Seen | None:
    if job.searched is None:
        return None
    names = [one["TrainingJobName"] for one in job.searched]
    return _seen(names == [job.name], "found alone", "not alone", ", ".join(names) or "no job")


def _gpu_percent(job: Job) -> Seen | None:
    if not job.gpu_percent:
        return None
    low, high = min(job.gpu_percent), max(job.gpu_percent)
    return _seen(0 <= low <= high <= 100, "a percentage", "another unit", f"{low:g} to {high:g}")


def _failure_source(job: Job) -> Seen:
    streams = {"standard error": STDERR_LINE, "standard output": STDOUT_LINE}
    quoted = [name for name, line in streams.items() if line in job.failure_reason]
    return Seen(" and ".join(quoted) or "neither", job.failure_reason)


def _copied(job: Job) -> Seen | None:
    if job.copied_while_training is None:
        return None
    return _seen(job.copied_while_training, "copied while training", "not while training")


def _copied_at_end(job: Job) -> Seen:
    count = len(job.checkpoints)
    return _seen(count > 0, "copied at the end", "not copied", f"{count} files")


def _seconds(key: str) -> Callable[[Observations], Seen | None]:
    """Whether every job's description has that time."""

    def check(observed: Observations) -> Seen | None:
        jobs = observed.jobs.items()
        seconds = {kind: job.described.get(key) for kind, job in jobs if job.described}
        if not seconds:
            return None
        listed = ", ".join(f"{kind} {value} s" for kind, value in seconds.items())
        return _seen(None not in seconds.values(), "there", "not there", listed)

    return check


# What the state machine sees.


def _sync_times(job: Job) -> Seen | None:
    if not job.execution.output:
        return None
    time = job.execution.output.get("CreationTime")
    if isinstance(time, int | float):
        created: datetime = job.described["CreationTime"]
        near = abs(time / 1000 - created.timestamp()) < 60
        return _seen(near, "epoch milliseconds", "another number", time)
    return _seen(isinstance(time, str), "text", "another type", repr(time))


def _sync_error(job: Job) -> Seen:
    try:
        cause = json.loads(job.execution.cause)
    except ValueError:
        words = "cause is another text"
    else:
        same = isinstance(cause, Mapping) and cause.get("TrainingJobName") == job.name
        words = "cause is the description" if same else "cause is another document"
    return Seen(f"{job.execution.error or job.execution.status}, {words}")


def _fields(observed: Observations) -> Seen | None:
    kinds = (JobKind.SPEED, JobKind.QUALITY, JobKind.FAILED)
    jobs = [observed.jobs[kind] for kind in kinds if kind in observed.jobs]
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
    output = observed.task_output
    if output is None:
        return None
    return _seen(output == TASK_OUTPUT, "output as sent", "another output", output)


def _definitions(observed: Observations) -> Seen | None:
    answers = observed.definitions
    if not answers:
        return None
    wrong = {name: answer for name, answer in answers.items() if answer != "OK"}
    return _seen(not wrong, "OK", "not OK", wrong or ", ".join(answers))


# Events, a schedule, a quota.


def _details(messages: Sequence[Mapping[str, Any]], source: str) -> list[Mapping[str, Any]]:
    return [message["detail"] for message in messages if message.get("source") == source]


def _job_event(observed: Observations) -> Seen | None:
    details = _details(observed.messages, "aws.sagemaker")
    if not details:
        return None
    tags = details[0].get("Tags")
    if not isinstance(tags, Mapping | list):
        return _seen(tags is None, "no tags", "tags as another type", repr(tags))
    listed = isinstance(tags, list)
    keys = [one.get("Key") for one in tags] if listed else [*tags]
    form = "a list" if listed else "a mapping"
    return _seen("compilegate:workload" in keys, "the job's tags", "other tags", f"{form}: {keys}")


def _execution_event(observed: Observations) -> Seen | None:
    details = _details(observed.messages, "aws.states")
    if not details:
        return None
    names = [name for name in ("error", "cause") if details[0].get(name)]
    return Seen(" and ".join(names) or "neither", ", ".join(sorted(details[0])))


def _schedule(observed: Observations) -> Seen | None:
    times = [str(message["scheduled"]) for message in observed.messages if "scheduled" in message]
    if not times:
        return None
    return _seen(bool(SCHEDULED.fullmatch(times[0])), "filled in", "another form", times[0])


def _quota(observed: Observations) -> Seen | None:
    return Seen("unknown") if observed.quota is None else Seen("a number", str(observed.quota))


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
    "search-record": _of(JobKind.QUALITY, _search_record),
    "search-times": _of(JobKind.QUALITY, _search_times),
    "gpu-utilization": _of(JobKind.QUALITY, _gpu_percent),
    "billable-seconds": _seconds("BillableTimeInSeconds"),
    "training-seconds": _seconds("TrainingTimeInSeconds"),
    "failure-class": _of(
        JobKind.FAILED, lambda job: Seen(job.failure_reason.partition(":")[0], job.failure_reason)
    ),
    "failure-source": _of(JobKind.FAILED, _failure_source),
    "stopped-status": _of(JobKind.STOPPED, lambda job: Seen(job.status)),
    "time-limit": _of(
        JobKind.LIMITED, lambda job: Seen(f"{job.status}, {job.described['SecondaryStatus']}")
    ),
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
