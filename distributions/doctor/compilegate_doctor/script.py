"""A script, read but never run, with the questions that rules ask about it."""

from __future__ import annotations

import ast
import io
import sys
import tokenize
import warnings
from collections.abc import Mapping
from functools import cached_property
from typing import Any

from compilegate_doctor.function_arguments import of_functions
from compilegate_doctor.kinds import Kind, Kinds
from compilegate_doctor.models import Models
from compilegate_doctor.options import Options
from compilegate_doctor.source import Source
from compilegate_doctor.steps import Steps
from compilegate_doctor.syntax import LOOPS, called, texts
from compilegate_doctor.words import PLACE

FRAMEWORKS = frozenset((
    "torch", "tensorflow", "keras", "transformers", "accelerate", "lightning",
    "pytorch_lightning", "torch_xla", "deepspeed", "timm", "diffusers", "datasets",
))  # fmt: skip
# What can place a model on a device without naming one in the script.
PLACES_IT = ("accelerate", "lightning", "pytorch_lightning", "deepspeed", "tensorflow", "keras",
             "ignite", "fastai", "composer", "torch_xla")  # fmt: skip
TRAINERS = ("Trainer", "TrainingArguments")
NESTED, FLATTEN = "is nested too deeply to be read", "reduce the nesting"
SAVE = "save it as UTF-8 text"
# The only Python whose syntax is read here.
PYTHON = f"{sys.version_info.major}.{sys.version_info.minor}"


class ScriptError(Exception):
    """A file that cannot be examined; ``place`` is a line, empty where it is the whole file."""

    def __init__(self, problem: str, *, fix: str, place: str = "", file: str = "") -> None:
        self.problem, self.fix, self.place, self.file = problem, fix, place, file
        parts = (file, place, f"{problem}. Fix: {fix}")
        super().__init__(": ".join(part for part in parts if part))


class Script(Source):
    """A parsed file with what a compiler would meet in it."""

    @cached_property
    def options(self) -> Options:
        """Its settings, with those that click, typer or fire hand to a function."""
        kept = {
            parameter: option
            for taken in of_functions(self) or ()
            for parameter, option in taken.kept.items()
        }
        passed = {
            name.replace("-", "_"): value for name, value in (self.hyperparameters or {}).items()
        }
        started = {
            parameter.arg: passed[option.plain]
            for parameter, option in kept.items()
            if option.plain in passed
        }
        # Who starts the script sets its numbers: none is a constant of its code.
        values = {
            parameter: ast.Constant(False if option.switch and value is None else value)
            for parameter, option in kept.items()
            if isinstance(value := option.default, bool | str | None)
        }
        return Options(self.nodes, {**passed, **started}, values)

    @cached_property
    def steps(self) -> Steps:
        """What runs in every training step."""
        return Steps(self)

    @cached_property
    def models(self) -> Models:
        """What a compiler would be given to compile."""
        return Models(self)

    @cached_property
    def kinds(self) -> Kinds:
        """Which expressions are tensors."""
        return Kinds(self, self.steps, self.models)

    def is_tensor(self, node: ast.AST) -> bool:
        """Whether an expression holds a tensor on the device."""
        return self.kinds.of(node) is Kind.TENSOR

    def unreached(self, node: ast.AST) -> bool:
        """Whether the script's settings switch off the branch that a node is in."""
        inner = node
        for outer in self.parents_of(node):
            if isinstance(outer, ast.If | ast.IfExp):
                decided = self.steps.guards.decided(outer.test)
                avoided: object = () if decided is None else outer.orelse if decided else outer.body
                if inner is avoided or (isinstance(avoided, list) and inner in avoided):
                    return True
            elif isinstance(outer, ast.BoolOp):
                ends = isinstance(outer.op, ast.Or)  # the first value that decides it
                before = outer.values[: outer.values.index(inner)] if inner in outer.values else []
                if any(self.steps.guards.decided(value) is ends for value in before):
                    return True
            inner = outer
        return False

    def guarded(self, node: ast.AST) -> bool:
        """Whether it is behind a condition: a switch that is turned on deliberately."""
        around = (item for item in self.parents_of(node) if isinstance(item, ast.If | ast.IfExp))
        return any("__name__" not in set(texts(item.test)) for item in around)

    @cached_property
    def has_trainer(self) -> bool:
        """Whether a trainer of the transformers family runs the loop."""
        return self.uses("transformers", "trl", "sentence_transformers") and any(
            self.called(call).split(".")[-1].endswith(TRAINERS) for call in self.calls
        )

    @cached_property
    def stays_on_host(self) -> bool:
        """Whether a script that is started itself places nothing on a device.

        A module may be handed what another has placed.
        """
        started = any(isinstance(node, LOOPS) for node in self.tree.body) or any(
            isinstance(node, ast.If) and "__name__" in set(texts(node.test))
            for node in self.tree.body
        )
        if not started or self.has_trainer or self.uses(*PLACES_IT):
            return False
        words = {word for node in self.tree.body for word in texts(node)}
        words |= {item.arg or "" for call in self.calls for item in call.keywords}
        placed = any(called(call) in ("to", "cuda", "prepare") for call in self.calls)
        return not placed and not any(map(PLACE.search, words))

    @cached_property
    def is_training(self) -> bool:
        """Whether there is anything here that a compiler would meet."""
        return self.uses(*FRAMEWORKS) and bool(
            self.has_trainer or self.steps.nodes or self.models.bodies or self.models.keras_fits
        )


def parse(content: bytes, hyperparameters: Mapping[str, Any] | None = None) -> Script:
    """Parse a Python file. Raises ScriptError for what is not Python."""
    text = _text(content)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # invalid escapes do not matter here
            tree = ast.parse(text)
    except SyntaxError as error:
        place = f"line {error.lineno}" if error.lineno else "the file"
        # An older Python and what a newer one has added read alike: as wrong.
        raise ScriptError(
            f"is not Python {PYTHON}: {error.msg}",
            place=place,
            fix=f"correct it, or write it for Python {PYTHON}, with which it is read here; if a "
            "newer Python runs it, install this command with that one",
        ) from error
    except ValueError as error:  # such as a number with too many digits
        raise ScriptError(f"is not Python {PYTHON}: {error}", fix="correct it") from error
    except (RecursionError, MemoryError) as error:
        raise ScriptError(NESTED, fix=FLATTEN) from error
    return Script(text, tree, hyperparameters)


def _text(content: bytes) -> str:
    try:
        encoding = tokenize.detect_encoding(io.BytesIO(content).readline)[0]
        text = io.TextIOWrapper(io.BytesIO(content), encoding).read()  # line ends made alike
    except (SyntaxError, ValueError, LookupError) as error:
        raise ScriptError(f"is not text: {error}", fix=SAVE) from error
    if "\0" in text:
        raise ScriptError("is not text: it holds null bytes", fix=SAVE)
    return text
