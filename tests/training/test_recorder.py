"""The recorder alone: no torch, a clock that the test turns."""

import json

import pytest
from compilegate_runtime import environment, hyperparameters, seeds
from compilegate_runtime.compilers import NoCompiler, compiler_for
from compilegate_runtime.device import Processor
from compilegate_runtime.errors import (
    DataError,
    DivergedError,
    HyperparameterError,
    NotAppliedError,
    TrainingError,
)
from compilegate_runtime.recorder import Recorder

from tests.training.stand_ins import COMPILER_KEYS, STEP_KEYS, SUMMARY_KEYS, Clock


class Compiling(NoCompiler):
    """A compiler whose compile time the test sets."""

    seconds = 0.0

    def compilations(self):
        return self.seconds

    def compile_seconds(self):
        return self.seconds


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def recorder(tmp_path, clock):
    run = {"job": "cg-x", "arm": "baseline", "replicate": 0, "seed": 17}
    made = Recorder(tmp_path, run, steps=3, compiler=Compiling(), device=Processor(), clock=clock)
    yield made
    made.close()


def lines(folder):
    return [json.loads(line) for line in (folder / "steps.jsonl").read_text().splitlines()]


def summary(folder):
    return json.loads((folder / "summary.json").read_text())


def run_steps(recorder, clock, losses, *, wait=0.25, work=1.0):
    def slow():
        for loss in losses:
            clock.now += wait
            yield loss

    for loss in recorder.steps(slow()):
        clock.now += work
        recorder.end_step(loss, samples=8, tokens=100)


def test_a_step_lasts_from_asking_for_its_batch_to_the_end_of_its_work(recorder, clock, tmp_path):
    run_steps(recorder, clock, [3.0, 2.0, 1.0])

    expected = {
        "step": 2, "seconds": 1.25, "samples": 8, "tokens": 100, "loss": 2.0,
        "data_wait_seconds": 0.25,
    }  # fmt: skip
    assert expected == lines(tmp_path)[1]


def test_time_between_steps_belongs_to_no_step(recorder, clock, tmp_path):
    for loss in recorder.steps([3.0, 2.0, 1.0]):
        clock.now += 1.0
        recorder.end_step(loss, samples=8)
        clock.now += 50.0

    assert [1.0, 1.0, 1.0] == [line["seconds"] for line in lines(tmp_path)]


def test_a_step_in_which_the_compiler_worked_says_how_long(recorder, clock, tmp_path):
    compiler = Compiling()
    recorder.use(compiler, Processor())
    for step, loss in enumerate(recorder.steps([3.0, 2.0, 1.0]), start=1):
        compiler.seconds += 4.0 if step != 2 else 0.0
        recorder.end_step(loss, samples=8)

    assert [4.0, None, 4.0] == [line.get("compile_seconds") for line in lines(tmp_path)]


def test_the_summary_has_the_keys_of_the_contract(recorder, clock, tmp_path):
    run_steps(recorder, clock, [3.0, 2.0, 1.0])
    recorder.metric("eval_loss", 1.5)
    recorder.finish()

    recorded = summary(tmp_path)
    assert SUMMARY_KEYS <= recorded.keys()
    assert COMPILER_KEYS == recorded["compiler"].keys()
    assert STEP_KEYS == lines(tmp_path)[0].keys()
    assert (True, {"eval_loss": 1.5}, 3.0) == (
        recorded["finished"], recorded["metrics"], recorded["initial_loss"],
    )  # fmt: skip
    assert [[1, 3.0], [2, 2.0], [3, 1.0]] == recorded["loss_curve"]


@pytest.mark.parametrize("loss", [float("nan"), float("inf")])
def test_a_loss_that_is_no_number_stops_the_run(recorder, clock, tmp_path, loss):
    with pytest.raises(DivergedError, match="at step 2"):
        run_steps(recorder, clock, [3.0, loss, 1.0])

    assert [3.0, None] == [line["loss"] for line in lines(tmp_path)]
    assert summary(tmp_path)["finished"] is False


