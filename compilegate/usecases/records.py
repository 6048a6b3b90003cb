"""What every use case starts from: a trial's identity, its workload, its stored documents.

And what production trains: the registration of a workload, and the facts that apply to it.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import cache, partial
from typing import TYPE_CHECKING, Any, TypeVar

from compilegate.domain import console, naming
from compilegate.domain.claims import LOCAL_STAGE
from compilegate.domain.codec import DocumentError, read
from compilegate.domain.decision import DecidedFlag, Decision, FlagAction
from compilegate.domain.errors import (
    CompilegateError,
    InvalidInputError,
    NotFoundError,
    UnreadableRecordError,
)
from compilegate.domain.notes import Note, read_notes
from compilegate.domain.optional import map_optional
from compilegate.domain.production.registration import Registration, TrainedJob, read_registration
from compilegate.domain.records.trials import FlagOutcome
from compilegate.domain.workload.file import parse_workload
from compilegate.domain.workload.limits import check_limits
from compilegate.domain.workload.model import Workload
from compilegate.ports import ObjectStore, Services, Settings

if TYPE_CHECKING:
    from compilegate.domain.facts import Facts
    from compilegate.domain.production.history import WorkloadHistory
    from compilegate.domain.trial.plan import RecordedPlan
    from compilegate.report.trial_report import Context


# Of plan, evidence, decision and flag record alike; a document without one is of this schema.
RECORD_SCHEMA = 1
# What reading an old document may raise: another schema, a workload that is no longer valid, a
# missing key, no object, no JSON.
UNREADABLE = (
    UnreadableRecordError, InvalidInputError, KeyError, TypeError, AttributeError, ValueError,
)  # fmt: skip
# What of a decision says what to do, and what stands for the rest of one that is damaged.
DECIDING = ("workload", "decision_id", "stage", "verdict", "candidate", "flag")
UNSAID: Mapping[str, Any] = {"judge_version": "", "reasons": ()}
KEPT = DecidedFlag("", FlagAction.KEEP)
# Reading is waiting: so many requests are under way at once. The clients keep as many connections.
AT_ONCE = 32
Document = TypeVar("Document")
Entry = TypeVar("Entry")
logger = logging.getLogger("compilegate")


@dataclass(frozen=True)
class Trial:
    """One trial of one workload, as its state machine passes it along."""

    workload: str
    trial: str
    spec_key: str

    @classmethod
    def from_event(cls, event: Mapping[str, Any]) -> Trial:
        """Read the trial out of a Lambda event."""
        return cls(str(event["workload"]), str(event["trial"]), str(event.get("spec_key", "")))

    def record_key(self, document: str) -> str:
        """Key of one of the trial's kept documents."""
        return naming.record_key(self.workload, self.trial, document)


@dataclass(frozen=True)
class Spec:
    """A registered workload: the parsed file and where its source bundle lies.

    ``key`` is its own, empty before it is uploaded. ``notes`` are remarks about the job and
    ``origin`` its file, as a command names it; only a trial's spec has them.
    """

    workload: Workload
    source_key: str
    key: str = ""
    code_digest: str | None = None
    notes: tuple[Note, ...] = ()
    origin: str | None = None

    @property
    def code(self) -> str:
        """Identifies the team's code, without the recorder that is uploaded with it."""
        return self.code_digest or self.source_key

    @property
    def job(self) -> TrainedJob:
        """What production trains by this spec."""
        return TrainedJob(self.workload, self.code)


@dataclass(frozen=True)
class OpenTrial:
    """A planned trial with everything a round of it reads."""

    trial: Trial
    spec: Spec
    plan: RecordedPlan


def read_document(document: object) -> Workload:
    """The workload of a document: grammar first, then what the service would refuse.

    Raises InvalidInputError naming field, value and fix.
    """
    workload = parse_workload(document)
    check_limits(workload, _shapes())
    return workload


@cache
def _shapes() -> dict[str, Any]:
    from compilegate.facts import read  # noqa: PLC0415 - a third of what opening a trial imports

    shapes: dict[str, Any] = read("create_training_job")["shapes"]
    return shapes


def load_spec(store: ObjectStore, trial: Trial) -> Spec:
    """The workload as it was when the trial started."""
    return spec_at(store, trial.spec_key, of=trial.workload)


def spec_at(store: ObjectStore, key: str, *, of: str | None = None) -> Spec:
    """The workload that one spec key holds; raises NotFoundError.

    Raises InvalidInputError for one that lies outside the specs of the workload ``of``: its code
    and data are not that one's to train with.
    """
    if of is not None and not naming.is_spec_key(of, key):
        raise InvalidInputError(
            f"is not a spec of {of}", field="spec_key", value=key,
            fix="start it with `compilegate run` or `compilegate register`",
        )  # fmt: skip
    document = json.loads(store.get(key))
    workload = read_document(document["workload"])
    code, notes = document.get("code_digest"), read_notes(document)
    return Spec(workload, document["source_key"], key, code, notes, document.get("origin"))


