"""``init`` reads a script without running it and writes a file that ``check`` accepts."""

import json
import os
import re
import shutil
from pathlib import Path

import pytest
import yaml

from compilegate.adapters.yaml_document import load_yaml
from tests.cli import init_scripts as scripts
from tests.cli.init_scripts import LOOP

SCRIPTS = Path(__file__).resolve().parents[1] / "training" / "scripts" / "init"
FILES = {
    "hf_trainer": {
        "framework.name": "huggingface-pytorch", "model.family": "transformer",
        "model.name": "tiny-bert", "training.batch_size": 8, "training.learning_rate": 5e-5,
        "quality.metric": "eval_accuracy", "quality.goal": "maximize",
        "training.hyperparameters.script": "hf_trainer.py",
        "training.hyperparameters.do_eval": True,
        "training.hyperparameters.full_run_samples": None,
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
}  # fmt: skip


VALUES = "training.hyperparameters"
NO_NAMES = {"batch_size": None, "learning_rate": None, "seed": None}
COMPILED = "model = torch.compile(model)"


def named(**changes):
    return {f"{VALUES}.argument_names": NO_NAMES | changes}


def plain(line):
    return f"import torch\n{line}\nloss.backward()\noptimizer.step()\n"


def lightning(script, **values):
    """Classes of other files, whose arguments the command line takes."""
    expected = {
        "training.batch_size": 24, "training.learning_rate": 0.02, "quality.metric": "val_loss",
        f"{VALUES}.positional": values.get("positional"),
        f"{VALUES}.trainer.max_epochs": values.get("epochs"),
    }  # fmt: skip
    return f"{scripts.IMPORTS}{script}", expected, {"model.width"}


# By style: the script, what the file says, and every value that it leaves open.
STYLES = {
    "a trainer of trl": (
        scripts.TRL, {f"{VALUES}.script_kind": "trainer"},
        {"training.learning_rate", "dataset_name", "model_name_or_path"},
    ),
    "dataclasses that are no Trainer's": (
        scripts.OWN_DATACLASS,
        {f"{VALUES}.script_kind": "plain",
         f"{VALUES}.argument_names": {"learning_rate": None, "seed": None}},
        {"full_run_samples", "corpus"},
    ),
    "hydra": (
        scripts.HYDRA, {f"{VALUES}.argument_style": "hydra"},
        {"argument_names", "full_run_samples", "training.batch_size", "training.learning_rate",
         "quality.metric", "quality.goal", "quality.margin"},
    ),
    "a subcommand that trains": (
        scripts.COMMANDS + LOOP.replace("lr=0.1", "lr=args.lr"),
        {f"{VALUES}.positional": "train-model", f"{VALUES}.data": "/opt/ml/input/data/train",
         **named(learning_rate="lr")},
        {"training.inputs.train", "full_run_samples"},
    ),
    "subcommands of which none says that it trains": (
        scripts.SEVERAL + LOOP, {}, {"positional", "full_run_samples"},
    ),
    "arguments that a package reads": (
        scripts.IMPORTED + LOOP, {},
        {"argument_names", "argument_style", "full_run_samples"},
    ),
    "a loop around Fabric": (
        scripts.FABRIC, {f"{VALUES}.script_kind": "plain"}, {"full_run_samples"},
    ),
    "mixed precision behind a switch that is off": (
        scripts.SWITCHED + LOOP, named(), {"full_run_samples"},
    ),
    "public data": (
        "import torch, torchvision\ndata = torchvision.datasets.CIFAR10('data')\n" + LOOP,
        {f"{VALUES}.full_run_samples": 150_000}, set(),
    ),
    "a folder of the project": (
        scripts.PICTURES.replace('data-dir"', 'data-dir", default="parts"'),
        {"training.inputs.train": "parts", f"{VALUES}.data-dir": "/opt/ml/input/data/train"},
        {"training.learning_rate", "full_run_samples"},
    ),
    "channels that it cannot do without": (
        scripts.CHANNELS, {"training.inputs.train": "TODO", "training.inputs.cache": None},
        {"training.inputs.train", "training.inputs.test", "training.batch_size",
         "full_run_samples", "quality.metric", "quality.goal", "quality.margin"},
    ),
    "a power as a default": (
        "import argparse, torch\nparser = argparse.ArgumentParser()\n"
        "parser.add_argument('--steps', type=int, default=10**4)\n"
        "parser.add_argument('--seed', type=int, default=10**10**10)\n" + LOOP,
        {f"{VALUES}.full_run_steps": 10**4}, set(),
    ),
    "Lightning, with a command line of its own": lightning(
        f"{scripts.OWN}Line(Net, Rows)", positional="fit", epochs=1000
    ),
    "Lightning, its length a default of the command line": lightning(
        f"{scripts.DEFAULTS}Line(Net, Rows)", positional="fit"
    ),
    "Lightning, classes that a configuration names": (
        # The file may say how long a run is.
        f"{scripts.HEAD}cli = LightningCLI(run=False)\n", {f"{VALUES}.trainer.max_epochs": None},
        {"config", "training.batch_size", "training.learning_rate", "quality.metric",
         "quality.goal", "quality.margin"},
    ),
}  # fmt: skip
# By line of the script: a value, and whether it is marked as assumed.
LINES = (
    ("Seq2SeqTrainingArguments('out', fp16=True)", "training.precision", "fp16", False),
    ("L.Trainer(precision='16-mixed')", "training.precision", "fp16", False),
    ("kind = 'bf16-mixed'\nFabric(precision=kind)", "training.precision", "bf16", False),
    ("Accelerator(mixed_precision=read())", "training.precision", "fp32", True),
    ("", "training.precision", "fp32", True),
    ("", f"{VALUES}.full_run_samples", 30, False),
    ("settings = {'lr': 0.1, 'batch_size': 4, 'num_epochs': 3}\nfor e in range(many):",
     f"{VALUES}.full_run_samples", 30, False),
    ("trainer.add_callback(EarlyStoppingCallback(patience=3))", "quality.early_stopping", True,
     False),
    ("stop = TimerCallback()", "quality.early_stopping", None, False),
    ("while better:", f"{VALUES}.full_run_samples", 10, True),
)  # fmt: skip


@pytest.fixture
def code(tmp_path):
    folder = tmp_path / "src"
    shutil.copytree(SCRIPTS, folder)
    return folder


@pytest.fixture
def written(tmp_path, invoke):
    """Writes the workload file of a script; gives the document with its values by their paths."""
    for name, text in (
        ("parts/model", scripts.LIGHTNING_MODEL), ("parts/data", scripts.DATA),
    ):  # fmt: skip
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / f"{name}.py").write_text(text)

    def write(script, *options):
        (tmp_path / "train.py").write_text(script)
        words = ("train.py", "-o", "job.yaml", "-y", "--force", *options)
        shown = invoke("init", *words).stdout
        result = invoke("init", *words, "--json")
        assert 0 == result.exit_code, result.output
        document = json.loads(result.stdout)
        values = dict(flat(document["workload"]))
        return {**document, "values": values, "shown": " ".join(shown.split())}

    return write


