"""The workload file of a script that was seen: what was read of it, put right, with the proofs."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from compilegate_doctor import CommandLine, Description, Option
from compilegate_init.first.seen import Reported, Seen
from compilegate_init.project import keras_backend
from compilegate_init.proposal import (
    NAMES,
    OPEN,
    RUNTIME_MARGIN,
    Answers,
    Value,
    find,
    limit_of,
    propose,
    to_write,
)

Proposal = dict[str, Any]
# Of the value of a metric, where no spread is known.
MARGIN_SHARE = 0.01
# Spreads of two seeds that a margin should be, so that it can be told from chance.
SPREADS = 2.0


@dataclass(frozen=True)
class Passed:
    """The words after ``--`` that the script took: by option, and those that stand alone."""

    options: Mapping[str, Any]
    switches: tuple[str, ...]
    alone: tuple[str, ...]


def passed_words(words: Sequence[str], takes: CommandLine) -> Passed:
    """The words by the options that take them."""
    by_word = {word: one for one in takes.options for word in (one.name, *one.also)}
    left, options = list(words), dict[str, Any]()
    switches: list[str] = []
    alone: list[str] = []
    while left:
        word = left.pop(0)
        name, equals, value = word.lstrip("-").partition("=")
        option = by_word.get(name) if word.startswith("-") or equals else None
        if option is None:
            alone.append(word)
        elif option.switch and not equals:
            switches.append(option.name)
        elif equals or left:
            options[option.name] = _plain(value if equals else left.pop(0))
    return Passed(options, tuple(switches), tuple(alone))


def _plain(text: str) -> Any:
    for kind in (int, float):
        try:
            number = kind(text)
        except ValueError:
            continue
        return number if math.isfinite(number) else text
    return text


def corrected(read: Description, seen: Seen, words: Sequence[str]) -> Description:
    """What was read of a script, with what was seen in place of it."""
    takes = seen.command_line() or read.command_line
    if takes.reader == read.command_line.reader == "lightning":
        takes = read.command_line  # which knows the classes that its options belong to
    passed = passed_words(words, takes)
    # Of a script whose constants a file of settings overrides.
    set_here = seen.facts.get("globals") or {} if takes.reader == "constants" else {}
    passed_or_set = {**set_here, **passed.options}
    options = tuple(
        replace(one, default=passed_or_set.get(one.name, one.default)) for one in takes.options
    )
    managed = seen.facts.get("managed")
    kind = "lightning" if managed == "lightning" else read.kind
    if managed == "trainer" and takes.reader == "dataclasses":
        kind = "trainer"
    packages = frozenset(seen.facts.get("packages") or read.packages)
    reported = seen.reported(read.metrics)
    metrics = tuple(
        replace(one.metric, pattern=None if one.how == "logged" and managed else one.metric.pattern)
        for one in reported
    )
    return replace(
        read, command_line=replace(takes, options=options), kind=kind, packages=packages,
        metrics=metrics or read.metrics, precision=seen.precision[0], trains=True, steps=True,
        optional=frozenset(),
    )  # fmt: skip


def proposed(
    read: Description,
    seen: Seen,
    answers: Answers,
    words: Sequence[str],
    spread: float | None,
    *,
    compiled: Sequence[Seen] = (),
    follows_seed: bool | None = None,
) -> Proposal:
    """The file but its cap, each value with how it was seen; what is asked and open is TODO.

    ``spread`` is how far the metric of two seeds lies apart, ``follows_seed`` whether they began
    with different weights; None where that is not known. ``compiled`` are the runs with a compiler.
    """
    proposal: Proposal = {**propose(read, answers)}
    passed = passed_words(words, read.command_line)
    training = proposal["training"] = dict(proposal["training"])
    values = training["hyperparameters"] = dict(training["hyperparameters"].value)
    version = f"the newest image; here it ran with torch {seen.facts['torch']}"
    proposal["framework"] = dict(proposal["framework"]) | {
        "version": replace(proposal["framework"]["version"], note=f"assumed; {version}")
    }
    training["precision"] = Value(seen.precision[0], _seen(seen.precision[1]))
    if backend := keras_backend(read):
        training["environment"] = {
            name: Value(value, _seen("set here")) for name, value in backend.items()
        }
    _size_and_rate(training, read, seen)
    values |= dict(_arguments(read, seen, passed, values))
    values |= dict(_length(read, seen, values))
    if follows_seed is False and find(read, "seed"):
        values["argument_names"] = _without_seed(values.get("argument_names"))
    proposal["shapes"] = dict(_shapes(seen, proposal["shapes"]))
    quality = _quality(proposal.pop("quality"), read, seen, answers.margin, spread)
    profile = dict(_compiling(compiled, seen))
    proposal |= ({"profile": profile} if profile else {}) | {"quality": quality}
    _ask(proposal, answers)
    return proposal


def _seen(what: str) -> str:
    return f"seen: {what}"


def _size_and_rate(training: Proposal, read: Description, seen: Seen) -> None:
    for key, value, what in (
        ("batch_size", seen.batch_size, f"first batches {seen.first_shapes()}"),
        ("learning_rate", seen.learning_rate, "the optimizer's rate in the first step"),
    ):
        before, option = training[key], find(read, key)
        if value is None:
            continue
        name = f"--{option.name}, " if option else "in the code, "
        # A schedule may begin below the rate that the script was given.
        stays = key == "learning_rate" and before.origin != OPEN and before.value != value
        text = f"{before.value:g} given, {value:g} in the first step" if stays else what
        training[key] = Value(before.value if stays else value, name + _seen(text))


def _arguments(
    read: Description, seen: Seen, passed: Passed, values: Mapping[str, Value]
) -> Iterator[tuple[str, Value]]:
    takes = read.command_line
    if seen.command_line() and "argument_names" in values:
        count = len(takes.options)
        names = values["argument_names"]
        yield "argument_names", replace(names, note=_seen(f"{takes.reader}, {count} arguments"))
    settings = {option.name for key in ("batch_size", "learning_rate", "seed", "steps", "precision")
             if (option := find(read, key))}  # fmt: skip
    if passed.alone:
        yield "positional", Value(" ".join(passed.alone), "as given")
    for name, value in passed.options.items():
        if name not in settings and name not in values:
            yield name, Value(value, "as given")
    switches = [name for name in passed.switches if name not in values]
    if switches:
        yield "flags", Value(",".join(switches), "switches without a value, as given")
        for name in switches:
            yield name, Value(True, "as given")


def _without_seed(names: Value | None) -> Value:
    """The launcher then moves the seeds that the script sets itself."""
    others = {} if names is None else json.loads(names.value)
    note = _seen("another seed starts with the same weights, so its argument is not passed")
    return Value(json.dumps({**others, "seed": None}), note)


def _length(
    read: Description, seen: Seen, values: Mapping[str, Value]
) -> Iterator[tuple[str, Value]]:
    """Samples of a whole run: an epoch's, as the loader counts them, times the epochs."""
    if "full_run_samples" not in values:
        return
    samples, option = seen.loader.get("samples"), find(read, "epochs")
    times = option.default if option else read.constants.get("epochs")
    batches, size = seen.loader.get("batches"), seen.batch_size
    if not samples and batches and size:
        samples = batches * size
    if not samples:
        return
    if isinstance(times, int | float) and not isinstance(times, bool) and times > 0:
        said = f"--{option.name} {times:g}" if option else f"{times:g} epochs in the code"
        text = f"{samples:,} samples an epoch, {said}"
        yield "full_run_samples", Value(int(samples * times), _seen(text))
    else:
        text = f"times the epochs of a whole run; seen: {samples:,} samples an epoch"
        yield "full_run_samples", to_write(text, samples)


