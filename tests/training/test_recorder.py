"""The recorder alone: no torch, a clock that the test turns."""

import json
import re
from types import SimpleNamespace

import pytest
from compilegate_runtime import environment, fingerprint, hyperparameters, seeds, speed_gate
from compilegate_runtime.compilers import NoCompiler, compiler_for
from compilegate_runtime.device import Processor
from compilegate_runtime.errors import (
    CompilerUnavailableError,
    DataError,
    DivergedError,
    HyperparameterError,
    NotAppliedError,
    TrainingError,
)
from compilegate_runtime.evidence import LossCurve
from compilegate_runtime.recorder import Recorder

from compilegate.domain.argument_text import encoded_document

SUMMARY_KEYS = {
    "schema", "job", "arm", "replicate", "seed", "compiler", "metrics", "loss_curve",
    "peak_memory_gib", "devices", "fingerprint", "initial_loss", "initial_weights_sha256",
    "finished",
}  # fmt: skip
STEP_KEYS = {"step", "seconds", "samples", "tokens", "loss", "data_wait_seconds"}
COMPILER_KEYS = {
    "requested", "applied", "proof", "compile_seconds", "graphs", "recompiles", "graph_breaks",
}  # fmt: skip


class Clock:
    """Time that passes only when told to."""

    def __init__(self):
        self.now = 0.0

    def __call__(self):
        return self.now


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

    found = summary(tmp_path)
    assert SUMMARY_KEYS <= found.keys()
    assert COMPILER_KEYS == found["compiler"].keys()
    assert STEP_KEYS == lines(tmp_path)[0].keys()
    assert (True, {"eval_loss": 1.5}, 3.0) == (
        found["finished"], found["metrics"], found["initial_loss"],
    )  # fmt: skip
    assert [[1, 3.0], [2, 2.0], [3, 1.0]] == found["loss_curve"]


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

    found = summary(tmp_path)
    assert ({"eval_loss": None}, False) == (found["metrics"], found["finished"])


def test_a_run_whose_data_ends_early_does_not_count_as_finished(recorder, clock):
    run_steps(recorder, clock, [3.0])

    with pytest.raises(TrainingError, match="after 1 of 3 steps"):
        recorder.finish()


def test_evidence_is_on_disk_before_the_run_ends(recorder, clock, tmp_path):
    for loss in recorder.steps([3.0, 2.0]):
        clock.now += 1.0
        recorder.end_step(loss, samples=8)
        if loss == 2.0:
            break

    assert 2 == len(lines(tmp_path))
    assert summary(tmp_path)["finished"] is False


def test_progress_lines_match_the_metric_definitions(tmp_path, clock, capsys):
    recorder = Recorder(
        tmp_path, {"arm": "x"}, steps=20, compiler=NoCompiler(), device=Processor(), clock=clock
    )
    run_steps(recorder, clock, [2.0] * 20, wait=0.0, work=0.5)

    line = capsys.readouterr().out.splitlines()[-1]
    found = {
        name: float(re.search(rf"^compilegate .*\b{name}=([-+0-9.eE]+)", line).group(1))
        for name in ("step", "steps", "seconds", "samples_per_second", "loss")
    }
    expected = {
        "step": 20, "steps": 20, "seconds": 0.5, "samples_per_second": 16.0, "loss": 2.0,
    }  # fmt: skip
    assert expected == found


def test_a_long_runs_loss_curve_stays_short_and_keeps_both_ends():
    curve = LossCurve(100_001)
    for step in range(1, 100_002):
        curve.add(step, 1.0)

    assert len(curve.points) <= 202
    assert (1, 100_001) == (curve.points[0][0], curve.points[-1][0])


def test_hyperparameters_take_the_type_of_their_default():
    knobs = {"steps": 10, "rate": 0.1, "shuffle": True, "padding": ("longest", "max_length")}
    words = ["--steps", "30", "--rate", "1e-3", "--shuffle", "false", "--padding", "max_length"]
    found = hyperparameters.parse(knobs, words)

    assert (30, 0.001, False, "max_length") == (
        found.steps, found.rate, found.shuffle, found.padding,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--step", "3"], "unknown hyperparameter --step"),
        (["--steps", "three"], "steps"),
        (["--steps", "2.5"], "steps"),
        (["--compiler", "magic"], "compiler"),
    ],
)
def test_a_wrong_hyperparameter_is_named(words, message):
    with pytest.raises(HyperparameterError, match=message):
        hyperparameters.parse({"steps": 10}, words)


def test_the_managed_compiler_needs_its_own_image():
    with pytest.raises(CompilerUnavailableError, match="AWS training images"):
        compiler_for("sagemaker_training_compiler")


def test_one_seed_gives_one_data_order_and_drops_the_ragged_rest():
    first = seeds.batches(3, 10, 4)
    again = seeds.batches(3, 10, 4)
    other = seeds.batches(4, 10, 4)
    taken = [next(first) for _ in range(5)]

    assert taken == [next(again) for _ in range(5)]
    assert taken != [next(other) for _ in range(5)]
    assert {4} == {len(batch) for batch in taken}


