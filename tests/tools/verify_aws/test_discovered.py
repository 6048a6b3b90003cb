"""What a verification looks up as ``discover`` would, also where it may not."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from botocore.exceptions import ClientError

from tests.tools.verify_aws.test_checks import COMPLETED, CREATED
from tools.verify_aws.run import Verification

JOB = replace(
    COMPLETED, described={**COMPLETED.described, "LastModifiedTime": CREATED}, searched=None,
    gpu_percent=(),
)  # fmt: skip
DENIED = ClientError({"Error": {"Code": "AccessDeniedException", "Message": "no"}}, "Search")


class Account:
    def __init__(self, *refused: str) -> None:
        self.refused = refused

    def wait_for(self, ready: Any, seconds: float) -> bool:
        return bool(ready())

    def jobs_created(self, created: Any) -> Any:
        return self._answer("Search", [JOB.described])

    def gpu_percent(self, name: str, begin: Any, end: Any) -> Any:
        return self._answer("GetMetricData", [40.0])

    def _answer(self, call: str, answer: Any) -> Any:
        if call in self.refused:
            raise DENIED
        return answer


@pytest.mark.parametrize(
    ("refused", "searched", "busy"),
    [
        ((), [JOB.described], [40.0]),
        (("Search",), None, ()),
        (("GetMetricData",), [JOB.described], ()),
    ],
)
def test_what_is_refused_is_not_seen_and_ends_nothing(
    refused: tuple[str, ...], searched: Any, busy: Any
) -> None:
    said: list[str] = []
    nothing: Any = None
    verification = Verification(
        account=Account(*refused), store=nothing, role_arn="", roles=nothing, job_role="",  # type: ignore[arg-type]
        trial="t", shipment=nothing, jobs=(), say=said.append,
    )  # fmt: skip

    job = verification._discovered(JOB)

    assert (searched, busy, len(refused)) == (job.searched, job.gpu_percent, len(said))
