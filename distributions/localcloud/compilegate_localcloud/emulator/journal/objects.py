"""Objects in S3, one record each; bodies by their digest, because versions share them."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from typing import Any

from ministack.core import persistence

from compilegate_localcloud.emulator.journal.file import Journal, Key

OBJECT, BODY, DETAILS = "object", "body", "object-details"
_BODY_FIELD = "__body__"
# What S3 keeps beside its objects, by bucket, key and version.
_DETAILS = (
    "_object_tags", "_object_acl", "_object_annotations", "_object_retention", "_object_legal_hold",
)  # fmt: skip
_Place = tuple[str, str, str]  # account, bucket, key


class Objects:
    """Which objects have changed since they were asked for the last time."""

    def __init__(self, journal: Journal) -> None:
        self._seen: dict[_Place, object] = {}
        self._bodies: dict[_Place, set[str]] = {}
        self._details = b""
        self._journal = journal

    def changed(self) -> Iterator[tuple[Key, bytes | None]]:
        """Records of what is new, and None for what is gone."""
        from ministack.services import s3  # noqa: PLC0415 - reads its environment when imported

        now = {place: _mark(*_parts(s3, place)) for place in _places(s3)}
        for place in now.keys() | self._seen.keys():
            if now.get(place) != self._seen.get(place):
                yield from self._record(s3, place)
        self._seen = now
        details = {name: getattr(s3, name) for name in _DETAILS}
        content = json.dumps(details, default=persistence._json_default).encode()
        if content != self._details:
            self._details = content
            yield (DETAILS, ""), content

    def _record(self, s3: Any, place: _Place) -> Iterator[tuple[Key, bytes | None]]:
        bodies: dict[str, bytes] = {}

        def encoded(value: Any) -> dict[str, str]:
            if not isinstance(value, (bytes, bytearray)):
                raise TypeError(type(value).__name__)
            digest = hashlib.sha256(value).hexdigest()
            bodies[digest] = bytes(value)
            return {_BODY_FIELD: digest}

        record, versions = _parts(s3, place)
        document = {"object": record, "versions": versions}
        content = json.dumps(document, default=encoded).encode()
        is_gone = record is None and versions is None
        before, self._bodies[place] = self._bodies.pop(place, set()), set(bodies)
        in_use = set().union(*self._bodies.values())
        for digest in before - in_use:
            yield (BODY, digest), None
        for digest in bodies.keys() - before:
            yield (BODY, digest), bodies[digest]
        yield (OBJECT, json.dumps(place)), None if is_gone else content


def restore(journal: Journal) -> None:
    """Give S3 its objects back; its buckets are there already."""
    from ministack.services import s3  # noqa: PLC0415 - reads its environment when imported

    bodies = journal.read(BODY)

    def decoded(value: dict[str, Any]) -> Any:
        return bodies[value[_BODY_FIELD]] if _BODY_FIELD in value else value

    for name, content in journal.read(OBJECT).items():
        account, bucket, key = json.loads(name)
        document = json.loads(content, object_hook=decoded)
        if document["object"] is not None:
            s3._buckets._data[account, bucket]["objects"].update({key: document["object"]})
        if document["versions"] is not None:
            s3._object_versions._data.update({(account, (bucket, key)): document["versions"]})
    for content in journal.read(DETAILS).values():
        details = json.loads(content, object_hook=persistence._json_object_hook)
        for name, entries in details.items():
            getattr(s3, name)._data.update(entries._data)


def _places(s3: Any) -> set[_Place]:
    buckets = list(s3._buckets._data.items())
    current = {
        (account, name, key) for (account, name), one in buckets for key in list(one["objects"])
    }
    versioned = {(account, name, key) for account, (name, key) in list(s3._object_versions._data)}
    return current | versioned


def _parts(s3: Any, place: _Place) -> tuple[dict[str, Any] | None, list[dict[str, Any]] | None]:
    account, bucket, key = place
    objects = s3._buckets._data.get((account, bucket), {"objects": {}})["objects"]
    return objects.get(key), s3._object_versions._data.get((account, (bucket, key)))


def _mark(record: dict[str, Any] | None, versions: list[dict[str, Any]] | None) -> object:
    """Differs where any part that is not a body does; another body has another checksum."""
    parts = [list(part.items()) if part else None for part in (record, *(versions or ()))]
    return versions is None, repr(
        [part and [item for item in part if not isinstance(item[1], bytes)] for part in parts]
    )
