"""What local trials recorded, kept in the project's folder: the embedded cloud ends with its state.

A folder for each trial holds ``records.json`` (ledger, flag, what the cloud was) and under
``objects`` the documents that the ledger and the trial name, by their S3 keys. Read back, they
serve the ports that only read.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, NoReturn

from compilegate.adapters.workload_files import write_whole
from compilegate.domain import ledger_keys, naming
from compilegate.domain.errors import EnvironmentNotReadyError, NotFoundError, UnreadableRecordError
from compilegate.domain.records import ledger
from compilegate.domain.records.trials import TrialStarted
from compilegate.ports import Services
from compilegate.usecases.records import Trial, to_json

PROJECT = Path(".compilegate")  # in the folder that the command runs in, as its reports are
TRIALS = PROJECT / "trials"
SCHEMA = 1
RECORDS, OBJECTS = "records.json", "objects"
DOCUMENTS = ("eligibility", "plan", "evidence", "decision", "flag")
REPORTS = ("html", "md", "json")
NAMED_IN_ENTRIES = ("decision_key", "evidence_key", "spec_key")


def keep_trial(trial: Trial, services: Services, project: Path) -> Path:
    """Keep what a trial recorded; returns its folder. Raises EnvironmentNotReadyError.

    Repeated, it replaces what was kept of the same trial. Ledger records are kept as this release
    writes them.
    """
    folder = project / TRIALS / naming.execution_name(trial.workload, trial.trial)
    entries = [record.to_entry() for record in services.ledger.history(trial.workload).records]
    flag = naming.flag_parameter(services.settings.stage, trial.workload)
    for key in sorted(_keys(trial, entries)):
        try:
            body = services.store.get(key)
        except NotFoundError:
            continue  # a trial that failed has no decision
        write_whole(_place(folder / OBJECTS, key), body)
    document = {
        "schema": SCHEMA,
        "workload": trial.workload,
        "trial": trial.trial,
        "kept_at": services.clock.now(),
        "stage": services.settings.stage,
        "region": services.settings.region,
        "bucket": services.store.bucket,
        "simulated": services.settings.simulated,
        "flag": services.flags.read(flag),
        "ledger": entries,
    }
    write_whole(folder / RECORDS, to_json(document))
    ignored = project / PROJECT / ".gitignore"
    if not ignored.exists():
        write_whole(ignored, b"*\n")
    return folder


def _keys(trial: Trial, entries: Sequence[Mapping[str, Any]]) -> set[str]:
    """Every document that a reader of the trial or of its workload's ledger asks for."""
    workload = trial.workload
    return {
        trial.spec_key,
        naming.registration_key(workload),
        *(trial.record_key(document) for document in DOCUMENTS),
        *(naming.report_key(workload, trial.trial, extension) for extension in REPORTS),
        *(str(entry[name]) for entry in entries for name in NAMED_IN_ENTRIES if entry.get(name)),
    } - {""}


def _place(objects: Path, key: str) -> Path:
    """The file of a key; raises NotFoundError for a key that leads out of the folder."""
    place = (objects / key).resolve()
    if not place.is_relative_to(objects.resolve()):
        raise NotFoundError(f"{key} is no key of an object that is kept")
    return place


@dataclass(frozen=True)
class KeptTrial:
    """One trial's folder; ``document`` is its records.json."""

    folder: Path
    document: Mapping[str, Any]

    @property
    def workload(self) -> str:
        """The workload's name."""
        return str(self.document["workload"])

    @property
    def ended(self) -> bool:
        """Whether its ledger says how it ended; it does not where command or cloud was killed."""
        began = TrialStarted.key_of(trial=str(self.document["trial"]))
        own = began.removesuffix("started")
        return any(key.startswith(own) and key != began for key in self.entries)

    @cached_property
    def entries(self) -> Mapping[str, Mapping[str, Any]]:
        """The workload's ledger as it was, by sort key."""
        return {ledger.read(entry).key: entry for entry in self.document["ledger"]}


class NothingRuns:
    """What only a cloud that runs can do; raises EnvironmentNotReadyError whatever is asked."""

    def __getattr__(self, name: str) -> NoReturn:
        """Of what there is nothing to read, or what would write."""
        if name.startswith("__"):
            raise AttributeError(name)
        raise EnvironmentNotReadyError(
            "The local cloud does not run; what its trials left can only be read",
            fix="start it with `compilegate local up`.",
        )


class KeptTrials(NothingRuns):
    """The trials that a project's folder keeps, as a store, a ledger, flags, locks and rows.

    A new local cloud knows nothing of the one before: a workload's flag, its changes and its
    production are those of its newest trial, the trials are all that are kept. Of documents that
    several trials have, the newest trial's are served.
    """

    def __init__(self, project: Path) -> None:
        kept = [_read(path) for path in sorted((project / TRIALS).glob(f"*/{RECORDS}"))]
        # A trial's id begins with its time.
        self.trials = sorted(kept, key=lambda one: str(one.document["trial"]))
        self.bucket = str(self.trials[-1].document["bucket"]) if kept else ""

    # The store.

    def _places(self, key: str) -> list[Path]:
        """Where a key's file or folder would be, of the newest trial first."""
        return [_place(one.folder / OBJECTS, key) for one in reversed(self.trials)]

    def get(self, key: str) -> bytes:
        place = next((place for place in self._places(key) if place.exists()), Path())
        if not place.is_file():
            raise NotFoundError(f"s3://{self.bucket}/{key} was not kept")
        return place.read_bytes()

    def has(self, key: str) -> bool:
        return any(place.is_file() for place in self._places(key))

    def exists(self, uri: str) -> bool:
        own = f"s3://{self.bucket}/"
        places = self._places(uri.removeprefix(own)) if uri.startswith(own) else ()
        return any(place.exists() for place in places)

    def folders(self, prefix: str) -> Iterator[str]:
        below = (path for place in self._places(prefix) for path in place.glob("*/"))
        yield from sorted({path.name for path in below})

    # The ledger.

    def entries(
        self, workload: str, prefix: str = "", last: str | None = None
    ) -> Sequence[Mapping[str, Any]]:
        entries: dict[str, Mapping[str, Any]] = {}
        kept = [one for one in self.trials if one.workload == workload]
        for trial in kept:
            entries |= {
                key: entry
                for key, entry in trial.entries.items()
                if trial is kept[-1] or key.startswith(ledger_keys.TRIAL_ENTRIES)
            }
        return [entries[key] for key in sorted(entries) if ledger_keys.holds(key, prefix, last)]

    # Flags, by the parameter's name.

    def read(self, name: str) -> str | None:
        for trial in reversed(self.trials):
            if name == naming.flag_parameter(str(trial.document["stage"]), trial.workload):
                flag: str | None = trial.document["flag"]
                return flag
        return None

    # Locks, which ended with the cloud, and rows, which nothing kept.

    def locks_of(self, _workloads: Collection[str]) -> Sequence[Any]:
        return ()

    def items(self, _kind: str) -> Sequence[tuple[str, str]]:
        return ()


def _read(path: Path) -> KeptTrial:
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
        if document["schema"] != SCHEMA:
            raise UnreadableRecordError(f"{path}: schema {document['schema']} is not {SCHEMA}")
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise UnreadableRecordError(
            f"{path} cannot be read ({error})", fix="remove its folder"
        ) from error
    return KeptTrial(path.parent, document)
