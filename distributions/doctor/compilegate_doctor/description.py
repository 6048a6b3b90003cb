"""What a training script is: how it trains, which arguments it takes, what it reports."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from compilegate_doctor.absl_flags import ABSL
from compilegate_doctor.command_line import (
    CONSTANTS,
    ELSEWHERE,
    HYDRA,
    NONE,
    CommandLine,
    command_line,
    module_of_arguments,
    read_together,
    takes_of_others,
)
from compilegate_doctor.dataclass_arguments import sets_up_trainer
from compilegate_doctor.examination import examine_script
from compilegate_doctor.finding import TORCH_COMPILE
from compilegate_doctor.own_compiling import OwnCompiling, compiling_of
from compilegate_doctor.precision import precision_of
from compilegate_doctor.project import Project, Reader, no_module
from compilegate_doctor.reported import (
    NUMBER,
    Metric,
    logged_metrics,
    printed_metrics,
    trainer_metrics,
)
from compilegate_doctor.script import Script, ScriptError, parse
from compilegate_doctor.source import Source
from compilegate_doctor.syntax import called, constant, keyword, last_name
from compilegate_doctor.words import HELD_OUT, OPTIMIZER, Imports

# As the launcher names them (training/compilegate_runtime/launching/arguments.py).
TRAINER, ACCELERATE, LIGHTNING, PLAIN = "trainer", "accelerate", "lightning", "plain"
# What a Trainer prints of an evaluation; newer releases put the number in quotes.
_TRAINER_PRINTS = "'{}': '?" + NUMBER
# SageMaker's variables with the folders of a job's channels.
_CHANNELS = "SM_CHANNEL_"
CHANNEL = re.compile(_CHANNELS + r"[A-Z0-9_]+")
# No script that people wrote is longer.
MOST_BYTES = 2 * 1024 * 1024
LOADERS = ("DataLoader", "StatefulDataLoader")
# What ends a run by its own metric, in Lightning, Ignite and transformers.
EARLY_STOPPING = ("EarlyStopping", "EarlyStoppingCallback")
EPOCHS = re.compile(r"(num_?|n_?|max_?|train_?|total_?)*epochs?", re.IGNORECASE)

# Training samples, by torchvision's class (https://pytorch.org/vision/stable/datasets.html, and
# the page of each data set that it links; ImageNet: ILSVRC 2012, https://www.image-net.org/).
TRAINING_SAMPLES = {
    "MNIST": 60_000, "FashionMNIST": 60_000, "KMNIST": 60_000, "QMNIST": 60_000,
    "CIFAR10": 50_000, "CIFAR100": 50_000, "ImageNet": 1_281_167,
}  # fmt: skip
# What takes a part of one.
SPLITS = ("random_split", "Subset", "SubsetRandomSampler", "train_test_split")


@dataclass(frozen=True)
class Description:
    """A training script, read and not run.

    ``kind`` is how it trains, in the launcher's words; ``guessed_kind`` what the launcher would
    take it for. ``constants`` are the batch size, learning rate and epochs that it has in its code.
    ``steps`` says whether an optimizer's step is seen, by which the launcher counts.
    ``findings`` are ids of the doctor's rules. ``asks`` are the switches ``do_train`` and such
    that it looks at. ``compiles`` is where it compiles its model itself. ``channels`` are the
    input channels whose variables it reads. ``data`` is the public data set that it trains on, with
    how many samples that has. ``optional`` are packages that it can do without. ``stops_early``:
    it may end a run by a metric.
    """

    kind: str
    guessed_kind: str
    trains: bool
    steps: bool
    command_line: CommandLine
    metrics: tuple[Metric, ...]
    precision: str | None
    constants: dict[str, Any]
    packages: frozenset[str]
    findings: frozenset[str]
    asks: tuple[str, ...] = ()
    compiles: OwnCompiling | None = None
    channels: tuple[str, ...] = ()
    data: tuple[str, int] | None = None
    optional: frozenset[str] = frozenset()
    stops_early: bool = False


def describe(content: bytes, file: str, module: Reader = no_module) -> Description:
    """Read a script. Raises ScriptError for what is not Python, or too long for a script.

    ``module`` gives the file of a module of the script's own project. What the script lacks, be it
    its arguments, its loop or its metric, is looked for in those that it imports.
    """
    if len(content) > MOST_BYTES:
        problem = f"has {len(content):,} bytes, which is no script"
        raise ScriptError(problem, fix="name the file that trains", file=file)
    try:
        script = parse(content)
    except ScriptError as error:
        raise ScriptError(error.problem, fix=error.fix, place=error.place, file=file) from error
    project = Project(script, module)
    guessed = _guessed_kind(script)
    kind = _kind(script, guessed)
    metrics, takes = _metrics(script, kind, guessed), command_line(project)
    others = () if metrics and _trains(script) else project.imported
    files = [script, *(one for one in others if _trains(one))]
    attributes = {node.attr for node in script.nodes if isinstance(node, ast.Attribute)}
    return Description(
        kind=kind,
        guessed_kind=guessed,
        trains=script.is_training or any(map(_trains, files)),
        steps=any(map(_steps, files)) if kind == guessed else True,
        command_line=_command_line(project, takes),
        metrics=tuple(metrics or _metrics_of(others, kind, guessed)),
        precision=next((precision for one in files if (precision := precision_of(one))), None),
        constants={name: value for one in reversed(files)
                   for name, value in _constants(one).items() if value is not None},
        packages=frozenset(script.imports.packages),
        findings=frozenset(
            finding.rule for one in files
            for finding in examine_script(one, file, compilers=(TORCH_COMPILE,)).findings
        ),
        asks=tuple(name for name in ("do_train", "do_eval") if name in attributes),
        compiles=compiling_of(script),
        channels=tuple(_channels(script)),
        data=_public_data(script),
        optional=frozenset(_optional(script)),
        stops_early=any(called(call) in EARLY_STOPPING for one in files for call in one.calls),
    )  # fmt: skip


def _optional(script: Script) -> set[str]:
    """The packages that are imported only where an error of it is handled."""
    needed, tried = set[str](), set[str]()
    for node in script.nodes:
        if isinstance(node, ast.Import | ast.ImportFrom):
            around = (one for one in script.parents_of(node) if isinstance(one, ast.Try))
            handled = any(one.handlers for one in around)
            (tried if handled else needed).update(Imports([node]).packages)
    return tried - needed


def _channels(script: Script) -> Iterator[str]:
    """The channels of a job whose folders the script cannot do without: ``SM_CHANNEL_TRAIN``.

    A variable that is asked for with another folder in its place counts as not needed.
    """
    for node in script.nodes:
        subscript = isinstance(node, ast.Subscript) and last_name(node.value) == "environ"
        read = constant(node.slice) if subscript and isinstance(node, ast.Subscript) else None
        if isinstance(node, ast.Call) and called(node) in ("get", "getenv") and len(node.args) == 1:
            read = constant(node.args[0])
        if isinstance(read, str) and CHANNEL.fullmatch(read):
            yield read.removeprefix(_CHANNELS).lower()


def _guessed_kind(script: Script) -> str:
    """As the launcher guesses it (``kind_of``)."""
    names = {name.rpartition(".")[2] for name in script.imports.named}
    if names & {"Trainer", "Seq2SeqTrainer", "SFTTrainer"} and script.uses("transformers", "trl"):
        return TRAINER
    if script.uses("lightning", "pytorch_lightning"):
        return LIGHTNING
    return ACCELERATE if script.uses("accelerate") else PLAIN


def _command_line(project: Project, takes: CommandLine) -> CommandLine:
    """The script's arguments; where other files of its project read them, those files'."""
    if takes.reader not in (ELSEWHERE, NONE):
        return takes
    source = project.module(module_of_arguments(project.script) or "")
    arguments = takes if source is None else command_line(Project(source, project.read))
    if arguments.options or not takes_of_others(project.script):
        return arguments
    return read_together(project.imported) or takes


def _trains(script: Script) -> bool:
    """Whether a training loop, or a Trainer's call, is seen in a file."""
    calls = {called(call) for call in script.calls}
    lightning = script.uses("lightning", "pytorch_lightning")
    return bool(
        script.has_trainer
        or script.steps.nodes
        or script.models.keras_fits
        or (lightning and calls & {"Trainer", "LightningCLI"})
    )


