"""Pictures of pages, drawn from what the judge itself answers on invented runs."""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from math import exp
from typing import Any

from compilegate.domain.decision import SHADOW, Decision, QualityStep, SpeedStep
from compilegate.domain.judging.evidence_file import read_evidence
from compilegate.domain.judging.judge import judge
from compilegate.domain.naming import MACHINES
from compilegate.domain.workload.model import BASELINE
from compilegate_judge.explanation import explain
from tools.docs import examples
from tools.docs.markdown import between, table
from tools.state_machine import definition, drawn

CANDIDATE = "compile"
# Final metrics vary by two fifths of the margin, so that a few full runs and looks are needed.
MEAN, SPREAD = 0.913, 0.002
HISTORY = (0.9108, 0.9142, 0.9124, 0.9158, 0.9118, 0.9134, 0.9148, 0.9110)
# Wall clocks of a probation vary as those of machines that other jobs share.
WALL_SPREAD = 0.1
# From this watched run on the candidate loses so much.
FALLS_FROM, FALL = 4, 0.004
WATCHED = 8


@dataclass(frozen=True)
class Round:
    """One step of a trial: what the judge asked for, and what it says of the results."""

    asked: SpeedStep | QualityStep
    answer: Decision

    @property
    def look(self) -> int | None:
        """The candidate's full runs, where the judge looks at so many; None between looks."""
        quality = self.answer.quality
        return quality.look if quality and quality.look == quality.runs.candidate else None


@dataclass
class Trial:
    """A candidate that loses nothing, measured as the judge asks until it decides."""

    quality_runs: str
    seed: int
    arms: dict[str, list[dict[str, Any]]] = field(
        default_factory=lambda: {BASELINE: [], CANDIDATE: []}
    )
    rounds: list[Round] = field(default_factory=list)

    def __post_init__(self) -> None:
        """Measure it."""
        self.rng = random.Random(self.seed)  # noqa: S311 - an example, not a secret
        asked = self.answer().next
        while isinstance(asked, SpeedStep | QualityStep):
            if isinstance(asked, SpeedStep):
                self._add_blocks(asked)
            else:
                for run in asked.runs:
                    self.add_run("quality", run.arm, mode=asked.mode)
            self.rounds.append(Round(asked, self.answer()))
            asked = self.rounds[-1].answer.next

    def document(self, phase: str = "trial") -> dict[str, Any]:
        """The evidence so far."""
        made = examples.document(phase, None if phase == "trial" else CANDIDATE, self.arms)
        made["policy"] = {"quality_runs": self.quality_runs}
        made["quality"]["history"] = list(HISTORY)
        return made

    def answer(self, phase: str = "trial") -> Decision:
        """What the judge says of it."""
        return judge(read_evidence(self.document(phase)))

    def add_run(self, stage: str, arm: str, *, loss: float = 0.0, **changes: Any) -> None:
        """One full run more."""
        order = sum(run["stage"] != "speed" for runs in self.arms.values() for run in runs)
        metric = round(self.rng.gauss(MEAN - loss, SPREAD), 4)
        made = examples.full_run(stage, order, arm, metric, self.rng)
        self.arms[arm].append({**made, **changes})

    def _add_blocks(self, asked: SpeedStep) -> None:
        for block in range(asked.block, asked.block + asked.blocks):
            for name, runs in self.arms.items():
                runs.append(examples.segment(name, block, self.rng))


def mermaid(drawing: str) -> str:
    """A drawing as GitHub and editors show it."""
    return f"```mermaid\n{drawing}```\n"


def state_machines(page: str) -> str:
    """The page of state machines, with both drawn."""
    for machine in MACHINES:
        page = between(page, machine, mermaid(drawn(definition(machine))))
    return page


def canary(page: str) -> str:
    """The page of canary trials, with the arm that each production run of one trains."""
    head, *rows = turns()
    return between(page, "turns", table(head, rows))


