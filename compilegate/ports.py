"""What the use cases need from the outside: Protocols that adapters implement, and the ledger."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from itertools import chain
from typing import TYPE_CHECKING, Any, BinaryIO, Generic, Protocol, TypeVar

from compilegate.domain import codec, ledger_keys
from compilegate.domain.deployment_settings import JobRules
from compilegate.domain.fleet.month import Month
from compilegate.domain.fleet.row import Row
from compilegate.domain.optional import without_none
from compilegate.domain.outside import BROKEN
from compilegate.domain.production.history import WorkloadHistory, history
from compilegate.domain.records import LedgerRecord, LedgerRecordT
from compilegate.domain.records.production import ProductionRun
from compilegate.domain.workload.model import FactOverrides
from compilegate.domain.workload.quality import Quality

if TYPE_CHECKING:  # a function loads the types of those ports alone that it uses
    from compilegate.domain.claims import Notification
    from compilegate.domain.judging.evidence import FullRun, SpeedRun
    from compilegate.domain.production.attempts import JobEvidence
    from compilegate.domain.production.orphans import ExecutionEnd


class ObjectStore(Protocol):
    """The data bucket; keys are relative to it."""

    bucket: str

    def get(self, key: str) -> bytes:
        """An object's bytes; raises NotFoundError."""

    def put(self, key: str, body: bytes, content_type: str = "application/json") -> None:
        """Write an object."""

    def put_stream(self, key: str, stream: BinaryIO, content_type: str) -> None:
        """Write an object from a file, however large it is."""

    def exists(self, uri: str) -> bool:
        """Whether an s3:// URI names an object or a prefix with at least one."""

    def has(self, key: str) -> bool:
        """Whether the bucket holds an object of exactly this key."""

    def folders(self, prefix: str) -> Iterator[str]:
        """Names directly below a prefix that ends with a slash, in order."""

    def keys(self, prefix: str) -> Iterator[str]:
        """Keys that begin with ``prefix``, in order; listed consistently."""


class Topic(Protocol):
    """The deployment's subscribers."""

    def publish(self, notification: Notification) -> None:
        """Send one message to the subscribers of its kind, workload or owner."""


class RawLedger(Protocol):
    """Append-only entries; one is written once under its sort key and never changed."""

    def put_once(self, workload: str, sort_key: str, entry: Mapping[str, Any]) -> Mapping[str, Any]:
        """Write the entry, or return the one that is already there."""

    def entries(
        self, workload: str, prefix: str = "", last: str | None = None
    ) -> Sequence[Mapping[str, Any]]:
        """A workload's entries in the order of their sort keys, those that begin with ``prefix``.

        With ``last`` those whose keys lie from ``prefix`` to ``last``, both included. Read
        consistently: what was written before the call is there.
        """


@dataclass(frozen=True)
class Ledger:
    """The ledger in records: the one place where entries are read and written as documents."""

    raw: RawLedger

    def history(
        self, workload: str, prefix: str = "", *, since: float = -math.inf
    ) -> WorkloadHistory:
        """What a workload's entries say, of those whose sort keys begin with ``prefix``.

        With ``since`` (epoch seconds) runs that began before then and their reviews are left out,
        but for those of the day before (ledger_keys.py).
        """
        if since == -math.inf:
            return history(self.raw.entries(workload, prefix))
        windows = ledger_keys.windows(prefix, since)
        entries = chain(*(self.raw.entries(workload, *window) for window in windows))
        return history(entries, since=since)

    def runs(self, workload: str, since: float) -> tuple[ProductionRun, ...]:
        """Its runs that have ended and began from epoch second ``since`` on; nothing else is read.

        What is damaged is left out.
        """
        (window,) = ledger_keys.windows(ledger_keys.RUN_ENTRIES, since)
        entries = self.raw.entries(workload, *window)
        return history(one for one in entries if one.get("kind") == ProductionRun.kind).runs

    def recent(self, workload: str, since: float) -> WorkloadHistory:
        """Its runs from epoch second ``since`` on, and all else but reviews, in two reads."""
        others, _, runs = ledger_keys.windows("", since)
        entries = chain(*(self.raw.entries(workload, *window) for window in (others, runs)))
        return history(entries, since=since)

    def enough(
        self,
        workload: str,
        history: WorkloadHistory,
        times: Iterable[float],
        is_enough: Callable[[WorkloadHistory], bool],
    ) -> WorkloadHistory:
        """``history`` where it is enough, else the history since the first of these times that is.

        Where none is, it is that since the last of them.
        """
        for since in times:
            if is_enough(history):
                break
            history = self.history(workload, since=since)
        return history

    def put_once(self, workload: str, record: LedgerRecordT) -> LedgerRecordT:
        """Write the record, or return the one that is already there.

        Raises UnreadableRecordError where the one that is there is damaged.
        """
        entry = self.raw.put_once(workload, record.key, record.to_entry())
        return type(record).from_entry(entry)

    def append(self, workload: str, record: LedgerRecord) -> None:
        """Write the record; one that is already there stays, readable or not."""
        self.raw.put_once(workload, record.key, record.to_entry())


