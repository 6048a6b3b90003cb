"""Where a trial's jobs run and where their data lies."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class JobContext:
    """What a deployment and a trial fix for every job."""

    bucket: str
    region: str
    role_arn: str
    trial: str
    execution: str
    source_key: str
    kms_key_arn: str | None = None
    subnet_ids: Sequence[str] = ()
    security_group_ids: Sequence[str] = ()

    def uri(self, key: str) -> str:
        """A key of the data bucket as S3 names it."""
        return f"s3://{self.bucket}/{key}"
