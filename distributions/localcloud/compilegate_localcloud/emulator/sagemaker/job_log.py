"""A training job's output: to CloudWatch Logs, by the regexes to its metrics, and its last lines.

Metrics go where the SageMaker SDK reads them (``TrainingJobAnalytics``, sagemaker 2.257.7).
"""

from __future__ import annotations

import logging
import re
import threading
import time
from collections import deque
from datetime import UTC, datetime
from typing import Any

from botocore.exceptions import BotoCoreError, ClientError

from compilegate_localcloud.emulator.sagemaker.job import TrainingJob

LOG_GROUP = NAMESPACE = "/aws/sagemaker/TrainingJobs"
_FLUSH_SECONDS = 0.5
_BATCH_LINES = 1000  # PutLogEvents takes 10,000 events or 1 MiB; lines are far shorter than 1 KiB
_BATCH_VALUES = 1000  # of PutMetricData
_TAIL_LINES = 12
log = logging.getLogger("compilegate.sagemaker")


class JobLog:
    """Collects lines and writes them in batches, so that a live view can follow."""

    def __init__(self, client: Any, metrics: Any, job: TrainingJob) -> None:
        self._client, self._metrics_client, self._job = client, metrics, job
        self._stream = f"{job.name}/algo-1-{int(time.time())}"
        self._lock, self._writing = threading.Lock(), threading.Lock()
        self._pending: deque[dict[str, Any]] = deque()
        self._values: deque[dict[str, Any]] = deque()
        self._closed = threading.Event()
        self._tail: deque[str] = deque(maxlen=_TAIL_LINES)
        definitions = job.request["AlgorithmSpecification"].get("MetricDefinitions") or []
        self._metrics = [(item["Name"], re.compile(item["Regex"])) for item in definitions]
        self._open_stream()
        threading.Thread(target=self._repeat, daemon=True).start()

    def add(self, line: str) -> None:
        """One line of the job's output."""
        now = time.time()
        with self._lock:
            self._pending.append({"timestamp": int(now * 1000), "message": line or " "})
            if line.strip():
                self._tail.append(line)
        for name, pattern in self._metrics:
            for match in pattern.finditer(line):
                self._record(name, match, now)

    def tail(self) -> str:
        """The last lines, for the failure reason."""
        with self._lock:
            return "\n".join(self._tail)

    def close(self) -> None:
        """Write what is left."""
        self._closed.set()
        self._flush()

    def _record(self, name: str, match: re.Match[str], now: float) -> None:
        try:
            value = float(match.group(1))
        except (ValueError, IndexError):
            log.debug("metric %s of %s is not a number: %r", name, self._job.name, match.group(0))
            return
        self._job.metrics[name] = (value, now)
        datum = {
            "MetricName": name,
            "Dimensions": [{"Name": "TrainingJobName", "Value": self._job.name}],
            "Timestamp": datetime.fromtimestamp(now, UTC),
            "Value": value,
        }
        with self._lock:
            self._values.append(datum)

    def _open_stream(self) -> None:
        for create, names in (
            (self._client.create_log_group, {"logGroupName": LOG_GROUP}),
            (
                self._client.create_log_stream,
                {"logGroupName": LOG_GROUP, "logStreamName": self._stream},
            ),
        ):
            try:
                create(**names)
            except ClientError as error:
                if error.response["Error"]["Code"] != "ResourceAlreadyExistsException":
                    log.warning("%s: no log stream: %s", self._job.name, error)

    def _repeat(self) -> None:
        while not self._closed.wait(_FLUSH_SECONDS):
            self._flush()

    def _flush(self) -> None:
        with self._writing:
            while batch := self._take(self._pending, _BATCH_LINES):
                try:
                    self._client.put_log_events(
                        logGroupName=LOG_GROUP, logStreamName=self._stream, logEvents=batch
                    )
                except (BotoCoreError, ClientError) as error:
                    log.warning("%s: %d log lines lost: %s", self._job.name, len(batch), error)
            while values := self._take(self._values, _BATCH_VALUES):
                try:
                    self._metrics_client.put_metric_data(Namespace=NAMESPACE, MetricData=values)
                except (BotoCoreError, ClientError) as error:
                    log.warning("%s: %d values lost: %s", self._job.name, len(values), error)

    def _take(self, waiting: deque[dict[str, Any]], most: int) -> list[dict[str, Any]]:
        with self._lock:
            return [waiting.popleft() for _ in range(min(len(waiting), most))]
