"""The decision's id: same evidence and same judge, same id, in whatever order it is listed.

It is what makes a replay comparable. Step times go in as eight-byte floats, so that a
document of a million steps is hashed in little time and memory.
"""

from __future__ import annotations

import hashlib
import json
import struct
from collections.abc import Mapping
from typing import Any

ID_LENGTH = 16


def decision_id(content: str, judge_version: str) -> str:
    """Sixteen hexadecimal digits of what was judged (``content_of``) and the judge's version."""
    return hashlib.sha256(f"{judge_version}\n{content}".encode()).hexdigest()[:ID_LENGTH]


def content_of(document: Mapping[str, Any]) -> str:
    """One text of a valid evidence document, whatever the order of its arms and runs."""
    rest = {key: value for key, value in document.items() if key not in ("arms", "controls")}
    digests = sorted(_arm_digest(arm) for arm in document["arms"])
    controls = sorted(_arm_digest(arm) for arm in document.get("controls") or ())
    apart = ["controls", *controls] if controls else []
    return "\n".join([_canonical(rest), *digests, *apart])


def _arm_digest(arm: Mapping[str, Any]) -> str:
    rest = {key: value for key, value in arm.items() if key != "runs"}
    digests = sorted(_run_digest(run) for run in arm.get("runs") or ())
    return hashlib.sha256("\n".join([_canonical(rest), *digests]).encode()).hexdigest()


def _run_digest(run: Mapping[str, Any]) -> str:
    steps = run.get("step_seconds") or ()
    rest = {key: value for key, value in run.items() if key != "step_seconds"}
    found = hashlib.sha256(_canonical(rest).encode())
    found.update(struct.pack(f"<{len(steps)}d", *steps))
    return found.hexdigest()


def _canonical(value: object) -> str:
    return json.dumps(value, sort_keys=True, separators=(",", ":"))
