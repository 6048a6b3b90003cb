"""What a run starts from is asked, and honoured: arms do not go on from each other's models."""

from __future__ import annotations

from typing import Any

import pytest

from compilegate.domain.decision import SHADOW, Verdict
from compilegate.domain.judging.evidence_file import read_evidence
from compilegate.domain.judging.validity import mixed_lines, unequal_starts, unknown_start
from compilegate.domain.production.history import WorkloadHistory
from compilegate.domain.production.registration import Registration, TrainedJob
from compilegate.domain.trial.plan import quality_mode
from compilegate.domain.workload.model import Workload
from tests.domain.evidence_builder import (
    GOOD,
    add_candidate,
    arm,
    codes,
    document,
    judge,
    runs,
)  # fmt: skip
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
    ("ends", "first", "mixed"),
    [
        ({}, {}, False), ({"baseline": "compile-17"}, {}, True),
        ({"baseline": "baseline-17"}, {}, False), ({"compile": "baseline-17"}, {}, False),
        ({"compile": "compile-17"}, {}, False),
        # A model that both arms end in is the baseline's own, and one never trained no arm's.
        ({"baseline": "compile-17"}, {"final_start_sha256": "compile-17"}, False),
        ({"baseline": "f", "compile": "f"}, {"final_start_sha256": "f"}, False),
        ({"baseline": ["a"]}, {"final_start_sha256": {"b": 1}}, False),
    ],
)  # fmt: skip
def test_a_baseline_that_continues_a_candidates_model_makes_the_trial_invalid(ends, first, mixed):
    doc = lines(**ends)
    (runs(doc)[-1] if "compile" in ends else runs(doc, "baseline")[0]).update(first)
    decision = judge(doc)

    assert mixed is ("arms_continue_each_other" in codes(decision))
    assert mixed is (Verdict.INVALID == decision.verdict)


def test_each_arm_that_goes_on_from_another_is_named_once():
    doc = lines(baseline="compile-18")
    add_candidate(doc, "later", speedup=1.2, metrics=GOOD["compile"])
    runs(doc, "baseline")[1]["initial_weights_sha256"] = "compile-17"
    for run in runs(doc, "later"):
        run["initial_weights_sha256"] = "compile-18"
    reasons = list(mixed_lines(read_evidence(doc)))

    assert [(None, "baseline: run 2"), ("later", "later: run 6")] == [
        (reason.arm, reason.message[: reason.message.index(" starts")]) for reason in reasons
    ]
    assert all("the model that compile has trained" in one.message for one in reasons)


def speaks(doc: dict[str, Any], name: str, **keys: Any) -> None:
    """Each run of an arm has its own of these values."""
    for number, run in enumerate(runs(doc, name)):
        run.update({key: values[number] for key, values in keys.items()})


STARTS: dict[str, tuple[dict[str, Any], dict[str, Any], list[str]]] = {
    "alike, but for rounding": ({}, {"initial_loss": [1.0, 2.0, 3.02]}, []),
    "other losses, one said": ({}, {"initial_loss": [1.0, 2.1, 3.1]}, ["unequal_initial_loss"]),
    "of other seeds": ({"seed": [7, 8, 9]}, {"initial_loss": [1.1, 2.2, 3.3]}, []),
    "of no seed": ({"seed": [None] * 3}, {"initial_loss": [1.1] * 3, "seed": [None] * 3}, []),
    "both kinds": (
        {"initial_weights_sha256": ["a", "b", "c"]},
        {"initial_weights_sha256": ["x", "y", "z"], "initial_loss": [1.1, 2.2, 3.3]},
        ["unequal_initial_loss", "unequal_initial_weights"]),
}  # fmt: skip


@pytest.mark.parametrize("what", STARTS)
def test_runs_of_a_seed_start_alike_or_the_first_that_does_not_is_said_once(what):
    good = document(metrics=GOOD)
    theirs, ours, expected = STARTS[what]
    for name, own in (("baseline", theirs), ("compile", ours)):
        speaks(good, name, **{"initial_loss": [1.0, 2.0, 3.0], **own})
    baseline, candidate = read_evidence(good).arms
    reasons = list(unequal_starts(candidate, baseline))

    assert expected == [reason.code for reason in reasons]
    if expected:
        assert ("loss 2.1000, the baseline at 2.0000" in reasons[0].message) or len(expected) == 2
        assert f"seed {18 if len(expected) == 1 else 17} starts" in reasons[-1].message


LOSS, WEIGHTS = "initial_loss", {"initial_weights_sha256": "abc"}
ONES = {LOSS: [1.0] * 3}
LAST = {"fingerprint": [{}, {}, {"gpu": "A"}]}
COMPILED, BATCH, SCRIPT = {"compiler": "torch_compile"}, {"batch_size": 48}, {"entry_point": "a.py"}


@pytest.mark.parametrize(
    ("overrides", "theirs", "ours", "unknown"),
    [
        (COMPILED, {}, {}, True), (COMPILED, {}, {"fingerprint": [{}] * 3}, False),
        (COMPILED, {}, LAST, True),
        (COMPILED, {}, {**LAST, "finished": [True, True, False]}, False),
        (COMPILED, ONES, {}, True), (COMPILED, {}, ONES, True),
        (COMPILED, ONES, ONES, False), (COMPILED, WEIGHTS, WEIGHTS, False),
        (BATCH, ONES, ONES, True), (BATCH, WEIGHTS, WEIGHTS, False),
        (SCRIPT, WEIGHTS, WEIGHTS, True), ({"precision": "fp8"}, {}, {}, False),
    ],
)  # fmt: skip
def test_an_equal_start_is_unknown_where_neither_the_runs_nor_the_change_say_it(
    overrides, theirs, ours, *, unknown
):
    good = document(metrics=GOOD)
    arm(good)["overrides"] = overrides
    for name, own in (("baseline", theirs), ("compile", ours)):
        speaks(good, name, **{LOSS: [None] * 3, **own})
    baseline, candidate = read_evidence(good).arms
    reason = unknown_start(candidate, baseline)

    assert unknown is (reason is not None and reason.code == "start_unknown")