def load_plan(store: ObjectStore, trial: Trial) -> RecordedPlan:
    """The trial's plan; raises as ``load_record`` does."""
    from compilegate.domain.trial.plan import read_plan  # noqa: PLC0415 - few steps read plans

    document = load_record(store, trial, "plan")
    return read_plan(document)


def find_plan(store: ObjectStore, trial: Trial) -> RecordedPlan | None:
    """The trial's plan, None where it was never planned or cannot be read."""
    return _readable(lambda: load_plan(store, trial), f"the plan of trial {trial.trial}")


def of_plan(trial: Trial, plan: RecordedPlan | None) -> Trial:
    """The trial with the spec that its plan names; what is shown later knows no other."""
    if trial.spec_key or plan is None:
        return trial
    return replace(trial, spec_key=plan.spec_key)


def find_flag_outcome(store: ObjectStore, trial: Trial) -> FlagOutcome | None:
    """The outcome for the flag, None where the trial has not come so far."""
    document = find_record(store, trial, "flag")
    return None if document is None else read(FlagOutcome, document)


def load_decision(store: ObjectStore, key: str) -> Decision:
    """The decision that a key holds; raises as ``load_record`` does.

    One that does not say what to do with the flag keeps it. Damaged figures are left out where the
    decision turns nothing on: what is to go off goes off.
    """
    document = _load(store, key)
    try:
        decision = read(Decision, document)
    except DocumentError:
        said = {name: document.get(name) for name in DECIDING}
        decision = read(Decision, {**said, **UNSAID})
        if not decision.flag or decision.flag.action is FlagAction.ENABLE:
            raise
    return decision if decision.flag else replace(decision, flag=KEPT)


def find_decision(store: ObjectStore, key: str) -> Decision | None:
    """The decision that a key holds, None where there is none or it cannot be read."""
    words = f"s3://{store.bucket}/{key}: the decision"
    return _readable(lambda: load_decision(store, key), words)


def decision_of(trial: str, history: WorkloadHistory, store: ObjectStore) -> Decision | None:
    """What a trial decided last by the ledger, None where it did not or that cannot be read."""
    key = {one.trial: one.decision_key for one in history.decided}.get(trial)
    return map_optional(key, partial(find_decision, store))


def _readable(load: Callable[[], Document], words: str) -> Document | None:
    try:
        return load()
    except NotFoundError:
        return None
    except UNREADABLE as error:
        logger.warning("%s cannot be read: %s", words, error)
        return None


def find_record(store: ObjectStore, trial: Trial, document: str) -> dict[str, Any] | None:
    """A kept document of the trial, None where there is none."""
    try:
        record: dict[str, Any] = load_record(store, trial, document)
    except NotFoundError:
        return None
    return record


def find_json(store: ObjectStore, key: str) -> Any:
    """What an object holds; None where there is none, or it is no JSON."""
    try:
        return json.loads(store.get(key))
    except (NotFoundError, ValueError):
        return None


def load_record(store: ObjectStore, trial: Trial, document: str) -> Any:
    """A kept document of the trial.

    Raises NotFoundError, and UnreadableRecordError for one of a release with another schema.
    """
    return _load(store, trial.record_key(document))


def _load(store: ObjectStore, key: str) -> Any:
    record = json.loads(store.get(key))
    schema = record.get("schema", RECORD_SCHEMA) if isinstance(record, dict) else RECORD_SCHEMA
    if schema != RECORD_SCHEMA:
        raise UnreadableRecordError(
            f"s3://{store.bucket}/{key}: schema {schema} is not {RECORD_SCHEMA}, the one that "
            "this release reads",
            fix="deploy the release that wrote it, or run the trial again",
        )
    return record


def save_record(store: ObjectStore, trial: Trial, document: str, value: object) -> str:
    """Keep a document of the trial and return its key."""
    key = trial.record_key(document)
    store.put(key, to_json(value))
    return key


def save_decision(store: ObjectStore, trial: Trial, decision: Decision, *, stage: str) -> str:
    """Keep the decision where every later step reads it, and return its key."""
    document = decision.to_dict(naming.flag_parameter(stage, trial.workload))
    return save_record(store, trial, "decision", {**document, "trial": trial.trial})


def to_json(value: object) -> bytes:
    """JSON with sorted keys, so that the same value is the same bytes."""
    return json.dumps(value, sort_keys=True, separators=(",", ":")).encode()


# What production trains, and reading of many workloads.


