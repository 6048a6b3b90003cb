"""SageMaker's training quotas of this account, from Service Quotas."""

from __future__ import annotations

import logging
import re
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

PAGE_SIZE = 100  # the most that ListServiceQuotas gives at once
# A plan without quotas is worth more than none: a Lambda has a minute for all of it.
PATIENCE_SECONDS = 20
# As the Service Quotas console lists them, for example "ml.g5.xlarge for training job usage".
_NAME = re.compile(r"(?P<type>ml\.\S+) for (?P<spot>spot )?training job usage")
log = logging.getLogger(__name__)


def training_quotas(quotas: Iterable[Mapping[str, Any]]) -> dict[tuple[str, bool], int]:
    """Instances that training jobs may run at once, by type and whether on spot capacity."""
    return {
        (match["type"], bool(match["spot"])): int(quota["Value"])
        for quota in quotas
        if (match := _NAME.fullmatch(quota.get("QuotaName", "")))
    }


class ServiceQuotas:
    """Quotas on AWS, listed once and kept; whatever goes wrong leaves them unknown."""

    def __init__(self, service_quotas: Any, seconds: Callable[[], float] = time.monotonic) -> None:
        self._service_quotas = service_quotas
        self._seconds = seconds
        self._found: Mapping[tuple[str, bool], int] | None = None

    def training_instances(self, instance_type: str, *, spot: bool) -> int | None:
        """Instances that training jobs may run at once, None where that is not known."""
        if self._found is None:
            self._found = self._listed()
        return self._found.get((instance_type, spot))

    def _listed(self) -> dict[tuple[str, bool], int]:
        try:
            return training_quotas(quota for page in self._pages() for quota in page["Quotas"])
        except Exception:  # whatever it is, SageMaker itself refuses what does not fit
            log.warning("quotas could not be read, so they are not checked", exc_info=True)
            return {}

    def _pages(self) -> Iterator[Mapping[str, Any]]:
        deadline = self._seconds() + PATIENCE_SECONDS
        pages = self._service_quotas.get_paginator("list_service_quotas")
        for page in pages.paginate(
            ServiceCode="sagemaker", PaginationConfig={"PageSize": PAGE_SIZE}
        ):
            if self._seconds() > deadline:
                raise TimeoutError(f"listing took longer than {PATIENCE_SECONDS} s")
            yield page


class UnknownQuotas:
    """Where there is no account to ask: the embedded cloud."""

    def training_instances(self, instance_type: str, *, spot: bool) -> int | None:  # noqa: ARG002
        """None: not known."""
        return None
