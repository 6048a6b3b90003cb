"""Channel files as people have them, the demo's channels, and its tabular job."""

import json
import subprocess
from collections import Counter
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import pytest
from compilegate_runtime.errors import DataError
from families import records

from tests.training.jobs import PYTHON, TRAINING

READ = "docstrings/train/docstrings.jsonl"


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


@dataclass(frozen=True)
class Prepared:
    """A folder whose channels were written twice, the second time while somebody read one."""

    folder: Path
    first: dict[str, bytes]  # every file, after the first time
    kept: set[str]  # files that the second writing left as they were
    held: bytes  # what the reader got
    second: dict[str, bytes]


@pytest.fixture(scope="module")
def data(jobs, tmp_path_factory):
    folder = tmp_path_factory.mktemp("data")
    prepare(folder)
    first, before = files(folder), inodes(folder)
    with ExitStack() as held, (folder / READ).open("rb") as reading:
        for name in before:  # the inode of a file that is held open goes to no other
            held.enter_context((folder / name).open("rb"))
        prepare(folder)
        kept = {name for name, inode in inodes(folder).items() if inode == before.get(name)}
        return Prepared(folder, first, kept, reading.read(), files(folder))


def prepare(folder):
    subprocess.run([PYTHON, TRAINING / "prepare_data.py", folder], check=True, capture_output=True)


def by_name(folder):
    paths = sorted(path for path in folder.rglob("*") if path.is_file())
    return {path.relative_to(folder).as_posix(): path for path in paths}


def files(folder):
    return {name: path.read_bytes() for name, path in by_name(folder).items()}


def inodes(folder):
    """A file that is replaced whole has another one."""
    return {name: path.stat().st_ino for name, path in by_name(folder).items()}


@pytest.mark.training
def test_a_file_is_replaced_whole_while_another_demo_reads_it(data):
    assert READ not in data.kept
    assert data.second[READ] == data.held


@pytest.mark.training
def test_the_same_python_writes_the_same_channels(data):
    assert (data.first, set()) == (data.second, data.kept)
    assert {
        "docstrings/train/docstrings.jsonl",
        "docstrings/validation/docstrings.jsonl",
        "table/train/biopsies.csv",
        "table/validation/biopsies.csv",
    } == {name for name in data.first if not name.startswith("pictures/")}
    pictures = Counter(
        name.rsplit("/", 1)[0] for name in data.first if name.startswith("pictures/")
    )
    assert {
        "pictures/train/china": 113, "pictures/train/flower": 113,
        "pictures/validation/china": 28, "pictures/validation/flower": 28,
    } == pictures  # fmt: skip


@pytest.mark.training
def test_no_held_out_text_is_trained_on(data):
    trained = set(data.first["docstrings/train/docstrings.jsonl"].splitlines())
    held_out = set(data.first["docstrings/validation/docstrings.jsonl"].splitlines())

    assert len(held_out) > 300
    assert not trained & held_out


@pytest.mark.training
def test_the_tabular_job_trains_on_its_channels_and_has_nothing_to_compile(jobs, data):
    channels = {
        "SM_CHANNEL_TRAIN": str(data.folder / "table" / "train"),
        "SM_CHANNEL_VALIDATION": str(data.folder / "table" / "validation"),
    }
    done = jobs.run("tabular.py", channels, steps=20)
    compiled = jobs.run("tabular.py", channels, steps=20, compiler="torch_compile")

    assert 0 == done.status, done.output
    assert done.summary()["metrics"]["eval_logloss"] < 0.3
    assert 20 == len(done.steps())
    assert 1 == compiled.status
    assert "no graph to compile" in compiled.failure
