"""``init`` on scripts whose model, arguments or data lie outside the script's own file."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import Invoke

MODEL = """
import torch
from lightning.pytorch import LightningModule
class Net(LightningModule):
    def __init__(self, width: int, learning_rate: float = 0.02):
        self.save_hyperparameters()
    def validation_step(self, batch, index):
        self._shared(batch, "val")
    def training_step(self, batch, index):
        return self._shared(batch, "train")
    def _shared(self, batch, stage: str):
        self.log(f"{stage}_loss", self(batch))
"""
DATA = """
from lightning.pytorch import LightningDataModule
class Rows(LightningDataModule):
    def __init__(self, batch_size: int = 24):
        self.batch_size = batch_size
"""
HEAD = "from lightning.pytorch.cli import LightningCLI\n"
IMPORTS = HEAD + "from parts.model import Net\nfrom parts.data import Rows\n"
OWN = "class Line(LightningCLI):\n    pass\n"
DEFAULTS = """
class Line(LightningCLI):
    def add_arguments_to_parser(self, parser):
        parser.set_defaults({"trainer.max_epochs": 15})
"""
SUBCOMMAND, EPOCHS = {"positional": "fit"}, {"trainer.max_epochs": 1000}
LIGHTNING: dict[str, tuple[str, dict[str, Any]]] = {
    "classes of other files": (IMPORTS + "LightningCLI(Net, Rows)", {**SUBCOMMAND, **EPOCHS}),
    "it starts training itself": (
        IMPORTS + "cli = LightningCLI(Net, Rows, run=False)\ncli.trainer.fit(cli.model)", EPOCHS,
    ),
    "a command line of its own": (IMPORTS + OWN + "Line(Net, Rows)", {**SUBCOMMAND, **EPOCHS}),
    "its length is a default": (
        IMPORTS + "LightningCLI(Net, Rows, trainer_defaults={'max_epochs': 3})", SUBCOMMAND,
    ),
    "a command line with a length": (IMPORTS + DEFAULTS + "Line(Net, Rows)", SUBCOMMAND),
}  # fmt: skip
PARSED = """
from transformers import HfArgumentParser, Trainer, TrainingArguments
from parts.settings import DataSettings
parser = HfArgumentParser((DataSettings, TrainingArguments))
data, arguments = parser.parse_args_into_dataclasses()
Trainer(args=arguments).train()
@dataclass
class Collator:
    tokenizer: object
"""
FIELDS = """
from dataclasses import dataclass
@dataclass
class Base:
    corpus: str
@dataclass
class DataSettings(Base):
    length: int = 8
"""
CHANNELS = """
import argparse, os, torch
parser = argparse.ArgumentParser()
parser.add_argument("--lr", type=float, default=0.1)
parser.add_argument("--training_dir", default=os.environ["SM_CHANNEL_TRAIN"])
parser.add_argument("--test_dir", default=os.environ.get("SM_CHANNEL_TEST"))
parser.add_argument("--cache", default=os.environ.get("SM_CHANNEL_CACHE", "/tmp"))
args = parser.parse_args()
"""


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "parts").mkdir()
    for name, text in (("model", MODEL), ("data", DATA), ("settings", FIELDS)):
        (tmp_path / "parts" / f"{name}.py").write_text(text)
    return tmp_path


def written(project: Path, invoke: Invoke, script: str) -> dict[str, Any]:
    (project / "train.py").write_text(script)
    result = invoke("init", project / "train.py", "-y", "--json", "--force")
    assert 0 == result.exit_code, result.output
    return json.loads(result.stdout)


@pytest.mark.parametrize("style", LIGHTNING)
def test_lightnings_command_line_is_read_whoever_defines_its_classes(
    style: str, project: Path, invoke: Invoke
) -> None:
    script, expected = LIGHTNING[style]

    document = written(project, invoke, script)

    training = document["workload"]["training"]
    values = training["hyperparameters"]
    named = {key: value for key, value in values.items() if key in (*SUBCOMMAND, *EPOCHS)}
    assert (24, 0.02, "val_loss") == (
        training["batch_size"], training["learning_rate"], document["workload"]["quality"]["metric"]
    )  # fmt: skip
    assert expected == named
    assert ["training.hyperparameters.model.width"] == document["todo"]


def test_classes_that_a_configuration_names_need_its_path(project: Path, invoke: Invoke) -> None:
    document = written(project, invoke, HEAD + "cli = LightningCLI(run=False)\n")

    values = document["workload"]["training"]["hyperparameters"]
    assert "training.hyperparameters.config" in document["todo"]
    assert "trainer.max_epochs" not in values  # the file may say it


def test_only_dataclasses_that_the_parser_is_given_are_arguments(
    project: Path, invoke: Invoke
) -> None:
    document = written(project, invoke, PARSED)

    assert ["training.hyperparameters.corpus"] == document["todo"]


def test_channels_that_the_script_cannot_do_without_are_asked_for(
    project: Path, invoke: Invoke
) -> None:
    document = written(project, invoke, CHANNELS)

    assert {"train": "TODO", "test": "TODO"} == document["workload"]["training"]["inputs"]
    assert {"training.inputs.train", "training.inputs.test"} <= set(document["todo"])