def _steps(script: Script) -> bool:
    """Whether an optimizer steps; one of a Trainer's does so in its library."""
    trainer = script.uses("lightning", "pytorch_lightning", "transformers")
    return trainer or any(called(call) == "step" for call in script.calls)


def _kind(script: Script, guessed: str) -> str:
    """How it trains indeed."""
    trainers = (name for name in script.imports.named if name.endswith("Trainer"))
    if any(name.startswith(("transformers.", "trl.")) for name in trainers):
        # One that is not set up from the command line takes none of its arguments.
        return TRAINER if sets_up_trainer(script) else PLAIN
    calls = {called(call) for call in script.calls}
    if guessed == LIGHTNING and "Fabric" in calls and not calls & {"Trainer", "LightningCLI"}:
        return PLAIN  # Fabric has no Trainer: the loop is the script's own
    return guessed


def _metrics(script: Script, kind: str, guessed: str) -> list[Metric]:
    if kind == TRAINER:
        return trainer_metrics(script)
    if kind == LIGHTNING:
        return logged_metrics(script)
    printed = printed_metrics(script)
    if not printed and guessed == TRAINER:
        return [
            replace(metric, pattern=_TRAINER_PRINTS.format(metric.name))
            for metric in trainer_metrics(script)
        ]
    return printed


