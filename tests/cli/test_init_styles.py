"""``init`` on more ways in which published scripts are written."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import Invoke

LOOP = """
loader = torch.utils.data.DataLoader(data, batch_size=4)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for epoch in range(3):
    for batch in loader:
        model(batch).backward()
        optimizer.step()
    print(f"val loss {loss}")
"""
TRL = """
from trl import DPOConfig, DPOTrainer, ModelConfig, ScriptArguments, TrlParser
kinds = (ScriptArguments, DPOConfig, ModelConfig)
parser = TrlParser(kinds)
script, arguments, model = parser.parse_args_and_config()
DPOTrainer(model.model_name_or_path, args=arguments).train()
"""
OWN_DATACLASS = """
from dataclasses import dataclass, field
from transformers import HfArgumentParser, Trainer, TrainingArguments
@dataclass
class PlainTrainingArguments:
    corpus: str = field(metadata={"help": "a folder"})
    batch_size: int = 2
    rate: float = field(default=0.1)
args = HfArgumentParser(PlainTrainingArguments).parse_args_into_dataclasses()[0]
Trainer(args=TrainingArguments("out", learning_rate=0.1)).train()
"""
HYDRA = "import hydra, torch\n@hydra.main(config_path='conf')\ndef main(cfg):\n    fit(cfg)\n"
COMMANDS = """
import argparse, torch
parser = argparse.ArgumentParser()
commands = parser.add_subparsers(dest="command")
fit = commands.add_parser("train-model")
group = fit.add_argument_group("optimizer")
group.add_argument("--lr", type=float, default=0.2)
fit.add_argument("--data", required=True)
score = commands.add_parser("score")
score.add_argument("--checkpoint", required=True)
args = parser.parse_args()
"""
SEVERAL = COMMANDS.replace("train-model", "small").replace("score", "large")
IMPORTED = "import torch\nfrom tools.settings import get_parser\nargs = get_parser().parse_args()\n"
SETTINGS = """
import argparse
def get_parser():
    parser = argparse.ArgumentParser()
    parser.add_argument("--bs", type=int, default=8)
    parser.add_argument("--epochs", type=int, default=5)
    return parser
"""
FABRIC = "import torch\nfrom lightning.fabric import Fabric\nfabric = Fabric()\n" + LOOP
SWITCHED = """
import argparse, torch
parser = argparse.ArgumentParser()
parser.add_argument("--amp", action="store_true", default=False)
parser.add_argument("--amp-dtype", default="float16")
args = parser.parse_args()
"""
ABSL = """
import torch
from absl import app, flags
flags.DEFINE_integer("batch_size", 4, "samples")
flags.DEFINE_float("lr", 0.1, "rate")
"""
IN_A_LOOP = """
import argparse, torch
parser = argparse.ArgumentParser()
for name, default in {"lr": 0.1, "batch": 4}.items():
    parser.add_argument(f"--{name}", default=default)