class RawFleet(Protocol):
    """Items of the fleet: one text by kind of item and workload, which is replaced."""

    def items(self, kind: str) -> Sequence[tuple[str, str]]:
        """Workload and text of every item of a kind, in any order; empty for one without text."""

    def item(self, kind: str, workload: str) -> str:
        """The item's text, read consistently; empty where there is none."""

    def put(self, kind: str, workload: str, text: str, previous: str) -> bool:
        """Write the item if its text still is ``previous``; returns whether it was."""


Item = TypeVar("Item")


@dataclass(frozen=True)
class Items(Generic[Item]):
    """Items of one kind; ``damaged`` and ``newer`` are the workloads of those that are unreadable.

    ``newer`` are those that a later release has written.
    """

    read: tuple[Item, ...] = ()
    damaged: tuple[str, ...] = ()
    newer: tuple[str, ...] = ()


@dataclass(frozen=True)
class Stored(Generic[Item]):
    """An item with the ``version`` that a write of it has to name.

    ``item`` is None where there is none, it is damaged, or it is ``newer``: of a later release.
    """

    item: Item | None
    version: str
    newer: bool = False


@dataclass(frozen=True)
class FleetTable:
    """Rows and months of all workloads: the one place where they are read and written."""

    raw: RawFleet

    def rows(self) -> Items[Row]:
        """Every row, in order of the workloads' names."""
        return self._items(Row, ROWS)

    def row(self, workload: str) -> Stored[Row]:
        """A workload's row, read consistently."""
        return _stored(Row, workload, self.raw.item(ROWS, workload))

    def months(self, month: str) -> Items[Month]:
        """A month (``2026-11``) of every workload, in order of their names."""
        return self._items(Month, f"{MONTHS}{month}")

    def month(self, month: str, workload: str) -> Stored[Month]:
        """A workload's month, read consistently."""
        return _stored(Month, workload, self.raw.item(f"{MONTHS}{month}", workload))

    def put(self, item: Row | Month, previous: str) -> bool:
        """Write it over the version ``previous``; returns whether it was still that one."""
        place = ROWS if isinstance(item, Row) else f"{MONTHS}{item.month}"
        text = json.dumps(codec.write(item), sort_keys=True)
        return self.raw.put(place, item.workload, text, previous)

    def _items(self, kind: type[Item], place: str) -> Items[Item]:
        items = [(name, _stored(kind, name, text)) for name, text in sorted(self.raw.items(place))]
        unread = [(name, stored.newer) for name, stored in items if stored.item is None]
        return Items(
            read=tuple(without_none(stored.item for _, stored in items)),
            damaged=tuple(name for name, newer in unread if not newer),
            newer=tuple(name for name, newer in unread if newer),
        )


# Kinds of items; what follows a month's is the month.
ROWS, MONTHS = "fleet", "month#"
# Fields by which an item says that a later release wrote it.
VERSIONS = ("schema", "fold")


def _stored(kind: type[Any], workload: str, text: str) -> Stored[Any]:
    try:
        document = json.loads(text)
        if any(document[one.name] > one.default for one in fields(kind) if one.name in VERSIONS):
            return Stored(None, text, newer=True)
        item = codec.read(kind, document)
        return Stored(item if item.workload == workload else None, text)
    except BROKEN:
        return Stored(None, text)


@dataclass(frozen=True)
class Lock:
    """A lock on a workload; ``expires_at`` in epoch seconds."""

    workload: str
    owner: str
    expires_at: int


class Locks(Protocol):
    """One lock per workload, so that it is evaluated once at a time."""

    def acquire(self, workload: str, owner: str, *, now: int, expires_at: int) -> None:
        """Take the lock (epoch seconds); raises WorkloadLockedError naming the holder."""

    def extend(self, workload: str, owner: str, *, expires_at: int) -> None:
        """Let the lock last longer; raises WorkloadLockedError where ``owner`` has lost it."""

    def release(self, workload: str, owner: str) -> None:
        """Give the lock back if ``owner`` still holds it."""

    def holder(self, workload: str) -> str | None:
        """The holder of the lock, expired or not; None where there is no lock."""

    def locks_of(self, workloads: Collection[str]) -> Sequence[Lock]:
        """The locks on these workloads, expired or not."""


class FlagStore(Protocol):
    """The Parameter Store flag."""

    def read(self, name: str) -> str | None:
        """The raw value, None when absent."""

    def write(self, name: str, value: str) -> None:
        """Set the raw value."""


class TrainingJobs(Protocol):
    """SageMaker training jobs."""

    def describe(self, job: str) -> Mapping[str, Any]:
        """DescribeTrainingJob; empty for a job that SageMaker never saw."""

    def describe_all(self, names: Iterable[str]) -> Mapping[str, Mapping[str, Any]]:
        """``describe`` of the jobs of these names that there are, in the order of the names."""

    def tags(self, job: str) -> Mapping[str, str]:
        """A job's tags by key; empty for a job that is gone."""

    def stop(self, job: str) -> None:
        """StopTrainingJob; a job that has already ended is left alone."""

    def tag(self, job: str, tags: Mapping[str, str]) -> None:
        """Set tags of a job, those it has under other keys stay; raises NotFoundError."""


