"""The arguments that the launcher starts a script with, from a trial's and the team's."""

import json
import shlex

import pytest
from compilegate_runtime.errors import HyperparameterError
from compilegate_runtime.launching import arguments

from compilegate.domain.argument_text import encoded
from tests.training.jobs import SCRIPTS


def words(text, *, kind="auto", **more):
    script = {"script": str(SCRIPTS / "plain.py"), "script_kind": kind, **more}
    own = [word for pair in script.items() for word in ("--" + pair[0], pair[1])]
    return arguments.script_words(*arguments.parse([*own, *text.split()]))


@pytest.mark.parametrize(
    ("kind", "text", "expected"),
    [
        ("plain", "--seed 5 --width 8", "--seed 5 --width 8"),
        ("plain", "--seed 5 --batch_size 8 --learning_rate 0.1 --arm x --compiler torch_compile",
         "--seed 5 --batch_size 8 --learning_rate 0.1"),
        ("plain", "--seed 5 --argument_style equals --n 3", "--seed=5 --n=3"),
        ("plain", "--seed 5 --argument_style hydra --opt.n 3", "seed=5 opt.n=3"),
        ("plain", '--seed 5 --precision bf16 --argument_names {"precision":"dtype"} '
         '--precision_names {"bf16":"bfloat16"}', "--seed 5 --dtype bfloat16"),
        ("plain", "--seed 5 --flags cpu,quiet --cpu true --quiet False", "--seed 5 --cpu"),
        ("plain", "--seed 5 --positional base64:Zml0ICdhIGIn --ab 3", "fit 'a b' --seed 5 --ab 3"),
        ("trainer", "--seed 5 --batch_size 8 --output_dir o --precision bf16 --do_train True",
         "--disable_tqdm True --bf16 True --seed 5 --per_device_train_batch_size 8 --output_dir o "
         "--do_train True"),
        ("trainer",
         "--seed 5 --output_dir o --compiler torch_compile --compile_mode reduce-overhead",
         "--disable_tqdm True --torch_compile True --torch_compile_mode reduce-overhead --seed 5 "
         "--output_dir o"),
        ("accelerate", "--seed 5 --batch_size 8", "--seed 5 --per_device_train_batch_size 8"),
    ],
)  # fmt: skip
def test_a_trials_settings_reach_the_script_under_its_own_names(kind, text, expected):
    assert shlex.split(expected) == words(text, kind=kind)


@pytest.mark.parametrize(
    ("text", "name", "value"),
    [
        ("--bf16 False --precision bf16", "--bf16", "False"),
        ("--per_device_train_batch_size 16", "--per_device_train_batch_size", "16"),
    ],
)
def test_a_teams_own_value_of_a_trainers_argument_counts(text, name, value):
    passed = words(f"--seed 5 --output_dir o {text}", kind="trainer")

    assert [value] == [passed[i + 1] for i, word in enumerate(passed) if word == name]


def test_a_segment_of_a_trainer_has_an_output_folder_of_its_own():
    passed = words("--seed 5 --output_dir mine --max_steps 5", kind="trainer")

    assert "mine" not in passed
    assert "compilegate-scratch-segment-" in passed[passed.index("--output_dir") + 1]


@pytest.mark.parametrize("value", ["it's $(id)", "", "two\nlines", "größe", "--other", "base64:x"])
def test_encoded_hyperparameters_reach_the_script_as_they_were(value):
    _, others = arguments.parse(
        ["--script", str(SCRIPTS / "plain.py"), "--prompt", encoded(value), "-v", "9"]
    )

    assert {"prompt": value, "v": "9"} == others


@pytest.mark.parametrize(
    ("inputs", "folder"),
    [
        ("/opt/ml/input", "/opt/ml/input/data/train"),
        ("/jobs/7/ml/input", "/jobs/7/ml/input/data/train"),
        (None, "/opt/ml/input/data/train"),
    ],
)
def test_a_path_of_a_job_is_what_it_is_called_here(inputs, folder, monkeypatch):
    monkeypatch.delenv("SM_INPUT_DIR", raising=False)
    if inputs:
        monkeypatch.setenv("SM_INPUT_DIR", inputs)

    found = words("--data-dir /opt/ml/input/data/train --other /opt/mlx", kind="plain")

    assert ["--data-dir", folder, "--other", "/opt/mlx"] == found[-4:]


def test_the_launchers_own_settings_are_read_encoded_and_plain():
    patterns = '{"loss": "val loss ([0-9.]+)"}'
    script = ["--script", str(SCRIPTS / "plain.py")]
    for text in (patterns, encoded(patterns)):
        settings, _ = arguments.parse([*script, "--metric_patterns", text])
        assert json.loads(patterns) == settings.metric_patterns


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("--script absent.py", "script 'absent.py' is not in the source folder"),
        ("--argument_names {", "argument_names must be a JSON object"),
        ('--argument_names {"rate":"lr"}', "'rate' is not a setting of a trial"),
        ("--batch_size 8 --script_kind trainer --per_device_train_batch_size 16",
         "per_device_train_batch_size would override the trial's batch_size.* training.batch_size"),
        ('--argument_names {"seed":"number"} --number 3', "number would override the trial's seed"),
        ("--full_run_steps 9 --script_kind accelerate --max_train_steps 5",
         "max_train_steps would override the trial's full_run_steps.* full_run_steps sets it"),
        ("stray", "stray belongs to no hyperparameter"),
        ('--metric_patterns {"loss":"loss([0-9"}', "loss is not a regular expression"),
        ('--metric_patterns {"loss":"loss=[0-9]+"}', "must have the number in brackets"),
    ],
)  # fmt: skip
def test_what_the_launcher_cannot_use_is_named(text, message):
    with pytest.raises(HyperparameterError, match=message):
        words(text)
