"""Lightning's command line: a subcommand, then ``--model.``, ``--data.`` and ``--trainer.``."""

import sys
from ast import literal_eval
from inspect import signature

import torch

from lightning.pytorch import Trainer


class LightningCLI:
    """Runs ``fit`` with the classes that it is given."""

    def __init__(self, model_class, datamodule_class):
        subcommand, *words = sys.argv[1:]
        takes = signature(Trainer.__init__).parameters
        given = {"model": {}, "data": {}, "trainer": {}}
        for name, value in zip(words[::2], words[1::2], strict=True):
            part, dot, key = name.removeprefix("--").partition(".")
            if not dot:
                if part != "seed_everything":
                    raise SystemExit(f"unrecognized argument {name}")
                torch.manual_seed(int(value))
                continue
            if part == "trainer" and key not in takes:
                raise SystemExit(f"unrecognized argument {name}")
            given[part][key] = _read(value)
        model, data = model_class(**given["model"]), datamodule_class(**given["data"])
        getattr(Trainer(**given["trainer"]), subcommand)(model, datamodule=data)


def _read(text):
    try:
        return literal_eval(text)
    except (SyntaxError, ValueError):
        return text
