"""What a run starts from is asked, and honoured: arms do not go on from each other's models."""

from __future__ import annotations

from typing import Any

import pytest

from compilegate.domain.decision import SHADOW, Verdict
from compilegate.domain.production.history import WorkloadHistory
from compilegate.domain.production.registration import Registration, TrainedJob
from compilegate.domain.trial.plan import quality_mode
from compilegate.domain.workload.model import Workload
from tests.domain.evidence_builder import GOOD, codes, document, full_runs, judge, runs
from tests.domain.workload_builder import SOUND, change, check

MODEL = {"train": "s3://bucket/train/", "model": "s3://bucket/last-night/"}
RESUMED = {"resume_from_checkpoint": "/opt/ml/input/data/last"}


def workload(**training: Any) -> Workload:
    return change(SOUND, **{f"training__{key}": value for key, value in training.items()})


def mode_of(subject: Workload) -> Any:
    job = TrainedJob(subject, code="c")
    registration = Registration(subject.name, "spec", "source", schedule="rate(1 day)")
    return quality_mode(job, registration, job, WorkloadHistory())


@pytest.mark.parametrize(
    ("training", "in_turns"),
    [
        ({}, True),
        ({"starts_from": "scratch", "inputs": MODEL}, True),
        ({"starts_from": "own_line", "inputs": MODEL}, True),
        ({"starts_from": "previous"}, False),
        ({"inputs": MODEL}, False),
        ({"inputs": {"init_weights": "s3://bucket/w/"}}, False),
        ({"hyperparameters": RESUMED}, False),
        ({"hyperparameters": {"resume_from_checkpoint": False}}, True),
        ({"hyperparameters": {"model_name_or_path": "bert-base-cased", "epochs": 3}}, True),
        ({"hyperparameters": RESUMED, "starts_from": "scratch"}, True),
    ],
)
def test_production_trains_both_arms_in_turns_only_where_they_stay_apart(training, in_turns):
    mode = mode_of(workload(**training))

    assert in_turns is (mode.used != SHADOW)
    assert in_turns is mode.beside
    assert in_turns is (mode.why is None)
    assert in_turns or "starts_from" in mode.why


@pytest.mark.parametrize(
    ("training", "code"),
    [
        ({"starts_from": "previous"}, "starts_from_previous"),
        ({"starts_from": "own_line"}, "starts_from_own_line"),
        ({"inputs": MODEL}, "start_unsaid"),
        ({"inputs": MODEL, "starts_from": "scratch"}, None),
        ({}, None),
    ],
)
def test_check_says_what_follows(training, code):
    known = {"starts_from_previous", "starts_from_own_line", "start_unsaid"}
    said = known & {reason.code for reason in check(workload(**training)).reasons}

    assert {code} - {None} == said


def lines(**ends: Any) -> dict[str, Any]:
    """A sound trial whose runs record what they start from and end with."""
    doc = document(metrics=GOOD)
    for name in ("baseline", "compile"):
        for run in runs(doc, name):
            run["initial_weights_sha256"] = f"drawn-{run['seed']}"
            run["final_start_sha256"] = f"{name}-{run['seed']}"
    for name, start in ends.items():
        runs(doc, name)[-1] |= {"initial_weights_sha256": start, "seed": 99}
    return doc


@pytest.mark.parametrize(
    ("ends", "mixed"),
    [
        ({}, False),
        ({"baseline": "compile-17"}, True),
        ({"baseline": "baseline-17"}, False),
        ({"compile": "baseline-17"}, False),
        ({"compile": "compile-17"}, False),
    ],
    ids=["apart", "baseline from candidate", "own line", "from the baseline", "own"],
)
def test_a_baseline_that_continues_a_candidates_model_makes_the_trial_invalid(ends, mixed):
    decision = judge(lines(**ends))

    assert mixed is ("arms_continue_each_other" in codes(decision))
    assert mixed is (Verdict.INVALID == decision.verdict)


def test_where_both_arms_end_in_one_model_it_is_the_baselines_own():
    doc = lines(baseline="compile-17")
    runs(doc, "baseline")[0]["final_start_sha256"] = "compile-17"

    assert "arms_continue_each_other" not in codes(judge(doc))


def test_a_model_that_was_never_trained_belongs_to_no_arm():
    doc = lines()
    for run in full_runs(doc):
        run["initial_weights_sha256"] = run["final_start_sha256"] = "frozen"

    assert "arms_continue_each_other" not in codes(judge(doc))


def test_a_start_that_is_no_text_is_not_known():
    doc = lines()
    for run in runs(doc):
        run["initial_weights_sha256"] = ["a"]
        run["final_start_sha256"] = {"b": 1}

    assert "arms_continue_each_other" not in codes(judge(doc))