def test_a_metric_that_is_no_number_is_recorded_as_null_and_raised(recorder, clock, tmp_path):
    run_steps(recorder, clock, [3.0, 2.0, 1.0])
    with pytest.raises(DivergedError, match="eval_loss is nan"):
        recorder.metric("eval_loss", float("nan"))
    recorder.fail("diverged")

    recorded = summary(tmp_path)
    assert ({"eval_loss": None}, False) == (recorded["metrics"], recorded["finished"])


def test_a_run_whose_data_ends_early_does_not_count_as_finished(recorder, clock):
    run_steps(recorder, clock, [3.0])

    with pytest.raises(TrainingError, match=r"after 1 of 3 steps; .*full_run_samples"):
        recorder.finish()


def test_hyperparameters_take_the_type_of_their_default():
    knobs = {"steps": 10, "rate": 0.1, "shuffle": True, "padding": ("longest", "max_length")}
    words = ["--steps", "30", "--rate", "1e-3", "--shuffle", "false", "--padding", "max_length"]
    settings = hyperparameters.parse(knobs, words)

    assert (30, 0.001, False, "max_length") == (
        settings.steps, settings.rate, settings.shuffle, settings.padding,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--step", "3"], "unknown hyperparameter --step"),
        (["--steps", "three"], "steps"),
        (["--steps", "2.5"], "steps"),
        (["--compiler", "magic"], "compiler"),
        (["--compile_mode", "fastest"], "reduce-overhead"),
    ],
)
def test_a_wrong_hyperparameter_is_named(words, message):
    with pytest.raises(HyperparameterError, match=message):
        hyperparameters.parse({"steps": 10}, words)


def test_one_seed_gives_one_data_order_and_drops_the_ragged_rest():
    first = seeds.batches(3, 10, 4)
    again = seeds.batches(3, 10, 4)
    other = seeds.batches(4, 10, 4)
    taken = [next(first) for _ in range(5)]

    assert taken == [next(again) for _ in range(5)]
    assert taken != [next(other) for _ in range(5)]
    assert {4} == {len(batch) for batch in taken}


def test_a_missing_channel_is_named(monkeypatch):
    monkeypatch.delenv("SM_CHANNEL_TRAIN", raising=False)
    with pytest.raises(DataError, match="SM_CHANNEL_TRAIN"):
        environment.channel("train")


def test_a_compile_mode_without_its_compiler_is_no_silent_baseline():
    with pytest.raises(HyperparameterError, match="max-autotune belongs to compiler torch_compile"):
        compiler_for("none", "max-autotune")


@pytest.mark.parametrize("precision", ["fp8", "fp16"])
def test_a_precision_that_cannot_be_had_here_is_not_applied(precision):
    with pytest.raises(NotAppliedError, match=f"{precision} was requested but not applied"):
        Processor(precision)


def test_only_the_first_of_several_processes_leaves_the_jobs_evidence(monkeypatch, tmp_path):
    monkeypatch.setenv("SM_OUTPUT_DATA_DIR", str(tmp_path))
    monkeypatch.delenv("COMPILEGATE_EVIDENCE_DIR", raising=False)
    ranks = (("RANK", "0"), ("RANK", "3"), ("OMPI_COMM_WORLD_RANK", "5"))
    for variables, first in [
        ({}, tmp_path / "evidence"),
        ({"COMPILEGATE_EVIDENCE_DIR": str(tmp_path / "block-0")}, tmp_path / "block-0"),
    ]:
        places = []
        for name, number in ranks:
            with monkeypatch.context() as patch:
                for key, value in {**variables, name: number}.items():
                    patch.setenv(key, value)
                places.append(environment.evidence_folder())

        assert first == places[0]
        assert 3 == len(set(places))
        assert all(tmp_path not in place.parents for place in places[1:])
