"""The synthesised template, resource by resource, for several settings.

Left out, because they must change when code moves and change nothing in the stack: the hash and
S3 key of a function's code, the hash at the end of a Lambda version's logical id, which is made
from them, and the ``Handler``, which names a module. Descriptions are wording.
"""

from __future__ import annotations

import json
import re
from functools import cache, partial
from typing import Any

from tests.frozen.entries import synthesise
from tests.frozen.recording import Case

IGNORED = frozenset({"Handler", "S3Key", "S3Bucket", "aws:asset:path", "Analytics"})
DESCRIPTIONS = frozenset({"Description", "AlarmDescription", "Comment"})
VERSION = re.compile(r"(CurrentVersion[0-9A-F]{8})[0-9a-f]{32}")
UUID = "12345678-1234-1234-1234-123456789012"
SETTINGS: dict[str, dict[str, Any]] = {
    "default": {},
    "everything": {
        "stage": "test", "bucket_name": "my-data", "input_buckets": ["corpus"],
        "vpc": {"subnet_ids": ["subnet-1a"], "security_group_ids": ["sg-2b"]},
        "notification_email": "team@example.com",
        "owner_emails": {"ml-platform": "ml@example.com"},
        "slack": {"workspace_id": "T01ABC", "channel_id": "C02DEF"},
        "log_retention_days": 14, "experiment_retention_days": 7,
        "training_log_retention_days": 30, "monthly_budget_usd": 5000,
        "price_overrides": {"ml.g5.xlarge": 1.1},
    },
    "own key": {"customer_key": f"arn:aws:kms:us-east-1:123456789012:key/{UUID}"},
}  # fmt: skip


def cases() -> list[Case]:
    """One case for each resource, and one for the rest of the template."""
    return [
        Case(f"{name} {key}", partial(_entry, name, key))
        for name in SETTINGS
        for key in sorted(_template(name))
    ]


def _entry(name: str, key: str) -> Any:
    return _template(name)[key]


@cache
def _template(name: str) -> dict[str, Any]:
    document = json.loads(VERSION.sub(r"\1", json.dumps(synthesise(**SETTINGS[name]))))
    resources = document.pop("Resources")
    entries = {f"{key} {resource['Type']}": _kept(resource) for key, resource in resources.items()}
    return {**entries, "template": _kept(document)}


def _kept(value: Any) -> Any:
    if isinstance(value, dict):
        return {
            key: "…" if key in DESCRIPTIONS and isinstance(item, str) else _kept(item)
            for key, item in value.items()
            if key not in IGNORED and not key.startswith("aws:asset:")
        }
    return [_kept(item) for item in value] if isinstance(value, list) else value