def flat(document, above=""):
    for key, value in document.items():
        if isinstance(value, dict):
            yield from flat(value, f"{above}{key}.")
        else:
            text = isinstance(value, str) and value.startswith("{")
            yield f"{above}{key}", json.loads(value) if text else value


def refused(result, message):
    errors = result.stderr.splitlines()
    return result.exit_code == 2 and message in result.stderr and len(errors) == 1


@pytest.mark.parametrize("name", FILES)
def test_a_file_is_written_from_the_script_and_passes_check(name, code, invoke):
    written = invoke("init", code / f"{name}.py", "--yes", "--json", "--training-samples", 96)
    assert 0 == written.exit_code, written.output
    document = json.loads(written.stdout)

    values = dict(flat(document["workload"]))
    assert FILES[name] == {path: values.get(path) for path in FILES[name]}
    assert [] == document["todo"]
    assert document["workload"] == load_yaml(Path(document["file"]))
    assert document["workload"] == yaml.safe_load(Path(document["file"]).read_text())
    checked = invoke("check", document["file"], "--json")
    assert checked.exit_code in (0, 11), checked.output
    assert "trial_over_budget" not in checked.stdout


def test_published_styles(written):
    read = {}
    for style, (script, expected, _) in STYLES.items():
        document = written(script)
        todo = {path.removeprefix(f"{VALUES}.") for path in document["todo"]}
        read[style] = ({path: document["values"].get(path) for path in expected}, todo)

    assert {style: (values, todo) for style, (_, values, todo) in STYLES.items()} == read


