"""Scripts that know nothing of Compilegate, run as arms."""

import io
import json
import math
import os
import signal
import sys
from inspect import signature
from types import SimpleNamespace

import pytest
from compilegate_runtime.launching import arguments, frameworks

from compilegate.domain.judging.evidence import read_outcomes
from tests.training.jobs import AFRESH, SCRIPTS, TRAINING, Finished, after_steps

PLAIN = {
    "script": SCRIPTS / "plain.py", "batch_size": 8, "learning_rate": 0.2, "seed": 3,
    "argument_names": '{"learning_rate": "lr", "batch_size": "batch-size", "seed": null}',
    "metric_patterns": '{"eval_accuracy": "accuracy ([0-9.]+)"}',
}  # fmt: skip
TRAINER = {
    "script": SCRIPTS / "init" / "hf_trainer.py", "batch_size": 4, "learning_rate": 0.01, "seed": 3,
    "num_train_epochs": 1, "use_cpu": "True", "report_to": "none", "do_eval": "True",
}  # fmt: skip
TRAINERS = ("transformers.trainer", "transformers.models.bert.modeling_bert")


@pytest.mark.parametrize(
    ("source", "kind"),
    [
        ("from transformers import Trainer", "trainer"),
        ("from trl import SFTTrainer", "trainer"),
        ("from accelerate import Accelerator\nimport transformers", "accelerate"),
        ("import pytorch_lightning as pl", "lightning"),
        ("import lightning.pytorch as pl\nfrom lightning import Trainer", "lightning"),
        ("import torch", "plain"),
    ],
)
def test_how_a_script_trains_is_read_off_its_imports(tmp_path, source, kind):
    path = tmp_path / "script.py"
    path.write_text(source)

    assert kind == arguments.kind_of(path)


@pytest.mark.parametrize(
    ("packages", "listened"),
    [
        ({"pytorch_lightning", "torch"}, "pytorch_lightning"),
        ({"lightning", "pytorch_lightning"}, "lightning.pytorch"),
        ({"lightning"}, "lightning.pytorch"),
        ((), "lightning.pytorch"),
    ],
)
def test_of_two_lightnings_the_scripts_own_is_listened_to(monkeypatch, packages, listened):
    made = {}
    for name in ("lightning.pytorch", "pytorch_lightning"):
        trainer = type("Trainer", (), {"__init__": lambda self, max_steps=-1: None})
        made[name] = SimpleNamespace(Trainer=trainer, Callback=object)
        monkeypatch.setitem(sys.modules, name, made[name])
    before = {name: one.Trainer.__init__ for name, one in made.items()}

    frameworks.listen_to_lightning({}, None, packages=packages)

    changed = [name for name, one in made.items() if one.Trainer.__init__ != before[name]]
    assert [listened] == changed
    assert ["max_steps"] == list(signature(made[listened].Trainer).parameters)


def test_the_last_match_of_a_printed_metric_counts_and_all_is_passed_on():
    metrics, stream = {}, io.StringIO()
    printed = frameworks.Printed(stream, {"eval_loss": "val loss ([0-9.]+)"}, metrics)
    for piece in ("step 0: val l", "oss 4.5\nstep 9: val loss 3.25, ", "train loss 1.0"):
        printed.write(piece)
    printed.finish()

    assert {"eval_loss": 3.25} == metrics
    assert "step 0: val loss 4.5\nstep 9: val loss 3.25, train loss 1.0" == stream.getvalue()


@pytest.mark.parametrize(("text", "expected"), [("3.25.", 3.25), ("1.2.3", math.nan)])
def test_a_printed_metric_that_is_no_number_never_stops_the_script(text, expected):
    values = {"eval_loss": 1.0}
    frameworks.Printed(io.StringIO(), {"eval_loss": "val loss ([0-9.]+)"}, values).write(
        f"val loss {text}\n"
    )

    assert pytest.approx(expected, nan_ok=True) == values["eval_loss"]


