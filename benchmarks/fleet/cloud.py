"""A cloud of thousands of workloads that are all alike, behind the project's own adapters.

Its clients answer in the services' pages, each as late as over a network, and count what they are
asked for and how many bytes of entries and objects they answer.
"""

from __future__ import annotations

import hashlib
import io
import json
import threading
import time
from bisect import bisect_left, bisect_right
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from benchmarks.fleet.ledger import NOW, OWNER, TEMPLATE, ledger
from compilegate.adapters.stores import DynamoDbFleet, DynamoDbTable, S3Store
from compilegate.domain import naming
from compilegate.domain.codec import write
from compilegate.domain.fleet.row import Row
from compilegate.domain.production.orphans import NOT_ENDED, ExecutionEnd
from compilegate.domain.production.registration import Registration
from compilegate.ports import FleetTable, Ledger, Services
from compilegate.usecases.fleet.project import fold
from tests.decision_builder import decision_document, saving
from tests.domain.workload_builder import SOUND
from tests.fakes import FixedClock, services

# A page of a Query, and of a listing.
PAGE_BYTES, PAGE_KEYS = 1_000_000, 1000
# Workloads are alike but for this: the last run of each ended at another hour of two days, and of
# one in so many the next one is under way.
PHASES, RUNNING = 7, 14


class Client:
    """S3, DynamoDB and Step Functions in one; each call takes ``call_seconds``."""

    def __init__(self, workloads: int, years: int, call_seconds: float) -> None:
        self.calls: Counter[str] = Counter()
        self._lock, self._call_seconds = threading.Lock(), 0.0
        self._names = {f"w{number:05d}": None for number in range(1, workloads + 1)}
        self._ledgers = [
            ledger(years, phase / PHASES, under_way=phase == PHASES) for phase in range(PHASES + 1)
        ]
        self._keys = [[key for key, _ in one] for one in self._ledgers]
        self._shards: dict[str, list[str]] = defaultdict(list)
        for name in self._names:
            self._shards[hashlib.sha256(name.encode()).hexdigest()[0]].append(name)
        self._items = self._folded()
        self._call_seconds = call_seconds

    def cloud(self) -> Services:
        """The services of a function or a command, of which nothing has been asked yet."""
        self.calls.clear()
        me: Any = self
        table = DynamoDbTable(me, "ledger")
        return replace(
            services("prod"), store=S3Store(me, "data"), ledger=Ledger(table), locks=table,
            fleet=FleetTable(DynamoDbFleet(me, "ledger")), clock=FixedClock(NOW), ends=me,
        )  # fmt: skip

    def _folded(self) -> dict[str, list[str]]:
        """The text of the row and of the latest months, of a workload with a run and without."""
        texts: dict[str, list[str]] = defaultdict(list)
        for name in (f"w{number:05d}" for number in (*range(1, PHASES + 1), RUNNING)):
            row, months = fold(Row(name), self.cloud())
            for kind, item in [("fleet", row), *((f"month#{one.month}", one) for one in months)]:
                text = json.dumps(write(item), sort_keys=True)
                texts[kind].append(text.replace(name, TEMPLATE))
        return texts

    def _call(self, name: str, answered: int = 0) -> None:
        time.sleep(self._call_seconds)
        with self._lock:
            self.calls[name] += 1
            self.calls["bytes"] += answered

    def _of(self, name: str, texts: list[Any]) -> Any:
        """That of the workload."""
        number = int(name[1:])
        return texts[(number - 1) % PHASES if number % RUNNING else PHASES]

    # DynamoDB and S3, as their clients are called.

    def get_paginator(self, operation: str) -> Any:
        """The pages of Query and ListObjectsV2."""
        self.paginate = self._query if operation == "query" else self._listed
        return type("Paginator", (), {"paginate": staticmethod(self.paginate)})

    def _query(self, **request: Any) -> Iterator[dict[str, Any]]:
        values = {name: value["S"] for name, value in request["ExpressionAttributeValues"].items()}
        kind, _, name = values[":pk"].rpartition("#")
        items = self._entries(name, values) if kind == "workload" else self._rows(kind, name)
        page, size = [], 0
        for key, text in items:
            page.append({"sk": {"S": key}, "entry": {"S": text}})
            size += len(text)
            if size > PAGE_BYTES:
                self._call("Query", size)
                yield {"Items": page}
                page, size = [], 0
        self._call("Query", size)
        yield {"Items": page}

    def _entries(self, name: str, values: dict[str, str]) -> Iterator[tuple[str, str]]:
        if name in self._names:
            keys, first = self._of(name, self._keys), values.get(":sk", "")
            last = values.get(":last", f"{first}~")
            part = slice(bisect_left(keys, first), bisect_right(keys, last))
            for key, text in self._of(name, self._ledgers)[part]:
                yield key, text.replace(TEMPLATE, name)

    def _rows(self, kind: str, shard: str) -> Iterator[tuple[str, str]]:
        if kind in self._items:
            for name in self._shards[shard]:
                text = self._of(name, self._items[kind])
                yield name, text.replace(TEMPLATE, name)

    def get_item(self, **request: Any) -> dict[str, Any]:
        """A row or a month; nobody holds a lock."""
        kind = request["Key"]["pk"]["S"].rpartition("#")[0]
        name = request["Key"]["sk"]["S"]
        texts = getattr(self, "_items", {}).get(kind)
        text = self._of(name, texts).replace(TEMPLATE, name) if texts else ""
        self._call("GetItem", len(text))
        return {"Item": {"entry": {"S": text}}} if text else {}

    def batch_get_item(self, **_request: Any) -> dict[str, Any]:
        """Nobody holds a lock."""
        self._call("BatchGetItem")
        return {"Responses": {}}

    def put_item(self, **request: Any) -> dict[str, Any]:
        """Written."""
        self._call("PutItem", len(str(request["Item"])))
        return {"Attributes": {}, "written": True}

    def _listed(self, **request: Any) -> Iterator[dict[str, Any]]:
        all_names = [*self._names]
        for first in range(0, len(all_names), PAGE_KEYS):
            names = all_names[first : first + PAGE_KEYS]
            self._call("ListObjectsV2", sum(map(len, names)))
            yield {"CommonPrefixes": [{"Prefix": f"{request['Prefix']}{name}/"} for name in names]}

    def get_object(self, **request: Any) -> dict[str, Any]:
        """A registration, a spec, or a decision."""
        name, key = request["Key"].split("/")[1], request["Key"]
        document: Any = decision_document(saving=saving(3.0))
        if key.endswith("registration.json"):
            document = write(Registration(name, naming.spec_key(name, "d"), "d", owner=OWNER))
        elif "/specs/" in key:
            document = {"workload": {**SOUND.to_dict(), "name": name}, "source_key": "s"}
        body = json.dumps(document).encode()
        self._call("GetObject", len(body))
        return {"Body": io.BytesIO(body)}

    def end_of(self, _execution: str) -> ExecutionEnd:
        """Every execution runs."""
        self._call("DescribeExecution")
        return NOT_ENDED
