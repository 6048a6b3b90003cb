"""The SageMaker API as far as training jobs need it: JSON 1.1 over HTTP, and its events."""

from __future__ import annotations

import itertools
import json
import logging
import queue
import threading
from collections.abc import Callable
from typing import Any

from compilegate_localcloud.emulator.sagemaker.failures import (
    ApiError,
    InjectedFailures,
    Response,
    wire_response,
)
from compilegate_localcloud.emulator.sagemaker.job import StopCause, TrainingJob, tag_list
from compilegate_localcloud.emulator.sagemaker.process import ForkServer
from compilegate_localcloud.emulator.sagemaker.quotas import AccountQuotas
from compilegate_localcloud.emulator.sagemaker.runner import TrainingRun
from compilegate_localcloud.emulator.sagemaker.scheduler import Scheduler, slots_for
from compilegate_localcloud.emulator.sagemaker.search import search
from compilegate_localcloud.emulator.sagemaker.validation import check_request, check_semantics
from compilegate_localcloud.emulator.settings import Settings

DETAIL_TYPE = "SageMaker Training Job State Change"
# The real event carries neither; their readers must call DescribeTrainingJob.
_NOT_IN_EVENTS = frozenset(
    {"FinalMetricDataList", "BillableTimeInSeconds", "TrainingTimeInSeconds"}
)
Document = dict[str, Any]
Scope = tuple[str, str]  # account, region
log = logging.getLogger("compilegate.sagemaker")


def milliseconds(value: Any, name: str = "") -> Any:
    """A Describe answer with its times as epoch milliseconds, as events and ``.sync`` show them."""
    if isinstance(value, dict):
        return {key: milliseconds(item, key) for key, item in value.items()}
    if isinstance(value, list):
        return [milliseconds(item) for item in value]
    is_time = name.endswith("Time") or name == "Timestamp"
    if is_time and isinstance(value, (int, float)) and not isinstance(value, bool):
        return int(value * 1000)
    return value


def event_detail(job: TrainingJob) -> dict[str, Any]:
    """The event's detail."""
    shown = {k: v for k, v in job.describe().items() if k not in _NOT_IN_EVENTS}
    detail: dict[str, Any] = milliseconds(shown)
    return {**detail, "Tags": dict(job.tags)}


class StateChangeEvents:
    """Publishes in order from a thread of its own, so that no rule's target delays a job."""

    def __init__(self) -> None:
        self._queue: queue.SimpleQueue[tuple[TrainingJob, dict[str, Any]]] = queue.SimpleQueue()
        threading.Thread(target=self._publish_all, daemon=True, name="sagemaker-events").start()

    def publish(self, job: TrainingJob) -> None:
        """Queue the job's current state for the bus."""
        self._queue.put((job, event_detail(job)))

    def _publish_all(self) -> None:
        while True:
            job, detail = self._queue.get()
            try:
                _put_event(job, detail)
            except Exception:  # delivery is best effort, as on AWS
                log.exception("state change of %s not published", job.name)


def _put_event(job: TrainingJob, detail: dict[str, Any]) -> None:
    # Called inside the emulator: the public PutEvents refuses sources that begin with "aws.".
    from ministack.core.responses import (  # noqa: PLC0415  # reads its environment when imported
        set_request_account_id,
        set_request_region,
    )
    from ministack.services import eventbridge  # noqa: PLC0415

    set_request_account_id(job.account)
    set_request_region(job.region)
    entry = {
        "Source": "aws.sagemaker",
        "DetailType": DETAIL_TYPE,
        "Resources": [job.arn],
        "Detail": json.dumps(detail),
    }
    eventbridge._put_events({"Entries": [entry]}, allow_aws_source=True)