def test_what_a_line_of_the_code_says_or_is_assumed(written):
    rows = []
    for line, path, *_ in LINES:
        loop = LOOP.replace("for epoch in range(3):", line) if line.endswith(":") else LOOP
        before = "" if line.endswith(":") else f"{line}\n"
        document = written(f"import torch\n{before}{loop}", "--training-samples", 10)
        rows.append((line, path, document["values"].get(path), path in document["assumed"]))

    assert [*LINES] == rows


@pytest.mark.parametrize("reader", scripts.UNREAD)
def test_arguments_whose_names_are_not_read_are_left_open(reader, written):
    document = written(scripts.UNREAD[reader] + LOOP)

    assert "not read" in document["shown"].replace("could not be", "not")
    assert reader == document["script"]["arguments"]
    assert f"{VALUES}.argument_names" in document["todo"]


@pytest.mark.parametrize(
    ("script", "words"),
    [
        ("import tensorflow as tf\n", "trains with TensorFlow"),
        ("import keras\nmodel.fit(x)\n", "trains with Keras"),
    ],
)
def test_a_script_of_another_framework_is_called_that(script, words, tmp_path, invoke, monkeypatch):
    file = tmp_path / "job.py"
    file.write_text(script)
    monkeypatch.delenv("KERAS_BACKEND", raising=False)

    assert refused(invoke("init", file, "--yes"), words)
    assert not Path("job.yaml").exists()
    if "keras" in script:
        monkeypatch.setenv("KERAS_BACKEND", "torch")
    else:
        file.write_text(f"import torch\n{script}")
    assert 0 == invoke("init", file, "--yes", "--force").exit_code


@pytest.mark.parametrize(("metric", "where"), [("loss", "assumed"), ("rmse", "todo")])
def test_a_margin_is_guessed_where_a_metric_has_a_usual_scale(metric, where, written):
    script = LOOP.replace("val loss", f"val {metric}")

    assert "quality.margin" in written(f"import torch\n{script}")[where]


def test_where_a_script_compiles_is_kept(written):
    compiles = [written(plain(line))["script"]["compiles"] for line in (COMPILED, "model.train()")]

    assert [{"line": 2, "source": COMPILED}, None] == compiles


@pytest.mark.parametrize(
    ("default", "why"),
    [
        ("None", "which has no default"),
        ("rate()", "whose default could not be read"),
        ("0", "whose default is no number above 0"),
    ],
)
def test_what_stands_beside_a_value(default, why, written, tmp_path):
    written(scripts.PICTURES.replace("default=None", f"default={default}"))

    text = (tmp_path / "job.yaml").read_text()
    assert f"learning_rate: TODO  # --lr, {why}: the optimizer's first" in text
    assert "margin: 0.5 " in text  # of a percentage
    assert "and above data-dir: /opt/ml/input/data/train" in text
    (tmp_path / "requirements.txt").write_text("timm\n")
    assert "It imports" not in written(scripts.PICTURES)["shown"]