def _shapes(seen: Seen, before: Mapping[str, Value]) -> Iterator[tuple[str, Value]]:
    moving = seen.moving()
    still = f"{seen.first_shapes()} in each of {seen.facts.get('calls')} calls"
    yield "static", Value(not moving, _seen("; ".join(moving) if moving else still))
    if moving and "padding" in before:
        yield "padding", before["padding"]
    ragged = seen.ragged
    if ragged is None:
        yield "drop_last", before["drop_last"]
        return
    size, samples = seen.loader["batch_size"], seen.loader["samples"]
    left = samples % size
    text = f"{samples:,} samples in batches of {size}" + (f" leave {left}" if left else "")
    yield "drop_last", Value(not ragged, _seen(text))


def _compiling(compiled: Sequence[Seen], seen: Seen) -> Iterator[tuple[str, Value]]:
    """How long the first run with a compiler compiled, and the second, which had its cache."""
    facts = [run.facts.get("compiler") or {} for run in compiled]
    seconds = [one.get("compile_seconds") for one in facts]
    cold, warm = (*seconds, None, None)[:2]
    where = f"on {seen.facts['device']}, "
    if cold and warm and warm <= cold:
        yield "compile_seconds", Value(warm, _seen(f"{where}with the cache of the run before"))
    if cold:
        yield "compile_seconds_cold", Value(cold, _seen(f"{where}with an empty cache"))


