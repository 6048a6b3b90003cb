"""The loaders that feed training."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass

from compilegate_doctor.script import Script
from compilegate_doctor.syntax import (
    FUNCTIONS,
    LOOPS,
    Function,
    argument,
    called,
    calls_in,
    dotted,
    texts,
)
from compilegate_doctor.words import HELD_OUT, TRAINING

LOADERS = ("torch.utils.data.DataLoader", "torch.utils.data.dataloader.DataLoader")
# Made up for a demonstration: how it is loaded says nothing of a training.
SYNTHETIC = re.compile(r"(Random|Dummy|Fake|Synthetic|Mock|Toy)\w*", re.IGNORECASE)


# Training samples of data sets that many scripts use.
SIZES = {"MNIST": 60_000, "FashionMNIST": 60_000, "KMNIST": 60_000, "CIFAR10": 50_000,
         "CIFAR100": 50_000}  # fmt: skip


@dataclass(frozen=True)
class Loader:
    """A DataLoader of training data with the keywords that it certainly has."""

    call: ast.Call
    keywords: dict[str, ast.expr]
    complete: bool

    def lacks(self, *names: str) -> bool:
        """Whether all of these keywords are missing; False where that is uncertain."""
        return self.complete and not any(name in self.keywords for name in names)


def training_loaders(script: Script) -> Iterator[Loader]:
    """Every DataLoader whose batches are trained on."""
    for call in script.calls:
        if script.called(call) in LOADERS and _trains(script, call):
            keywords, complete = _keywords(script, call)
            yield Loader(call, keywords, complete)


def _trains(script: Script, call: ast.Call) -> bool:
    statement = script.statement(call)
    names = _target_words(statement)
    data = argument(call, 0, "dataset")
    made = script.options.assigned(data.id) if isinstance(data, ast.Name) else data
    synthetic = isinstance(made, ast.Call) and SYNTHETIC.match(called(made))
    if synthetic or (names and _first_batch_only(script, names[0])):
        return False
    function = script.function_of(call)
    if _set_aside(script, call):
        return False
    if function is not None:
        names.append(function.name)
    fed = list(texts(data)) if data is not None else []
    if any(HELD_OUT.search(word) for word in (*names, *fed)):
        return False
    if any(TRAINING.search(word) for word in (*names[:1], *fed)):
        return True
    shuffle = argument(call, 2, "shuffle")
    if shuffle is not None and script.options.value(shuffle) is True:
        return True
    return any(
        name in set(texts(loop.iter)) for loop in script.steps.loops
        if isinstance(loop, LOOPS) and not isinstance(loop, ast.While) for name in names[:1]
    )  # fmt: skip


def _set_aside(script: Script, call: ast.Call) -> bool:
    """Whether it is for one kind of data set of several, or in a function that does not train."""
    tests = [one.test for one in script.parents_of(call) if isinstance(one, ast.If)]
    function = script.function_of(call)
    looks = function is not None and script.steps.is_evaluation(function)
    return looks or any(called(one) == "isinstance" for test in tests for one in calls_in(test))


def divides(script: Script, loader: Loader) -> bool:
    """Whether a data set of known size is a multiple of its batch."""
    data = loader.keywords.get("dataset")
    made = script.options.assigned(data.id) if isinstance(data, ast.Name) else data
    size = SIZES.get(called(made)) if isinstance(made, ast.Call) else None
    batch = script.options.value(loader.keywords.get("batch_size"))
    return size is not None and isinstance(batch, int) and batch > 0 and size % batch == 0


def _first_batch_only(script: Script, name: str) -> bool:
    """``next(iter(loader))`` and nothing else takes one batch, always the same."""
    iterators = [
        script.parents[node] for node in script.nodes
        if isinstance(node, ast.Name) and node.id == name and isinstance(node.ctx, ast.Load)
    ]  # fmt: skip
    return bool(iterators) and all(
        isinstance(one, ast.Call) and called(one) == "iter"
        and isinstance(outer := script.parents[one], ast.Call) and called(outer) == "next"
        for one in iterators
    )  # fmt: skip


def _target_words(statement: ast.AST) -> list[str]:
    if isinstance(statement, ast.Assign):
        return [dotted(target).split(".")[-1] for target in statement.targets if dotted(target)]
    return []


def _keywords(script: Script, call: ast.Call) -> tuple[dict[str, ast.expr], bool]:
    """Keywords written out, and those of a dictionary that the script fills by hand."""
    complete = not any(isinstance(item, ast.Starred) for item in call.args)
    names = ("dataset", "batch_size", "shuffle", "sampler", "batch_sampler", "num_workers",
             "collate_fn", "pin_memory", "drop_last")  # fmt: skip
    keywords = _written(call) | (dict(zip(names, call.args, strict=False)) if complete else {})
    for item in call.keywords:
        if item.arg is None:
            more = _spread(script, item.value)
            complete = complete and more is not None
            keywords |= more or {}
    return keywords, complete


def _written(call: ast.Call) -> dict[str, ast.expr]:
    return {item.arg: item.value for item in call.keywords if item.arg is not None}


def _spread(script: Script, node: ast.expr) -> dict[str, ast.expr] | None:
    """The keywords of ``**node``, None where they cannot be read."""
    name = dotted(node)
    if not name:
        return _literal(node)
    keywords: dict[str, ast.expr] = {}
    assigned = False
    for other in script.nodes:
        filled: dict[str, ast.expr] | None = {}
        if isinstance(other, ast.Assign) and any(dotted(item) == name for item in other.targets):
            filled, assigned = _literal(other.value), True
        elif isinstance(other, ast.Assign) and isinstance(other.targets[0], ast.Subscript):
            target = other.targets[0]
            if dotted(target.value) == name and isinstance(target.slice, ast.Constant):
                filled = {str(target.slice.value): other.value}
        elif isinstance(other, ast.Call) and dotted(other.func) == f"{name}.update":
            filled = _spread(script, other.args[0]) if other.args else _written(other)
        elif isinstance(other, FUNCTIONS) and other.args.kwarg and other.args.kwarg.arg == name:
            filled, assigned = _handed_over(script, other), True
        if filled is None:
            return None
        keywords |= filled
    return keywords if assigned else None


def _handed_over(script: Script, function: Function) -> dict[str, ast.expr] | None:
    """What the calls of a function give to its ``**kwargs``, None where there are none here."""
    own = {item.arg for item in (*function.args.args, *function.args.kwonlyargs)}
    keywords: dict[str, ast.expr] = {}
    calls = [call for call in script.calls if function in script.steps.targets(call)]
    if any(item.arg is None for call in calls for item in call.keywords):
        return None
    for call in calls:
        keywords |= {name: value for name, value in _written(call).items() if name not in own}
    return keywords if calls else None


def _literal(node: ast.expr) -> dict[str, ast.expr] | None:
    if isinstance(node, ast.IfExp):  # what either branch may give
        one, other = _literal(node.body), _literal(node.orelse)
        return None if one is None or other is None else other | one
    if isinstance(node, ast.Dict) and all(isinstance(key, ast.Constant) for key in node.keys):
        pairs = zip(node.keys, node.values, strict=True)
        return {str(key.value): value for key, value in pairs if isinstance(key, ast.Constant)}
    if isinstance(node, ast.Call) and dotted(node.func) == "dict" and not node.args:
        return _written(node)
    return None
