"""Training scripts as they are published, each in one of the ways that ``init`` has to know."""

from __future__ import annotations

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
FABRIC = "import torch\nfrom lightning.fabric import Fabric\nfabric = Fabric()\n" + LOOP
SWITCHED = """
import argparse, torch
parser = argparse.ArgumentParser()
parser.add_argument("--amp", action="store_true", default=False)
parser.add_argument("--amp-dtype", default="float16")
args = parser.parse_args()
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
LIGHTNING_MODEL = """
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
CHANNELS = """
import argparse, os, torch
parser = argparse.ArgumentParser()
parser.add_argument("--lr", type=float, default=0.1)
parser.add_argument("--training_dir", default=os.environ["SM_CHANNEL_TRAIN"])
parser.add_argument("--test_dir", default=os.environ.get("SM_CHANNEL_TEST"))
parser.add_argument("--cache", default=os.environ.get("SM_CHANNEL_CACHE", "/tmp"))
args = parser.parse_args()
"""
