"""How far a stack of small gains comes, and how often it loses a margin or more in all.

    python -m benchmarks.small_gains.stacks [--trials 200] [--jobs 2] [--cells "1.01"]

Five candidates are tried one after the other with ``policy.small_wins``, each on top of what is on
by then, with the walls and blocks of real runs (__main__.py) in canary mode. Losses are in margins.
Results go to stacks.json, those of cells that are played again in place of the old ones, and into
the page.
"""

from __future__ import annotations

import math
import sys
import zlib
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.decision.driver import Driver
from benchmarks.decision.play import NO_BUDGET
from benchmarks.decision.truth import BASELINE, Arm, Steps, Workload
from benchmarks.small_gains.__main__ import (
    MISSED,
    MOST,
    SEED,
    STEPS,
    Cell,
    RealSeconds,
    past,
    read,
)
from benchmarks.small_gains.command import play_cells, show
from compilegate.domain.spreads import learn
from compilegate.domain.workload.model import Policy

RESULTS = Path(__file__).parent / "stacks.json"
LAYERS = 5
ON, CANDIDATE = "on", "candidate"
LEAST_GAIN = 1.0025


@dataclass(frozen=True)
class Stack:
    """Five candidates of one gain and one loss each; ``spread`` is the metric's sd in margins."""

    name: str
    gain: float
    loss: float = 0.0
    spread: float = 0.4
    missed: float = 0.0


STACKS = (
    Stack("1.01", 1.01),
    Stack("1.01, blocks off by 0.95 %", 1.01, missed=MISSED),
    Stack("1.005", 1.005),
    Stack("1, nothing gained", 1.0, missed=MISSED),
    Stack("1.01, a fifth of the margin lost by each", 1.01, loss=0.2),
    Stack("1.01, a fourth of the margin lost by each", 1.01, loss=0.25),
    Stack("1.01, half of the margin lost by each", 1.01, loss=0.5),
    Stack("1.01, the margin lost by each", 1.01, loss=1.0),
)


@dataclass(frozen=True)
class Layer:
    """What became of one candidate: whether it is on, its full runs, and why not."""

    promoted: bool
    runs: int
    code: str


@dataclass
class Stacked(RealSeconds):
    """A world with what is on beside the baseline and a candidate."""

    faster: Mapping[str, float] = field(default_factory=dict)

    def times_faster(self, name: str) -> float:
        """As the stack has it."""
        return self.faster.get(name, 1.0)


def play(stack: Stack, index: int) -> list[Layer]:
    """The stack of that number, candidate by candidate."""
    rng = np.random.default_rng((SEED, zlib.crc32(stack.name.encode()), index))
    layers: list[Layer] = []
    for _ in range(LAYERS):
        layers.append(_layer(stack, index, sum(one.promoted for one in layers), rng))
    return layers


def _layer(stack: Stack, index: int, below: int, rng: np.random.Generator) -> Layer:
    """The trial of one candidate on top of so many that are on."""
    walls, steps = read("walls.csv"), read("steps.csv")
    group, pair = list(walls)[index % len(walls)], list(steps)[index % len(steps)]
    on = [Arm(ON, loss=below * stack.loss, only_compiler=False)] if below else []
    top = Arm(CANDIDATE, loss=(below + 1) * stack.loss, only_compiler=False)
    workload = Workload(
        name="small-gain", margin=1.0, spread=stack.spread, level=0.0,
        history=tuple(stack.spread * rng.standard_normal(8)), history_pace=(),
        steps=Steps(1.0, STEPS, 0.0, 0.0), devices=8, runs_per_week=7, weeks_left=104,
        arms=(Arm(BASELINE), *on, top),
    )  # fmt: skip
    world = Stacked(
        workload, rng, cell=Cell(stack.name, stack.gain, missed=stack.missed),
        walls=np.array([float(one) for one in walls[group]]),
        segments=tuple(tuple(map(float, one.split())) for one in steps[pair]),
        faster={ON: stack.gain**below, CANDIDATE: stack.gain ** (below + 1)},
    )  # fmt: skip
    policy = Policy(
        small_wins=LEAST_GAIN, quality_runs="canary", max_quality_runs=MOST, max_trial_usd=NO_BUDGET
    )
    driver = Driver(world, policy)
    driver.evidence = replace(
        driver.evidence,
        on_top_of=ON if below else "",
        plan=replace(driver.evidence.plan, spreads=learn(*past(world.cell, world))),
    )
    ending = driver.trial()
    runs = len(driver.evidence.arms[-1].quality)
    code = ending.reasons[0].code if ending.reasons else ""
    return Layer(ending.verdict == "promote", runs, code)


def figures(stack: Stack, played: Sequence[Sequence[Layer]]) -> Mapping[str, Any]:
    """Layers and runs of a stack on average, and shares of stacks in per cent."""
    on = [sum(one.promoted for one in layers) for layers in played]
    runs = [one.runs for layers in played for one in layers if one.promoted]
    # Trials whose candidate would take the whole stack to a margin or beyond: promoting is wrong.
    edge = [
        layer.promoted
        for layers in played
        for place, layer in enumerate(layers)
        if (1 + sum(one.promoted for one in layers[:place])) * stack.loss >= 1 - 1e-9
    ]
    wrong = sum(edge) / len(edge) if edge else 0.0
    codes = Counter(one.code for layers in played for one in layers if not one.promoted)
    return {
        "cell": stack.name,
        "stacks": len(played),
        "layers_on": round(float(np.mean(on)), 2),
        "stacks_by_layers": [on.count(count) for count in range(LAYERS + 1)],
        "speedup": round(float(np.mean([stack.gain**count for count in on])), 4),
        "runs_of_a_layer": round(float(np.mean(runs)), 1) if runs else None,
        "trials_at_the_margin": len(edge),
        "wrong_percent": round(100 * wrong, 2),
        "se": round(100 * math.sqrt(wrong * (1 - wrong) / max(len(edge), 1)), 2),
        "stacks_beyond": sum(count * stack.loss >= 1 - 1e-9 for count in on),
        "why_not": dict(sorted(codes.items())),
    }


def _play(asked: tuple[Stack, int]) -> list[Layer]:
    return play(*asked)


def write_page(cells: Sequence[Mapping[str, Any]]) -> None:
    """The table of the page, between its markers."""
    head = [
        "each gains", "on, of 5", "the stack", "runs of a layer", "stacks that lose a margin",
        "trials at the margin", "of these promoted, %", "stacks",
    ]  # fmt: skip
    rows = [
        [
            one["cell"], f"{one['layers_on']:.2f}", f"{one['speedup']:.3f}x",
            "-" if one["runs_of_a_layer"] is None else f"{one['runs_of_a_layer']:.1f}",
            str(one["stacks_beyond"]), str(one["trials_at_the_margin"]),
            f"{one['wrong_percent']:.1f} ± {one['se']:.1f}" if one["trials_at_the_margin"] else "-",
            str(one["stacks"]),
        ]
        for one in cells
    ]  # fmt: skip
    show("stacks", head, rows)


def main() -> None:
    """Play what was asked for."""
    play_cells(sys.modules[__name__], STACKS, _play, figures, trials=200)


if __name__ == "__main__":
    main()
