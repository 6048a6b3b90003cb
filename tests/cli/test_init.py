"""``init`` reads a script without running it and writes a file that ``check`` accepts."""

from __future__ import annotations

import json
import os
import re
import shutil
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import Result

from compilegate.adapters.yaml_document import load_yaml
from tests.cli.conftest import Invoke

SCRIPTS = Path(__file__).resolve().parents[1] / "training" / "scripts" / "init"
# What has to be read off each script: dotted path and value.
EXPECTED: dict[str, dict[str, Any]] = {
    "hf_trainer": {
        "framework.name": "huggingface-pytorch", "model.family": "transformer",
        "model.name": "tiny-bert", "training.batch_size": 8, "training.learning_rate": 5e-5,
        "quality.metric": "eval_accuracy", "quality.goal": "maximize",
        "training.hyperparameters": {"script": "hf_trainer.py", "do_eval": True},
    },
    "lightning_cli": {
        "training.batch_size": 16, "training.learning_rate": 0.05, "quality.metric": "val_acc",
        "training.hyperparameters.positional": "fit", "training.hyperparameters.argument_names": {
            "batch_size": "data.batch_size", "learning_rate": "model.learning_rate",
            "seed": "seed_everything", "full_run_steps": "trainer.max_steps",
            "precision": "trainer.precision",
        },
    },
    "nano": {
        "training.hyperparameters.argument_style": "equals",
        "training.hyperparameters.full_run_steps": 40,
        "training.hyperparameters.argument_names": {
            "seed": None, "full_run_steps": "max_iters", "precision": "dtype",
        },
        "training.hyperparameters.precision_names": {
            "fp32": "float32", "bf16": "bfloat16", "fp16": "float16",
        },
        "quality.metric": "eval_loss", "quality.goal": "minimize",
    },
    "accelerate_loop": {
        "training.learning_rate": 0.05, "training.hyperparameters.full_run_steps": 24,
        "quality.metric": "eval_loss", "shapes.drop_last": False,
    },
    "images": {
        "model.family": "custom", "training.batch_size": 16,
        "training.inputs": {"train": "src/pictures"},
        "training.hyperparameters.data-dir": "/opt/ml/input/data/train",
        "training.hyperparameters.full_run_samples": 192,
        "quality.metric": "eval_accuracy",
    },
    "loop": {
        "training.batch_size": 12, "training.learning_rate": 0.01,
        "training.hyperparameters.argument_names": {
            "batch_size": None, "learning_rate": None, "seed": None,
        },
        "training.hyperparameters.full_run_samples": 3 * 96,
        "training.hyperparameters.metric_patterns": {
            "eval_accuracy": "val *accuracy: *([-+]?[0-9][0-9.eE+-]*)",
        },
    },
}  # fmt: skip


@pytest.fixture
def code(tmp_path: Path) -> Path:
    folder = tmp_path / "src"
    shutil.copytree(SCRIPTS, folder)
    (folder / "pictures").mkdir()
    (folder / "pictures" / "names.txt").write_text("a\n")
    return folder


def at(document: Any, path: str) -> Any:
    for key in path.split("."):
        document = document[key]
    text = isinstance(document, str) and document.startswith("{")
    return json.loads(document) if text else document


@pytest.mark.parametrize("name", EXPECTED)
def test_a_file_is_written_from_the_script_and_passes_check(
    name: str, code: Path, invoke: Invoke
) -> None:
    written = invoke("init", code / f"{name}.py", "--yes", "--json", "--training-samples", 96)
    assert 0 == written.exit_code, written.output
    document = json.loads(written.stdout)

    assert {} == {
        path: at(document["workload"], path)
        for path, value in EXPECTED[name].items()
        if at(document["workload"], path) != value
    }
    assert [] == document["todo"]
    assert document["workload"] == load_yaml(Path(document["file"]))
    assert document["workload"] == yaml.safe_load(Path(document["file"]).read_text())
    checked = invoke("check", document["file"], "--json")
    assert checked.exit_code in (0, 11), checked.output
    assert "trial_over_budget" not in checked.stdout


