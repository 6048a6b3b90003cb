"""Training job state changes on the default event bus, as SageMaker publishes them."""

from __future__ import annotations

import json
import logging
import queue
import threading
from typing import Any

from compilegate.localcloud.emulator.sagemaker.job import TrainingJob

DETAIL_TYPE = "SageMaker Training Job State Change"
# The real event carries neither; their readers must call DescribeTrainingJob.
_NOT_IN_EVENTS = frozenset(
    {"FinalMetricDataList", "BillableTimeInSeconds", "TrainingTimeInSeconds"}
)
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
