"""What a workload file should say of a script: read from it, assumed, or left open."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from compilegate.cli.init import names
from compilegate.cli.init.data import Data, inputs_of, place_of
from compilegate.cli.init.render import ASSUMED, Section, Value, assumed, to_write
from compilegate.domain.naming import LAUNCHER
from compilegate.domain.workload.model import MOST_HOURS
from compilegate_doctor import SPELLED, Description, Metric, Option, argument_style

# Of the shipped examples: half a point of a share, two hundredths of a loss.
MARGINS = {"maximize": 0.005, "minimize": 0.02}
PERCENT = 100
RUNS_PER_WEEK, RUN_HOURS = 3, 1.0
# Room above a typical run, after which a job is stopped.
RUNTIME_MARGIN = 2
INSTANCE_TYPE = "ml.g5.xlarge"
# The defaults of transformers' TrainingArguments.
TRAINER_BATCH, TRAINER_RATE = 8, 5e-5
NO_NUMBER = "no number above 0"
_NAME = re.compile(r"[^a-z0-9]+")
# Why a script is not what its imports suggest.
_KINDS = {
    "plain": "no Trainer of it takes anything from the command line",
    "trainer": "its Trainer's settings are arguments",
}


@dataclass(frozen=True)
class Answers:
    """What no script says; None where nobody has said it either.

    ``framework`` names an image. ``samples`` are those of the training data; ``margin`` is the
    largest acceptable loss of quality.
    """

    name: str
    source_dir: str
    script: str
    framework: Mapping[str, str]
    instance_type: str | None = None
    run_hours: float | None = None
    runs_per_week: float | None = None
    samples: int | None = None
    margin: float | None = None
    data: Data | None = None


def workload_name(stem: str) -> str:
    """A workload's name made of a file's."""
    return _NAME.sub("-", stem.lower()).strip("-")[:32].strip("-") or "job"


def propose(script: Description, answers: Answers) -> dict[str, Value | Section]:
    """The whole file but the cap on its cost, in order."""
    hours = _answered(answers.run_hours, RUN_HOURS, "hours of a whole run today")
    version = answers.framework["version"]
    return {
        "schema": Value(1),
        "name": Value(answers.name),
        "framework": {
            **{key: Value(value) for key, value in answers.framework.items()},
            "version": assumed(version, "the newest image"),
        },
        "model": {"family": Value(_family(script)), "name": Value(_model(script, answers))},
        "training": _training(script, answers, hours),
        "shapes": _shapes(script),
        "schedule": {
            "runs_per_week": _answered(answers.runs_per_week, RUNS_PER_WEEK, "of production"),
            "run_hours": hours,
        },
        "quality": _quality(script, answers.margin),
    }


def _answered(answer: Any, default: Any, note: str) -> Value:
    return assumed(default, note) if answer is None else Value(answer, note)


def _family(script: Description) -> str:
    families = (family for package, family in names.FAMILIES if package in script.packages)
    return next(families, "custom")


def _model(script: Description, answers: Answers) -> str:
    option = script.command_line.find(names.MODEL)
    named = option.default if option else ""
    return named if isinstance(named, str) and named and named.isprintable() else answers.name


def _training(script: Description, answers: Answers, hours: Value) -> Section:
    instance = _answered(answers.instance_type, INSTANCE_TYPE, "where production trains")
    return {
        "source_dir": Value(answers.source_dir),
        "entry_point": Value(LAUNCHER, "starts the script below, unchanged"),
        "instance_type": instance,
        "instance_count": Value(1),
        "distribution": Value("none", "several GPUs: torch_distributed"),
        "precision": _precision(script),
        "batch_size": _setting(script, "batch_size", names.BATCH_SIZE, TRAINER_BATCH,
                               to_write("samples per GPU and step", stand_in=1)),
        "learning_rate": _setting(script, "learning_rate", names.LEARNING_RATE, TRAINER_RATE,
                                  to_write("the optimizer's first", stand_in=0.001)),
        "hyperparameters": Value(dict(_hyperparameters(script, answers))),
        "inputs": inputs_of(script, answers.data),
        "max_runtime_hours": Value(
            min(hours.value * RUNTIME_MARGIN, MOST_HOURS), "a job is stopped after them", ASSUMED
        ),
    }  # fmt: skip


def _setting(
    script: Description, key: str, spelled: tuple[str, ...], of_trainer: float, unknown: Value
) -> Value:
    """A trial's setting: the option's default, else the Trainer's, or the constant in the code."""
    option = script.command_line.find(spelled)
    if option and _is_number(option.default):
        return Value(option.default, f"--{option.name}")
    if option:
        return replace(unknown, note=f"--{option.name}, {_why_open(option)}: {unknown.note}")
    if script.kind == "trainer":
        each_its_own = key == "learning_rate" and "trl" in script.packages
        return unknown if each_its_own else Value(of_trainer, "the Trainer's default")
    if key in script.constants:
        return Value(script.constants[key], "in the code, which no candidate can change")
    return unknown


