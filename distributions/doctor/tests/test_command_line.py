"""Which arguments a script takes, by whatever reads them, also in other files of its project."""

from __future__ import annotations

from typing import Any

import pytest

from compilegate_doctor import CommandLine, describe

ABSL = """
from absl import app, flags
FLAGS = flags.FLAGS
flags.DEFINE_integer("batch_size", 32, "samples of a step")
flags.DEFINE_float("lr", default=1e-3, help="rate")
RATE = flags.DEFINE_enum("dtype", "float32", ["float32", "bfloat16"], "in which it computes")
flags.DEFINE_string("data_dir", None, "a folder", required=True)
flags.DEFINE_string("out", None, "a folder")
flags.DEFINE_alias("rate", "lr")
flags.mark_flags_as_required(["out"])
"""
CLICK_GROUP = """
import click
@click.group()
def cli(): ...
@cli.command()
@click.option("--checkpoint", required=True)
def score(checkpoint): ...
@cli.command()
@click.option("--batch-size", default=8)
def train_model(batch_size): ...
"""
TYPER_SEVERAL = """
import typer
app = typer.Typer()
@app.command()
def score(checkpoint: str): ...
@app.command("fit")
def fit(data: str, lr: float = 0.1): ...
"""
TYPER_ONE = TYPER_SEVERAL.replace("@app.command()\ndef score(checkpoint: str): ...", "")
FIRE = "import fire\ndef train(data, lr=0.1): ...\nfire.Fire(train)\n"
LETTERS = """
import argparse
parser = argparse.ArgumentParser()
parser.add_argument("-b", type=int, default=128, help="Batch size for dataloader")
parser.add_argument("--rate", "-l", dest="lr", default=0.2)
parser.add_argument("--batch", default=4)
"""


def taken(script: str, **modules: str) -> CommandLine:
    """What a script takes; ``modules`` by name are of its project, a dot written as two lines."""
    files = {name.replace("__", "."): text.encode() for name, text in modules.items()}
    return describe(f"import torch\n{script}".encode(), "train.py", files.get).command_line


def names(line: CommandLine) -> dict[str, Any]:
    return {option.name: option.default for option in line.options}


def test_flags_of_absl() -> None:
    line = taken(ABSL)

    expected = {"batch_size": 32, "lr": 1e-3, "dtype": "float32", "data_dir": None, "out": None}
    assert ("absl", False, expected) == (line.reader, line.unread, names(line))
    assert {"data_dir", "out"} == {option.name for option in line.options if option.required}
    assert ("float32", "bfloat16") == line.options[2].choices


@pytest.mark.parametrize(
    ("script", "subcommand", "options", "positional"),
    [
        (CLICK_GROUP, "train-model", {"batch-size": 8}, ()),
        (TYPER_SEVERAL, "fit", {"lr": 0.1}, ("data",)),
        (TYPER_ONE, "", {"lr": 0.1}, ("data",)),
        (FIRE, "", {"data": None, "lr": 0.1}, ()),
        (TYPER_SEVERAL.replace("fit", "other"), "", {}, ("score|other",)),
    ],
)
def test_commands_of_functions(
    script: str, subcommand: str, options: dict[str, Any], positional: tuple[str, ...]
) -> None:
    line = taken(script)

    assert (subcommand, options, positional) == (line.subcommand, names(line), line.positional)
    assert (not options) == line.unread


@pytest.mark.parametrize(
    ("script", "reader"),
    [
        ("import fire\nfrom somewhere import train\nfire.Fire(train)\n", "fire"),
        ("import fire\nclass Trainer:\n    rate = 0.1\nfire.Fire(Trainer)\n", "fire"),
        ("import typer\nfrom somewhere import train\ntyper.run(train)\n", "typer"),
        ("import typer\napp = typer.Typer()\n", "typer"),
    ],
)
def test_a_function_that_is_not_found_leaves_the_arguments_unread(script: str, reader: str) -> None:
    line = taken(script)

    assert (reader, True, True) == (line.reader, line.unread, line.lost)


def test_a_package_that_is_imported_for_something_else_reads_nothing() -> None:
    assert "none" == taken("import click\nclick.echo('hello')\n").reader


def test_an_option_is_known_by_each_of_its_names_and_its_help() -> None:
    line = taken(LETTERS)

    found = [
        line.find(names) for names in (("batch_size",), ("lr",), ("learning_rate",), ("batch",))
    ]
    assert ["b", "rate", None, "batch"] == [one and one.name for one in found]