def test_the_whole_run_of_a_plain_loop_is_left_open_and_check_says_so(
    code: Path, invoke: Invoke
) -> None:
    written = invoke("init", code / "loop.py", "--yes")
    checked = invoke("check", "loop.yaml")

    assert "1 value to write (TODO): training.hyperparameters.full_run_samples." in written.stdout
    assert 2 == checked.exit_code
    assert "training.hyperparameters.full_run_samples: is still to be written" in checked.stderr
    assert "Fix: replace TODO: training samples times epochs" in checked.stderr


def test_what_a_person_says_is_written_and_priced(code: Path, invoke: Invoke) -> None:
    invoke("init", code / "hf_trainer.py", "--name", "short", "-y")
    invoke(
        "init", code / "hf_trainer.py", "--name", "long", "--run-hours", 20, "--runs-per-week", 5,
        "--instance-type", "ml.g5.12xlarge", "-y",
    )  # fmt: skip
    short, long = (load_yaml(Path(f"{name}.yaml")) for name in ("short", "long"))

    assert 40 == long["training"]["max_runtime_hours"]
    assert {"runs_per_week": 5, "run_hours": 20} == long["schedule"]
    assert long["policy"]["max_trial_usd"] > 20 * short["policy"]["max_trial_usd"]
    assert re.search(r"expected to cost \$\d+\.\d\d;", Path("short.yaml").read_text())