def _why_open(option: Option) -> str:
    """Why an option's default is not taken as a trial's setting."""
    if option.unread:
        return "whose default could not be read"
    return "which has no default" if option.default is None else f"whose default is {NO_NUMBER}"


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and value > 0


def _precision(script: Description) -> Value:
    option = _precision_option(script)
    for precision, spelled in SPELLED.items():
        if option and str(option.default).lower() in spelled:
            return Value(precision, f"--{option.name}")
    for switch in ("bf16", "fp16"):
        option = script.command_line.find((switch,))
        if option and option.default is True:
            return Value(switch, f"--{option.name}")
    if script.precision:
        return Value(script.precision, "in the code")
    if script.kind == "trainer":
        return Value("fp32", "the Trainer's default")
    return assumed("fp32", "the script names none")


def _precision_option(script: Description) -> Option | None:
    """The option that takes a precision by its name."""
    option = script.command_line.find(names.PRECISION)
    if not option or option.switch:
        return None
    switch = script.command_line.find(("amp",))
    if switch and switch.switch and switch.default is not True:
        return None  # it says in which precision, once the switch is on
    every = {word for words in SPELLED.values() for word in words}
    spellings = {str(word).lower() for word in (option.default, *option.choices)} & every
    return option if spellings else None


def _hyperparameters(script: Description, answers: Answers) -> Iterator[tuple[str, Value]]:
    takes = script.command_line
    yield "script", Value(answers.script)
    if script.kind != script.guessed_kind:
        yield "script_kind", Value(script.kind, _KINDS[script.kind])
    if takes.positional:
        words = " ".join([takes.subcommand, *takes.positional]).strip()
        yield "positional", to_write(f"comes before the arguments: {words}")
    elif takes.subcommand:
        yield "positional", Value(takes.subcommand, "comes before the arguments")
    style = argument_style(takes)
    if style:
        yield "argument_style", Value(*style)
    steps = None if script.kind == "trainer" else takes.find(names.STEPS)
    sought = (names.BATCH_SIZE, names.LEARNING_RATE, names.SEED)
    unread = takes.unread or (takes.partly and None in map(takes.find, sought))
    spelled = {} if unread else dict(_argument_names(script, steps))
    if unread:
        text = "what it calls batch_size, learning_rate and seed, as JSON; null: passed nothing"
        yield "argument_names", to_write(text)
    elif spelled:
        yield "argument_names", Value(json.dumps(spelled), "null: the script takes none")
    if precisions := _precision_names(script):
        yield "precision_names", Value(json.dumps(precisions))
    if script.metrics and script.metrics[0].pattern:
        pattern = json.dumps({script.metrics[0].name: script.metrics[0].pattern})
        yield "metric_patterns", Value(pattern, "the last match in what it prints counts")
    yield from _length(script, answers, steps)
    for name in script.asks:
        yield name, Value(True)
    for option in takes.options:
        if place := place_of(option, script, answers.data):
            yield option.name, Value(place, "where a job finds the channel")
        elif option.required and option.name not in spelled.values():
            yield option.name, to_write("the script requires it")


