"""What a command in a namespace of its own sees, and that nothing of it stays on the machine."""

from __future__ import annotations

import os
import subprocess
import time
from pathlib import Path

import pytest

from tests.training import namespaces
from tests.training.namespaces import Namespace

PRIVATE = ("/etc", "/opt", "/tmp")


@pytest.fixture
def scratch(tmp_path: Path) -> Path:
    reason = namespaces.obstacle(PRIVATE)
    if reason:
        pytest.skip(f"no namespaces here: {reason}")
    folder = tmp_path / "scratch"
    folder.mkdir()
    return folder


def run(namespace: Namespace, script: str) -> subprocess.CompletedProcess[str]:
    words = namespaces.command(namespace, ["sh", "-c", script])
    return subprocess.run(words, capture_output=True, text=True, timeout=60, check=False)


def test_the_command_has_a_machine_of_its_own(scratch: Path, tmp_path: Path) -> None:
    place = tmp_path / "ml"
    place.mkdir()
    before = Path("/etc/hosts").read_bytes()
    namespace = Namespace(
        scratch, "algo-1", network=True, private=PRIVATE, mounted={"/opt/ml": place},
        files={"/etc/hosts": "127.0.0.1 localhost algo-1\n"},
    )  # fmt: skip

    done = run(
        namespace, "hostname; cat /etc/hosts; ls /sys/class/net /proc/net/dev; "
        f"touch /etc/mine /opt/ml/here {place}/there /tmp/mine; wc -l < /proc/net/dev",
    )  # fmt: skip

    assert 0 == done.returncode, done.stderr
    assert ["algo-1", "127.0.0.1 localhost algo-1"] == done.stdout.splitlines()[:2]
    assert "3" == done.stdout.split()[-1]  # two lines of heading and the loopback interface
    assert {"here", "there"} == {path.name for path in place.iterdir()}
    assert before == Path("/etc/hosts").read_bytes()
    assert not Path("/etc/mine").exists()
    assert not Path("/tmp/mine").exists()
    assert [] == list(scratch.iterdir())


@pytest.mark.parametrize(("script", "status"), [("exit 3", 3), ("kill -9 $$", 137), ("true", 0)])
def test_it_ends_as_the_command_does(script: str, status: int, scratch: Path) -> None:
    assert status == run(Namespace(scratch, "algo-1", network=True), script).returncode


@pytest.mark.parametrize("ending", ["by itself", "killed"])
def test_its_processes_end_with_it(ending: str, scratch: Path) -> None:
    mark = f"COMPILEGATE_TEST={scratch}"
    last = "sleep 300" if ending == "killed" else "true"
    words = namespaces.command(
        Namespace(scratch, "algo-1", network=True),
        ["sh", "-c", f"setsid sleep 300 & echo started; {last}"],
    )
    variables = {**os.environ, "COMPILEGATE_TEST": str(scratch)}
    process = subprocess.Popen(words, env=variables, stdout=subprocess.PIPE)
    assert process.stdout is not None
    assert b"started\n" == process.stdout.readline()
    if ending == "killed":
        process.kill()
    process.wait(timeout=30)

    deadline = time.monotonic() + 10
    while (left := _marked(mark)) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert [] == left


def test_why_there_can_be_none_is_said(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))

    assert "the command unshare (util-linux) is missing" == namespaces.obstacle(())


def _marked(mark: str) -> list[str]:
    found = []
    for path in Path("/proc").glob("[0-9]*/environ"):
        try:
            if mark.encode() in path.read_bytes().split(b"\0"):
                found.append(path.parent.name)
        except OSError:
            continue
    return found
