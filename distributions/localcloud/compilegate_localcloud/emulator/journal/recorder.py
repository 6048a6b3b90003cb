"""Writes into the journal what has changed, before a caller gets its answer."""

from __future__ import annotations

import hashlib
import logging
import sys
import threading
import time
from collections.abc import Iterable, Iterator
from typing import Any

from compilegate_localcloud.emulator.journal.file import Journal, Key
from compilegate_localcloud.emulator.journal.objects import Objects
from compilegate_localcloud.emulator.journal.states import loaded_services, state_of

OBJECTS, STATE = "s3", "state"
# What changes without a request: events, their targets, metrics. Not what is large and changes with
# requests alone, or with a deployment, which ends what a request began.
_SWEEP_SECONDS = 2.0
# A sweep reads whole states, logs included: of a cloud that has held much it takes a second. It is
# never more than this share of the cloud's time.
_SWEEP_SHARE = 0.05
_NOT_SWEPT = frozenset({OBJECTS, "lambda", "cloudformation"})
log = logging.getLogger("compilegate.journal")


class Recorder:
    """What has changed since it was written; ``flush`` returns when it has been.

    While CloudFormation deploys nothing is written: a deployment that was cut off would stay so.
    """

    def __init__(self, journal: Journal) -> None:
        self.journal = journal
        # Executions that ran when the emulator was killed: account, region, ARN.
        self.interrupted: list[tuple[str, str, str]] = []
        self._objects = Objects(journal)
        self._noting, self._writing = threading.Lock(), threading.Lock()
        self._services: set[str] = set()
        self._records: dict[Key, bytes | None] = {}
        self._written: dict[str, bytes] = {}  # digests of states by service

    def begin(self) -> None:
        """Everything that there is now lies in the journal; look for changes from now on."""
        for _ in self._changed(loaded_services()):
            pass
        threading.Thread(target=self._sweep, daemon=True, name="journal-sweep").start()

    def note(self, *services: str) -> None:
        """These services have changed."""
        with self._noting:
            self._services.update(services)

    def put(self, kind: str, name: str, content: bytes) -> None:
        """Write this record with the next flush."""
        with self._noting:
            self._records[kind, name] = content

    def drop(self, kind: str, names: Iterable[str]) -> None:
        """Delete these records with the next flush."""
        with self._noting:
            self._records.update(dict.fromkeys(((kind, name) for name in names), None))

    def flush(self) -> None:
        """Write all that has changed; of several callers at once one writes for the others."""
        with self._writing:
            if _deploying():
                return
            with self._noting:
                services, self._services = self._services, set()
                records, self._records = self._records, {}
            try:
                states = dict(self._changed(services))
            except Exception as error:  # noqa: BLE001 - a journal with parts of a state misleads
                self.journal.give_up(error)
                return
            if states or records:
                self.journal.write({**states, **records})

    def _changed(self, services: Iterable[str]) -> Iterator[tuple[Key, bytes | None]]:
        for service in services:
            if service == OBJECTS:
                yield from self._objects.changed()
            content = state_of(service)
            if content is None:
                continue
            digest = hashlib.sha256(content).digest()
            if self._written.get(service) != digest:
                self._written[service] = digest
                yield (STATE, service), content

    def _sweep(self) -> None:
        took = 0.0
        while True:
            time.sleep(max(_SWEEP_SECONDS, took / _SWEEP_SHARE))
            began = time.monotonic()
            try:
                self.note(*(name for name in loaded_services() if name not in _NOT_SWEPT))
                self.flush()
            except Exception:  # the next request that changes something meets it as well
                log.exception("the sweep of the journal")
            took = time.monotonic() - began


def _deploying() -> bool:
    module: Any = sys.modules.get("ministack.services.cloudformation")
    stacks = list(module._stacks.all_values()) if module is not None else []
    # A stack of a change set that nobody has executed is in review, and may be for ever.
    statuses = {str(stack.get("StackStatus", "")) for stack in stacks} - {"REVIEW_IN_PROGRESS"}
    return any(status.endswith("_IN_PROGRESS") for status in statuses)