def test_on_a_terminal_only_what_no_script_says_is_asked(
    code: Path, invoke: Invoke, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("compilegate.cli.init.command.is_interactive", lambda: True)

    result = invoke("init", code / "loop.py", "--runs-per-week", 5, stdin="\n8\n96\n\n")

    document = load_yaml(Path("loop.yaml"))
    assert 0 == result.exit_code, result.output
    assert {"runs_per_week": 5, "run_hours": 8} == document["schedule"]
    assert "ml.g5.xlarge" == document["training"]["instance_type"]
    assert 3 * 96 == document["training"]["hyperparameters"]["full_run_samples"]
    assert "TODO" not in result.stdout


def test_a_wrong_answer_is_asked_for_again(
    code: Path, invoke: Invoke, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("compilegate.cli.init.command.is_interactive", lambda: True)

    result = invoke(
        "init", code / "nano.py", "--runs-per-week", 5, stdin="foo\nml.g5.2xlarge\n700\n8\n\n"
    )

    document = load_yaml(Path("nano.yaml"))
    assert 0 == result.exit_code, result.output
    assert "ml.g5.2xlarge" == document["training"]["instance_type"]
    assert 8 == document["schedule"]["run_hours"]


def test_every_wrong_answer_is_asked_for_again_at_once(
    code: Path, invoke: Invoke, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("compilegate.cli.init.command.is_interactive", lambda: True)
    answers = ("p4d", "ml.p4d.24xlarge", "-1", "2", "0", "often", "1e9", "4", "-5", "many", "1,000",
               "0", "0.01")  # fmt: skip

    result = invoke("init", code / "loop.py", stdin="\n".join(answers) + "\n")

    assert 0 == result.exit_code, result.output
    document = load_yaml(Path("loop.yaml"))
    assert {"runs_per_week": 4, "run_hours": 2} == document["schedule"]
    assert 3 * 1000 == document["training"]["hyperparameters"]["full_run_samples"]
    assert 0.01 == document["quality"]["margin"]
    margin = "Largest loss of eval_accuracy that you accept, in the metric's own unit [0.005]"
    assert [2, 4, 3, 2] == [
        result.output.count(question)
        for question in ("Hours of a whole run [", "Runs per week [", "Training samples (", margin)
    ]


SET_UP_IN_CODE = """
import argparse
from transformers import Trainer, TrainingArguments
parser = argparse.ArgumentParser()
parser.add_argument("--lr", type=float, default=1e-3)
args = parser.parse_args()
def compute_metrics(prediction):
    return {"accuracy": 1.0}
arguments = TrainingArguments("out", per_device_train_batch_size=4, learning_rate=args.lr)
Trainer(args=arguments, compute_metrics=compute_metrics).train()
"""


def test_a_trainer_that_is_set_up_in_code_gets_none_of_its_arguments(
    tmp_path: Path, invoke: Invoke
) -> None:
    (tmp_path / "train.py").write_text(SET_UP_IN_CODE)

    document = json.loads(invoke("init", "train.py", "--yes", "--json").stdout)["workload"]

    values = document["training"]["hyperparameters"]
    pattern = json.loads(values["metric_patterns"])["eval_accuracy"]
    assert ("plain", 4) == (values["script_kind"], document["training"]["batch_size"])
    assert {"batch_size": None, "learning_rate": "lr", "seed": None} == json.loads(
        values["argument_names"]
    )
    for printed in ("{'eval_accuracy': 0.5, 'epoch': 1.0}", "{'eval_accuracy': '0.5'}"):
        assert ["0.5"] == re.findall(pattern, printed)


CLICK = """
import click, torch
@click.command()
@click.option("--batch-size", default=4)
@click.option("--lr", default=0.1)
@click.option("--quiet/--loud", default=True)
def main(batch_size, lr, quiet):
    print(f"val loss {lr}")
main()
"""
TYPER = """
import torch, typer
from typing import Annotated
app = typer.Typer()
@app.command()
def main(folder: str, batch_size: int = 4, rate: Annotated[float, typer.Option("--lr")] = 0.1):
    print("val loss", rate)
app()
"""


@pytest.mark.parametrize("script", [CLICK, TYPER])
def test_other_readers_of_arguments_are_known(script: str, tmp_path: Path, invoke: Invoke) -> None:
    (tmp_path / "train.py").write_text(script)

    document = json.loads(invoke("init", "train.py", "--yes", "--json").stdout)

    training = document["workload"]["training"]
    assert (4, 0.1) == (training["batch_size"], training["learning_rate"])
    assert {"batch_size": "batch-size", "learning_rate": "lr", "seed": None} == json.loads(
        training["hyperparameters"]["argument_names"]
    )
    named = "training.hyperparameters.positional" in document["todo"]
    assert named == ("folder: str" in script)


BAD = {
    "a syntax error": ("train.py", b"def f(:\n", "train.py: line 1: is not Python"),
    "a file that is not text": ("train.py", b"\x00\x01\xff", "is not text"),
    "a huge file": ("train.py", b"x = 1\n" * 500_000, "which is no script"),
    "a notebook": ("train.ipynb", b"{}", "jupyter nbconvert --to script train.ipynb"),
    "another kind of file": ("train.sh", b"", "train.sh: is not a Python file"),
    "no file": ("absent.py", None, "absent.py: cannot be read: No such file"),
    "a folder": ("code", None, "code: is a folder. Fix: name the script that trains: a.py"),
}


@pytest.mark.parametrize("case", BAD)
def test_what_is_no_script_is_one_clear_error(case: str, tmp_path: Path, invoke: Invoke) -> None:
    name, content, message = BAD[case]
    (tmp_path / "code").mkdir()
    (tmp_path / "code" / "a.py").write_text("")
    if content is not None:
        (tmp_path / name).write_bytes(content)

    result = invoke("init", name, "--yes")

    assert refused(result, message)
    assert [] == list(tmp_path.glob("*.yaml"))


def refused(result: Result, message: str) -> bool:
    errors = result.stderr.splitlines()
    return result.exit_code == 2 and message in result.stderr and len(errors) == 1


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--output", "job.txt"), "--output: is not a YAML file"),
        (("--name", "My Job"), "name: has characters"),
        (("--instance-type", "g5"), "training.instance_type: is not a SageMaker instance type"),
        (("--run-hours", "0"), "run_hours"),
        (("--run-hours", "700"), "--run-hours"),
        (("--training-samples", "9" * 20), "--training-samples"),
        (("--output", "a/b/c/job.yaml"), "lies neither below the workload file's folder"),
    ],
)
def test_a_wrong_option_is_named_and_nothing_written(
    options: tuple[str, str], message: str, code: Path, invoke: Invoke
) -> None:
    result = invoke("init", code / "nano.py", "--yes", *options)

    assert 2 == result.exit_code
    assert message in result.stderr
    assert [] == list(code.parent.rglob("job.*"))


def test_a_long_run_is_stopped_where_every_job_is(code: Path, invoke: Invoke) -> None:
    result = invoke("init", code / "nano.py", "--yes", "--run-hours", 400)

    assert 0 == result.exit_code, result.output
    assert 672 == load_yaml(Path("nano.yaml"))["training"]["max_runtime_hours"]


@pytest.mark.parametrize("name", ["train", "main", "run", "script"])
def test_a_name_that_every_project_has_gives_way_to_its_folders(
    name: str, tmp_path: Path, invoke: Invoke
) -> None:
    folder = tmp_path / "bert_docs"
    folder.mkdir()
    (folder / f"{name}.py").write_text("import torch\n")

    invoke("init", folder / f"{name}.py", "--yes")

    assert "bert-docs" == load_yaml(Path("bert-docs.yaml"))["name"]


def test_a_pipe_is_refused_unread(tmp_path: Path, invoke: Invoke) -> None:
    os.mkfifo(tmp_path / "train.py")

    assert refused(invoke("init", "train.py", "--yes"), "train.py: is not a plain file")


def test_a_power_is_read_as_a_number(tmp_path: Path, invoke: Invoke) -> None:
    (tmp_path / "job.py").write_text(
        "import argparse, torch\nparser = argparse.ArgumentParser()\n"
        "parser.add_argument('--steps', type=int, default=10**4)\n"
        "parser.add_argument('--seed', type=int, default=10**10**10)\n"
    )

    invoke("init", "job.py", "--yes")

    values = load_yaml(Path("job.yaml"))["training"]["hyperparameters"]
    assert 10**4 == values["full_run_steps"]


def test_a_file_is_overwritten_by_force_only(code: Path, invoke: Invoke) -> None:
    invoke("init", code / "nano.py", "--yes")
    Path("nano.yaml").write_text("mine\n")

    assert refused(invoke("init", code / "nano.py", "--yes"), "nano.yaml: exists already")
    assert "mine\n" == Path("nano.yaml").read_text()
    assert 0 == invoke("init", code / "nano.py", "--yes", "--force").exit_code
    assert "mine\n" != Path("nano.yaml").read_text()


def test_editors_find_the_schema_by_a_path_that_every_clone_has(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, invoke: Invoke
) -> None:
    line = "# yaml-language-server: $schema=workload.schema.json"
    shutil.copy(SCRIPTS / "hf_trainer.py", tmp_path / "job.py")
    monkeypatch.chdir(tmp_path)

    assert 0 == invoke("init", "job.py", "--yes", "-o", "without.yaml").exit_code
    (tmp_path / "workload.schema.json").write_text(invoke("schema").stdout)
    assert 0 == invoke("init", "job.py", "--yes", "-o", "with.yaml").exit_code

    without, beside = ((tmp_path / f"{name}.yaml").read_text() for name in ("without", "with"))
    assert line == beside.splitlines()[0]
    assert not re.search(r"^# yaml-language-server:", without, re.MULTILINE)
    assert "compilegate schema > workload.schema.json" in without
    assert not re.search(r"\$schema=.*/", without + beside)


def test_a_script_that_already_compiles_is_named(tmp_path: Path, invoke: Invoke) -> None:
    script = tmp_path / "train.py"
    output = ("--output", tmp_path / "job.yaml", "--yes", "--force")
    said = []
    for line in ("model = torch.compile(model)", "model.train()"):
        script.write_text(f"import torch\n{line}\nloss.backward()\noptimizer.step()\n")
        text = " ".join(invoke("init", script, *output).stdout.split())
        document = json.loads(invoke("init", script, *output, "--json").stdout)
        said.append((f"The script already compiles (line 2: {line})" in text,
                     document["script"]["compiles"]))  # fmt: skip

    assert [
        (True, {"line": 2, "source": "model = torch.compile(model)"}), (False, None),
    ] == said  # fmt: skip


@pytest.mark.parametrize(
    ("line", "declared"),
    [
        ("trainer.add_callback(EarlyStoppingCallback(early_stopping_patience=3))", True),
        ("stop = EarlyStopping(monitor='val_loss')", True),
        ("stop = TimerCallback()", False),
    ],
)
def test_early_stopping_is_declared_where_the_script_does_it(
    line: str, declared: bool, tmp_path: Path, invoke: Invoke
) -> None:
    script = tmp_path / "train.py"
    script.write_text(f"import torch\n{line}\nloss.backward()\noptimizer.step()\n")
    output = ("--output", tmp_path / "job.yaml", "--yes", "--json")
    written = json.loads(invoke("init", script, *output).stdout)["workload"]

    assert declared == written["quality"].get("early_stopping", False)
