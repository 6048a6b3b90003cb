"""Remarks about a job that every screen, page and message shows where it has figures of it.

A note is made where its fact is known, and has its words in ``notes.toml``.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from compilegate.domain.wording import fill, sentences

FILE = Path(__file__).with_suffix(".toml")
# That the job's own script compiles its model, which the baseline leaves out; ``line`` counts from
# 1, ``source`` is the line as written.
SCRIPT_COMPILES = "script_compiles"
# That the team wants no baseline run beside a permanent promotion.
NO_HOLDBACK = "no_holdback"
VALUES = {SCRIPT_COMPILES: ("script", "line", "source"), NO_HOLDBACK: ()}


@dataclass(frozen=True)
class Note:
    """A remark: what it is, and the values that its words name."""

    code: str
    values: Mapping[str, Any]


def said(notes: Iterable[Note], place: str = "text") -> list[str]:
    """The sentences of the notes that say something in this place."""
    words = ((sentences(FILE)[note.code], note.values) for note in notes)
    return [fill(texts[place], values) for texts, values in words if place in texts]


def note_documents(notes: Iterable[Note]) -> dict[str, Any]:
    """The notes as they stand in documents, each under its own key."""
    return {note.code: dict(note.values) for note in notes}


def read_notes(document: Mapping[str, Any]) -> tuple[Note, ...]:
    """The notes of a document; raises KeyError for one without a value that its words name."""
    return tuple(
        Note(code, {name: document[code][name] for name in values})
        for code, values in VALUES.items()
        if document.get(code) is not None
    )
