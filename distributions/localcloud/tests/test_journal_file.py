"""The journal's file: what is written is there, what was cut off is not."""

import sqlite3

import pytest

from compilegate_localcloud.emulator.journal.changing import FORM, changes
from compilegate_localcloud.emulator.journal.file import FILE, Journal, UnusableError

VERSION = "1 of a test"


@pytest.fixture
def folder(tmp_path):
    return tmp_path / "journal"


def killed(journal, folder, copy):
    """What another process would find of a journal that nobody closed."""
    copy.mkdir()
    for path in folder.iterdir():
        (copy / path.name).write_bytes(path.read_bytes())
    return copy


def test_what_was_written_is_there_after_a_kill(folder, tmp_path):
    journal = Journal(folder, VERSION)
    journal.write({("state", "a"): b"1", ("state", "b"): b"2", ("job", "a"): b"3"})
    journal.write({("state", "a"): None, ("state", "c"): b"4"})
    again = Journal(killed(journal, folder, tmp_path / "copy"), VERSION)

    assert {"b": b"2", "c": b"4"} == again.read("state")
    assert {"a": b"3"} == again.read("job")
    assert journal.written_at is None
    assert again.written_at is not None


def test_a_write_that_was_cut_off_counts_as_not_written(folder, tmp_path):
    journal = Journal(folder, VERSION)
    journal.write({("state", "a"): b"1"})
    size = (folder / f"{FILE}-wal").stat().st_size
    journal.write({("state", "a"): b"2" * 20_000, ("state", "b"): b"2"})
    copy = killed(journal, folder, tmp_path / "copy")
    log = copy / f"{FILE}-wal"
    log.write_bytes(log.read_bytes()[: (size + log.stat().st_size) // 2])

    assert {"a": b"1"} == Journal(copy, VERSION).read("state")


@pytest.mark.parametrize("harm", ["bytes", "version"])
def test_what_cannot_be_used_is_set_aside_and_the_next_one_starts(folder, harm):
    journal = Journal(folder, VERSION if harm == "bytes" else "0 of another release")
    journal.write({("state", "a"): b"1" * 50_000})
    journal._close()
    if harm == "bytes":
        path = folder / FILE
        path.write_bytes(b"\0" * 100 + path.read_bytes()[100:])
    place = folder.with_name("journal-unusable")
    with pytest.raises(UnusableError, match=rf"{place}\. Run the command again"):
        Journal(folder, VERSION)

    assert (place / FILE).exists()
    assert {} == Journal(folder, VERSION).read("state")


def test_one_that_cannot_be_written_is_deleted_and_nothing_fails(folder, monkeypatch, caplog):
    journal = Journal(folder, VERSION)
    journal.write({("state", "a"): b"1"})

    def full(*_):
        raise sqlite3.OperationalError("database or disk is full")

    with monkeypatch.context() as patched:
        patched.setattr(Journal, "_write", full)
        journal.write({("state", "a"): b"2"})
    journal.write({("state", "a"): b"3"})

    assert "nothing of it is left" in caplog.text
    assert not folder.exists()
    assert {} == journal.read("state")


def test_one_on_a_full_disk_is_kept_where_it_holds_something(folder, monkeypatch):
    Journal(folder, VERSION)._close()

    def full(*_, **__):
        raise sqlite3.OperationalError("unable to open database file")

    monkeypatch.setattr(sqlite3, "connect", full)
    with pytest.raises(UnusableError, match="free space"):
        Journal(folder, VERSION)
    assert (folder / FILE).exists()
    assert {} == Journal(folder.with_name("new"), VERSION).read("state")


@pytest.mark.parametrize(
    ("request_", "expected"),
    [
        (("s3", "PUT", "/bucket/key", {}, b""), True),
        (("s3", "POST", "/bucket?delete", {}, b""), True),
        (("s3", "DELETE", "/bucket/key", {}, b""), True),
        (("s3", "GET", "/bucket/key", {}, b""), False),
        (("s3", "HEAD", "/bucket/key", {}, b""), False),
        (("dynamodb", "POST", "/", {"x-amz-target": "DynamoDB_20120810.PutItem"}, b""), True),
        (("dynamodb", "POST", "/", {"x-amz-target": "DynamoDB_20120810.GetItem"}, b""), False),
        (("dynamodb", "POST", "/", {"x-amz-target": "DynamoDB_20120810.BatchGetItem"}, b""), False),
        (("dynamodb", "POST", "/", {"x-amz-target": "Dynamo.BatchWriteItem"}, b""), True),
        (("states", "POST", "/", {"x-amz-target": "AWSStepFunctions.StartExecution"}, b""), True),
        (("sns", "POST", "/", {"content-type": FORM}, b"Action=Subscribe&TopicArn=x"), True),
        (("sns", "POST", "/", {"content-type": FORM}, b"Action=ListTopics&Version=1"), False),
        (("lambda", "POST", "/2015-03-31/functions", {}, b""), True),
        (("lambda", "POST", "/2015-03-31/functions/f/invocations", {}, b""), False),
        (("logs", "POST", "/", {"x-amz-target": "Logs_20140328.PutLogEvents"}, b""), False),
        (("", "POST", "/anything", {}, b""), True),
    ],
)  # fmt: skip
def test_requests_that_may_change_something(request_, expected):
    assert expected == changes(*request_)
