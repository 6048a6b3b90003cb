"""What a workload file should say of a script: read from it, assumed, or left open."""

from __future__ import annotations

import json
import math
import re
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from compilegate.adapters.workload_files import TO_DO
from compilegate.adapters.yaml_document import plain_value
from compilegate.domain.eligibility.check import check_eligibility
from compilegate.domain.errors import InvalidInputError
from compilegate.domain.formats import money
from compilegate.domain.naming import LAUNCHER
from compilegate.domain.workload.file import parse_workload
from compilegate.domain.workload.model import MOST_HOURS, Policy
from compilegate.ports import Settings
from compilegate.usecases.records import facts_for_workload
from compilegate_doctor import SPELLED, CommandLine, Description, Metric, Option, argument_style

# By which names scripts take what a trial sets.
NAMES = tomllib.loads(Path(__file__).with_name("names.toml").read_text(encoding="utf-8"))
READ, ASSUMED, OPEN = "read", "assumed", "open"
# Of the shipped examples: half a point of a share, two hundredths of a loss.
MARGINS = {"maximize": 0.005, "minimize": 0.02}
# Measures of the size of what they are of, whose usual loss no name says.
UNSCALED = re.compile(r"(^|_)(rmse|mse|mae|fid|perplexity|ppl|psnr|score)$")
PERCENT = 100
INSTANCE_TYPE, RUNS_PER_WEEK, RUN_HOURS = "ml.g5.xlarge", 3, 1.0
# Room above a typical run, after which a job is stopped.
RUNTIME_MARGIN = 2
# A short run too may compile for minutes.
LEAST_LIMIT_HOURS = 0.25
# Room above what a trial is expected to cost; its cap is rounded up to two digits.
COST_MARGIN = 1.25
# The defaults of transformers' TrainingArguments.
TRAINER = {"batch_size": 8, "learning_rate": 5e-5}
# What is called differently from how the launcher calls it for a plain or an accelerate script.
USUAL = {"batch_size": "batch_size", "learning_rate": "learning_rate", "seed": "seed"}
ACCELERATE = {**USUAL, "batch_size": "per_device_train_batch_size"}
# Readers of arguments whose style is known where their names are not.
WORDS = ("argparse", "click", "typer", "fire", "tyro", "simple_parsing", "jsonargparse", "tap")
CHANNEL, INPUTS = "train", "/opt/ml/input/data"
_SOURCE = "a path, which is uploaded, or s3://bucket/folder/"
_PLAIN = re.compile(r"[A-Za-z0-9_./][A-Za-z0-9_./:@+-]*")
# Why a script is not what its imports suggest.
_KINDS = {
    "plain": "no Trainer of it takes anything from the command line",
    "trainer": "its Trainer's settings are arguments",
}


@dataclass(frozen=True)
class Value:
    """A value with what the file says of it; ``origin`` is READ, ASSUMED or OPEN.

    ``stand_in`` is in the place of an open value where a trial's price is estimated.
    """

    value: Any
    note: str = ""
    origin: str = READ
    stand_in: Any = TO_DO


Section = dict[str, Value]
Proposal = Mapping[str, Value | Section]


def assumed(value: Any, note: str) -> Value:
    """A value that is not the script's."""
    return Value(value, f"assumed; {note}", ASSUMED)


def to_write(note: str, stand_in: Any = TO_DO) -> Value:
    """A value that a person has to write."""
    return Value(TO_DO, note, OPEN, stand_in)


@dataclass(frozen=True)
class Data:
    """A path of the project that ``option`` names by default, and its ``place`` in a job."""

    option: str
    path: str
    place: str


