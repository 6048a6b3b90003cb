"""A script whose loop, metric or settings lie in other files of its project."""

from __future__ import annotations

from compilegate_doctor import describe
from compilegate_doctor.project import MOST_FILES, Project
from compilegate_doctor.script import parse

MAIN = """
import argparse
import torch
from engine import train_one_epoch, evaluate
parser = argparse.ArgumentParser()
parser.add_argument("--lr", type=float, default=0.1)
args = parser.parse_args()
for epoch in range(3):
    train_one_epoch(model)
    evaluate(model)
"""
ENGINE = """
import torch
from lib import misc
def train_one_epoch(model, loader):
    for batch in loader:
        loss = model(batch)
        misc.scaled(loss)
        optimizer.step()
def evaluate(model):
    print(f"* Acc@1 {top1:.3f} loss {loss:.3f}")
"""
MODULES = {
    "engine": ENGINE,
    "lib": "import torch\n",
    "lib.misc": "import torch\nwith torch.autocast('cuda', dtype=torch.bfloat16):\n    pass\n",
}


def files(name: str) -> bytes | None:
    text = MODULES.get(name)
    return None if text is None else text.encode()


def test_loop_and_metric_are_read_where_they_are() -> None:
    alone, whole = (describe(MAIN.encode(), "main.py", one) for one in (lambda _: None, files))

    assert (False, False, ()) == (alone.trains, alone.steps, alone.metrics)
    assert (True, True) == (whole.trains, whole.steps)
    assert ["eval_accuracy", "eval_loss"] == [metric.name for metric in whole.metrics]
    assert alone.command_line == whole.command_line


def test_modules_are_read_once_and_not_without_end() -> None:
    asked = []

    def endless(name: str) -> bytes:
        asked.append(name)
        number = len(asked)
        return f"from . import sibling\nimport step{number}, step{number % 3}\n".encode()

    found = Project(parse(b"import step0\n"), endless).imported

    assert MOST_FILES == len(found) == len(asked) == len(set(asked))


def test_the_samples_of_a_public_data_set() -> None:
    whole = "import torch\nfrom torchvision import datasets\nd = datasets.MNIST('.')\n"
    more = ("torch.utils.data.random_split(d, [1, 2])\n", "datasets.CIFAR10('.')\n")

    found = [describe(f"{whole}{part}".encode(), "train.py").data for part in ("", *more)]

    assert [("MNIST", 60_000), None, None] == found


def test_relative_imports_are_named_from_the_script() -> None:
    asked = []

    def module(name: str) -> bytes | None:
        asked.append(name)
        return b"from ..c import d\nfrom .e import f\n" if name == "a.b.x" else None

    script = parse(b"from a.b.x import y\nfrom .near import z\n")

    assert 1 == len(Project(script, module).imported)
    assert ["a.b.x", "a.b.x.y", ".near", ".near.z", "a.c", "a.c.d", "a.b.e", "a.b.e.f"] == asked