def _argument_names(script: Description, steps: Option | None) -> Iterator[tuple[str, str | None]]:
    """What differs from how the launcher calls a trial's settings for this kind of script."""
    takes, kind = script.command_line, script.kind
    if kind == "trainer":
        return
    usual = {"batch_size": "batch_size", "learning_rate": "learning_rate", "seed": "seed"}
    if kind == "accelerate":
        usual["batch_size"] = "per_device_train_batch_size"
    looked = {
        "batch_size": names.BATCH_SIZE, "learning_rate": names.LEARNING_RATE, "seed": names.SEED,
    }  # fmt: skip
    for key, spelled in looked.items():
        option = takes.find(spelled)
        name = option.name if option else None
        if name != usual[key]:
            yield key, name
    usual_steps = "max_train_steps" if kind == "accelerate" else None
    if steps and steps.name != usual_steps:
        yield "full_run_steps", steps.name
    if precision := _precision_option(script):
        yield "precision", precision.name


def _precision_names(script: Description) -> dict[str, str]:
    """How the script spells each precision, where it differs."""
    option = _precision_option(script)
    if not option:
        return {}
    words = [str(word) for word in option.choices] or [str(option.default)]
    spelled_as = {
        precision: word
        for precision, spelled in SPELLED.items()
        for word in words
        if word.lower() in spelled
    }
    if not option.choices and any("float" in word for word in words):
        spelled_as = {"fp32": "float32", "bf16": "bfloat16", "fp16": "float16"}
    return {precision: word for precision, word in spelled_as.items() if word != precision}


def _length(
    script: Description, answers: Answers, steps: Option | None
) -> Iterator[tuple[str, Value]]:
    """The length of a whole run, which a Trainer counts itself."""
    if script.kind in ("trainer", "lightning"):
        option = script.command_line.find(("max_epochs",))
        if script.kind == "lightning" and option and _is_number(option.default):
            text = "Lightning's default, as nothing in the code says how long a run is"
            yield option.name, assumed(option.default, text)
        return
    if steps and _is_number(steps.default):
        yield "full_run_steps", Value(int(steps.default), f"--{steps.name}")
        return
    epochs = script.command_line.find(names.EPOCHS)
    times = epochs.default if epochs else script.constants.get("epochs")
    times = times if _is_number(times) else 0
    shown = f"epochs ({times:g})" if times else "epochs"
    length = to_write(f"training samples times {shown}")
    if answers.samples and times:
        length = Value(int(answers.samples * times), length.note)
    elif answers.samples:
        length = assumed(answers.samples, "training samples, of one epoch")
    elif script.data and times:
        name, samples = script.data
        length = assumed(int(samples * times), f"{samples:,} samples of {name} times {shown}")
    yield "full_run_samples", length


def _shapes(script: Description) -> Section:
    changing = "dynamic-padding" in script.findings
    longest = {"padding": Value("longest", "each batch to its longest")} if changing else {}
    return {
        "static": Value(not changing, "whether every step has the same tensor shapes"),
        **longest,
        "drop_last": Value(
            "ragged-last-batch" not in script.findings, "whether a smaller last batch is left out"
        ),
    }


def usual_margin(metric: Metric) -> float:
    """What is assumed where nobody says what loss is acceptable, in the metric's unit."""
    return MARGINS[metric.goal] * (PERCENT if metric.percent else 1)


def _quality(script: Description, margin: float | None) -> Section:
    stopping = Value(True, "the script may end a run by its metric")
    early = {"early_stopping": stopping} if script.stops_early else {}
    if script.metrics:
        metric = script.metrics[0]
        note = "the largest loss that you accept, in the metric's unit"
        return {
            "metric": Value(metric.name),
            "goal": Value(metric.goal),
            "margin": _answered(margin, usual_margin(metric), note),
            **early,
        }
    reported = "what it reports of held-out data, such as eval_loss; a printed one needs "
    return {
        "metric": to_write(f"{reported}metric_patterns", stand_in="metric"),
        "goal": to_write("maximize or minimize", stand_in="minimize"),
        "margin": to_write("the largest loss that you accept, in its unit", stand_in=0.01),
        **early,
    }
