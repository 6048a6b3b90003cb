"""Whether data arrives as fast as a compiled model takes it, and the learning rate fits."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from compilegate_doctor.finding import Hit, Severity
from compilegate_doctor.loaders import Loader, training_loaders
from compilegate_doctor.options import UNKNOWN
from compilegate_doctor.rule import EVERY, MANAGED_PITFALLS, TUNING, Rule
from compilegate_doctor.script import Script
from compilegate_doctor.steps import NO_GRADIENT
from compilegate_doctor.syntax import (
    argument,
    called,
    constant,
    keyword,
    last_name,
    receiver,
    texts,
)
from compilegate_doctor.trainers import trainer_settings
from compilegate_doctor.words import MODEL, OPTIMIZER

OPTIMIZERS = ("torch.optim.", "tensorflow.keras.optimizers.", "keras.optimizers.")
IN_MEMORY = ("TensorDataset", "range", "arange")
BATCH_OPTIONS = ("batch_size", "train_batch_size", "per_device_train_batch_size")


def loader_workers(script: Script) -> Iterator[Hit]:
    """Loaders that prepare batches between the steps instead of beside them."""
    for loader in training_loaders(script):
        if _one_process(script, loader) and not _in_memory(script, loader):
            yield Hit(
                loader.call, "num_workers is 0, so training waits while each batch is prepared"
            )
    for settings in trainer_settings(script):
        if settings.get("dataloader_num_workers", 0) == 0:
            yield Hit(
                settings.place("dataloader_num_workers"),
                "Training waits while each batch is prepared",
                fix="pass dataloader_num_workers, from 4 up to the CPUs per GPU",
            )


def _one_process(script: Script, loader: Loader) -> bool:
    workers = loader.keywords.get("num_workers")
    if workers is None:
        return loader.lacks("num_workers")
    value = script.options.value(workers)
    return value == 0 and value is not UNKNOWN


def _in_memory(script: Script, loader: Loader) -> bool:
    """Tensors that are already in memory need no worker to fetch them."""
    data = argument(loader.call, 0, "dataset")
    made = script.options.assigned(data.id) if isinstance(data, ast.Name) else data
    if made is None or isinstance(made, ast.Tuple):  # of several, or handed over
        return any(called(call) == "TensorDataset" for call in script.calls)
    listed = isinstance(made, ast.List | ast.ListComp) and loader.lacks("collate_fn")
    return listed or (isinstance(made, ast.Call) and called(made) in IN_MEMORY)


def preprocessing_workers(script: Script) -> Iterator[Hit]:
    """``datasets.map`` with one process."""
    if not script.uses("datasets"):
        return
    for call in script.calls:
        on = receiver(call)
        if called(call) != "map" or on is None or keyword(call, "batched") is None:
            continue
        if any(item.arg is None for item in call.keywords) or "tensorflow" in set(texts(on)):
            continue
        if _all_at_once(call) or _computes(script, call):
            continue
        processes = keyword(call, "num_proc")
        value = None if processes is None else script.options.value(processes)
        if value in (None, 1) and not script.unreached(call):
            option = "" if processes is None else ast.unparse(processes)
            name = f" ({option} is {value} unless given)" if option else ""
            yield Hit(call, f"The data set is prepared by one process{name}")
            return  # once per file: the remedy is the same for all of them


def _all_at_once(call: ast.Call) -> bool:
    """``batch_size=-1`` hands over the whole data set, which cannot be shared out."""
    size = keyword(call, "batch_size")
    whole = isinstance(size, ast.Call) and called(size) == "len"
    return whole or (isinstance(size, ast.UnaryOp) and isinstance(size.op, ast.USub))


def _computes(script: Script, call: ast.Call) -> bool:
    """Whether a model computes in it, which several processes cannot share."""
    mapped = argument(call, 0, "function")
    made = script.options.assigned(mapped.id) if isinstance(mapped, ast.Name) else mapped
    names = set() if made is None else {*texts(made)}
    names |= {last_name(mapped)} if mapped is not None else set()
    bodies = [one for one in script.functions if one.name in names]
    words = names.union(*(texts(one) for one in bodies))
    return any(MODEL.search(word.rstrip("s")) for word in words) or not words.isdisjoint(
        NO_GRADIENT
    )


def fixed_learning_rate(script: Script) -> Iterator[Hit]:
    """A learning rate written into the script whose batch size is an option."""
    if not any(name in script.options.names for name in BATCH_OPTIONS):
        return
    for call in script.calls:
        if not script.called(call).startswith(OPTIMIZERS) or "lr_scheduler" in script.called(call):
            continue
        rate = keyword(call, "lr") or keyword(call, "learning_rate")
        if isinstance(constant(rate), float) and OPTIMIZER.search(_kept_as(script, call)):
            yield Hit(rate or call, f"The learning rate is always {constant(rate)}")
    for settings in trainer_settings(script):
        rate = keyword(settings.call, "learning_rate") if settings.call is not None else None
        if isinstance(constant(rate), float):
            yield Hit(rate or settings.node, f"The learning rate is always {constant(rate)}")


def _kept_as(script: Script, call: ast.Call) -> str:
    statement = script.statement(call)
    return " ".join(texts(statement)) if isinstance(statement, ast.Assign) else "optimizer"


RULES = (
    Rule(
        "loader-workers", "Batches are prepared between the steps", Severity.NOTE, EVERY,
        loader_workers,
        "The faster the compiled step, the larger the share of time spent waiting for data.",
        "give the training loader num_workers, from 4 up to the CPUs per GPU, and "
        "pin_memory=True",
        TUNING,
    ),
    Rule(
        "preprocessing-workers", "Preprocessing with one process", Severity.NOTE, EVERY,
        preprocessing_workers,
        "The GPUs are idle and billed while the data set is prepared.",
        "give map(…, num_proc=…), or pass preprocessing_num_workers",
        MANAGED_PITFALLS,
    ),
    Rule(
        "fixed-learning-rate", "A learning rate that cannot follow the batch size",
        Severity.NOTE, EVERY,
        fixed_learning_rate,
        "A compiler often makes room for a larger batch, which needs another learning rate.",
        "make the learning rate an option too, and scale it with the batch",
        MANAGED_PITFALLS,
    ),
)  # fmt: skip
