"""A script that compiles its model as it runs today is told from one that only could."""

from __future__ import annotations

from typing import Any

import pytest

from compilegate_doctor.own_compiling import OwnCompiling, where_it_compiles

# As nanoGPT has it; its arguments replace the constants at its top.
NANO = """
import torch
compile = True # use PyTorch 2.0 to compile the model to be faster
config_keys = [k for k, v in globals().items() if isinstance(v, (int, float, bool, str))]
exec(open('configurator.py').read())
model = GPT(gptconf)
if compile:
    unoptimized_model = model
    model = torch.compile(model) # requires PyTorch 2.0
"""
PARSED = """
import argparse, torch
parser = argparse.ArgumentParser()
parser.add_argument("--compile", action="store_true")
args = parser.parse_args()
if args.compile:
    model = torch.compile(model)
"""
TRAINER = """
from transformers import HfArgumentParser, Trainer, TrainingArguments
(args,) = HfArgumentParser(TrainingArguments).parse_args_into_dataclasses()
"""
MAIN = """
    if compile:
        model = torch.compile(model)
"""
TYPER = f"import torch, typer\ndef main(compile: bool = False):{MAIN}typer.run(main)\n"
TYPER_OPTION = TYPER.replace("= False", "= typer.Option(False, '--fast')")
CLICK = f"""
import click, torch
@click.command()
@click.option("--compile/--no-compile", default=False)
def main(compile):{MAIN}"""
CLICK_FLAG = CLICK.replace("compile/--no-compile", "fast").replace(
    "default=False", "'compile', is_flag=True"
)
ON = (TYPER.replace("False", "True"), CLICK.replace("=False", "=True"))
# A script, the hyperparameters it is started with, the line that compiles.
COMPILES: dict[str, tuple[str, dict[str, Any] | None, int]] = {
    "nanoGPT": (NANO, None, 9),
    "an argument": (PARSED, {"compile": True}, 7),
    "typer, on": (ON[0], None, 4),
    "typer, started with it": (TYPER, {"compile": True}, 4),
    "typer, started with it by another name": (TYPER_OPTION, {"fast": True}, 4),
    "click, on": (ON[1], None, 7),
    "click, started with it": (CLICK, {"compile": True}, 7),
    "click, started with it by another name": (CLICK_FLAG, {"fast": True}, 7),
    "click, of which code of its own decides": (
        CLICK.replace("default=False", "default=False, callback=asked"), None, 7,
    ),
    "click, converted": (CLICK.replace("/--no-compile", "").replace("=False", "='true'"), None, 7),
    "typer, a default that the machine decides": (
        TYPER.replace("False", "False if old() else True"), None, 4,
    ),
    "a function that no command is": (f"import torch\ndef f(compile=False):{MAIN}", None, 4),
    "a Trainer's setting": ("TrainingArguments('out', torch_compile=True)", None, 1),
    "a Trainer's backend": ("SFTConfig(torch_compile_backend='inductor')", None, 1),
    "a Trainer's argument": (TRAINER, {"torch_compile": True}, 3),
    "accelerate": ("Accelerator(dynamo_backend='inductor')", None, 1),
    "accelerate's enum": ("Accelerator(dynamo_backend=DynamoBackend.INDUCTOR)", None, 1),
    "accelerate's plugin": ("plugin = TorchDynamoPlugin(backend='inductor')", None, 1),
    "in place": ("import torch\nself.model.compile()", None, 2),
    "a decorator": ("import torch\n@torch.compile\ndef loss(x): ...", None, 2),
    "a decorator with settings": (
        "import torch\n@torch.compile(dynamic=True)\ndef f(x): ...", None, 2,
    ),
    "another file's model": ("import torch\nfrom net import net\nm = torch.compile(net)", None, 3),
    "a renamed import": ("from torch import compile as c\nnet = c(net)", None, 2),
}  # fmt: skip
DOES_NOT: dict[str, tuple[str, dict[str, Any] | None]] = {
    "nanoGPT told not to": (NANO, {"compile": False}),
    "an argument that is off": (PARSED, None),
    "typer, off": (TYPER, None),
    "typer's option, off": (TYPER_OPTION, None),
    "typer, annotated, off": (
        TYPER.replace("bool =", "Annotated[bool, typer.Option('--fast')] ="), None,
    ),
    "typer, told not to": (ON[0], {"compile": False}),
    "click, off": (CLICK, None),
    "click's flag, off": (CLICK_FLAG, None),
    "click, told not to": (ON[1], {"compile": False}),
    "fire, off": (TYPER.replace("typer.run", "fire.Fire").replace("typer", "fire"), None),
    "a Trainer's setting that is off": ("TrainingArguments('out', torch_compile=False)", None),
    "a Trainer's argument that is off": (TRAINER, {"torch_compile": "False"}),
    "accelerate without": ("Accelerator(dynamo_backend='no')", None),
    "accelerate's enum without": ("Accelerator(dynamo_backend=DynamoBackend.NO)", None),
    "a result that is discarded": ("import torch\ntorch.compile(model)", None),
    "switched off": ("import torch\nmodel = torch.compile(model, disable=True)", None),
    "a library's function, compiled in both arms": (
        "import torch\nfrom torch.nn.attention.flex_attention import flex_attention\n"
        "attend = torch.compile(flex_attention)", None,
    ),
    "a function of PyTorch": ("import torch\nf = torch.compile(torch.nn.functional.silu)", None),
    "an optimizer's step": ("import torch\nstep = torch.compile(optimizer.step)", None),
    "a regular expression": ("import re, torch\nmodel = re.compile('x')", None),
    "Keras": ("import keras, torch\nmodel.compile(optimizer='adam', loss='mse')", None),
    "no Python": ("compile this", None),
}  # fmt: skip


@pytest.mark.parametrize("case", COMPILES)
def test_a_script_that_compiles_itself_is_seen(case: str) -> None:
    text, hyperparameters, line = COMPILES[case]

    found = where_it_compiles(text.encode(), hyperparameters)

    assert OwnCompiling(line, text.split("\n")[line - 1].strip()) == found


@pytest.mark.parametrize("case", DOES_NOT)
def test_a_script_that_does_not_compile_what_trains_is_left_alone(case: str) -> None:
    text, hyperparameters = DOES_NOT[case]

    assert None is where_it_compiles(text.encode(), hyperparameters)
