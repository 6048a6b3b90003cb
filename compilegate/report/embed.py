"""Documents inside a page: safe in a script element, as a download, and under a strict policy."""

from __future__ import annotations

import base64
import hashlib
import json
import math
from collections.abc import Mapping, Sequence
from typing import Any

# Each could end the script element, open a comment, or end a line in old parsers.
_UNSAFE = str.maketrans(
    {c: f"\\u{ord(c):04x}" for c in ("<", ">", "&", "\u2028", "\u2029")}
)  # fmt: skip


def finite(value: Any) -> Any:
    """The document with NaN and infinities as null, which JSON has no word for."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {str(key): finite(item) for key, item in value.items()}
    if isinstance(value, Sequence) and not isinstance(value, str | bytes):
        return [finite(item) for item in value]
    return value


def stable_json(document: Any, *, indent: int | None = 2) -> str:
    """JSON with sorted keys, the same text for the same document."""
    separators = None if indent else (",", ":")
    return json.dumps(
        finite(document), sort_keys=True, indent=indent, separators=separators, ensure_ascii=False,
        allow_nan=False, default=str,
    )  # fmt: skip


def script_json(document: Any) -> str:
    """JSON that cannot leave its script element, whatever strings it carries."""
    return stable_json(document, indent=None).translate(_UNSAFE)


def script_source(text: str) -> str:
    """JavaScript of ours that may stand in a script element."""
    return text.replace("\r\n", "\n").replace("</script", "<\\/script").replace("<!--", "<\\!--")


def script_hash(text: str) -> str:
    """The source expression that lets exactly this script run (Content Security Policy 3)."""
    digest = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
    return f"'sha256-{digest}'"


def data_uri(text: str) -> str:
    """A download of JSON text that needs no server."""
    body = base64.b64encode(text.encode()).decode()
    return f"data:application/json;base64,{body}"
