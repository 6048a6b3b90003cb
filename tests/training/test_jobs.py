"""Whole training jobs, tiny ones, as SageMaker would start them."""

import json

import pytest

from tests.training.stand_ins import COMPILER_KEYS, STEP_KEYS, SUMMARY_KEYS

pytestmark = pytest.mark.training

LANGUAGE_MODEL = {
    "width": 16, "layers": 1, "heads": 2, "block": 16, "steps": 12, "batch_size": 2,
    "eval_blocks": 4,
}  # fmt: skip
# Eager and compiled arithmetic add up in another order; float32 keeps about seven digits.
SAME_LOSS = 1e-5


@pytest.fixture(scope="module")
def compiled(jobs):
    return jobs.run("causal_lm.py", compiler="torch_compile", arm="compile", **LANGUAGE_MODEL)


@pytest.fixture(scope="module")
def baseline(jobs):
    return jobs.run("causal_lm.py", {"TRAINING_JOB_NAME": "cg-lm"}, **LANGUAGE_MODEL)


def test_a_run_leaves_the_evidence_of_the_contract(baseline):
    assert 0 == baseline.status, baseline.output
    summary = baseline.summary()

    assert SUMMARY_KEYS <= summary.keys()
    assert COMPILER_KEYS <= summary["compiler"].keys()
    assert ("cg-lm", "baseline", True) == (summary["job"], summary["arm"], summary["finished"])
    assert ["eval_loss", "eval_perplexity"] == list(summary["metrics"])
    assert list(range(1, 13)) == [step["step"] for step in baseline.steps()]
    assert {32} == {step["tokens"] for step in baseline.steps()}
    assert STEP_KEYS | {"learning_rate", "gradient_norm"} == baseline.steps()[0].keys()


def test_an_arm_that_asks_for_the_compiler_proves_that_it_ran(compiled):
    assert 0 == compiled.status, compiled.output
    summary = compiled.summary()["compiler"]

    assert ("torch_compile", True) == (summary["requested"], summary["applied"])
    assert summary["graphs"] >= 1
    assert summary["compile_seconds"] > 0
    assert "1 of 1 frames compiled" in summary["proof"]
    in_steps = sum(step.get("compile_seconds", 0.0) for step in compiled.steps())
    assert in_steps == pytest.approx(summary["compile_seconds"], abs=0.01)


def test_both_arms_start_from_the_same_loss_and_differ_in_nothing_but_the_compiler(
    baseline, compiled
):
    ours, theirs = compiled.summary(), baseline.summary()

    assert ours["initial_loss"] == pytest.approx(theirs["initial_loss"], rel=SAME_LOSS)
    assert ours["initial_weights_sha256"] == theirs["initial_weights_sha256"] is not None
    assert {64} == {len(one["final_weights_sha256"]) for one in (ours, theirs)}
    assert ours["final_start_sha256"] not in (None, ours["initial_weights_sha256"])
    assert ours["fingerprint"] == theirs["fingerprint"]


def test_a_compiler_that_was_asked_for_and_switched_off_fails_the_run(jobs):
    done = jobs.run(
        "causal_lm.py", {"TORCHDYNAMO_DISABLE": "1"}, compiler="torch_compile", **LANGUAGE_MODEL
    )
    summary = done.summary()

    assert 1 == done.status
    assert "requested but not applied" in done.failure
    assert (False, False) == (summary["compiler"]["applied"], summary["finished"])
    assert 1 == len(done.steps())


def arm(name, **hyperparameters):
    return json.dumps({"name": name, "hyperparameters": {**LANGUAGE_MODEL, **hyperparameters}})


def test_the_speed_gate_runs_every_arm_of_every_block_and_primes_the_cache(jobs):
    done = jobs.run(
        "compilegate_runtime/speed_gate.py",
        program="causal_lm.py", first_block=1, blocks=1, steps=5,
        arm_0=arm("baseline", compiler="none"), arm_1=arm("compile", compiler="torch_compile"),
    )  # fmt: skip
    assert 0 == done.status, done.output
    ours, theirs = done.summary("block-1/compile"), done.summary("block-1/baseline")

    assert (True, True) == (ours["finished"], theirs["finished"])
    assert ours["fingerprint"] == theirs["fingerprint"]
    assert (1, 2) == (ours["replicate"], ours["seed"])
    assert {} == ours["metrics"]
    assert 5 == len(done.steps("block-1/compile"))
    assert done.summary("cold/compile")["compiler"]["applied"] is True
    assert 0 == ours["compiler"]["cache_misses"]
    # An odd block turns the order round.
    assert done.output.index("block=1 arm=compile step=5") < done.output.index(
        "block=1 arm=baseline step=5"
    )
