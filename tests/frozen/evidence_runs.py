"""Runs of one arm as evidence has them: what steps took, what a metric came to, what went wrong."""

from __future__ import annotations

import math
import random
from typing import Any

Document = dict[str, Any]
FINGERPRINT = {
    "gpu": "A10G", "driver": "550.1", "torch": "2.13.0", "cuda": "12.8", "image": "i:2.13",
    "code_sha256": "c", "data_sha256": "d", "precision": "fp32", "world_size": 1, "threads": 4,
    "global_batch": 32,
}  # fmt: skip


class Runs:
    """Draws the runs of one document; everything it draws comes from ``rng``."""

    def __init__(self, rng: random.Random) -> None:
        self.rng = rng
        self.goal = rng.choice(["minimize", "maximize"])
        self.margin = rng.choice([0.005, 0.02, 0.02, 0.1])
        self.sd = self.margin * rng.choice([0.02, 0.1, 0.1, 0.2, 0.5, 1.5])
        self.centre = rng.choice([0.9, 2.5])
        self.base_seconds = rng.choice([0.03, 0.03, 0.4])
        self.steps = rng.choice([8, 24, 60, 60, 60, 120])
        self.full_steps = rng.choice([200, 2000, 2000, 50_000])
        self.noise = rng.choice([0.001, 0.02, 0.02, 0.02, 0.1])
        self.unlike = rng.choice([0.002, 0.002, 0.02])  # of one segment and the next
        self.tells = rng.random() < 0.9  # whether jobs recorded their fingerprint
        self.troubled = rng.random() < 0.4  # whether anything goes wrong with its jobs
        self.order = 0
        self.seeds: dict[int, float] = {}

    def chance(self, share: float) -> bool:
        return self.rng.random() < share

    def arm(
        self, name: str, overrides: Document, differs: Document, blocks: int, gain: float
    ) -> Document:
        rng = self.rng
        arm: Document = {"name": name, "overrides": dict(overrides), "runs": []}
        batch = _batch(differs)
        if batch != 32 and self.chance(0.9):  # the same samples in fewer steps
            arm["full_run_steps"] = max(1, self.full_steps * 32 // batch)
        if name != "baseline" and self.chance(0.15):
            arm["usd_per_hour"] = rng.choice([0.9, 1.408, 37.69])
        if self.chance(0.02):
            arm["full_run_steps"] = max(1, self.full_steps // rng.choice([1, 2, 4]))
        if self.chance(0.1):
            arm["devices"] = 8
        compile_seconds = rng.choice([0.0, 3.0, 40.0]) if name != "baseline" else 0.0
        trouble = rng.choice([0.0, 0.0, 0.1, 0.5]) if self.troubled else 0.0
        for block in range(blocks):
            run = self._speed_run(block, gain, compile_seconds, differs)
            if self.chance(trouble):
                self._trouble(run)
            if not self.chance(trouble / 2):
                arm["runs"].append(run)
        return arm

    def _speed_run(
        self, block: int, gain: float, compile_seconds: float, differs: Document
    ) -> Document:
        rng = self.rng
        step = self.base_seconds / gain * self.near(1.0, self.unlike)
        seconds = [
            round(step * abs(1 + self.noise * rng.gauss(0, 1)), 7) for _ in range(self.steps)
        ]
        warm = rng.choice([0, 0, 2, 5])
        for index in range(min(warm, len(seconds))):
            seconds[index] = round(seconds[index] * (3 - index / 4), 7)
        seconds[0] = round(seconds[0] + compile_seconds, 7)
        run: Document = {
            "stage": "speed", "block": block, "job": f"s{block}", "step_seconds": seconds,
            "compile_seconds": compile_seconds, "samples_per_step": _batch(differs),
            "finished": True, "applied": True,
        }  # fmt: skip
        if not self.troubled or self.chance(0.9):
            run["node"] = f"n{block}"
        if self.tells:
            run["fingerprint"] = {**FINGERPRINT, **differs}
        if self.chance(0.3):
            run["compiler"] = {"applied": True, "graph_breaks": rng.choice([0, 3])}
            run["peak_memory_gib"] = round(rng.uniform(4, 20), 3)
            run["cold_compile_seconds"] = round(compile_seconds * 3, 3)
        return run

    def _trouble(self, run: Document) -> None:
        kind = self.rng.randrange(6)
        if kind == 0:
            run |= {"finished": False, "step_seconds": [], "reason": "the job crashed"}
        elif kind == 1:
            run["applied"] = self.rng.choice([False, None])
        elif kind == 2:
            run["fingerprint"] = {**run.get("fingerprint", FINGERPRINT), "gpu": "T4"}
        elif kind == 3:
            run["node"] = "elsewhere"
        elif kind == 4:
            run["step_seconds"] = run["step_seconds"][: self.rng.choice([1, 3, 7])]
        else:
            run["samples_per_step"] = 31

    def full_runs(self, count: int, loss: float, gain: float, differs: Document) -> list[Document]:
        mode = self.rng.choice(["shadow", "shadow", "canary", "production"])
        trouble = self.rng.choice([0.0, 0.1]) if self.troubled else 0.0
        runs = []
        for position in range(count):
            seed = 17 + position
            run = self._full_run("quality", loss, gain, differs)
            run |= {"mode": mode, "seed": seed}
            start = self.seeds.setdefault(seed, round(3.0 + seed / 1000, 4))
            if self.chance(0.8):
                run["initial_loss"] = start
            if self.chance(0.3):
                run["initial_weights_sha256"] = f"w{seed}"
            if self.chance(trouble):
                self._full_trouble(run)
            runs.append(run)
        return runs

    def _full_run(self, stage: str, loss: float, gain: float, differs: Document) -> Document:
        wall = 5 + self.full_steps * self.base_seconds / gain
        run: Document = {
            "stage": stage, "order": self.order, "metric": self.metric(loss),
            "wall_seconds": self.near(wall, 0.02), "finished": True, "applied": True,
        }  # fmt: skip
        self.order += 1
        if self.tells:
            run["fingerprint"] = {**FINGERPRINT, **differs}
        if self.chance(0.15):
            points = range(self.rng.choice([5, 12, 30]))
            run["loss_curve"] = [
                [n * 10, round(3 * math.exp(-n * gain / 10) + 0.5, 5)] for n in points
            ]
        return run

    def _full_trouble(self, run: Document) -> None:
        changes: list[Document] = [
            {"finished": False, "metric": None, "reason": "the job crashed"}, {"metric": None},
            {"applied": False}, {"applied": None}, {"initial_loss": 9.9}, {"wall_seconds": None},
            {"initial_weights_sha256": "other"}, {"seed": 17}, {"wall_seconds": 0},
            {"fingerprint": {**FINGERPRINT, "data_sha256": "tomorrow"}}, {"seed": None},
        ]  # fmt: skip
        run |= self.rng.choice(changes)

    def production_run(
        self, loss: float, gain: float, *, crash: bool, differs: Document
    ) -> Document:
        run = self._full_run("probation", loss, gain, differs)
        if self.chance(0.2):
            run["launched_by"] = self.rng.choice(["train", "team"])
        if self.chance(0.5):
            run["confirm"] = True
        if self.chance(0.05):
            run["applied"] = self.rng.choice([False, None])
        if self.chance(0.05):
            run["wall_seconds"] = None
        if crash:
            run |= {"finished": False, "metric": None}
        return run

    def metric(self, loss: float) -> float:
        sign = -1.0 if self.goal == "maximize" else 1.0
        return round(self.centre + sign * loss + self.rng.gauss(0, 1) * self.sd, 7)

    def near(self, value: float, spread: float) -> float:
        return round(value * (1 + spread * self.rng.gauss(0, 1)), 6)


def _batch(differs: Document) -> int:
    batch = differs.get("global_batch")
    return batch if isinstance(batch, int) else 32
