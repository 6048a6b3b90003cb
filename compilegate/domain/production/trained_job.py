"""What a job trains: two jobs of the same digest differ in nothing that a trial measures."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from typing import Any

from compilegate.domain.workload.model import Workload


@dataclass(frozen=True)
class TrainedJob:
    """A workload as one spec holds it, and the digest of its code."""

    workload: Workload
    code: str

    @property
    def fields(self) -> dict[str, Any]:
        """What the job trains, by dotted names: nothing of policy, quality and schedule.

        Nor other machines that production may fall back to, as runs on those are no evidence.
        """
        document = self.workload.to_dict()
        return {
            f"{section}.{key}": value
            for section in ("framework", "training")
            for key, value in document[section].items()
            if key != "fallback_instances"
        }

    @property
    def digest(self) -> str:
        """One text for one job: its fields and the source."""
        text = json.dumps([self.fields, self.code], sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()
