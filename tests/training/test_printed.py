"""Metrics that a script prints: found in its lines, whatever pattern and thread."""

import io
import math
import signal
import threading
import time

import pytest
from compilegate_runtime.launching import frameworks

EXPONENTIAL = {"eval_loss": "(a+)+b([0-9.]+)", "loss": "loss ([0-9.]+)"}


@pytest.fixture
def printed(monkeypatch):
    monkeypatch.setattr(frameworks, "SEARCH_SECONDS", 0.05)
    return frameworks.Printed(io.StringIO(), EXPONENTIAL, {})


def test_a_pattern_that_takes_for_ever_is_given_up_and_its_metric_is_no_number(printed):
    began = time.monotonic()
    printed.write("a" * 60 + "\nloss 0.5\n" + "a" * 60 + "\n")
    printed.finish()

    assert time.monotonic() - began < 5
    assert math.isnan(printed._metrics["eval_loss"])
    assert 0.5 == printed._metrics["loss"]
    assert 1 == printed.getvalue().count("metric_patterns eval_loss took more than")


def test_what_another_thread_prints_is_searched_when_the_main_thread_prints(printed):
    thread = threading.Thread(target=printed.write, args=("loss 0.25\n" + "a" * 60 + "\n",))
    thread.start()
    thread.join(timeout=5)

    assert not thread.is_alive()
    assert {} == printed._metrics
    printed.finish()
    assert 0.25 == printed._metrics["loss"]


def test_an_alarm_of_the_script_still_rings(printed):
    rang = []
    before = signal.signal(signal.SIGALRM, lambda *_: rang.append(True))
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.1)
        printed.write("loss 0.5\n")
        time.sleep(0.3)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)

    assert [True] == rang


def test_only_the_end_of_a_long_line_is_searched(printed):
    printed.write("x" * 10_000_000 + "loss 0.5\n")

    assert 0.5 == printed._metrics["loss"]