def _metrics_of(others: Sequence[Script], kind: str, guessed: str) -> list[Metric]:
    """Those of the nearest module that reports any."""
    reported = (_metrics(one, kind, guessed) for one in others)
    return next((metrics for metrics in reported if metrics), [])


def _constants(script: Script) -> dict[str, Any]:
    """The batch size of the training loader and the optimizer's rate, where they are constants.

    Of several loaders the first that is not held-out data's; where its size is not known, none.
    """
    constants: dict[str, Any] = {}
    for call in script.calls:
        if called(call) in LOADERS and not _held_out(script, call):
            constants.setdefault("batch_size", script.options.value(keyword(call, "batch_size")))
        elif OPTIMIZER.search(script.called(call)) and keyword(call, "lr") is not None:
            constants.setdefault("learning_rate", script.options.value(keyword(call, "lr")))
        elif called(call).endswith("TrainingArguments"):
            for name, word in (("batch_size", "per_device_train_batch_size"),
                               ("learning_rate", "learning_rate")):  # fmt: skip
                if keyword(call, word) is not None:
                    constants.setdefault(name, script.options.value(keyword(call, word)))
    constants["epochs"] = next(_epochs(script), None)
    numbers = {name: value for name, value in constants.items() if _is_number(value)}
    return {**_in_a_dictionary(script), **numbers}


def _epochs(script: Script) -> Iterator[Any]:
    """Whole numbers that the code calls epochs, or counts them up to."""
    for node in script.nodes:
        if isinstance(node, ast.Assign | ast.AnnAssign) and node.value is not None:
            target = node.targets[0] if isinstance(node, ast.Assign) else node.target
            name, value = last_name(target), script.options.value(node.value)
        elif isinstance(node, ast.For) and isinstance(node.iter, ast.Call) and node.iter.args:
            name, value = last_name(node.target), script.options.value(node.iter.args[-1])
        elif isinstance(node, ast.keyword):
            name, value = node.arg or "", script.options.value(node.value)
        else:
            continue
        if EPOCHS.fullmatch(name) and isinstance(value, int) and value > 0:
            yield value


def _held_out(script: Script, call: ast.Call) -> bool:
    statement = script.statement(call)
    targets = statement.targets if isinstance(statement, ast.Assign) else [statement]
    return any(HELD_OUT.search(last_name(target)) for target in targets)


def _in_a_dictionary(script: Script) -> dict[str, Any]:
    """The settings of ``config = {"lr": 2e-5, "batch_size": 16}``."""
    for node in script.nodes:
        if isinstance(node, ast.Dict):
            values = {constant(key): constant(value)
                      for key, value in zip(node.keys, node.values, strict=True)}  # fmt: skip
            rate = values.get("lr", values.get("learning_rate"))
            settings = {"batch_size": values.get("batch_size"), "learning_rate": rate}
            if all(map(_is_number, settings.values())):
                epochs = (value for key, value in values.items()
                          if EPOCHS.fullmatch(str(key)) and _is_number(value))  # fmt: skip
                return {**settings, "epochs": next(epochs, None)}
    return {}


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def argument_style(takes: CommandLine) -> tuple[str, str] | None:
    """How the launcher must write its arguments, and what that looks like; None as usual."""
    return {
        CONSTANTS: ("equals", "--name=value"),
        ABSL: ("equals", "--name=value"),  # the only way in which it takes a bool's value
        HYDRA: ("hydra", "name=value"),
    }.get(takes.reader)


def _public_data(source: Source) -> tuple[str, int] | None:
    """The one data set of torchvision that a file trains on as a whole, and its samples."""
    called = {source.called(call) for call in source.calls}
    data_sets = {name.rpartition(".")[2] for name in called
             if name.startswith("torchvision.datasets.")} & set(TRAINING_SAMPLES)  # fmt: skip
    if len(data_sets) != 1 or any(name.rpartition(".")[2] in SPLITS for name in called):
        return None
    name = data_sets.pop()
    return name, TRAINING_SAMPLES[name]
