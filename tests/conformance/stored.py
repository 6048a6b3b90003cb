"""Requests as flat tables, and a compact file of many of them.

What most requests have in common is written once; each one adds where it differs. A path that a
request lacks is null there.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

CAPTURED = Path(__file__).with_name("captured.json")
# Entries of these lists are distinguished by a name of their own; their order means nothing.
_NAMES = ("Key", "Name", "ChannelName")

Flat = dict[str, Any]


def flat(request: Mapping[str, Any]) -> Flat:
    """Every single value of a request by its path."""
    return dict(_flat(request, ""))


def _flat(value: Any, path: str) -> Iterator[tuple[str, Any]]:
    if isinstance(value, Mapping):
        for key, item in value.items():
            yield from _flat(item, f"{path}.{key}" if path else key)
    elif isinstance(value, Sequence) and not isinstance(value, str):
        named = next((name for name in _NAMES if value and name in value[0]), None)
        if named is None:
            yield path, list(value)
            return
        for item in value:
            rest = {key: part for key, part in item.items() if key != named}
            yield from _flat(rest, f"{path}[{item[named]}]")
    else:
        yield path, value


def write(path: Path, captured: Mapping[str, Any]) -> None:
    """Store captured requests, one line per request."""
    requests = {name: flat(request) for name, request in captured["requests"].items()}
    common = _common(list(requests.values()))
    different = {
        name: {key: request.get(key) for key in sorted({*common, *request})
               if request.get(key) != common.get(key)}
        for name, request in requests.items()
    }  # fmt: skip
    parts = {"sdk": captured["sdk"], "images": captured["images"]}
    lines = [f"{json.dumps(key)}: {json.dumps(value, indent=1)}" for key, value in parts.items()]
    tables = {"refusals": captured["refusals"], "common": common, "requests": different}
    path.write_text("{\n" + ",\n".join([*lines, *map(_table, tables.items())]) + "\n}\n")


def _table(item: tuple[str, Mapping[str, Any]]) -> str:
    name, rows = item
    lines = [f"{json.dumps(key)}: {json.dumps(value)}" for key, value in rows.items()]
    return f"{json.dumps(name)}: {{\n" + ",\n".join(lines) + "\n}"


def _common(requests: Sequence[Flat]) -> Flat:
    """The commonest value of every path that most requests have."""
    common: Flat = {}
    for path in sorted({path for request in requests for path in request}):
        counts = Counter(json.dumps(request.get(path)) for request in requests)
        value = json.loads(counts.most_common(1)[0][0])
        if value is not None:
            common[path] = value
    return common


def read(path: Path = CAPTURED) -> dict[str, Any]:
    """A stored file, its requests flat and whole."""
    stored: dict[str, Any] = json.loads(path.read_text())
    requests = {
        name: {
            key: value for key, value in {**stored["common"], **own}.items() if value is not None
        }
        for name, own in stored["requests"].items()
    }
    return {**stored, "requests": requests}
