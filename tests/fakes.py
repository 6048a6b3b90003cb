"""In-memory implementations of the ports, shared by every test that needs a cloud."""

from __future__ import annotations

import io
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, BinaryIO

from compilegate.adapters.job_outputs import StoredOutputs
from compilegate.adapters.stores import Fetched
from compilegate.domain import ledger_keys, naming
from compilegate.domain.claims import Notification
from compilegate.domain.errors import (
    NotFoundError,
    WorkloadLockedError,
    lock_lost,
)
from compilegate.domain.production.orphans import NOT_ENDED, ExecutionEnd
from compilegate.ports import FleetTable, Ledger, Lock, Services, Settings

ROLES = "arn:aws:iam::111122223333:role/compilegate/prod-us-east-1-"


class MemoryStore:
    """ObjectStore in a dictionary; ``others`` are URIs of other buckets that exist."""

    def __init__(self, bucket: str = "data", others: Sequence[str] = ()) -> None:
        self.bucket = bucket
        self.objects: dict[str, bytes] = {}
        self.others = tuple(others)
        self.sizes: dict[str, int] = {}  # by URI, of objects said to be larger than they are

    def __repr__(self) -> str:
        # By what it holds: tests compare states by how they look.
        return f"MemoryStore({vars(self)})"

    def get(self, key: str) -> bytes:
        if key not in self.objects:
            raise NotFoundError(f"s3://{self.bucket}/{key} does not exist")
        return self.objects[key]

    def put(self, key: str, body: bytes, content_type: str = "application/json") -> None:
        self.objects[key] = body

    def put_stream(self, key: str, stream: BinaryIO, content_type: str) -> None:
        self.objects[key] = stream.read()

    def has(self, key: str) -> bool:
        return key in self.objects

    def fetch(self, uri: str) -> Fetched:
        own = f"s3://{self.bucket}/"
        body = self.get(uri.removeprefix(own) if uri.startswith(own) else uri)
        return Fetched(self.sizes.get(uri, len(body)), io.BytesIO(body))

    def exists(self, uri: str) -> bool:
        own = (f"s3://{self.bucket}/{key}" for key in self.objects)
        return any(one.startswith(uri) for one in (*own, *self.others))

    def folders(self, prefix: str) -> Iterator[str]:
        below = {key.removeprefix(prefix) for key in self.objects if key.startswith(prefix)}
        yield from sorted({key.split("/")[0] for key in below if "/" in key})

    def keys(self, prefix: str) -> Iterator[str]:
        yield from sorted(key for key in self.objects if key.startswith(prefix))


class MemoryTopic:
    """Topic that keeps what was sent; ``broken`` are owners to whom nothing can be sent."""

    def __init__(self, broken: Sequence[str] = ()) -> None:
        self.sent: list[Notification] = []
        self.broken = tuple(broken)

    def publish(self, notification: Notification) -> None:
        if notification.owner in self.broken:
            raise ConnectionError("the topic is out of reach")
        self.sent.append(notification)


class NoLogs:
    """Training jobs that have no logs."""

    def limit_retention(self) -> bool:
        return False


@dataclass
class MemoryLedger:
    """RawLedger in a dictionary."""

    items: dict[tuple[str, str], Mapping[str, Any]] = field(default_factory=dict)

    def put_once(self, workload: str, sort_key: str, entry: Mapping[str, Any]) -> Mapping[str, Any]:
        return self.items.setdefault((workload, sort_key), entry)

    def entries(
        self, workload: str, prefix: str = "", last: str | None = None
    ) -> Sequence[Mapping[str, Any]]:
        keys = sorted(self.items)
        return [
            self.items[name, sort_key]
            for name, sort_key in keys
            if name == workload and ledger_keys.holds(sort_key, prefix, last)
        ]


@dataclass
class MemoryFleet:
    """RawFleet in a dictionary of texts by kind and workload."""

    texts: dict[tuple[str, str], str] = field(default_factory=dict)

    def items(self, kind: str) -> Sequence[tuple[str, str]]:
        return [(workload, text) for (own, workload), text in self.texts.items() if own == kind]

    def item(self, kind: str, workload: str) -> str:
        return self.texts.get((kind, workload), "")

    def put(self, kind: str, workload: str, text: str, previous: str) -> bool:
        if self.item(kind, workload) != previous:
            return False
        self.texts[kind, workload] = text
        return True


class MemoryLocks:
    """Locks in a dictionary of owner and expiry."""

    def __init__(self) -> None:
        self.held: dict[str, tuple[str, int]] = {}

    def acquire(self, workload: str, owner: str, *, now: int, expires_at: int) -> None:
        holder, until = self.held.get(workload, (owner, 0))
        if holder != owner and until >= now:
            raise WorkloadLockedError(f"{workload} is already being evaluated by {holder}")
        self.held[workload] = (owner, expires_at)

    def extend(self, workload: str, owner: str, *, expires_at: int) -> None:
        if self.holder(workload) != owner:
            raise lock_lost(workload, owner)
        self.held[workload] = (owner, expires_at)

    def release(self, workload: str, owner: str) -> None:
        if self.held.get(workload, ("", 0))[0] == owner:
            del self.held[workload]

    def holder(self, workload: str) -> str | None:
        return self.held[workload][0] if workload in self.held else None

    def locks_of(self, workloads: Collection[str]) -> Sequence[Lock]:
        return [Lock(name, *self.held[name]) for name in workloads if name in self.held]