class TrainingService:
    """All training jobs; ``keep`` is called with each that has changed."""

    def __init__(self, settings: Settings, keep: Callable[[TrainingJob], None]) -> None:
        self.failures = InjectedFailures()
        self.quotas = AccountQuotas(settings.quotas)
        self._settings = settings
        self._scheduler = Scheduler(slots_for(settings.slots))
        self._fork_server = ForkServer(settings)
        self._events = StateChangeEvents()
        self._keep = keep
        self._lock = threading.Lock()
        self._number = itertools.count()
        self._runs: dict[tuple[str, str, str], TrainingRun] = {}
        self._restored: list[TrainingJob] = []
        self._operations: dict[str, Callable[[Scope, Document], Document]] = {
            "CreateTrainingJob": self._create,
            "DescribeTrainingJob": self._describe,
            "StopTrainingJob": self._stop,
            "ListTrainingJobs": self._list,
            "Search": lambda scope, request: search(self.jobs(*scope), request),
            "AddTags": self._add_tags,
            "ListTags": self._list_tags,
        }

    def call(self, operation: str, request: Document, scope: Scope) -> Document:
        """Answer one call; raises ApiError for a refused one."""
        handler = self._operations.get(operation)
        if handler is None:
            raise ApiError(
                "UnknownOperationException", f"The local cloud has no sagemaker:{operation}."
            )
        check_request(operation, request)
        return handler(scope, request)

    def respond(self, operation: str, body: bytes, scope: Scope) -> Response:
        """Status, headers and body of one call on the wire."""
        return wire_response(lambda request: self.call(operation, request, scope), body)

    def job(self, scope: Scope, name: str) -> TrainingJob:
        """The job of that name; raises ApiError if there is none."""
        return self._run(scope, name).job

    def jobs(self, account: str, region: str | None = None) -> list[TrainingJob]:
        """The account's jobs, of one region or of all."""
        return [
            run.job
            for (of, where, _), run in list(self._runs.items())
            if of == account and region in (None, where)
        ]

    def kill(self, name: str) -> bool:
        """Kill a job's process as a failing machine would; False if there is no such job."""
        runs = [run for (_, _, job_name), run in self._runs.items() if job_name == name]
        for run in runs:
            run.kill()
        return bool(runs)

    def abandon_all(self) -> None:
        """End every training process because the emulator ends."""
        for run in list(self._runs.values()):
            run.abandon()
        self._fork_server.close()

    def _create(self, scope: Scope, request: Document) -> Document:
        self.failures.before_create()
        check_semantics(request)
        account, region = scope
        name = request["TrainingJobName"]
        with self._lock:
            if (account, region, name) in self._runs:
                raise ApiError(
                    "ResourceInUse",
                    "Training job names must be unique within an AWS account and region, and a "
                    "training job with this name already exists "
                    f"(arn:aws:sagemaker:{region}:{account}:training-job/{name})",
                )
            self.quotas.check(request, self.jobs(*scope))
            run = self._add(scope, request)
        self._fork_server.prepare()
        threading.Thread(target=run.run, daemon=True, name=f"training-{name}").start()
        return {"TrainingJobArn": run.job.arn}

    def restore(self, scope: Scope, request: Document, kept: Document) -> None:
        """Add a job of an emulator that was killed."""
        self._restored.append(self._add(scope, request, kept).job)

    def end_lost(self, at: float) -> None:
        """Those that ran died with the emulator that was killed at that time."""
        for job in self._restored:
            job.lose(at)

    def _add(self, scope: Scope, request: Document, kept: Document | None = None) -> TrainingRun:
        account, region = scope
        name = request["TrainingJobName"]
        job = TrainingJob(
            request,
            account=account,
            region=region,
            folder=self._settings.jobs / f"{next(self._number)}-{name}",
            on_change=self._changed,
            kept=kept,
        )
        run = self._runs[account, region, name] = TrainingRun(
            job,
            settings=self._settings,
            scheduler=self._scheduler,
            fork_server=self._fork_server,
            failures=self.failures,
        )
        return run

    def _changed(self, job: TrainingJob) -> None:
        self._keep(job)
        self._events.publish(job)

    def _describe(self, scope: Scope, request: Document) -> Document:
        return self.job(scope, request["TrainingJobName"]).describe()

    def _stop(self, scope: Scope, request: Document) -> Document:
        job = self.job(scope, request["TrainingJobName"])
        if not job.request_stop(StopCause.REQUESTED) and job.finished.is_set():
            raise ApiError(
                "ValidationException",
                f"The request was rejected because the training job is in status {job.status}.",
            )
        self._scheduler.wake()
        return {}

    def _list(self, scope: Scope, request: Document) -> Document:
        """A page of all jobs that were created in time, and of these what the filters leave.

        A page may be empty and another follow (API reference, ListTrainingJobs, StatusEquals; of
        NameContains reported in issues 2838 and 3347 of boto3).
        """
        after = float(request.get("CreationTimeAfter", 0))
        jobs = [job for job in self.jobs(*scope) if job.created >= after]
        descending = request.get("SortOrder", "Descending") == "Descending"
        jobs.sort(key=lambda job: job.created, reverse=descending)
        first = int(request.get("NextToken", 0))
        last = first + int(request.get("MaxResults", 10))
        summaries = [
            _summary(job)
            for job in jobs[first:last]
            if request.get("NameContains", "") in job.name
            and request.get("StatusEquals", job.status) == job.status
        ]
        more = {"NextToken": str(last)} if last < len(jobs) else {}
        return {"TrainingJobSummaries": summaries, **more}

    def _add_tags(self, scope: Scope, request: Document) -> Document:
        job = self._job_of_arn(scope, request["ResourceArn"])
        job.tags.update({tag["Key"]: tag["Value"] for tag in request["Tags"]})
        self._keep(job)
        return {"Tags": tag_list(job)}

    def _list_tags(self, scope: Scope, request: Document) -> Document:
        return {"Tags": tag_list(self._job_of_arn(scope, request["ResourceArn"]))}

    def _job_of_arn(self, scope: Scope, arn: str) -> TrainingJob:
        return self.job(scope, arn.rsplit("/", 1)[-1])

    def _run(self, scope: Scope, name: str) -> TrainingRun:
        run = self._runs.get((*scope, name))
        if run is None:
            raise ApiError("ValidationException", "Requested resource not found.")
        return run


def _summary(job: TrainingJob) -> Document:
    shown = job.describe()
    names = (
        "TrainingJobName",
        "TrainingJobArn",
        "CreationTime",
        "TrainingEndTime",
        "LastModifiedTime",
        "TrainingJobStatus",
        "SecondaryStatus",
    )
    return {name: shown[name] for name in names if name in shown}