args = parser.parse_args()
"""
UNREAD = {
    "fire": "import fire, torch\nfrom elsewhere import train\nfire.Fire(train)\n",
    "tyro": "import torch, tyro\nargs = tyro.cli(Args)\n",
    "sys.argv": "import sys, torch\nrate = float(sys.argv[1])\n",
    "argparse": IN_A_LOOP,
}
EXPECTED: dict[str, tuple[str, dict[str, Any], set[str]]] = {
    "a trainer of trl": (
        TRL, {"script_kind": "trainer"}, {"learning_rate", "dataset_name", "model_name_or_path"},
    ),
    "dataclasses that are no Trainer's": (
        OWN_DATACLASS,
        {"script_kind": "plain", "argument_names": {"learning_rate": None, "seed": None}},
        {"full_run_samples", "corpus"},
    ),
    "hydra": (
        HYDRA, {"argument_style": "hydra"},
        {"argument_names", "full_run_samples", "batch_size", "learning_rate", "metric", "goal",
         "margin"},
    ),
    "a subcommand that trains": (
        COMMANDS + LOOP.replace("lr=0.1", "lr=args.lr"),
        {"positional": "train-model",
         "argument_names": {"batch_size": None, "learning_rate": "lr", "seed": None},
         "data": "/opt/ml/input/data/train"},
        {"train", "full_run_samples"},
    ),
    "subcommands of which none says that it trains": (
        SEVERAL + LOOP, {}, {"positional", "full_run_samples"},
    ),
    "arguments that another file of the project reads": (
        IMPORTED + LOOP, {"argument_names": {"batch_size": "bs", "learning_rate": None,
                                             "seed": None}}, {"full_run_samples"},
    ),
    "arguments that a package reads": (
        IMPORTED.replace("tools.", "not_here.") + LOOP, {}, {"argument_names", "full_run_samples"},
    ),
    "a loop around Fabric": (FABRIC, {"script_kind": "plain"}, {"full_run_samples"}),
    "mixed precision behind a switch that is off": (
        SWITCHED + LOOP,
        {"argument_names": {"batch_size": None, "learning_rate": None, "seed": None}},
        {"full_run_samples"},
    ),
    "flags of absl": (
        ABSL + LOOP.replace("lr=0.1", "lr=FLAGS.lr"),
        {"argument_style": "equals", "argument_names": {"learning_rate": "lr", "seed": None}},
        {"full_run_samples"},
    ),
    "public data": (
        "import torch, torchvision\ndata = torchvision.datasets.CIFAR10('data')\n" + LOOP,
        {"full_run_samples": 150_000}, set(),
    ),
}  # fmt: skip

PRECISIONS = [
    ("Seq2SeqTrainingArguments('out', fp16=True)", "fp16", False),
    ("TrainingArguments('out', bf16=True)", "bf16", False),
    ("Accelerator(mixed_precision='bf16')", "bf16", False),
    ("L.Trainer(precision='16-mixed')", "fp16", False),
    ("L.Trainer(precision=32)", "fp32", False),
    ("kind = 'bf16-mixed'\nFabric(precision=kind)", "bf16", False),
    ("Accelerator(mixed_precision=read())", "fp32", True),
    ("TrainingArguments('out', bf16=supported())", "fp32", True),
    ("", "fp32", True),
]


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "tools").mkdir()
    (tmp_path / "tools" / "settings.py").write_text(SETTINGS)
    return tmp_path


def test_published_styles(project: Path, invoke: Invoke) -> None:
    found = {}
    for style, (script, expected, _) in EXPECTED.items():
        (project / "train.py").write_text(script)
        document = json.loads(invoke("init", "train.py", "-y", "--json", "--force").stdout)
        values = document["workload"]["training"]["hyperparameters"]
        names = [key for key in ("argument_names",) if values.get(key, "").startswith("{")]
        values |= {key: json.loads(values[key]) for key in names}
        todo = {path.rpartition(".")[2] for path in document["todo"]}
        found[style] = ({key: values.get(key) for key in expected}, todo)

    assert {style: (values, todo) for style, (_, values, todo) in EXPECTED.items()} == found


@pytest.mark.parametrize(
    ("epochs", "expected", "assumed"),
    [
        ("for epoch in range(3):", 30, False),
        ("settings = {'lr': 0.1, 'batch_size': 4, 'num_epochs': 3}\nfor e in range(many):", 30,
         False),
        ("num_epochs = 3\nfor e in range(num_epochs):", 30, False),
        ("while better:", 10, True),
    ],
)  # fmt: skip
def test_a_whole_run_counts_the_epochs_of_the_code(
    epochs: str, expected: int, assumed: bool, tmp_path: Path, invoke: Invoke
) -> None:
    (tmp_path / "train.py").write_text(
        "import torch\n" + LOOP.replace("for epoch in range(3):", epochs)
    )

    written = invoke("init", "train.py", "-y", "--json", "--training-samples", 10)

    document = json.loads(written.stdout)
    values = document["workload"]["training"]["hyperparameters"]
    assert expected == values["full_run_samples"]
    assert assumed == ("training.hyperparameters.full_run_samples" in document["assumed"])


@pytest.mark.parametrize(("statement", "precision", "assumed"), PRECISIONS)
def test_the_precision_is_the_codes_or_marked_as_assumed(
    statement: str, precision: str, assumed: bool, tmp_path: Path, invoke: Invoke
) -> None:
    (tmp_path / "train.py").write_text(f"import torch\n{statement}\n{LOOP}")

    document = json.loads(invoke("init", "train.py", "-y", "--json").stdout)

    assert precision == document["workload"]["training"]["precision"]
    assert assumed == ("training.precision" in document["assumed"])


def test_arguments_that_were_not_read_are_said_to_be(tmp_path: Path, invoke: Invoke) -> None:
    (tmp_path / "train.py").write_text(HYDRA)

    written = " ".join(invoke("init", "train.py", "-y").stdout.split())

    assert "whose arguments are Hydra's and were not read" in written


@pytest.mark.parametrize("reader", UNREAD)
def test_arguments_whose_names_are_not_read_are_left_open(
    reader: str, tmp_path: Path, invoke: Invoke
) -> None:
    (tmp_path / "train.py").write_text(UNREAD[reader] + LOOP)

    written = invoke("init", "train.py", "-y", "--name", "job")

    document = json.loads(invoke("init", "train.py", "-y", "--json", "--force").stdout)
    assert "not read" in written.stdout.replace("could not be", "not").replace("\n", " ")
    assert reader == document["script"]["arguments"]
    assert "training.hyperparameters.argument_names" in document["todo"]


PICTURES = """
import argparse, numpy, timm, PIL
try:
    import wandb