@dataclass(frozen=True)
class Answers:
    """What no script says; None where no person has said it either.

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


def find(script: Description, setting: str) -> Option | None:
    """The option by which the script takes a setting of names.toml."""
    return script.command_line.find(NAMES[setting])


def propose(script: Description, answers: Answers) -> dict[str, Value | Section]:
    """The whole file but the cap on its cost, in order."""
    hours = _answered(answers.run_hours, RUN_HOURS, "hours of a whole run today")
    families = (kind for package, kind in NAMES["families"].items() if package in script.packages)
    model = find(script, "model")
    named = model.default if model else ""
    is_name = isinstance(named, str) and named and named.isprintable()
    changing = "dynamic-padding" in script.findings
    longest = {"padding": Value("longest", "each batch to its longest")} if changing else {}
    return {
        "schema": Value(1),
        "name": Value(answers.name),
        "framework": {
            **{key: Value(value) for key, value in answers.framework.items()},
            "version": assumed(answers.framework["version"], "the newest image"),
        },
        "model": {
            "family": Value(next(families, "custom")),
            "name": Value(named if is_name else answers.name),
        },
        "training": _training(script, answers, hours),
        "shapes": {
            "static": Value(not changing, "whether every step has the same tensor shapes"),
            **longest,
            "drop_last": Value(
                "ragged-last-batch" not in script.findings,
                "whether a smaller last batch is left out",
            ),
        },
        "schedule": {
            "runs_per_week": _answered(answers.runs_per_week, RUNS_PER_WEEK, "of production"),
            "run_hours": hours,
        },
        "quality": _quality(script, answers.margin),
    }


def _answered(answer: Any, default: Any, note: str) -> Value:
    return assumed(default, note) if answer is None else Value(answer, note)


def _training(script: Description, answers: Answers, hours: Value) -> Section:
    instance = _answered(answers.instance_type, INSTANCE_TYPE, "where production trains")
    inputs, data_places = _inputs(script, answers.data)
    return {
        "source_dir": Value(answers.source_dir),
        "entry_point": Value(LAUNCHER, "starts the script below, unchanged"),
        "instance_type": instance,
        "instance_count": Value(1),
        "distribution": Value("none", "several GPUs: torch_distributed"),
        "precision": _precision(script),
        "batch_size": _setting(
            script, "batch_size", to_write("samples per GPU and step", stand_in=1)
        ),
        "learning_rate": _setting(
            script, "learning_rate", to_write("the optimizer's first", stand_in=0.001)
        ),
        "hyperparameters": Value(dict(_hyperparameters(script, answers, data_places))),
        "inputs": inputs,
        "max_runtime_hours": Value(limit_of(hours.value), "a job is stopped after them", ASSUMED),
    }


def _setting(script: Description, key: str, unknown: Value) -> Value:
    """A trial's setting: the option's default, else the Trainer's, or the constant in the code."""
    option = find(script, key)
    if option and _is_number(option.default):
        return Value(option.default, f"--{option.name}")
    if option:
        why = "which has no default"
        if option.unread:
            why = "whose default could not be read"
        elif option.default is not None:
            why = "whose default is no number above 0"
        return replace(unknown, note=f"--{option.name}, {why}: {unknown.note}")
    if script.kind == "trainer":
        each_its_own = key == "learning_rate" and "trl" in script.packages
        return unknown if each_its_own else Value(TRAINER[key], "the Trainer's default")
    if key in script.constants:
        return Value(script.constants[key], "in the code, which no candidate can change")
    return unknown


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and value > 0


def _precision(script: Description) -> Value:
    option = _precision_option(script)
    for precision, spelled in SPELLED.items():
        if option and str(option.default).lower() in spelled:
            return Value(precision, f"--{option.name}")
    for switch in ("bf16", "fp16"):
        option = find(script, switch)
        if option and option.default is True:
            return Value(switch, f"--{option.name}")
    if script.precision:
        return Value(script.precision, "in the code")
    if script.kind == "trainer":
        return Value("fp32", "the Trainer's default")
    return assumed("fp32", "the script names none")


def _precision_option(script: Description) -> Option | None:
    """The option that takes a precision by its name."""
    option, switch = find(script, "precision"), find(script, "amp")
    if not option or option.switch:
        return None
    if switch and switch.switch and switch.default is not True:
        return None  # it says in which precision, once the switch is on
    every = {word for words in SPELLED.values() for word in words}
    spellings = {str(word).lower() for word in (option.default, *option.choices)} & every
    return option if spellings else None


