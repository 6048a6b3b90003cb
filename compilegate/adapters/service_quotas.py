"""SageMaker's training quotas of this account, from Service Quotas."""

from __future__ import annotations

import logging
import re
import time
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from compilegate.adapters.clients import error_code

PAGE_SIZE = 100  # the most that ListServiceQuotas gives at once
# A Lambda has a minute for all of its work.
MOST_SECONDS = 20
# A Lambda that is still warm serves later plans as well, which must see a quota that has changed.
LISTING_SECONDS = 60
SERVICE = "sagemaker"
# As the Service Quotas console lists them, for example "ml.g5.xlarge for training job usage".
_NAME = re.compile(r"(?P<type>ml\.\S+) for (?P<spot>spot )?training job usage")
log = logging.getLogger(__name__)

Key = tuple[str, bool]  # instance type, spot


def training_quotas(quotas: Iterable[Mapping[str, Any]]) -> dict[Key, int]:
    """Instances that training jobs may run at once, by type and whether on spot capacity."""
    return {
        (match["type"], bool(match["spot"])): int(quota["Value"])
        for quota in quotas
        if (match := _NAME.fullmatch(quota.get("QuotaName", "")))
    }


class ServiceQuotas:
    """Quotas on AWS; one that cannot be read is unknown.

    The quota of a type whose code is known is read by that code. Any other is looked up in the
    listing of all of SageMaker's quotas, which is kept for a minute and may be cut off: what it has
    not reached is unknown. ``codes`` is called when a quota is first read.
    """

    def __init__(
        self,
        client: Any,
        codes: Callable[[], Mapping[Key, str]],
        seconds: Callable[[], float] = time.monotonic,
    ) -> None:
        self._client, self._codes, self._seconds = client, codes, seconds
        self._forget()

    def training_instances(self, instance_type: str, *, spot: bool) -> int | None:
        """Instances that training jobs may run at once, None where it is unknown."""
        key = (instance_type, spot)
        if self._seconds() > self._forget_at:
            self._forget()
        by_code = self._by_code(key)
        return self._listed().get(key) if by_code is None else by_code

    def _forget(self) -> None:
        self._listing: Mapping[Key, int] | None = None
        self._answers = True
        self._forget_at = self._seconds() + LISTING_SECONDS

    def _by_code(self, key: Key) -> int | None:
        code = self._codes().get(key)
        if code is None:
            return None
        # A quota that was never changed may have no applied value, only a default.
        for operation in ("get_service_quota", "get_aws_default_service_quota"):
            quota = self._quota(operation, code) if self._answers else None
            if quota is not None:
                limits = training_quotas([quota])
                if key not in limits:
                    log.warning("quota %s is %s, not that of %s", code, list(limits), key[0])
                return limits.get(key)
        return None

    def _quota(self, operation: str, code: str) -> Mapping[str, Any] | None:
        """One quota; None where there is none, or Service Quotas does not answer at all."""
        try:
            answer = getattr(self._client, operation)(ServiceCode=SERVICE, QuotaCode=code)
        except Exception as error:
            if error_code(error) != "NoSuchResourceException":
                log.warning("quota %s could not be read", code, exc_info=True)
                self._answers = False  # a Lambda has no time to wait for it again
            return None
        quota: Mapping[str, Any] = answer["Quota"]
        return quota

    def _listed(self) -> Mapping[Key, int]:
        if self._listing is None:
            self._listing = self._list()
        return self._listing

    def _list(self) -> dict[Key, int]:
        limits: dict[Key, int] = {}
        deadline = self._seconds() + MOST_SECONDS
        try:
            pages = self._client.get_paginator("list_service_quotas")
            for page in pages.paginate(
                ServiceCode=SERVICE, PaginationConfig={"PageSize": PAGE_SIZE}
            ):
                limits |= training_quotas(page["Quotas"])
                if self._seconds() > deadline:
                    log.warning(
                        "listing quotas took longer than %s s and was cut off",
                        MOST_SECONDS,
                    )
                    break
        except Exception:  # what cannot be read is unknown
            log.warning("quotas could not be listed", exc_info=True)
        return limits
