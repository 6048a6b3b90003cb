"""``judge --jsonl`` as a filter in a pipe: at once, in order, quiet, whatever a line holds."""

from __future__ import annotations

import io
import json
import subprocess
import sys
from typing import Any

import pytest

from compilegate_judge.command import stream
from tests.domain.evidence_builder import GOOD, document

COMMAND = [sys.executable, "-m", "compilegate.cli.main", "judge", "--jsonl", "-"]
LINE = json.dumps(document(metrics=GOOD)) + "\n"


def test_each_decision_is_there_before_the_next_document_is_asked_for():
    with subprocess.Popen(
        COMMAND, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stdin
        assert process.stdout
        verdicts = []
        for _ in range(3):
            process.stdin.write(LINE)
            process.stdin.flush()
            verdicts.append(json.loads(process.stdout.readline())["verdict"])
        _, errors = process.communicate()

    assert ["promote"] * 3 == verdicts
    assert ("", 0) == (errors, process.returncode)


def test_a_reader_that_leaves_early_ends_it_without_a_word(tmp_path):
    many = tmp_path / "many.jsonl"
    many.write_text(LINE * 400)
    with (
        many.open() as stdin,
        subprocess.Popen(
            COMMAND, stdin=stdin, stdout=subprocess.PIPE, stderr=subprocess.PIPE
        ) as process,
    ):
        assert process.stdout
        assert process.stderr
        process.stdout.readline()
        process.stdout.close()
        message = process.stderr.read()

    assert b"" == message


@pytest.mark.slow
def test_memory_does_not_grow_with_the_number_of_documents(tmp_path):
    script = (
        "import sys, tracemalloc; from compilegate_judge.command import stream;"
        "tracemalloc.start(); stream(sys.argv[1], 'dev');"
        "print(tracemalloc.get_traced_memory()[1], file=sys.stderr)"
    )
    peaks = []
    for count in (20, 120):
        file = tmp_path / f"{count}.jsonl"
        file.write_text(LINE * count)
        done = subprocess.run(
            [sys.executable, "-c", script, str(file)], capture_output=True, check=True
        )
        assert count == done.stdout.count(b"\n")
        peaks.append(int(done.stderr))

    kept = 100 * len(LINE)
    assert peaks[1] - peaks[0] < 0.2 * kept


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("[" * 100_000, "nested too deeply"),
        (json.dumps({**document(), "usd_per_hour": -1}), "usd_per_hour: is out of range"),
        (LINE.replace('"lm"', '"\\ud800"', 1), "workload: has line breaks or control"),
        (LINE.replace('"lm"', '{"a":' * 90_000 + "1" + "}" * 90_000, 1), "deeply"),
    ],
    ids=["brackets", "a negative price", "half a character", "braces"],
)
def test_no_line_stops_the_stream(line, message, tmp_path, invoke):
    file = tmp_path / "many.jsonl"
    file.write_text(f"{line.rstrip()}\n{LINE}")

    result = invoke("judge", "--jsonl", file)

    decisions = [json.loads(document) for document in result.stdout.splitlines()]
    assert ["invalid", "promote"] == [document["verdict"] for document in decisions]
    assert message in decisions[0]["reasons"][0]["message"]


def test_bytes_that_are_not_text_spoil_their_own_line_only(tmp_path, invoke):
    file = tmp_path / "many.jsonl"
    file.write_bytes(b"\xff\xfe\n" + LINE.encode())

    result = invoke("judge", "--jsonl", file)

    verdicts = [json.loads(document)["verdict"] for document in result.stdout.splitlines()]
    assert (["invalid", "promote"], 2) == (verdicts, result.exit_code)


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(
    ("out", "to", "counted"),
    [
        (io.StringIO, Terminal, True), (io.StringIO, io.StringIO, False),
        (Terminal, Terminal, False),
    ],
)  # fmt: skip
def test_documents_are_counted_on_a_terminal_that_shows_nothing_else(
    out, to, counted, tmp_path, monkeypatch
):
    file, errors = tmp_path / "two.jsonl", to()
    file.write_text(2 * LINE)
    monkeypatch.setattr(sys, "stdout", out())
    monkeypatch.setattr(sys, "stderr", errors)
    stream(str(file), "dev")

    assert counted == ("Judging: 2" in errors.getvalue())
    assert counted == bool(errors.getvalue())


def test_a_stream_imports_nothing_that_only_explains_or_plans(tmp_path):
    file = tmp_path / "one.jsonl"
    file.write_text(LINE)
    script = (
        "import sys; from typer.testing import CliRunner; from compilegate.cli.main import app;"
        "CliRunner().invoke(app, ['judge', '--jsonl', sys.argv[1]]);"
        "print([m for m in sys.modules if m.endswith(('_judge.explanation', '_judge.plan'))])"
    )

    done: Any = subprocess.run(
        [sys.executable, "-c", script, str(file)], capture_output=True, text=True, check=True
    )

    assert "[]" == done.stdout.strip()