except ImportError:
    wandb = None
parser = argparse.ArgumentParser()
parser.add_argument("--data-dir")
parser.add_argument("--lr", default=None)
args = parser.parse_args()
""" + LOOP.replace("val loss {loss}", "Test: Acc@1: {top1:.3f}")


def test_top_1_accuracy_is_a_percentage_and_what_a_job_lacks_is_named(
    tmp_path: Path, invoke: Invoke
) -> None:
    (tmp_path / "train.py").write_text(PICTURES)

    written = invoke("init", "train.py", "-y", "--training-samples", 10, "-o", "train.yaml")

    text = (tmp_path / "train.yaml").read_text()
    assert "It imports pillow, timm: list in a requirements.txt" in " ".join(written.stdout.split())
    assert "margin: 0.5 " in text
    assert "learning_rate: TODO  # --lr, which has no default: the optimizer's first" in text
    assert "and above data-dir: /opt/ml/input/data/train" in text
    (tmp_path / "requirements.txt").write_text("timm\n")
    assert "It imports" not in invoke("init", "train.py", "-y", "--force").stdout


STARTS = {
    "a script that is not seen to train": "",
    "a plain training loop": "import torch\n" + LOOP,
    "a Trainer script":
        "from transformers import HfArgumentParser, Trainer, TrainingArguments\n"
        "(args,) = HfArgumentParser(TrainingArguments).parse_args_into_dataclasses()\n"
        "Trainer(args=args).train()\n",
    "an accelerate script":
        "from accelerate import Accelerator\naccelerator = Accelerator()\n" + LOOP,
    "a Lightning script":
        "import lightning as L\nL.Trainer().fit(model)\n",
}  # fmt: skip


@pytest.mark.parametrize("said", STARTS)
def test_what_kind_of_script_was_read_is_said(said: str, tmp_path: Path, invoke: Invoke) -> None:
    (tmp_path / "train.py").write_text(STARTS[said])

    written = invoke("init", "train.py", "-y", "-o", "job.yaml").stdout

    assert " ".join(written.split()).startswith(f"job.yaml: written from {said}, ")
    assert ("No training loop was seen" in written) == ("not seen to train" in said)


SHORT = """
import torch
from torch import optim
o: object = optim.SGD(weights, lr=0.1)
for x in data:
    l.backward()
    o.step()
"""


def test_a_loop_is_seen_whatever_its_optimizer_is_called(tmp_path: Path, invoke: Invoke) -> None:
    told = []
    for script in (SHORT, SHORT.replace("optim.SGD", "optim.lr_scheduler.StepLR")):
        (tmp_path / "train.py").write_text(script)
        written = invoke("init", "train.py", "-y", "--force").stdout
        told.append("No training loop was seen" in " ".join(written.split()))

    assert [False, True] == told


MODEL = """
import torch
class Model(torch.nn.Module):
    def forward(self, batch):
        return batch.sum()
model = Model()
"""


def test_a_loop_that_changes_weights_itself_is_named(tmp_path: Path, invoke: Invoke) -> None:
    told = []
    for script in (LOOP, LOOP.replace("optimizer.step()", "change(model.parameters())")):
        (tmp_path / "train.py").write_text(MODEL + script)
        written = invoke("init", "train.py", "-y", "--force").stdout
        told.append("No optimizer's step was seen" in " ".join(written.split()))

    assert [False, True] == told


@pytest.mark.parametrize(
    ("default", "said"),
    [
        ("None", "which has no default"),
        ("rate()", "whose default could not be read"),
        ("0", "whose default is no number above 0"),
        ("'fast'", "whose default is no number above 0"),
    ],
)
def test_why_an_options_default_is_not_a_setting_is_said(
    default: str, said: str, tmp_path: Path, invoke: Invoke
) -> None:
    (tmp_path / "train.py").write_text(PICTURES.replace("default=None", f"default={default}"))

    invoke("init", "train.py", "-y", "-o", "job.yaml")

    noted = f"learning_rate: TODO  # --lr, {said}: the optimizer's first"
    assert noted in (tmp_path / "job.yaml").read_text()