def _hyperparameters(
    script: Description, answers: Answers, data_places: Mapping[str, str]
) -> Iterator[tuple[str, Value]]:
    takes = script.command_line
    yield "script", Value(answers.script)
    if script.kind != script.guessed_kind:
        yield "script_kind", Value(script.kind, _KINDS[script.kind])
    if takes.positional:
        words = " ".join([takes.subcommand, *takes.positional]).strip()
        yield "positional", to_write(f"comes before the arguments: {words}")
    elif takes.subcommand:
        yield "positional", Value(takes.subcommand, "comes before the arguments")
    if style := _style(takes):
        yield "argument_style", style
    unread = takes.unread or (takes.partly and None in (find(script, key) for key in USUAL))
    spelled = {} if unread else dict(_argument_names(script))
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
    yield from _length(script, answers.samples)
    for name in script.asks:
        yield name, Value(True)
    for option in takes.options:
        if option.name in data_places:
            yield option.name, Value(data_places[option.name], "where a job finds the channel")
        elif option.required and option.name not in spelled.values():
            yield option.name, to_write("the script requires it")


def _style(takes: CommandLine) -> Value | None:
    """How the arguments are written; None where it is as usual."""
    if style := argument_style(takes):
        return Value(*style)
    if takes.unread and takes.reader not in WORDS:
        return to_write("words (--name value), equals (--name=value) or hydra (name=value)")
    return None


def _argument_names(script: Description) -> Iterator[tuple[str, str | None]]:
    """What differs from how the launcher calls a trial's settings for this kind of script."""
    if script.kind == "trainer":
        return
    accelerate = script.kind == "accelerate"
    for key, usual in (ACCELERATE if accelerate else USUAL).items():
        option = find(script, key)
        if not option or option.name != usual:
            yield key, option.name if option else None
    steps = find(script, "steps")
    if steps and not (accelerate and steps.name == "max_train_steps"):
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


def _length(script: Description, answer: int | None) -> Iterator[tuple[str, Value]]:
    """The length of a whole run, which a Trainer counts itself."""
    if script.kind == "lightning":
        option = find(script, "max_epochs")
        if option and _is_number(option.default):
            text = "Lightning's default, as nothing in the code says how long a run is"
            yield option.name, assumed(option.default, text)
    if script.kind in ("trainer", "lightning"):
        return
    steps, epochs = find(script, "steps"), find(script, "epochs")
    if steps and _is_number(steps.default):
        yield "full_run_steps", Value(int(steps.default), f"--{steps.name}")
        return
    times = epochs.default if epochs else script.constants.get("epochs")
    times = times if _is_number(times) else 0
    shown = f"epochs ({times:g})" if times else "epochs"
    length = to_write(f"training samples times {shown}")
    if answer and times:
        length = Value(int(answer * times), length.note)
    elif answer:
        length = assumed(answer, "training samples, of one epoch")
    elif script.data and times:
        name, samples = script.data
        length = assumed(int(samples * times), f"{samples:,} samples of {name} times {shown}")
    yield "full_run_samples", length


def _inputs(script: Description, data: Data | None) -> tuple[Value, dict[str, str]]:
    """The project's own data, else what the script needs from elsewhere; its places, by option."""
    if data:
        return Value({CHANNEL: data.path}, f"channels: {_SOURCE}"), {data.option: data.place}
    if script.channels:
        note = f"the script reads this channel: {_SOURCE}"
        return Value({channel: to_write(note) for channel in script.channels}), {}
    option = find(script, "data")
    if not option:
        return Value({}, f"channels: {_SOURCE}"), {}
    place, is_file = f"{INPUTS}/{CHANNEL}", option.plain.endswith("file")
    if option.required and not is_file:
        note = f"for {option.name}: {_SOURCE}; add a single file's name above"
        return Value({CHANNEL: to_write(note)}), {option.name: place}
    above = f"and above {option.name}: {place}{'/FILE' if is_file else ''}"
    return Value({}, f"data of its own: {{{CHANNEL}: PATH}}, {above}"), {}


def usual_margin(metric: Metric) -> float | None:
    """What is assumed where the acceptable loss is not given, in the metric's unit.

    None for a metric of no usual size.
    """
    if UNSCALED.search(metric.name):
        return None
    return MARGINS[metric.goal] * (PERCENT if metric.percent else 1)