class JobListing(Protocol):
    """SageMaker's list of jobs, for commands alone.

    It goes through all of the account's jobs page by page, whatever is asked for; the steps of a
    trial or run ask for the names that they know (usecases/started_jobs.py).
    """

    def unfinished(self, prefix: str, since: float) -> Mapping[str, str]:
        """TrainingJobStatus of jobs in progress or stopping that begin with ``prefix``.

        Those that were created from ``since`` on (epoch seconds).
        """


class JobOutputs(Protocol):
    """What completed training jobs left behind, read within bounds.

    An output is the job's own word. Whatever is wrong with one, or with it being written more than
    once, is an InvalidEvidenceError; one that may not be read counts as missing.
    """

    def segments(self, uri: str, job: str) -> Sequence[tuple[str, SpeedRun]]:
        """Arm and run of every segment of a trial's speed job, none where it left nothing."""

    def full_run(self, uri: str, job: str, quality: Quality) -> FullRun:
        """A trial's full run, by the s3:// URI of its output; a missing output is invalid."""

    def paired_runs(
        self, uri: str, job: str, quality: Quality
    ) -> Mapping[tuple[int, str], FullRun]:
        """The whole runs of a job of pairs, by place and arm."""

    def production_run(self, described: Mapping[str, Any], quality: Quality) -> JobEvidence:
        """A production job's run, or why it cannot be read.

        Of a job that did not complete only whether it ended in the equivalence check.

        ``described`` is SageMaker's description of the job. Raises only for a lost connection.
        """


class JobRoles(Protocol):
    """The roles that training jobs run as, one for each workload."""

    def ensure(self, workload: str) -> None:
        """Make the workload's role if there is none; raises CompilegateError for a foreign one."""


class Quotas(Protocol):
    """The account's SageMaker quotas."""

    def training_instances(self, instance_type: str, *, spot: bool) -> int | None:
        """Instances that training jobs may run at once, None where it is unknown."""


class Tokens(Protocol):
    """State machines that wait for an answer, by the token that each gave out."""

    def send_success(self, token: str, output: Mapping[str, Any]) -> bool:
        """Let it continue with ``output``; returns whether a state still waited for it."""


class ExecutionEnds(Protocol):
    """Executions of any state machine, by ARN."""

    def end_of(self, execution: str) -> ExecutionEnd:
        """How an execution ended; ``NOT_ENDED`` or ``FORGOTTEN``."""


class TrainingLogs(Protocol):
    """The account's logs of training jobs."""

    def limit_retention(self) -> bool:
        """Limit how long they are kept, where the deployment says so and no limit is set."""


class Schedules(Protocol):
    """Schedules that start production, one per workload."""

    target: str  # what they start and as whom: another text, and they have to be set again

    def put(self, workload: str, expression: str, timezone: str = "UTC") -> None:
        """Create the workload's schedule or change it; the expression is read in that zone."""

    def remove(self, workload: str) -> None:
        """Delete the workload's schedule, if there is one."""

    def enabled(self) -> Sequence[str]:
        """Workloads whose schedules start runs."""

    def switch(self, workload: str, *, on: bool) -> bool:
        """Let the workload's schedule start runs, or nothing; False where there is none."""


class Clock(Protocol):
    """The time, passed in so that use cases can be replayed."""

    def now(self) -> int:
        """Seconds since 1970."""


@dataclass(frozen=True)
class Settings:
    """What the deployment fixed: where jobs run and as whom.

    ``job_roles`` are those of its jobs, as naming.job_role_arn takes them. ``job_policy`` is the
    ARN of the policy of those roles, empty where none is made; ``job_boundary`` that of their
    permissions boundary, empty where it is the policy. ``tags`` are of all jobs and roles,
    ``rules`` of all jobs.
    """

    stage: str
    region: str
    job_roles: str
    job_policy: str = field(default="", kw_only=True)
    job_boundary: str = field(default="", kw_only=True)
    tags: Mapping[str, str] = field(default_factory=dict, kw_only=True)
    rules: JobRules = field(default_factory=JobRules, kw_only=True)
    kms_key_arn: str | None = None
    subnet_ids: tuple[str, ...] = ()
    security_group_ids: tuple[str, ...] = ()
    facts: FactOverrides = field(default_factory=FactOverrides)
    simulated: str | None = None  # says so when training does not run on the named instances


@dataclass(frozen=True)
class Services:
    """Everything that a use case may use."""

    store: ObjectStore
    ledger: Ledger
    fleet: FleetTable
    locks: Locks
    flags: FlagStore
    jobs: TrainingJobs
    outputs: JobOutputs
    roles: JobRoles
    quotas: Quotas
    tokens: Tokens
    ends: ExecutionEnds
    clock: Clock
    settings: Settings