def test_saved_results_are_read_without_times_and_counts(tmp_path):
    saved = {"eval_accuracy": 0.5, "eval_runtime": 3.0, "train_samples": 8, "epoch": 1.0, "x": "y"}
    (tmp_path / "all_results.json").write_text(json.dumps(saved))

    assert {"eval_accuracy": 0.5} == frameworks.without_counts(frameworks.saved(tmp_path))


@pytest.fixture(scope="module")
def plain(jobs):
    return {
        name: jobs.run("launch.py", variables, compiler=name, arm=name, **PLAIN)
        for name, variables in (("none", AFRESH), ("torch_compile", {}))
    }


@pytest.mark.training
def test_a_plain_script_is_recorded_as_it_is(plain):
    done = plain["none"]
    assert 0 == done.status, done.output
    summary, lines = done.summary(), done.steps()

    assert (True, 8, 3) == (summary["finished"], summary["steps"], summary["seed"])
    assert 0 <= summary["metrics"]["eval_accuracy"] <= 1
    assert {8} == {line["samples"] for line in lines}
    assert {0.2} == {line["learning_rate"] for line in lines}
    assert all(line["loss"] > 0 and line["gradient_norm"] > 0 for line in lines)
    assert None is summary["compiler"]["applied"]


@pytest.mark.training
def test_a_plain_script_is_compiled_and_it_is_proven(plain):
    done = plain["torch_compile"]
    assert 0 == done.status, done.output
    summary = done.summary()

    assert True is summary["compiler"]["applied"]
    assert summary["compiler"]["graphs"] >= 1
    assert summary["fingerprint"] == plain["none"].summary()["fingerprint"]


@pytest.mark.training
def test_arms_of_a_script_without_a_first_loss_prove_equal_starts_by_their_weights(plain, jobs):
    eager, compiled = (plain[name].summary() for name in ("none", "torch_compile"))
    other = jobs.run("launch.py", **{**PLAIN, "seed": 4}).summary()

    assert [None, None] == [one["initial_loss"] for one in (eager, compiled)]
    assert 64 == len(eager["initial_weights_sha256"])
    assert eager["initial_weights_sha256"] == compiled["initial_weights_sha256"]
    assert eager["initial_weights_sha256"] != other["initial_weights_sha256"]
    assert 64 == len(eager["final_weights_sha256"])
    assert eager["final_weights_sha256"] != other["final_weights_sha256"]
    assert eager["final_start_sha256"] not in (None, eager["initial_weights_sha256"])


@pytest.mark.training
def test_a_scripts_own_compiling_is_left_to_the_arm(jobs):
    own = {**PLAIN, "flags": "compile", "compile": True, "max_steps": 2, "full_run_samples": 64}
    eager = jobs.run("launch.py", **own)
    compiled = jobs.run("launch.py", compiler="torch_compile", **own)

    assert (0, 0) == (eager.status, compiled.status), eager.output + compiled.output
    assert "compilegate script_compiles=left_out" in eager.output
    assert (2, 8, {}) == tuple(
        eager.summary()[key] for key in ("steps", "full_run_steps", "metrics")
    )
    assert True is compiled.summary()["compiler"]["applied"]


@pytest.mark.training
def test_accumulated_batches_make_one_step(jobs):
    done = jobs.run("launch.py", **{**PLAIN, "accumulate": 2, "epochs": 1})

    assert [16, 16] == [line["samples"] for line in done.steps()]


@pytest.mark.training
@pytest.mark.parametrize(
    ("variables", "more"), [({}, {"max_steps": 2}), ({"COMPILEGATE_TRY_STEPS": "2"}, {})]
)
def test_a_segment_or_a_try_that_cannot_be_extended_to_a_whole_run_fails(jobs, variables, more):
    done = jobs.run("launch.py", variables, **PLAIN, **more)

    assert 1 == done.status
    assert "give full_run_samples" in done.failure


