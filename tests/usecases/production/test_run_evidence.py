"""What a production job left, broken in every way a summary can be: recorded, never evidence."""

from __future__ import annotations

import pytest

from compilegate.usecases.production.job_evidence import output_uri
from tests.usecases.production.runs import Production, summary_tar
from tests.usecases.trial_builder import evidence_tar

BROKEN = {
    "a figure that is none": {"metrics": {"eval_accuracy": float("nan")}},
    "a figure without end": {"metrics": {"eval_accuracy": float("inf")}},
    "a figure as text": {"metrics": {"eval_accuracy": "0.9"}},
    "metrics as a list": {"metrics": [1]},
    "metrics as text": {"metrics": "eval_accuracy"},
    "a time as text": {"wall_seconds": "abc"},
    "a time below zero": {"wall_seconds": -1},
    "a seed as text": {"seed": "x"},
    "the compiler as text": {"compiler": "torch_compile"},
    "the fingerprint as text": {"fingerprint": "q"},
    "more than the ledger takes": {"fingerprint": {"gpu": "g" * 500_000}},
}


@pytest.mark.parametrize("changed", BROKEN.values(), ids=BROKEN)
def test_a_run_that_the_judge_could_not_read_is_recorded_without_being_evidence(changed):
    production = Production()
    production.promote()
    production.begin()
    production.ends("Completed", output=summary_tar(**changed))

    answer = production.record()

    assert "watch" == answer["next"]
    (run,) = production.runs()
    assert (False, {}) == (run.counts, run.result)
    assert run.reason.startswith("its evidence cannot be read: ")
    (key,) = changed
    named = {"metrics": "metric", "fingerprint": ""}.get(key, key)
    assert named in run.reason


def test_a_summary_nested_too_deeply_is_no_evidence_either():
    production = Production()
    production.begin()
    body = b'{"schema": 1, "finished": true, "fingerprint": ' + b'{"a":' * 100_000
    production.ends("Completed", output=evidence_tar({"evidence/summary.json": body}))

    production.record()

    assert [False] == [run.counts for run in production.runs()]


def test_an_output_too_large_to_be_read_is_a_run_without_evidence_and_says_why():
    production = Production()
    production.begin()
    production.ends("Completed", output=summary_tar())
    uri = output_uri(production.services.jobs.describe(production.job))
    production.services.store.sizes[uri] = 10**12

    answer = production.record()

    assert ("watch", False) == (answer["next"], answer["counts"])
    (run,) = production.runs()
    assert "1000000000000 bytes" in run.reason
    assert "/opt/ml/checkpoints" in run.reason
