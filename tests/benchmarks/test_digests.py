"""The measured digest reads each workload once, with few calls, within the function's time."""

from __future__ import annotations

import json

import pytest

from benchmarks import results
from benchmarks.digests import LIMIT_SECONDS, WORKLOADS, measure
from compilegate.usecases.registration.load import AT_ONCE
from stacks.functions import STEPS


@pytest.mark.slow
def test_a_workload_takes_four_calls() -> None:
    measured = measure(1001, call_seconds=0.0)

    assert {"list": 2, "get": 3003, "query": 1001} == measured["calls"]


def test_what_is_on_file_fits_the_function_several_times_over() -> None:
    stored = json.loads(results.path("digests").read_text())
    (step,) = [step for step in STEPS if step.name == "weekly_digest"]

    assert (WORKLOADS, AT_ONCE) == (stored["workloads"], stored["threads"])
    assert LIMIT_SECONDS == step.seconds
    assert stored["seconds"] < step.seconds / 3
    assert stored["peak_memory_mib"] < step.megabytes / 3
