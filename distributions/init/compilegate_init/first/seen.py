"""What one observed run of a script says (training/compilegate_runtime/observing)."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from compilegate.domain.arithmetic import deviation, mean
from compilegate_doctor import CommandLine, Metric, Option, metric_named, metrics_in_line

# Share of the first steps that is not counted as steady, and the fewest that are.
WARM_UP_SHARE, FEWEST_CALM = 0.2, 3
# Parsers by their class, in the doctor's words.
READERS = {
    "argparse": "argparse", "transformers": "dataclasses", "trl": "dataclasses",
    "lightning": "lightning", "pytorch_lightning": "lightning", "jsonargparse": "lightning",
    "click": "click", "typer": "typer",
}  # fmt: skip
# A Trainer's own training figures, which are no quality.
_TRAINING = re.compile(r"^(train|training)_|_step$|^(lr|epoch|step|learning_rate)$")
_HELD_OUT = re.compile(r"(^|[^a-z])(e?val|valid|validation|test|dev|held)", re.IGNORECASE)


@dataclass(frozen=True)
class Pace:
    """Mean seconds of a steady step, its standard error as a share, and what others took beyond."""

    step_seconds: float
    error: float
    overhead_seconds: float
    steps: int


@dataclass(frozen=True)
class Reported:
    """A metric with the value that it had, and how it was reported: logged or printed."""

    metric: Metric
    value: float
    how: str


@dataclass(frozen=True)
class Seen:
    """One run; ``facts`` is its document."""

    facts: Mapping[str, Any]

    @property
    def steps(self) -> list[dict[str, Any]]:
        """One entry for each optimizer step, in order."""
        return list(self.facts.get("steps") or ())

    @property
    def ended(self) -> Mapping[str, Any]:
        """How the script ended; empty where it was killed."""
        return self.facts.get("ended") or {}

    def pace(self) -> Pace | None:
        """None where too few steps are steady: nothing is compiled in one."""
        steps = self.steps
        first = max(1, int(len(steps) * WARM_UP_SHARE))
        calm = [one["seconds"] for one in steps[first:] if not one["compiled"]]
        if len(calm) < FEWEST_CALM:
            return None
        steady = mean(calm)
        error = deviation(calm) / math.sqrt(len(calm)) / steady
        others = [one["seconds"] - steady for i, one in enumerate(steps)
                  if i < first or one["compiled"]]  # fmt: skip
        spent = float((self.facts.get("compiler") or {}).get("compile_seconds") or 0.0)
        return Pace(steady, error, max(sum(others), spent, 0.0), len(steps))

    def command_line(self) -> CommandLine | None:
        """The arguments of the parser that took most, None where none was asked."""
        parsers = self.facts.get("parsers") or []
        if not parsers:
            return None
        most = max(parsers, key=lambda one: len(one["options"]))
        root = most["reader"].partition(".")[0]
        positional = [] if most is parsers[0] else parsers[0]["positional"]
        return CommandLine(
            READERS.get(root, "argparse"),
            tuple(Option(
                name=one["name"], default=one["default"], required=one["required"],
                switch=one["switch"], choices=tuple(one["choices"]),
                also=tuple(name for name in one["also"] if name != one["name"]),
            ) for one in most["options"]),
            (*positional, *most["positional"]),
            subcommand=next((one["subcommand"] for one in parsers if one["subcommand"]), ""),
        )  # fmt: skip

    @property
    def precision(self) -> tuple[str, str]:
        """The trial's word for it, and how it was seen."""
        weights, types = self.facts.get("weights") or [], set(self.facts.get("types") or ())
        for kind, word in (("bfloat16", "bf16"), ("float16", "fp16")):
            if kind in types:
                how = "weights" if kind in weights else "autocast"
                return word, f"{kind} {how}"
        if self.facts.get("device") == "cuda" and self.facts.get("matmul") != "highest":
            return "tf32", f"float32, matrix products in {self.facts.get('matmul')} precision"
        return "fp32", f"weights of {', '.join(weights) or 'float32'}, no autocast"

    def first_shapes(self) -> str:
        """``input [32, 128] int64, …`` of the first call."""
        shapes = self.facts.get("shapes") or []
        return ", ".join(_shape(one) for one in shapes[0][1]) if shapes else ""

    def moving(self) -> list[str]:
        """The dimensions that differ between the batches of one model, the batch's left out."""
        matches: dict[str, None] = {}
        for alike in self._by_call():
            for index, (name, first, _) in enumerate(alike[0]):
                every = [one[index][1] for one in alike]
                if any(len(one) != len(first) for one in every):
                    matches[f"{name}: its dimensions"] = None
                    continue
                for place in range(len(first)):
                    sizes = sorted({one[place] for one in every})
                    if len(sizes) > 1 and not (place == 0 and self._only_the_last(sizes)):
                        text = f"{name} dimension {place}: {sizes[0]} to {sizes[-1]}"
                        matches[text] = None
        return list(matches)

    def _by_call(self) -> Iterator[list[list[list[Any]]]]:
        """The shapes of each model's calls that take the same tensors."""
        groups: dict[tuple[Any, ...], list[list[list[Any]]]] = {}
        for model, call in self.facts.get("shapes") or ():
            groups.setdefault((model, *(name for name, *_ in call)), []).append(call)
        yield from (group for group in groups.values() if group[0])

    def _only_the_last(self, sizes: Sequence[int]) -> bool:
        """Whether a smaller batch is what an epoch leaves over."""
        loader = self.loader
        size, samples = loader.get("batch_size"), loader.get("samples")
        return bool(size and samples and sizes == sorted({samples % size, size}))

    @property
    def loader(self) -> Mapping[str, Any]:
        """The training loader; empty where there is none."""
        return self.facts.get("loader") or {}

    @property
    def ragged(self) -> bool | None:
        """Whether an epoch's last batch is smaller, None where that is not known."""
        size, samples = self.loader.get("batch_size"), self.loader.get("samples")
        if not size or not samples:
            return None
        return bool(samples % size) and not self.loader.get("drop_last")

    @property
    def batch_size(self) -> int | None:
        """Samples of a batch: the loader's, else those of a step."""
        size = self.loader.get("batch_size") or (self.steps[0]["samples"] if self.steps else None)
        return int(size) if size else None

    @property
    def learning_rate(self) -> float | None:
        """Of the first step; a schedule may warm up from 0."""
        rate = self.steps[0]["learning_rate"] if self.steps else None
        return float(rate) if isinstance(rate, int | float) and rate > 0 else None

    def reported(self, read: Sequence[Metric] = ()) -> list[Reported]:
        """The metrics that it reported, the likeliest quality first; ``read`` are its code's."""
        logged = {name: float(value) for name, value in (self.facts.get("metrics") or {}).items()
                  if isinstance(value, int | float)}  # fmt: skip
        matches = [Reported(one, logged[one.name], "logged") for one in read if one.name in logged]
        names = [name for name in logged if not _TRAINING.search(name)]
        for name in sorted(names, key=lambda name: not _HELD_OUT.search(name)):
            if metric := metric_named(name):
                matches.append(Reported(metric, logged[name], "logged"))
        lines = [text for _, text in self.facts.get("lines") or ()]
        of_code = [one for one in read if one.pattern]
        matches += (one for metric in of_code for one in _matches(metric, lines))
        for line in reversed(lines):
            matches += (one for metric in metrics_in_line(line) for one in _matches(metric, lines))
        by_name: dict[str, Reported] = {}
        for one in matches:
            by_name.setdefault(one.metric.name, one)
        held_out = [one for one in by_name.values() if one.metric.goal == "maximize"]
        first = matches[:1] if matches and matches[0].metric in read else held_out[:1]
        return [*first, *(one for one in by_name.values() if one not in first)]


def _matches(metric: Metric, lines: Sequence[str]) -> Iterator[Reported]:
    pattern = re.compile(metric.pattern or "$^")
    for line in reversed(lines):
        matches = pattern.findall(line)
        if matches:
            try:
                yield Reported(metric, float(matches[-1].rstrip("., ")), "printed")
            except ValueError:
                continue
            return


def _shape(tensor: Sequence[Any]) -> str:
    name, sizes, kind = tensor
    return f"{name} {sizes} {kind}"
