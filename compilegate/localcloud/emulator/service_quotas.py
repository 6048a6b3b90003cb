"""The Service Quotas API as far as quotas of training instances need it: JSON 1.1 over HTTP."""

from __future__ import annotations

import json
import zlib
from collections.abc import Iterator
from typing import Any

from compilegate.localcloud.emulator.sagemaker.errors import ApiError
from compilegate.localcloud.emulator.sagemaker.quotas import AccountQuotas, quota_name
from compilegate.localcloud.emulator.shipped_facts import read_facts

_PAGE_SIZE = 100
Document = dict[str, Any]


class ServiceQuotasService:
    """Answers GetServiceQuota and ListServiceQuotas for every type on file."""

    def __init__(self, quotas: AccountQuotas) -> None:
        self._quotas = quotas
        self._operations = {"GetServiceQuota": self._get, "ListServiceQuotas": self._list}

    def respond(self, operation: str, body: bytes) -> tuple[int, dict[str, str], bytes]:
        """Status, headers and body of one call on the wire."""
        headers = {"Content-Type": "application/x-amz-json-1.1"}
        try:
            answer = self._call(operation, json.loads(body or b"{}"))
        except ApiError as error:
            fault = {"__type": error.code, "message": error.message}
            return error.status, headers, json.dumps(fault).encode()
        return 200, headers, json.dumps(answer).encode()

    def _call(self, operation: str, request: Document) -> Document:
        handler = self._operations.get(operation)
        if handler is None:
            raise ApiError("UnknownOperationException", f"The local cloud has no {operation}.")
        return handler(request)

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