def load_registered(workload: str, store: ObjectStore) -> Spec:
    """The registered spec, which is what production trains today.

    Raises NotFoundError, InvalidInputError for a retired workload or the spec of another one.
    """
    registration = load_registration(store, workload)
    if not registration.active:
        raise InvalidInputError(
            "was retired from production",
            field="workload",
            value=workload,
            fix="register its file again with `compilegate register`",
        )
    return spec_at(store, registration.spec_key, of=workload)


def load_registration(store: ObjectStore, workload: str) -> Registration:
    """What production trains of a workload, retired ones too.

    Raises NotFoundError for one that never was registered, InvalidInputError for a document
    that cannot be read.
    """
    key = naming.registration_key(workload)
    try:
        body = store.get(key)
    except NotFoundError as error:
        raise NotFoundError(
            f"{workload} is not registered", fix="register its file with `compilegate register`."
        ) from error
    try:
        return read_registration(json.loads(body))
    except (KeyError, TypeError, ValueError) as error:
        raise InvalidInputError(
            f"cannot be read as a registration: {error}",
            file=f"s3://{store.bucket}/{key}",
            fix="register the workload's file again",
        ) from error


def workload_names(store: ObjectStore) -> list[str]:
    """Every workload that was ever uploaded, in order of name."""
    return list(store.folders(naming.WORKLOADS_PREFIX))


def at_once(
    read: Callable[[str], Document], names: Iterable[str], *, most: int = AT_ONCE
) -> list[Document]:
    """``read`` of each of these names, at ``most`` so many at a time, in their order."""
    with ThreadPoolExecutor(most) as pool:
        return list(pool.map(read, names))


def try_each(entries: Iterable[tuple[str, Entry]], act: Callable[[Entry], bool | None]) -> int:
    """``act`` on every entry; returns on how many it did something.

    What is logged of one that fails is given with it. Raises the last failure once all were tried.
    """
    done, failure = 0, None
    for words, entry in entries:
        try:
            done += bool(act(entry))
        except Exception as error:
            logger.exception(words)
            failure = error
    if failure is not None:
        raise failure
    return done


def deployed_facts(settings: Settings) -> Facts:
    """The shipped and refreshed facts; the deployment overrides them."""
    from compilegate.facts import load_facts  # noqa: PLC0415 - a third of what opening a trial imports

    return load_facts(settings.region).overridden(settings.facts)


def facts_for_workload(workload: Workload, settings: Settings) -> Facts:
    """As ``deployed_facts``; the workload file overrides them."""
    return deployed_facts(settings).overridden(workload.facts)


def owner_of(trial: Trial, store: ObjectStore) -> str | None:
    """The owner of a trial's workload; None where the spec names none or cannot be read.

    A message without an owner still reaches every subscriber without a filter.
    """
    spec = readable_spec(trial, store)
    return spec.workload.owner if spec else None


def readable_spec(trial: Trial, store: ObjectStore) -> Spec | None:
    """The trial's spec for what a message tells; None where it has none or it cannot be read."""
    if not trial.spec_key:
        return None
    try:
        return load_spec(store, trial)
    except (CompilegateError, KeyError, ValueError):
        return None


def owner_of_workload(workload: str, store: ObjectStore) -> str | None:
    """The registered owner; None where it was never registered or that cannot be read."""
    try:
        return load_registration(store, workload).owner
    except CompilegateError:
        return None


# Where a person opens a page of the data bucket.

PAGES = {"html": "text/html", "md": "text/markdown", "json": "application/json"}


def console_region(services: Services) -> str | None:
    """The region whose console shows the deployment; None for the cloud on this machine."""
    return None if services.settings.stage == LOCAL_STAGE else services.settings.region


def report_context(workload: str, trial: str, services: Services) -> Context:
    """What every report says of where its trial ran."""
    return {
        "stage": services.settings.stage,
        "trial": trial,
        "workload": workload,
        "simulated": services.settings.simulated,
        "as_of": services.clock.now(),
        "region": console_region(services),
        "bucket": services.store.bucket,
    }


def save_pages(
    texts: Mapping[str, str], key_of: Callable[[str], str], services: Services
) -> tuple[str, str | None]:
    """Store a page's texts by their ending; returns where its HTML lies and the link to it."""
    for ending, text in texts.items():
        services.store.put(key_of(ending), text.encode(), f"{PAGES[ending]}; charset=utf-8")
    key = key_of("html")
    return f"s3://{services.store.bucket}/{key}", link_to(key, services)


def link_to(key: str, services: Services) -> str | None:
    """An HTTPS link to an object, for who may read the bucket; None on this machine."""
    bucket = services.store.bucket
    region = console_region(services)
    return map_optional(region, lambda at: console.s3_object(at, bucket, key))