def probation(page: str) -> str:
    """The page of the probation, with the two sums of one."""
    return between(page, "sums", sums())


def trial() -> str:
    """A trial over time, as a time line in Mermaid."""
    rounds, section, lines = Trial("hybrid", seed=1).rounds, "", []
    for round_ in rounds:
        title, runs = _asked(round_.asked)
        lines += [f"  section {title}"] if title != section else []
        lines.append(f"    {runs} : {' : '.join(_answered(round_))}")
        section = title
    end = f"    {rounds[-1].answer.verdict} : the flag is switched on"
    return mermaid("\n".join(["timeline", *lines, "  section Verdict", end]) + "\n")


def _asked(asked: SpeedStep | QualityStep) -> tuple[str, str]:
    """The kind of the runs that the judge asked for, and which they are."""
    if isinstance(asked, SpeedStep):
        return "Short blocks", "1 block" if asked.blocks == 1 else f"{asked.blocks} blocks"
    maker = "the trial" if asked.mode == SHADOW else "production"
    return f"Full runs by {maker}", " and ".join(asked.arms)


def _answered(asked_round: Round) -> list[str]:
    speed = asked_round.answer.speedup
    answered = (
        [f"{speed.estimate:.2f}x ({speed.interval[0]:.2f} to {speed.interval[1]:.2f})"]
        if speed
        else []
    )
    if isinstance(asked_round.asked, SpeedStep):
        return answered
    held = "quality_held" in {reason.code for reason in asked_round.answer.reasons}
    proof = "quality held" if held else "not proven yet"
    return [
        *answered,
        f"look at {asked_round.look} runs, {proof}" if asked_round.look else "no look",
    ]


def turns() -> list[list[str]]:
    """The production runs of a canary trial in order: who trains, and where the judge looks."""
    trained: list[str] = []
    looks: dict[int, str] = {}
    for round_ in Trial("canary", seed=4).rounds:
        if isinstance(round_.asked, QualityStep):
            trained += round_.asked.arms
            looks |= {len(trained): f"at {round_.look}"} if round_.look else {}
    numbers = range(1, len(trained) + 1)
    rows = [
        [name, *("●" if arm == name else "" for arm in trained)] for name in (BASELINE, CANDIDATE)
    ]
    return [
        ["production run", *map(str, numbers)], *rows,
        ["look", *(looks.get(number, "") for number in numbers)],
    ]  # fmt: skip


def sums() -> str:
    """Both cumulative sums of a probation beside their limits, as two charts in Mermaid."""
    made = Trial("hybrid", seed=1)
    for number in range(WATCHED):
        made.add_run("probation", CANDIDATE, loss=FALL if number >= FALLS_FROM else 0.0)
    document = made.document("probation")
    full = [run for arm in document["arms"] for run in arm["runs"] if run["stage"] != "speed"]
    for run in full:
        run["wall_seconds"] = round(run["wall_seconds"] * exp(made.rng.gauss(0, WALL_SPREAD)))
    items = explain(document, judge(read_evidence(document)))
    return "\n".join(_sum(items, monitor) for monitor in ("quality", "speed"))


def _sum(items: list[Any], monitor: str) -> str:
    steps = [item for item in items if item.name == f"{monitor} monitor: the sum after each run"]
    (limit,) = (item.value for item in items if item.name == f"{monitor} monitor: limit")
    values = ", ".join(f"{100 * item.value / limit:.0f}" for item in steps)
    numbers = ", ".join(str(number) for number in range(1, len(steps) + 1))
    most = max(120, *(100 * item.value / limit for item in steps))
    return mermaid(
        "xychart-beta\n"
        f'  title "{monitor}: the sum in percent of its limit"\n'
        f'  x-axis "watched run" [{numbers}]\n'
        f'  y-axis "%" 0 --> {most:.0f}\n'
        f"  bar [{values}]\n"
        f"  line [{', '.join(['100'] * len(steps))}]\n"
    )
