"""How requests are refused and jobs fail, also on demand, for tests."""

from __future__ import annotations

import json
import threading
from collections import Counter
from collections.abc import Callable
from typing import Any


class ApiError(Exception):
    """A refused API call, as it goes over the wire."""

    def __init__(self, code: str, message: str, status: int = 400) -> None:
        super().__init__(message)
        self.code, self.message, self.status = code, message, status


Response = tuple[int, dict[str, str], bytes]


def wire_response(answer: Callable[[dict[str, Any]], dict[str, Any]], body: bytes) -> Response:
    """Status, headers and body of one call of a JSON service; a refused call is an answer too."""
    headers = {"Content-Type": "application/x-amz-json-1.1"}
    try:
        document = answer(json.loads(body or b"{}"))
    except ApiError as error:
        fault = {"__type": error.code, "message": error.message}
        return error.status, headers, json.dumps(fault).encode()
    return 200, headers, json.dumps(document).encode()


class JobFailedError(Exception):
    """A training job cannot continue; the text is its FailureReason, class of fault first."""


class DamagedFolderError(Exception):
    """A job's folder that cannot be read as the job left it."""


THROTTLE = "throttle_create"
LIMIT = "limit_create"
CAPACITY = "capacity_error"
KINDS = (THROTTLE, LIMIT, CAPACITY)


class InjectedFailures:
    """How often each kind of failure is still to happen."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._left: Counter[str] = Counter()

    def add(self, kind: str, count: int) -> None:
        """Let the next ``count`` chances of this kind fail; zero takes the rest back."""
        if kind not in KINDS:
            raise ValueError(f"unknown failure {kind!r}; known: {', '.join(KINDS)}")
        with self._lock:
            self._left[kind] = self._left[kind] + count if count else 0

    def left(self) -> dict[str, int]:
        """What is still to happen."""
        with self._lock:
            return {kind: self._left[kind] for kind in KINDS}

    def before_create(self) -> None:
        """Fail a CreateTrainingJob call if one is due."""
        if self._take(THROTTLE):
            raise ApiError("ThrottlingException", "Rate exceeded")
        if self._take(LIMIT):
            raise ApiError(
                "ResourceLimitExceeded",
                "The account-level service limit 'number of instances across all training jobs' "
                "is 0 Instances, with current utilization of 0 Instances and a request delta of "
                "1 Instances. Please use AWS Service Quotas to request an increase for this quota.",
            )

    def before_start(self) -> None:
        """Fail a job for lack of instances if one is due."""
        if self._take(CAPACITY):
            raise JobFailedError(
                "CapacityError: Unable to provision requested ML compute capacity. "
                "Please retry using a different ML instance type."
            )

    def _take(self, kind: str) -> bool:
        with self._lock:
            if self._left[kind] <= 0:
                return False
            self._left[kind] -= 1
            return True