def _quality(script: Description, margin: float | None) -> Section:
    stopping = Value(True, "the script may end a run by its metric")
    early = {"early_stopping": stopping} if script.stops_early else {}
    if script.metrics:
        metric = script.metrics[0]
        note = "the largest loss that you accept, in the metric's unit"
        usual = usual_margin(metric)
        if metric.goal == "minimize" and margin is None:
            note += ", about 1 % of its value; 0.02 suits a value near 2"
        return {
            "metric": Value(metric.name),
            "goal": Value(metric.goal),
            "margin": to_write(note, 0.01)
            if usual is None and margin is None
            else _answered(margin, usual, note),
            **early,
        }
    reported = "what it reports of held-out data, such as eval_loss; a printed one needs "
    return {
        "metric": to_write(f"{reported}metric_patterns", stand_in="metric"),
        "goal": to_write("maximize or minimize", stand_in="minimize"),
        "margin": to_write("the largest loss that you accept, in its unit", stand_in=0.01),
        **early,
    }


def limit_of(hours: float) -> float:
    """Hours after which a job of a whole run of so many is stopped."""
    return min(max(hours * RUNTIME_MARGIN, LEAST_LIMIT_HOURS), MOST_HOURS)


def with_cap(proposal: Proposal, settings: Settings) -> Proposal:
    """The proposal with one candidate and a cap that its trial fits into.

    Raises InvalidInputError for an answer that no workload file may hold.
    """
    candidates = Value([{"name": "compile", "compiler": "torch_compile"}])
    try:
        workload = parse_workload(document_of({**proposal, "candidates": candidates}, priced=True))
    except InvalidInputError as error:
        raise error.in_file("") from error
    facts = facts_for_workload(workload, settings)
    usd = check_eligibility(workload, facts, region=settings.region).economics.trial_usd
    cap = assumed(Policy().max_trial_usd, "there is no price to estimate by")
    if usd:
        note = f"a trial is expected to cost {money(usd)}; it never costs more than this"
        unit = 10.0 ** (math.floor(math.log10(usd * COST_MARGIN)) - 1)
        cap = Value(round(math.ceil(usd * COST_MARGIN / unit) * unit, 10), note, ASSUMED)
    return {**proposal, "policy": {"max_trial_usd": cap}, "candidates": candidates}


def document_of(item: Any, *, priced: bool = False) -> Any:
    """The plain document, for an estimate of the price with what stands in for open values."""
    if isinstance(item, Value):
        open_ = priced and item.origin == OPEN
        return item.stand_in if open_ else document_of(item.value, priced=priced)
    if isinstance(item, Mapping):
        return {key: document_of(inner, priced=priced) for key, inner in item.items()}
    return item


def places(proposal: Any, origin: str, path: str = "") -> Iterator[str]:
    """The dotted paths of the values of one origin."""
    if isinstance(proposal, Value):
        if proposal.origin == origin:
            yield path
        proposal = proposal.value
    if isinstance(proposal, dict):
        for key, inner in proposal.items():
            yield from places(inner, origin, f"{path}.{key}" if path else key)


def lines(key: str, item: Any, indent: str = "") -> list[str]:
    """A key of the file with its value and, beside it, what is said of it."""
    note = f"  # {item.note}" if isinstance(item, Value) and item.note else ""
    value = item.value if isinstance(item, Value) else item
    if isinstance(value, dict) and value:
        inner = [line for name, part in value.items() for line in lines(name, part, f"{indent}  ")]
        return [f"{indent}{key}:{note}", *inner]
    if isinstance(value, list):
        rows = (", ".join(f"{name}: {scalar(text)}" for name, text in row.items()) for row in value)
        return [f"{indent}{key}:", *(f"{indent}  - {{{row}}}" for row in rows)]
    key = key if _PLAIN.fullmatch(key) else f"'{key}'"
    return [f"{indent}{key}: {'{}' if value == {} else scalar(value)}{note}"]


def scalar(value: Any) -> str:
    """A plain value as YAML; text in quotes where it would be read otherwise."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, int | float):
        text = f"{value:.10g}"
        # To readers of YAML 1.1, 5e-05 is text.
        return text.replace("e", ".0e") if "e" in text and "." not in text else text
    text = str(value)
    if _PLAIN.fullmatch(text) and not text.endswith(":"):
        try:
            if plain_value(text) == text:
                return text
        except ValueError:
            pass  # a number to another base
    return "'" + text.replace("'", "''") + "'"
