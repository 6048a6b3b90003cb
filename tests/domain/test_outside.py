"""What comes from outside can be shown, computed with and stored, or is refused."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from compilegate.domain.errors import InvalidEvidenceError
from compilegate.domain.outside import REASON_MAX, VALUE_MAX, plain, read_json, shorten, visible
from compilegate.domain.reasons import Reason

ANY_TEXT = st.text(st.characters(exclude_categories=()))


@given(ANY_TEXT)
def test_any_text_can_be_stored_and_printed(text):
    shorten(text).encode()
    visible(text).encode()
    assert shorten(text).isprintable()
    assert visible(text) == visible(visible(text))


def test_texts_are_bounded_and_a_sentence_keeps_its_end():
    sentence = shorten("x" * 5000 + "end")

    assert (REASON_MAX, "end") == (len(sentence), sentence[-3:])
    assert VALUE_MAX == len(plain("\x00" * 5000)) == len(Reason("c", "x" * 5000).message)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | ANY_TEXT
    | st.sampled_from([10**400, -(10**400), 2**64, 2**64 + 1]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(ANY_TEXT, inner, max_size=3),
    max_leaves=12,
)  # fmt: skip


@given(JSON)
def test_any_document_becomes_one_that_every_reader_of_json_takes(document):
    try:
        kept = plain(document)
    except ValueError:
        return
    text = json.dumps(kept, allow_nan=False, ensure_ascii=False)

    text.encode()
    assert kept == json.loads(text) == plain(kept)


@pytest.mark.parametrize(
    "body", [b"[" * 60_000, b"[" * 20 + b"]" * 20, b'"' * 3, b"\xff", b"9" * 5000]
)
def test_a_document_that_cannot_be_read_is_evidence_that_cannot(body):
    with pytest.raises(InvalidEvidenceError, match="it is broken") as caught:
        read_json(body, "it")

    assert len(str(caught.value)) < 300