def margin_for(reported: Reported, spread: float | None) -> float:
    """The loss of a metric that is proposed: what two seeds differ by, or a share of its value."""
    wide = max(abs(reported.value) * MARGIN_SHARE, SPREADS * (spread or 0.0))
    return float(f"{wide:.2g}") if wide > 0 else MARGIN_SHARE


def spread_of(name: str, first: Seen, second: Seen, read: Description) -> float | None:
    """How far a metric of two seeds lies apart, None where one of them has not reported it."""
    values = [one.value for run in (first, second) for one in run.reported(read.metrics)
              if one.metric.name == name]  # fmt: skip
    return abs(values[0] - values[1]) if len(values) == 2 else None


def _quality(
    before: Mapping[str, Value], read: Description, seen: Seen, margin: float | None,
    spread: float | None,
) -> dict[str, Value]:  # fmt: skip
    reported = seen.reported(read.metrics)
    section = dict(before)
    if not reported or not read.metrics:
        if "margin" in section and margin is None:
            section["margin"] = to_write(section["margin"].note.removeprefix("assumed; "), 0.01)
        if read.metrics:
            section["metric"] = replace(section["metric"], note="read; the short run reported none")
        return section
    first = reported[0]
    how = _seen(f"{first.how}, {first.value:g} after {len(seen.steps)} steps")
    section["metric"] = Value(first.metric.name, how)
    if margin is not None:
        section["margin"] = Value(margin, "the largest loss that you accept")
    else:
        apart = "" if spread is None else f"; two seeds differ by {spread:.2g} here"
        text = f"the largest loss that you accept, such as {margin_for(first, spread):g}{apart}"
        section["margin"] = to_write(text, margin_for(first, spread))
    return section


def _ask(proposal: Proposal, answers: Answers) -> None:
    """TODO for what only a person knows and has not said."""
    training, schedule = proposal["training"], dict(proposal["schedule"])
    hours = schedule["run_hours"].value
    for section, key, answer, note in (
        (training, "instance_type", answers.instance_type, "where production trains, such as "
         f"{training['instance_type'].value}"),
        (schedule, "runs_per_week", answers.runs_per_week, "of production"),
        (schedule, "run_hours", answers.run_hours, "hours of a whole run today"),
        (training, "max_runtime_hours", answers.run_hours, "after which a job is stopped: "
         f"{RUNTIME_MARGIN} times the hours of a whole run"),
    ):  # fmt: skip
        if answer is None:
            section[key] = to_write(note, section[key].value)
    if answers.run_hours is not None:
        training["max_runtime_hours"] = Value(limit_of(hours), "a job is stopped after them")
    proposal["schedule"] = schedule


def requirements_of(seen: Seen, in_images: set[str]) -> list[str]:
    """Lines of a requirements.txt: what was imported and an image lacks, as it was here."""
    packages = seen.facts.get("packages") or {}
    rows = {
        f"{owner}=={str(version).partition('+')[0]}" if version else owner
        for name, (owner, version) in packages.items()
        if owner and name not in in_images and name not in NAMES["with_torch"]
    }
    # A release of torch brings its own of these.
    return sorted(rows | (set(NAMES["with_torch"]) & set(packages)))


def seed_words(read: Description, seed: int) -> list[str] | None:
    """The words by which the script takes a seed, None where it takes none."""
    option: Option | None = find(read, "seed")
    if option is None or option.switch:
        return None
    if read.command_line.reader in ("constants", "absl", "hydra"):
        return [f"{'' if read.command_line.reader == 'hydra' else '--'}{option.name}={seed}"]
    dashes = "-" if len(option.name) == 1 else "--"
    return [f"{dashes}{option.name}", str(seed)]