class MemoryFlags:
    """FlagStore in a dictionary."""

    def __init__(self) -> None:
        self.values: dict[str, str] = {}

    def read(self, name: str) -> str | None:
        return self.values.get(name)

    def write(self, name: str, value: str) -> None:
        self.values[name] = value


class MemoryJobs:
    """TrainingJobs in a dictionary of descriptions."""

    def __init__(self) -> None:
        self.descriptions: dict[str, dict[str, Any]] = {}

    def describe(self, job: str) -> Mapping[str, Any]:
        return self.descriptions.get(job, {})

    def describe_all(self, names: Iterable[str]) -> Mapping[str, Mapping[str, Any]]:
        return {name: self.descriptions[name] for name in names if name in self.descriptions}

    def tags(self, job: str) -> Mapping[str, str]:
        return {tag["Key"]: tag["Value"] for tag in self.describe(job).get("Tags", ())}

    def _known(self, job: str) -> dict[str, Any]:
        if job not in self.descriptions:
            raise NotFoundError(f"there is no training job {job}")
        return self.descriptions[job]

    def stop(self, job: str) -> None:
        if self._known(job)["TrainingJobStatus"] == "InProgress":
            self.descriptions[job]["TrainingJobStatus"] = "Stopped"

    def tag(self, job: str, tags: Mapping[str, str]) -> None:
        merged = {**{t["Key"]: t["Value"] for t in self._known(job).get("Tags", ())}, **tags}
        self.descriptions[job]["Tags"] = [{"Key": k, "Value": v} for k, v in merged.items()]

    def unfinished(self, prefix: str, since: float) -> Mapping[str, str]:
        return {
            name: status
            for name, described in self.descriptions.items()
            if name.startswith(prefix)
            and (status := described["TrainingJobStatus"]) in ("InProgress", "Stopping")
        }

    def add(self, name: str, status: str, started: float, ended: float | None = None) -> None:
        """A job with times in epoch seconds."""
        self.descriptions[name] = {
            "TrainingJobName": name,
            "TrainingJobStatus": status,
            "SecondaryStatus": "Training",
            "TrainingStartTime": datetime.fromtimestamp(started, tz=UTC),
            **({"TrainingEndTime": datetime.fromtimestamp(ended, tz=UTC)} if ended else {}),
        }


@dataclass
class MemoryRoles:
    """JobRoles that remembers for which workloads there is one."""

    made: list[str] = field(default_factory=list)

    def ensure(self, workload: str) -> None:
        self.made.append(workload)


@dataclass
class FixedQuotas:
    """Quotas by instance type, ``otherwise`` where none is given; None is unknown."""

    instances: dict[str, int] = field(default_factory=dict)
    otherwise: int | None = None

    def training_instances(self, instance_type: str, *, spot: bool) -> int | None:
        key = f"spot {instance_type}" if spot else instance_type
        return self.instances.get(key, self.otherwise)


@dataclass
class MemoryTokens:
    """Answers that were sent, by token; only those in ``waiting`` are still waited for."""

    waiting: set[str] = field(default_factory=set)
    answers: dict[str, Mapping[str, Any]] = field(default_factory=dict)

    def send_success(self, token: str, output: Mapping[str, Any]) -> bool:
        if token not in self.waiting:
            return False
        self.waiting.remove(token)
        self.answers[token] = output
        return True


class MemoryEnds(dict[str, ExecutionEnd]):
    """Executions that have ended; all others run."""

    def end_of(self, execution: str) -> ExecutionEnd:
        return self.get(execution, NOT_ENDED)


@dataclass
class MemorySchedules:
    """Schedules in a dictionary of expressions."""

    target: str = "train as scheduler"
    expressions: dict[str, str] = field(default_factory=dict)
    zones: dict[str, str] = field(default_factory=dict)
    disabled: set[str] = field(default_factory=set)

    def put(self, workload: str, expression: str, timezone: str = "UTC") -> None:
        self.expressions[workload] = expression
        self.zones[workload] = timezone

    def remove(self, workload: str) -> None:
        self.expressions.pop(workload, None)

    def enabled(self) -> Sequence[str]:
        return sorted(set(self.expressions) - self.disabled)

    def switch(self, workload: str, *, on: bool) -> bool:
        self.disabled = self.disabled - {workload} if on else self.disabled | {workload}
        return workload in self.expressions


@dataclass
class FixedClock:
    """A clock that stands still until it is moved; seconds since 1970."""

    seconds: int = 1_790_000_000

    def now(self) -> int:
        return self.seconds


def start_job(services: Any, workload: str, trial: str, run: str, **job: Any) -> str:
    """A trial's job in progress, whose request is there; its name."""
    name = f"{naming.job_base(workload, trial, run)}{naming.FIRST_TRY}"
    services.store.put(naming.request_key(workload, trial, run), b"{}")
    services.jobs.add(name, **{"status": "InProgress", "started": 0.0, **job})
    return name


def services(stage: str = "dev", simulated: str | None = None) -> Services:
    """Services in memory."""
    settings = Settings(stage=stage, region="us-east-1", job_roles=ROLES, simulated=simulated)
    store = MemoryStore()
    return Services(
        store=store,
        ledger=Ledger(MemoryLedger()),
        fleet=FleetTable(MemoryFleet()),
        locks=MemoryLocks(),
        flags=MemoryFlags(),
        jobs=MemoryJobs(),
        outputs=StoredOutputs(store.fetch),
        roles=MemoryRoles(),
        quotas=FixedQuotas(otherwise=1000),
        tokens=MemoryTokens(),
        ends=MemoryEnds(),
        clock=FixedClock(),
        settings=settings,
    )
