"""What cannot be written is exit code 1 and says where and what to do, whatever the verdict."""

import json
import os
import resource
import signal
import subprocess
import sys
import time
from contextlib import nullcontext
from functools import partial
from pathlib import Path

import pytest

from compilegate.cli import main
from compilegate_local import demo
from tests.cli.project import write_project
from tests.cli.trial_script import decided, executions
from tests.domain.evidence_builder import GOOD
from tests.fake_clouds import cloud

FULL = Path("/dev/full")
pytestmark = pytest.mark.skipif(not FULL.exists(), reason="no /dev/full: a full disk")
# No folder can be made here, by whoever runs the tests.
NOWHERE = Path("/proc/nowhere")
ROOM = 10  # bytes that a file may have: less than any report


def in_little_room(invoke, *words):
    """A command's exit code and output where no file can grow, as on a full disk."""
    reading, writing = os.pipe()
    process = os.fork()
    if process == 0:
        try:
            resource.setrlimit(resource.RLIMIT_FSIZE, (ROOM, ROOM))
            result = invoke(*words)
            answer = json.dumps([result.exit_code, result.stdout, result.stderr])
            os.write(writing, answer.encode())
        finally:
            os._exit(0)
    os.close(writing)
    with os.fdopen(reading, "rb") as stream:
        answer = stream.read().decode()
    os.waitpid(process, 0)
    code, stdout, stderr = json.loads(answer)
    return code, stdout, " ".join(stderr.split())


@pytest.mark.usefixtures("promoted")
@pytest.mark.parametrize(
    ("command", "written"),
    [
        (("report", "bert-docs", "--out", "full"), "full/bert-docs-"),
        (("export", "bert-docs", "--to", "junit", "--out", "full.xml"), "full.xml"),
    ],
    ids=lambda words: words[0],
)
def test_on_a_full_disk_a_command_leaves_no_file(command, written, invoke, tmp_path):
    before = sorted(tmp_path.rglob("*"))

    code, stdout, stderr = in_little_room(invoke, *command)

    assert (1, "") == (code, stdout)
    assert stderr.startswith(f"Error: {written}")
    assert "could not be written: File too large. Fix: free space" in stderr
    assert [] == [path for path in tmp_path.rglob("*") if path.is_file() and path not in before]


@pytest.mark.usefixtures("promoted")
@pytest.mark.parametrize(
    "command",
    [
        ("report", "bert-docs", "--history", "--out", NOWHERE),
        ("export", "bert-docs", "--to", "junit", "--out", FULL),
        ("digest", "--html", FULL),
    ],
    ids=lambda words: " ".join(map(str, words)),
)
def test_where_nothing_can_be_written_the_error_names_the_place(command, invoke):
    shown, asked = invoke(*command), invoke(*command, "--json")

    assert (1, "") == (shown.exit_code, shown.stdout)
    assert f"Error: {command[-1]}" in shown.stderr
    assert 1 == asked.exit_code
    error = json.loads(asked.stdout)["error"]
    assert ("not_ready", True) == (error["kind"], str(command[-1]) in error["problem"])
    assert error["fix"]


def test_a_demo_without_a_report_is_a_failure(tmp_path, invoke, providers, monkeypatch):
    monkeypatch.setattr(demo, "preparing_data", lambda command: nullcontext(lambda: None))
    one = providers.local_cloud = cloud("local", simulated="on a CPU")
    executions(one).on_start = partial(decided, one, metrics=GOOD)

    result = invoke("demo", "--workloads", write_project(tmp_path), "--out", NOWHERE)

    assert 1 == result.exit_code
    assert f"{NOWHERE}/bert-docs-" in " ".join(result.stdout.split())


def run(*words, **options):
    command = [sys.executable, "-m", "compilegate.cli.main", *map(str, words)]
    return subprocess.run(command, check=False, text=True, stderr=subprocess.PIPE, **options)


@pytest.mark.parametrize("words", [["--json"], []])
def test_what_cannot_be_printed_is_a_failure_whatever_the_verdict(words, tmp_path):
    file = write_project(tmp_path)
    with FULL.open("w") as full:
        result = run("check", file, *words, stdout=full)

    assert 1 == result.returncode
    (line,) = result.stderr.splitlines()
    assert line.startswith("Error: the output could not be written: No space left on device. Fix:")


STOPPED = """
import sys, time
from compilegate.cli import main
from compilegate_local import demo
def work(**_):
    try:
        print("begun", flush=True)
        time.sleep(60)
    finally:  # as a trial's records are kept
        for _ in range(20):
            time.sleep(0.05)
        print("kept", flush=True)
main.main(work)
"""


def test_forty_signals_in_a_second_stop_once_and_cut_no_cleaning_up_off():
    with subprocess.Popen(
        [sys.executable, "-c", STOPPED], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        assert "begun\n" == process.stdout.readline()
        for _ in range(40):
            process.send_signal(signal.SIGTERM)
            time.sleep(0.025)
        stdout, stderr = process.communicate(timeout=30)

    assert "kept\n" == stdout
    assert stderr.rstrip().endswith("KeyboardInterrupt")


def test_a_person_who_waits_and_presses_again_stops_what_goes_on(monkeypatch):
    now = 100.0
    monkeypatch.setattr(main.time, "monotonic", lambda: now)
    stop = main.Stop()
    with pytest.raises(KeyboardInterrupt):
        stop(signal.SIGINT, None)
    now += main.REPEATED_SECONDS
    stop(signal.SIGTERM, None)
    now += 0.1
    with pytest.raises(KeyboardInterrupt):
        stop(signal.SIGINT, None)