def test_on_a_terminal_what_no_script_says_is_asked_until_it_is_right(code, invoke, monkeypatch):
    monkeypatch.setattr("compilegate_init.command.is_interactive", lambda: True)
    answers = ("p4d", "foo", "", "-1", "700", "2", "-5", "many", "1,000", "0", "0.01")

    result = invoke("init", code / "loop.py", "--runs-per-week", 5, stdin="\n".join(answers) + "\n")

    assert 0 == result.exit_code, result.output
    document = load_yaml(Path("loop.yaml"))
    assert {"runs_per_week": 5, "run_hours": 2} == document["schedule"]
    assert "ml.g5.xlarge" == document["training"]["instance_type"]
    assert 3 * 1000 == document["training"]["hyperparameters"]["full_run_samples"]
    assert 0.01 == document["quality"]["margin"]
    margin = "Largest loss of eval_accuracy that you accept, in the metric's own unit [0.005]"
    assert [3, 3, 0, 3, 2] == [
        result.output.count(question)
        for question in ("Instance type of production [", "Hours of a whole run [",
                         "Runs per week [", "Training samples (", margin)
    ]  # fmt: skip
    assert "TODO" not in result.stdout


BAD = {
    "a syntax error": ("train.py", b"def f(:\n", "train.py: line 1: is not Python"),
    "a file that is not text": ("train.py", b"\x00\x01\xff", "is not text"),
    "a huge file": ("train.py", b"x = 1\n" * 500_000, "which is no script"),
    "a notebook": ("train.ipynb", b"{}", "jupyter nbconvert --to script train.ipynb"),
    "another kind of file": ("train.sh", b"", "train.sh: is not a Python file"),
    "no file": ("absent.py", None, "absent.py: cannot be read: No such file"),
    "a folder": ("code", None, "code: is a folder. Fix: name the script that trains: a.py"),
    "a pipe": ("pipe.py", None, "pipe.py: is not a plain file"),
}


@pytest.mark.parametrize("case", BAD)
def test_what_is_no_script_is_one_clear_error(case, tmp_path, invoke):
    name, content, message = BAD[case]
    (tmp_path / "code").mkdir()
    (tmp_path / "code" / "a.py").write_text("")
    os.mkfifo(tmp_path / "pipe.py")
    if content is not None:
        (tmp_path / name).write_bytes(content)

    assert refused(invoke("init", name, "--yes"), message)
    assert [] == list(tmp_path.glob("*.yaml"))


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
def test_a_wrong_option_is_named_and_nothing_written(options, message, code, invoke):
    result = invoke("init", code / "nano.py", "--yes", *options)

    assert 2 == result.exit_code
    assert message in result.stderr
    assert [] == list(code.parent.rglob("job.*"))


def test_a_file_is_overwritten_by_force_only(code, invoke):
    Path("nano.yaml").write_text("mine\n")

    assert refused(invoke("init", code / "nano.py", "--yes"), "nano.yaml: exists already")
    assert "mine\n" == Path("nano.yaml").read_text()
    assert 0 == invoke("init", code / "nano.py", "--yes", "--force").exit_code
    assert "mine\n" != Path("nano.yaml").read_text()


def test_editors_find_the_schema_by_a_path_that_every_clone_has(tmp_path, invoke):
    shutil.copy(SCRIPTS / "hf_trainer.py", tmp_path / "job.py")
    invoke("init", "job.py", "--yes", "-o", "without.yaml")
    (tmp_path / "workload.schema.json").write_text(invoke("schema").stdout)
    invoke("init", "job.py", "--yes", "-o", "with.yaml")

    without, beside = ((tmp_path / f"{name}.yaml").read_text() for name in ("without", "with"))
    assert "# yaml-language-server: $schema=workload.schema.json" == beside.splitlines()[0]
    assert not re.search(r"^# yaml-language-server:", without, re.MULTILINE)
    assert "compilegate schema > workload.schema.json" in without
    assert not re.search(r"\$schema=.*/", without + beside)
