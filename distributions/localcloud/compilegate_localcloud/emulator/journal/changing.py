"""Which requests may change what their service holds."""

from __future__ import annotations

import re
from collections.abc import Mapping
from urllib.parse import parse_qs

FORM = "application/x-www-form-urlencoded"
_READS = re.compile(
    "(BatchGet|Check|Count|Describe|Estimate|Filter|Get|Head|List|Lookup|Preview|Query|Scan|"
    "Search|Select|Simulate|Test|Validate|Verify)"
)
# Lines of logs and metrics are many, and little is lost with the newest: the sweep has them.
# Of STS nothing lasts.
_WITHOUT = frozenset({"logs", "monitoring", "sts"})
# What a function changes it changes by requests of its own.
_INVOCATION = "/invocations"


def changes(
    service: str, method: str, path: str, headers: Mapping[str, str], body: bytes = b""
) -> bool:
    """Whether the request may change something; ``body`` is that of a form."""
    if service in _WITHOUT or path.endswith(_INVOCATION):
        return False
    target = headers.get("x-amz-target", "").rsplit(".", 1)[-1]
    action = target or parse_qs(body.decode("latin-1")).get("Action", [""])[0]
    if action:
        return _READS.match(action) is None
    return method not in ("GET", "HEAD", "OPTIONS")
