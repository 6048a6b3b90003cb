"""Channel files as people have them: each is read, or named with what is wrong."""

import json

import pytest
from compilegate_runtime.errors import DataError
from families import records


@pytest.fixture
def channel(tmp_path, monkeypatch):
    monkeypatch.setenv("SM_CHANNEL_TRAIN", str(tmp_path))
    return tmp_path


def read(knob="text_column", name="text"):
    return [records.column(row, name, knob) for row in records.rows("train")]


def test_a_spreadsheets_mark_at_the_beginning_is_no_part_of_a_column(channel):
    (channel / "a.csv").write_bytes("﻿text,topic\nhello,x\n".encode())
    assert ["hello"] == read()


def test_a_field_may_be_as_long_as_a_document(channel):
    (channel / "a.csv").write_text("text\n" + "word " * 100_000 + "\n")
    assert [500_000] == [len(text) for text in read()]


@pytest.mark.parametrize(
    ("name", "body", "said"),
    [
        ("a.json", json.dumps([{"text": "x"}]), "is not JSON lines"),
        ("a.jsonl", '{"text": null}\n', "no value in column 'text'"),
        ("a.jsonl", '{"body": "x"}\n', "no column 'text' but body; name the right one"),
        ("a.jsonl", '{"text": \n', "cannot be read"),
    ],
)
def test_what_cannot_be_read_is_named(channel, name, body, said):
    (channel / name).write_text(body)
    with pytest.raises(DataError, match=said):
        read()
