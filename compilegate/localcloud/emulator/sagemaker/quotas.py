"""The account's quotas of training instances, by type; on demand and spot are counted apart."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Mapping
from typing import Any

from compilegate.localcloud.emulator.sagemaker.errors import ApiError
from compilegate.localcloud.emulator.sagemaker.job import TERMINAL, TrainingJob

# Of a type for which none was set: this machine has no quotas.
NO_LIMIT = 100_000
Usage = tuple[str, int, bool]  # instance type, instances, spot


class AccountQuotas:
    """Instances of a type that training jobs may use at once; safe to change while jobs run."""

    def __init__(self, instances: Mapping[str, int]) -> None:
        self._instances = dict(instances)
        self._lock = threading.Lock()

    def set(self, instances: Mapping[str, int]) -> None:
        """Replace the quotas of these types; jobs that run already go on."""
        with self._lock:
            self._instances.update(instances)

    def instances(self, instance_type: str) -> int:
        """The quota of a type."""
        with self._lock:
            return self._instances.get(instance_type, NO_LIMIT)

    def types(self, on_file: Iterable[str]) -> list[str]:
        """Types that have a quota: those on file, and any that one was set for."""
        with self._lock:
            return sorted({*on_file, *self._instances})

    def check(self, request: Mapping[str, Any], jobs: Iterable[TrainingJob]) -> None:
        """Refuse a job that does not fit beside those that have not ended.

        Raises ApiError in the words of published refusals.
        """
        kind, asked, spot = _usage(request)
        used = sum(
            instances
            for job in jobs
            if job.status not in TERMINAL
            for other, instances, other_spot in [_usage(job.request)]
            if (other, other_spot) == (kind, spot)
        )
        limit = self.instances(kind)
        if used + asked > limit:
            raise ApiError(
                "ResourceLimitExceeded",
                f"The account-level service limit '{quota_name(kind, spot=spot)}' is {limit} "
                f"Instances, with current utilization of {used} Instances and a request delta of "
                f"{asked} Instances. Please use AWS Service Quotas to request an increase for this "
                "quota. If AWS Service Quotas is not available, contact AWS support to request an "
                "increase for this quota.",
            )


def quota_name(instance_type: str, *, spot: bool) -> str:
    """The quota as Service Quotas lists it."""
    return f"{instance_type} for {'spot ' * spot}training job usage"


def _usage(request: Mapping[str, Any]) -> Usage:
    cluster = request.get("ResourceConfig") or {}
    spot = bool(request.get("EnableManagedSpotTraining"))
    return str(cluster.get("InstanceType")), int(cluster.get("InstanceCount", 0)), spot
