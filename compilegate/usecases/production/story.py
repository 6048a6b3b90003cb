"""The story of a workload from its ledger and the documents that the ledger names."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from compilegate.domain import naming
from compilegate.domain.errors import CompilegateError, NotFoundError
from compilegate.domain.flag_change import flag_entries
from compilegate.domain.production.begun import begun_runs
from compilegate.domain.production.fault import injected_fault
from compilegate.domain.production.promotion import latest_promotion
from compilegate.ports import ObjectStore, Services
from compilegate.report.story import StoryInput, StoryReport, render_story
from compilegate.usecases.registration import load_registration

FORMATS = {"html": "text/html", "md": "text/markdown", "json": "application/json"}
PERMANENT = "permanent"

Entries = Sequence[Mapping[str, Any]]


def story_of(workload: str, services: Services) -> StoryReport:
    """Tell it as it stands now.

    Raises NotFoundError for a workload that the ledger knows nothing of.
    """
    entries = services.ledger.entries(workload)
    if not entries:
        raise NotFoundError(
            f"nothing is known of {workload}. Fix: register its file with `compilegate register`, "
            "or see what there is with `compilegate status`"
        )
    store = services.store
    source: StoryInput = {
        "name": workload,
        "entries": entries,
        "trials": dict(_decisions(entries, store)),
        "evidence": _evidence(entries, store),
        "workload": _registered(workload, store),
        "faults": dict(_faults(entries, store)),
        "context": {
            "stage": services.settings.stage,
            "simulated": services.settings.simulated,
        },
    }
    return render_story(source)


def write_story(workload: str, services: Services) -> str:
    """Leave the story where people find it; returns the page's S3 URI."""
    told = story_of(workload, services)
    for extension, body in bodies(told).items():
        key = naming.story_key(workload, extension)
        services.store.put(key, body, f"{FORMATS[extension]}; charset=utf-8")
    return f"s3://{services.store.bucket}/{naming.story_key(workload, 'html')}"


def bodies(told: StoryReport) -> dict[str, bytes]:
    """The story's files by their ending."""
    texts = {"html": told.html, "md": told.markdown, "json": told.json}
    return {extension: texts[extension].encode() for extension in FORMATS}


def _decisions(entries: Entries, store: ObjectStore) -> Iterator[tuple[str, Any]]:
    """Of the latest promotion's trial; what others decided the ledger tells in a line."""
    promotion = latest_promotion(flag_entries(entries))
    for entry in entries:
        if promotion and entry.get("kind") == "decision" and entry["trial"] == promotion["trial"]:
            found = _maybe(store, str(entry["decision_key"]))
            if found is not None:
                yield str(entry["trial"]), found


def _evidence(entries: Entries, store: ObjectStore) -> Any:
    """Of the latest promotion's probation, up to its end: later looks hold a few runs only."""
    promotion = latest_promotion(flag_entries(entries))
    if promotion is None:
        return None
    looks = sorted(
        (
            entry
            for entry in entries
            if entry.get("kind") == "watch"
            and entry["trial"] == promotion["trial"]
            and entry["at"] >= promotion["at"]
            and entry.get("evidence_key")
        ),
        key=lambda entry: (entry["at"], entry["run"]),
    )
    chosen = None
    for look in looks:
        chosen = look
        if (look.get("change") or {}).get("action") == PERMANENT:
            break
    return None if chosen is None else _maybe(store, str(chosen["evidence_key"]))


def _registered(workload: str, store: ObjectStore) -> Any:
    try:
        registration = load_registration(store, workload)
    except CompilegateError:
        return None  # a workload that was never registered, or whose document cannot be read
    return (_maybe(store, registration.spec_key) or {}).get("workload")


def _faults(entries: Entries, store: ObjectStore) -> Iterator[tuple[str, str]]:
    """The faults that the specs of production's runs asked for."""
    for key in _distinct(begun.spec_key for begun in begun_runs(entries)):
        fault = injected_fault((_maybe(store, key) or {}).get("workload") or {})
        if fault:
            yield key, fault


def _distinct(keys: Iterable[str]) -> list[str]:
    return list(dict.fromkeys(keys))


def _maybe(store: ObjectStore, key: str) -> Any:
    try:
        return json.loads(store.get(key))
    except (NotFoundError, ValueError):
        return None
