"""A run that ``first`` starts ends within its bounds, and with it every process of it."""

import os
import sys
import textwrap
from pathlib import Path

import pytest

from compilegate_init.first.bounded import Cut, run_bounded

pytestmark = pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="needs Linux's /proc")


MARK = f"OF_THE_TEST={os.getpid()}"


def ran(code, seconds=20.0, **limits):
    command = [sys.executable, "-c", textwrap.dedent(code)]
    environment = {**os.environ, **dict([MARK.split("=")])}
    return run_bounded(command, environment, seconds, **limits)


def left():
    """Processes of the test that run."""
    mark = MARK.encode()
    found = []
    for one in Path("/proc").glob("[0-9]*/environ"):
        try:
            found += [one.parent.name] if mark in one.read_bytes() else []
        except OSError:
            continue
    return found


def test_a_terminal_is_not_waited_for():
    assert "EOFError" in ran("input('password: ')").tail


@pytest.mark.parametrize(
    ("code", "cut", "limits"),
    [
        ("import time; time.sleep(60)", Cut.TIME, {"seconds": 0.5}),
        ("import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
         "while True: time.sleep(1)", Cut.TIME, {"seconds": 0.5}),
        ("held = []\nimport time\n"
         "while True: held.append(b'x' * 2**24); time.sleep(0.02)",
         Cut.MEMORY, {"memory_bytes": 200 * 2**20}),
        ("import os, time\nfor _ in range(30):\n    if not os.fork(): time.sleep(60); os._exit(0)\n"
         "time.sleep(60)", Cut.PROCESSES, {"processes": 10}),
    ],
    ids=["never ends", "ignores signals", "uses all memory", "forks"],
)  # fmt: skip
def test_what_goes_on_without_end_is_cut(code, cut, limits):
    ended = ran(code, **limits)

    assert (cut, None) == (ended.cut, ended.code)
    assert [] == left()


def test_a_process_that_left_the_group_ends_too(tmp_path):
    code = f"""
        import os, time
        if not os.fork():
            os.setsid()
            if not os.fork():
                open({str(tmp_path / "pid")!r}, "w").write(str(os.getpid()))
                time.sleep(60)
            os._exit(0)
        while not os.path.exists({str(tmp_path / "pid")!r}): time.sleep(0.05)
    """
    ended = ran(code)

    assert (0, True) == (ended.code, (tmp_path / "pid").exists())
    assert [] == left()
