"""The account's quotas of training instances, by type, and the Service Quotas API that shows them.

On demand and spot are counted apart.
"""

from __future__ import annotations

import threading
import zlib
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from compilegate_localcloud.emulator.sagemaker.failures import ApiError, Response, wire_response
from compilegate_localcloud.emulator.sagemaker.job import TERMINAL, TrainingJob
from compilegate_localcloud.emulator.settings import read_facts

# Of a type for which none was set: this machine has no quotas.
NO_LIMIT = 100_000
_PAGE_SIZE = 100
Usage = tuple[str, int, bool]  # instance type, instances, spot
Document = dict[str, Any]


class AccountQuotas:
    """Instances of a type that training jobs may use at once; safe to change while jobs run."""

    def __init__(self, instances: Mapping[str, int]) -> None:
        self._instances = dict(instances)
        self._lock = threading.Lock()

    def set(self, instances: Mapping[str, int]) -> None:
        """Replace the quotas of these types; jobs that run already continue."""
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
        kind, requested, spot = _usage(request)
        used = sum(
            instances
            for job in jobs
            if job.status not in TERMINAL
            for other, instances, other_spot in [_usage(job.request)]
            if (other, other_spot) == (kind, spot)
        )
        limit = self.instances(kind)
        if used + requested > limit:
            raise ApiError(
                "ResourceLimitExceeded",
                f"The account-level service limit '{quota_name(kind, spot=spot)}' is {limit} "
                f"Instances, with current utilization of {used} Instances and a request delta of "
                f"{requested} Instances. Please use AWS Service Quotas to request an increase for "
                "this quota. If AWS Service Quotas is not available, contact AWS support to "
                "request an increase for this quota.",
            )


def quota_name(instance_type: str, *, spot: bool) -> str:
    """The quota as Service Quotas lists it."""
    return f"{instance_type} for {'spot ' * spot}training job usage"


def _usage(request: Mapping[str, Any]) -> Usage:
    cluster = request.get("ResourceConfig") or {}
    spot = bool(request.get("EnableManagedSpotTraining"))
    return str(cluster.get("InstanceType")), int(cluster.get("InstanceCount", 0)), spot


class ServiceQuotasService:
    """Answers GetServiceQuota and ListServiceQuotas for every type on file."""

    def __init__(self, quotas: AccountQuotas) -> None:
        self._quotas = quotas
        self._operations = {"GetServiceQuota": self._get, "ListServiceQuotas": self._list}

    def respond(self, operation: str, body: bytes) -> Response:
        """Status, headers and body of one call on the wire."""

        def answer(request: Document) -> Document:
            handler = self._operations.get(operation)
            if handler is None:
                raise ApiError("UnknownOperationException", f"The local cloud has no {operation}.")
            return handler(request)

        return wire_response(answer, body)

    def _get(self, request: Document) -> Document:
        for quota in self._all(request):
            if quota["QuotaCode"] == request.get("QuotaCode"):
                return {"Quota": quota}
        raise ApiError("NoSuchResourceException", "The request failed because the specified quota"
                       " does not exist.")  # fmt: skip

    def _list(self, request: Document) -> Document:
        first = int(request.get("NextToken") or 0)
        last = first + int(request.get("MaxResults", _PAGE_SIZE))
        quotas = list(self._all(request))
        more = {"NextToken": str(last)} if last < len(quotas) else {}
        return {"Quotas": quotas[first:last], **more}

    def _all(self, request: Document) -> Iterator[Document]:
        if request.get("ServiceCode") != "sagemaker":
            raise ApiError("NoSuchResourceException", "The local cloud has SageMaker's quotas only")
        codes = {
            (row["instance_type"], row["spot"]): row["code"]
            for row in read_facts("quota_codes")["rows"]
        }
        for kind in self._quotas.types(
            row["instance_type"] for row in read_facts("instances")["instances"]
        ):
            for spot in (False, True):
                name = quota_name(kind, spot=spot)
                yield {
                    "ServiceCode": "sagemaker",
                    "ServiceName": "Amazon SageMaker",
                    "QuotaCode": codes.get((kind, spot)) or _made_up_code(name),
                    "QuotaName": name,
                    "Value": float(self._quotas.instances(kind)),
                    "Unit": "None",
                    "Adjustable": True,
                    "GlobalQuota": False,
                }


def _made_up_code(name: str) -> str:
    """For a quota whose code is not known, so that only the listing leads to it."""
    return f"L-{zlib.crc32(name.encode()):08X}"
