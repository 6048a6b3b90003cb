"""The digest of the data's columns: other columns or types change it, other rows do not."""

from __future__ import annotations

import json

import pytest
from compilegate_runtime.fingerprint import data_schema_digest

COLUMNS = {"text": "a film", "label": 1, "score": 0.5}


def digest(folder, name, text, channel="train"):
    folder.mkdir(parents=True, exist_ok=True)
    (folder / name).write_text(text, encoding="utf-8")
    return data_schema_digest({channel: folder})


def lines(*rows):
    return "".join(json.dumps(row) + "\n" for row in rows)


@pytest.mark.parametrize(
    ("name", "before", "same", "other"),
    [
        ("a.jsonl", lines(COLUMNS), lines({**COLUMNS, "text": "b"}), lines({**COLUMNS, "id": 1})),
        (
            "a.jsonl",
            lines(COLUMNS),
            lines({**COLUMNS, "score": 1}),
            lines({**COLUMNS, "label": "1"}),
        ),
        (
            "a.jsonl",
            lines(COLUMNS),
            lines({**COLUMNS, "score": None}, COLUMNS),
            lines({"text": "a"}),
        ),
        ("a.csv", "text,label\na,1\n", "text,label\nb,0\n", "text,stars\na,1\n"),
        ("a.csv", "1.5,2,3\n", "0,0,1\n", "1.5,2\n"),
    ],
)
def test_rows_do_not_matter_and_columns_do(tmp_path, name, before, same, other):
    first = digest(tmp_path, name, before)

    assert first is not None
    assert first == digest(tmp_path, name, same)
    assert first != digest(tmp_path, name, other)


def test_parquet_is_known_by_its_schema(tmp_path):
    pyarrow = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    found = []
    for columns in (
        {"a": [1], "b": ["x"]},
        {"a": [2, 3], "b": ["y", "z"]},
        {"a": [1.0], "b": ["x"]},
    ):
        parquet.write_table(pyarrow.table(columns), tmp_path / "a.parquet")
        found.append(data_schema_digest({"train": tmp_path}))

    assert found[0] == found[1] != found[2]


def test_a_channel_moved_or_without_tables_is_told_apart(tmp_path):
    table = digest(tmp_path / "tables", "a.csv", "a,b\n")

    assert table != digest(tmp_path / "tables", "a.csv", "a,b\n", channel="validation")
    assert None is digest(tmp_path / "plain", "a.txt", "no columns")
    assert None is data_schema_digest({})


def test_a_broken_file_makes_it_unknown_and_stops_no_job(tmp_path):
    assert None is digest(tmp_path, "a.jsonl", "{broken")