@pytest.mark.training
def test_a_trainers_script_reports_its_metrics(jobs):
    jobs.warm(*TRAINERS)
    done = jobs.run("launch.py", **TRAINER)
    assert 0 == done.status, done.output
    summary = done.summary()

    assert (True, 4, 4) == (summary["finished"], summary["steps"], summary["full_run_steps"])
    assert {"eval_accuracy", "eval_loss"} <= summary["metrics"].keys()
    assert 4 * 6 * 4 == sum(line["tokens"] for line in done.steps())
    assert all(line["gradient_norm"] for line in done.steps())
    for metric, kind in (("eval_accuracy", "bits"), ("eval_loss", "losses")):
        kept = read_outcomes(summary["outcomes"][metric])
        assert (kind, 16, 1) == (
            summary["outcomes"][metric]["kind"], kept.examples, kept.per_outcome,
        )  # fmt: skip
        assert kept.mean == pytest.approx(summary["metrics"][metric], rel=2e-4)


BARE = {"script": SCRIPTS / "bare.py", "argument_names": '{"seed": null}'}


@pytest.mark.training
def test_runs_of_a_script_that_sets_no_seed_start_alike(jobs):
    first, again, other = (jobs.run("launch.py", **BARE, seed=seed) for seed in (3, 3, 4))

    losses = [done.steps()[0]["loss"] for done in (first, again, other)]
    assert losses[0] == losses[1]
    assert losses[0] != losses[2]


@pytest.mark.training
@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"model": "none"}, "no training step was seen"),
        ({"width": 3}, "unknown arguments; its arguments were --width 3"),
        ({"stop": "no more data"}, "the script ended with exit code no more data"),
    ],
)
def test_a_script_that_did_not_train_says_why(jobs, settings, message):
    done = jobs.run("launch.py", **BARE, **settings)

    assert 1 == done.status
    assert message in done.failure
    assert False is done.summary()["finished"]


OWN_COMPILE = {"script": SCRIPTS / "own_compile.py", "argument_names": '{"seed": null}'}


@pytest.mark.training
@pytest.mark.parametrize("how", ["method", "decorator", "in_place"])
def test_however_a_script_compiles_itself_the_arm_decides(jobs, how):
    eager = jobs.run("launch.py", **OWN_COMPILE, how=how)
    compiled = jobs.run("launch.py", **OWN_COMPILE, how=how, compiler="torch_compile")

    assert (0, 0) == (eager.status, compiled.status), eager.output + compiled.output
    assert "graphs 0" in eager.output
    assert "compilegate script_compiles=left_out" in eager.output
    assert "by inductor 0" not in compiled.output
    assert [3, 3] == [len(done.steps()) for done in (eager, compiled)]
    # In place also for the evaluation before the first step.
    assert (2 if how == "in_place" else 1) == compiled.summary()["compiler"]["graphs"]


@pytest.mark.training
def test_a_librarys_compiled_function_does_not_prove_a_model_that_stayed_eager(jobs):
    done = jobs.run("launch.py", **OWN_COMPILE, how="library", compiler="torch_compile")

    assert 1 == done.status
    assert "Sequential trained uncompiled" in done.failure
    assert False is done.summary()["compiler"]["applied"]


@pytest.mark.training
def test_a_script_that_changes_its_folder_and_is_interrupted_says_so_where_it_began(jobs, tmp_path):
    relative = {"SM_OUTPUT_DATA_DIR": os.path.relpath(tmp_path / "data", TRAINING)}
    place = Finished(None, "", tmp_path)
    done = jobs.interrupt(
        "launch.py", relative, when=lambda _: after_steps(1)(tmp_path), by=signal.SIGINT,
        **BARE, pause=0.3, go=tmp_path.parent,
    )  # fmt: skip
    summary = place.summary()

    assert done.status
    assert (False, *2 * ("KeyboardInterrupt",)) == tuple(
        summary[key] for key in ("finished", "reason", "error")
    )
    assert summary["steps"] == len(place.steps())