BASE = """
import argparse
class BaseOptions:
    def initialize(self, parser):
        parser.add_argument("--dataroot", required=True)
        parser.add_argument("--batch_size", type=int, default=1)
    def parse(self):
        return argparse.ArgumentParser().parse_args()
"""
TRAIN_OPTIONS = """
from .base_options import BaseOptions
class TrainOptions(BaseOptions):
    def initialize(self, parser):
        parser.add_argument("--lr", type=float, default=0.0002)
        parser.add_argument("--batch_size", type=int, default=4)
"""


def test_options_that_several_files_of_the_project_add() -> None:
    script = "from options.train_options import TrainOptions\nopt = TrainOptions().parse()\n"

    line = taken(script, options__train_options=TRAIN_OPTIONS, options__base_options=BASE)

    assert ("argparse", False) == (line.reader, line.unread)
    assert {"lr": 0.0002, "batch_size": 4, "dataroot": None} == names(line)


@pytest.mark.parametrize(
    "module",
    [
        BASE.replace("parse_args()", "print_help()"),
        "import argparse\nif __name__ == '__main__':\n    p = argparse.ArgumentParser()\n"
        "    p.add_argument('--file')\n    p.parse_args()\n",
        "def (\n",
    ],
)
def test_what_a_module_does_as_a_program_is_not_the_scripts(module: str) -> None:
    assert "none" == taken("from tools import args\n", tools=module).reader
    assert "none" == taken("import tools\n", tools=BASE).reader


OPTIONAL = {
    "click": (
        "import click\n@click.command()\n@click.argument('data')\n"
        "@click.argument('out', default='artifacts')\n@click.argument('log', required=False)\n"
        "@click.argument('more', nargs=-1)\ndef train(**settings): ...\n"
    ),
    "typer": (
        "import typer\nfrom typing import Annotated\napp = typer.Typer()\n@app.command()\n"
        "def train(data: str = typer.Argument(...), out: str = typer.Argument('artifacts'),\n"
        "    log: str = typer.Argument(default=None),\n"
        "    made: str = typer.Argument(default_factory=f),\n"
        "    more: Annotated[str, typer.Argument()] = 'x', lr: float = 0.1): ...\n"
    ),
}  # fmt: skip


@pytest.mark.parametrize("reader", OPTIONAL)
def test_a_positional_argument_with_a_default_need_not_be_given(reader: str) -> None:
    assert ("data",) == taken(OPTIONAL[reader]).positional


DEFAULTS = {
    "int(os.environ.get('BS', 64))": 64,
    "int(os.environ.get('BS', '64'))": 64,
    "int(os.getenv('BS', default=64))": 64,
    "os.environ.get('BS', 64)": 64,
    "float('1e-3')": 1e-3,
    "Path('data')": "data",
    "int(1e4)": 10_000,
}
UNREAD = ("read('BS')", "int('many')", "int(os.environ['BS'])", "float('inf')", "os.getenv('BS')")


@pytest.mark.parametrize("written", DEFAULTS)
def test_a_default_that_is_converted_or_of_the_environment_is_read(written: str) -> None:
    for script in default_of(written):
        (option,) = taken(script).options

        assert (DEFAULTS[written], False) == (option.default, option.unread)


@pytest.mark.parametrize("written", UNREAD)
def test_a_default_that_is_not_read_is_told_from_none(written: str) -> None:
    for script in default_of(written):
        assert [(None, True)] == [(one.default, one.unread) for one in taken(script).options]
    for script in default_of("None"):
        assert [(None, False)] == [(one.default, one.unread) for one in taken(script).options]


def default_of(written: str) -> list[str]:
    """A script for each way of taking arguments, of which one has a default as it is written."""
    return [
        f"import argparse\np = argparse.ArgumentParser()\np.add_argument('--b', default={written})",
        f"import click\n@click.command()\n@click.option('--bs', default={written})\ndef f(b): ...",
        f"import typer, os\ndef f(bs = {written}): ...\ntyper.run(f)",
        f"import typer, os\ndef f(bs = typer.Option({written})): ...\ntyper.run(f)",
        f"import os\nfrom absl import flags\nflags.DEFINE_integer('bs', {written}, 'size')",
        "import os\nfrom transformers import HfArgumentParser\n@dataclass\nclass A:\n"
        f"    bs: int = {written}\nHfArgumentParser(A)",
    ]
