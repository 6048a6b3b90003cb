"""A note reads what it wrote, and has words for the values that it has."""

from __future__ import annotations

import pytest

from compilegate.domain.notes import (
    FILE,
    SCRIPT_COMPILES,
    VALUES,
    Note,
    note_documents,
    read_notes,
    said,
)
from compilegate.domain.wording import names, sentences

PLACE = {"script": "a.py", "line": 3, "source": "b"}


def test_each_note_has_words_and_they_name_the_values_that_it_keeps():
    named = {
        code: {name for text in texts.values() for name in names(text)}
        for code, texts in sentences(FILE).items()
    }

    assert named == {code: set(values) for code, values in VALUES.items()}


def test_a_document_has_each_note_under_its_own_key():
    notes = (Note(SCRIPT_COMPILES, PLACE),)
    document = {"a": 1, **note_documents(notes)}

    assert {"a": 1, "script_compiles": PLACE} == document
    assert notes == read_notes(document)
    assert () == read_notes({"a": 1, "script_compiles": None})
    with pytest.raises(KeyError, match="line"):
        read_notes({"script_compiles": {"script": "a.py", "source": "b"}})


def test_a_note_is_silent_where_it_has_no_words():
    note = Note(SCRIPT_COMPILES, {**PLACE, "source": "x\x1b" * 200})
    (text,) = said([note])

    assert [] == said([note], "elsewhere") == said([])
    assert "\x1b" not in text
    assert text.startswith("a.py already compiles (line 3: x")
    assert len(said([note], "production")) == len(said([note], "against")) == 1