def test_the_data_digest_changes_with_any_byte_of_a_file(tmp_path):
    path = tmp_path / "rows.csv"
    path.write_text("1,2\n")
    before = fingerprint.data_digest({"train": tmp_path})
    path.write_text("1,3\n")

    assert before != fingerprint.data_digest({"train": tmp_path})
    assert fingerprint.data_digest({}) is None


def test_a_missing_channel_is_named(monkeypatch):
    monkeypatch.delenv("SM_CHANNEL_TRAIN", raising=False)
    with pytest.raises(DataError, match="SM_CHANNEL_TRAIN"):
        environment.channel("train")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"--program": "absent.py"}, "absent.py is not in the source folder"),
        ({"--arm_0": "{"}, "arm_0 must be JSON"),
        ({"--arm_0": '{"name": "compile", "hyperparameters": {}}'}, "no arm is named baseline"),
        ({"--baseline": "elsewhere"}, "needs other arms"),
        ({"--typo": "1"}, "typo"),
    ],
)
def test_the_speed_gate_names_what_is_wrong_with_its_plan(change, message):
    words = {
        "--program": "causal_lm.py",
        "--blocks": "1",
        "--steps": "5",
        "--arm_0": '{"name": "baseline", "hyperparameters": {}}',
        **change,
    }
    with pytest.raises(HyperparameterError, match=message):
        speed_gate.parse([word for pair in words.items() for word in pair])


def test_the_speed_gate_reads_arms_that_were_encoded_for_a_shell():
    arm = {"name": "baseline", "hyperparameters": {"prompt": "it's $(id)"}}
    words = ["--program", "causal_lm.py", "--blocks", "1", "--steps", "5"]
    _, arms = speed_gate.parse([*words, "--arm_0", encoded_document(arm)])

    assert "it's $(id)" == arms[0].hyperparameters["prompt"]
    with pytest.raises(HyperparameterError, match="arm_0 is not urlsafe base64"):
        speed_gate.parse([*words, "--arm_0", "base64:e"])


def test_a_segment_gets_the_words_that_a_whole_run_gets():
    pairs = {"flag": True, "rate": 1e-05, "v": 9, "text": "a b"}
    found = [word for name, value in pairs.items() for word in speed_gate.argument(name, value)]

    assert ["--flag", "True", "--rate", "1e-05", "-v", "9", "--text", "a b"] == found


def test_a_segment_that_died_without_a_word_is_still_a_result(tmp_path):
    arm = SimpleNamespace(
        name="compile", hyperparameters={"compiler": "torch_compile"}, failure="exit code -9"
    )
    speed_gate.record_failure(arm, tmp_path, 2)

    found = summary(tmp_path)
    assert SUMMARY_KEYS <= found.keys()
    assert (False, "exit code -9", None) == (
        found["finished"], found["reason"], found["compiler"]["applied"],
    )  # fmt: skip
    assert [] == lines(tmp_path)


def test_a_job_whose_baseline_runs_elsewhere_measures_the_other_arms():
    told = '{"name": "p4d", "hyperparameters": {}}'
    words = ["--program", "causal_lm.py", "--blocks", "1", "--steps", "5", "--arm_0", told]
    plan, arms = speed_gate.parse([*words, "--baseline", "elsewhere", "--mp_parameters", "ddp=1"])

    assert ("elsewhere", ["p4d"]) == (plan.baseline, [arm.name for arm in arms])


def test_a_compile_mode_without_its_compiler_is_no_silent_baseline():
    with pytest.raises(HyperparameterError, match="max-autotune belongs to compiler torch_compile"):
        compiler_for("none", "max-autotune")


def test_an_unknown_compile_mode_is_refused_with_those_there_are():
    with pytest.raises(HyperparameterError, match="reduce-overhead"):
        hyperparameters.parse({}, ["--compile_mode", "fastest"])


@pytest.mark.parametrize("precision", ["fp8", "fp16"])
def test_a_precision_that_cannot_be_had_here_is_not_applied(precision):
    with pytest.raises(NotAppliedError, match=f"{precision} was asked for and not applied"):
        Processor(precision)


def test_only_the_first_of_several_processes_leaves_the_jobs_evidence(monkeypatch, tmp_path):
    monkeypatch.setenv("SM_OUTPUT_DATA_DIR", str(tmp_path))
    monkeypatch.delenv("COMPILEGATE_EVIDENCE_DIR", raising=False)
    places = []
    for name, number in (("RANK", "0"), ("RANK", "3"), ("OMPI_COMM_WORLD_RANK", "5")):
        with monkeypatch.context() as patch:
            patch.setenv(name, number)
            places.append(environment.evidence_folder())

    assert tmp_path / "evidence" == places[0]
    assert 3 == len(set(places))
    assert all(tmp_path not in place.parents for place in places[1:])


def test_the_recorder_is_no_part_of_the_code_that_a_run_names(tmp_path):
    (tmp_path / "train.py").write_text("train")
    before = fingerprint.code_digest(tmp_path)
    (tmp_path / "compilegate_runtime").mkdir()
    (tmp_path / "compilegate_runtime" / "recorder.py").write_text("recorder")
    with_recorder = fingerprint.code_digest(tmp_path)
    (tmp_path / "train.py").write_text("trains otherwise")

    assert before == with_recorder != fingerprint.code_digest(tmp_path)
