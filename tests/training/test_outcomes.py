"""Outcomes per example: packed small, read back by the judge, the same set whatever its order."""

import base64
import json
import random

import pytest
from compilegate_runtime import outcomes

from compilegate.domain.judging.outcomes import BOUNDS, read_outcomes
from tests.training.jobs import SCRIPTS, TRAINING
from tests.training.stand_ins import recorder_in

TEXTS = [f"text {number}" for number in range(20)]
RIGHT = [number % 3 > 0 for number in range(20)]
DRIVER = SCRIPTS / "evaluations.py"


class Array(list):
    """As much of a tensor as a list of values needs."""

    def tolist(self):
        return list(self)


@pytest.fixture
def recorder(tmp_path):
    made = recorder_in(tmp_path, 1)
    outcomes.opened(made)
    yield made
    outcomes.closed()
    made.close()


def summary(folder):
    return json.loads((folder / "summary.json").read_text())


def test_the_judge_reads_what_the_recorder_packs():
    bits = read_outcomes(outcomes.packed(RIGHT, TEXTS))
    losses = read_outcomes(outcomes.packed([0.5 + n / 8 for n in range(20)], TEXTS))

    assert BOUNDS == outcomes.BOUNDS
    assert (20, 20, 13) == (bits.examples, bits.kept, bits.bits.bit_count())
    assert sorted(losses.losses) == [0.5 + n / 8 for n in range(20)]
    assert bits.set_sha256 == losses.set_sha256


def test_the_order_of_examples_changes_nothing():
    places = list(range(20))
    random.Random(4).shuffle(places)
    other = outcomes.packed([RIGHT[i] for i in places], [TEXTS[i] for i in places])

    assert outcomes.packed(RIGHT, TEXTS) == other


@pytest.mark.parametrize("kind", ["bits", "losses"])
def test_of_many_examples_every_run_keeps_the_same_ones(kind):
    examples = list(range(3 * BOUNDS[kind]))
    values = [float(n % 2) if kind == "bits" else n / 64 for n in examples]
    places = sorted(examples, key=lambda n: n * 7919 % 10007)
    first = outcomes.packed(values, examples)
    second = outcomes.packed([values[i] for i in places], places)

    assert first["data"] == second["data"]
    assert len(base64.b64decode(first["data"])) == {"bits": 512, "losses": 1024}[kind]
    assert len(json.dumps(first)) < 1700
    kept = read_outcomes(first)
    assert kept.kept == BOUNDS[kind]
    assert kept.examples == len(examples)


def test_equal_examples_are_told_apart_and_another_set_is_another():
    same = outcomes.packed(RIGHT, ["a"] * 20)

    assert 20 == len(set(outcomes.digests(["a"] * 20)))
    assert same["set_sha256"] != outcomes.packed(RIGHT, TEXTS)["set_sha256"]
    assert same["set_sha256"] != outcomes.packed(RIGHT[:19], ["a"] * 19)["set_sha256"]


def test_tensors_rows_and_bytes_are_examples_too():
    rows = Array([[1, 2], [3, 4]])

    assert outcomes.packed(Array([True, False]), rows) == outcomes.packed([1, 0], [[1, 2], [3, 4]])
    assert outcomes.packed([1, 0], [b"x", b"y"]) == outcomes.packed([1, 0], ["x", "y"])


def test_what_is_recorded_stands_in_the_summary(recorder, tmp_path):
    outcomes.record("eval_accuracy", RIGHT, TEXTS)
    recorder.metric("eval_accuracy", 13 / 20)

    assert {"eval_accuracy": outcomes.packed(RIGHT, TEXTS)} == summary(tmp_path)["outcomes"]


def test_only_a_few_metrics_are_kept_and_the_last_call_counts(recorder, tmp_path):
    for number in range(6):
        outcomes.record(f"metric_{number}", RIGHT, TEXTS)
    outcomes.record("metric_0", [1, 0], ["a", "b"])
    recorder.write_summary()
    kept = summary(tmp_path)["outcomes"]

    assert [f"metric_{number}" for number in range(4)] == list(kept)
    assert 2 == kept["metric_0"]["examples"]


@pytest.mark.parametrize(
    ("values", "examples"),
    [
        ([1], ["a"]),
        ([1, 0], ["a"]),
        ([1, float("nan")], ["a", "b"]),
        (None, None),
        ([1, "x"], [1, 2]),
    ],
)
def test_what_cannot_be_kept_ends_no_run(recorder, tmp_path, capsys, values, examples):
    outcomes.record("eval_accuracy", values, examples)
    recorder.write_summary()

    assert {} == summary(tmp_path)["outcomes"]
    assert "compilegate outcomes=eval_accuracy kept=no" in capsys.readouterr().out


def test_without_a_run_nothing_happens(capsys):
    outcomes.record("eval_accuracy", RIGHT, TEXTS)

    assert "" == capsys.readouterr().out


# ---- through a framework's evaluation ---------------------------------------------------------


@pytest.fixture(scope="module")
def seen(jobs):
    return jobs.run_code(DRIVER.read_text(), str(TRAINING))


@pytest.mark.training
def test_a_lightning_step_that_logs_leaves_an_outcome_per_batch(seen):
    kept = read_outcomes(seen["logged"]["val_loss"])

    assert (3, 4, 3) == (kept.examples, kept.per_outcome, len(kept.losses))
    assert {"val_loss"} == seen["logged"].keys()


@pytest.mark.training
def test_a_lightning_step_that_returns_values_of_its_examples_leaves_them_all(seen):
    kept = read_outcomes(seen["returned"]["val_accuracy"])

    assert (10, 1) == (kept.examples, kept.per_outcome)
    assert 7 == kept.bits.bit_count()


@pytest.mark.training
def test_a_sanity_check_and_a_metric_that_is_no_mean_leave_nothing(seen):
    assert {} == seen["sanity"]
    assert {} == seen["no_mean"]
    assert {} == seen["broken"]


@pytest.mark.training
def test_padding_and_the_size_of_batches_do_not_change_the_set(seen):
    assert seen["padded"] == seen["unpadded"]


@pytest.mark.training
def test_a_script_of_its_own_tells_in_two_lines(jobs):
    done = jobs.run(
        "launch.py", script=SCRIPTS / "telling.py", seed=3, argument_names='{"seed": null}',
        metric_patterns='{"eval_accuracy": "accuracy ([0-9.]+)"}',
    )  # fmt: skip
    assert 0 == done.status, done.output
    summary = done.summary()
    kept = read_outcomes(summary["outcomes"]["eval_accuracy"])

    assert 32 == kept.examples
    assert pytest.approx(kept.mean, abs=1e-4) == summary["metrics"]["eval_accuracy"]
