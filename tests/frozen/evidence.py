"""Evidence documents as they are stored, generated from a seed: trials and probations."""

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


# What each candidate changes, and what that makes of its fingerprint.
CHANGES: list[tuple[Document, Document]] = [
    ({"compiler": "torch_compile"}, {}),
    ({"compiler": "torch_compile"}, {}),
    ({"compiler": "torch_compile"}, {}),
    ({"compiler": "torch_compile", "batch_size": 64}, {"global_batch": 64}),
    ({"compiler": "torch_compile", "compile_mode": "max-autotune"}, {}),
    ({"compiler": "torch_compile", "precision": "bf16"}, {"precision": "bf16"}),
    (
        {"compiler": "sagemaker_training_compiler", "framework": {"name": "pytorch"}},
        {"image": "m:1.13", "torch": "1.13.1", "cuda": "11.7"},
    ),
    ({"batch_size": 128, "learning_rate_scaling": "linear"}, {"global_batch": 128}),
    ({"instance_type": "ml.p4d.24xlarge"}, {"gpu": "A100", "world_size": 8, "global_batch": 256}),
    ({"entry_point": "fast.py"}, {"code_sha256": "e"}),
    ({}, {}),
]


def trial(number: int) -> Document:
    """The trial of that number."""
    return Generator(random.Random(f"trial {number}")).trial()


def examined(number: int) -> Document:
    """A trial whose jobs checked equivalence, with a table of faults."""
    rng = random.Random(f"examined {number}")
    document = Generator(rng).trial()
    job_class = {"framework": "pytorch 2.13", "device": "cuda 8.6", "precision": "fp32"}
    for arm in document["arms"][1:]:
        highest = rng.choice([1.1, 1.1, 1.1, 1.1, 4.0, 900.0])
        for run in arm["runs"]:
            part = {"part": "gradients", "arithmetic": "single", "compared": 9, "ratio": highest}
            seen = {
                "part": "evaluation",
                "code": "no_loss",
                "share": rng.choice([0.0, 0.0, 0.0, 0.5]),
            }
            if rng.random() < 0.97:
                run["equivalence"] = {
                    "schema": 1, "check": "abc", "class": job_class, "parts": [part],
                    "weights": "first" if run["stage"] == "speed" else "last",
                    "unseen": [seen] if rng.random() < 0.1 else [],
                }  # fmt: skip
    counts = {
        "faults": rng.choice([12, 59, 200]),
        "missed": rng.choice([0, 0, 3]),
        "date": "2026-11-26",
    }
    document["equivalence"] = {
        "check": "abc", "bounds": {"cuda.gradients.single": 4.0}, "shares": {},
        "classes": [job_class | counts],
    }  # fmt: skip
    return document


def probation(number: int) -> Document:
    """The probation of that number."""
    return Generator(random.Random(f"probation {number}")).probation()


def malformed(number: int) -> Any:
    """A sound document with one thing wrong with it."""
    rng = random.Random(f"malformed {number}")
    document = Generator(rng).trial() if rng.random() < 0.7 else Generator(rng).probation()
    return _broken(rng, document)


class Generator:
    """Draws one document; every choice comes from ``rng``, in this order."""

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
        self.has_fingerprints = rng.random() < 0.9
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
        if self.has_fingerprints:
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
        if self.has_fingerprints:
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

    def trial(self) -> Document:
        rng = self.rng
        document = self._base("trial")
        blocks = rng.choice([0, 1, 2, 3, 4, 4, 4, 6, 6, 8])
        names = ["compile", "bigger batch", "managed"][: rng.choice([1, 1, 1, 2, 2, 3])]
        baseline = self.arm("baseline", {}, {}, blocks, 1.0)
        base_runs = rng.choice([0, 2, 3, 4, 4, 6, 10])
        baseline["runs"] += self.full_runs(base_runs, 0.0, 1.0, {})
        document["arms"].append(baseline)
        for name in names:
            overrides, differs = rng.choice(CHANGES)
            gain = rng.choice([0.8, 1.08, 1.15, 1.25, 1.4, 1.4, 1.4, 1.4, 2.2])
            done = blocks if self.chance(0.85) else rng.randint(0, blocks)
            arm = self.arm(name, overrides, differs, done, gain)
            loss = rng.choice([0.0, 0.0, 0.0, 0.5, 1.0, 2.0]) * self.margin
            count = base_runs if self.chance(0.7) else rng.choice([0, 2, 3, 5, 8])
            if self.troubled and self.chance(0.1):
                differs = {**differs, rng.choice(list(FINGERPRINT)): "other"}
            arm["runs"] += self.full_runs(count, loss, gain, differs)
            document["arms"].append(arm)
            if self.chance(0.12):
                control = self.arm(f"{name}-native", {}, differs, done, rng.choice([0.9, 1.1]))
                if self.chance(0.3):
                    control["runs"] = [
                        {**run, "finished": False, "reason": "there was no capacity"}
                        for run in control["runs"]
                    ]
                document.setdefault("controls", []).append(control)
        if self.chance(0.3):
            rng.shuffle(document["arms"])
        return document

    def probation(self) -> Document:
        rng = self.rng
        document = self._base("probation")
        overrides, differs = rng.choice(CHANGES[:6])
        gain = rng.choice([1.1, 1.25, 1.4, 1.4])
        blocks = rng.choice([0, 2, 3, 4])
        baseline = self.arm("baseline", {}, {}, blocks, 1.0)
        promoted = self.arm("compile", overrides, differs, blocks, gain)
        baseline["runs"] += self.full_runs(rng.choice([0, 2, 3, 5]), 0.0, 1.0, {})
        promoted["runs"] += self.full_runs(rng.choice([0, 3, 5]), 0.0, gain, differs)
        document |= {"promoted": "compile", "arms": [baseline, promoted]}
        if self.chance(0.2):
            document["arms"].append(self.arm("other", {}, {}, blocks, 1.2))
        fall = rng.choice([0.0, 0.0, 0.0, 1.0, 2.0]) * self.margin
        slower = rng.choice([1.0, 1.0, 1.0, 1.5])
        begins = rng.randint(0, 12)
        crashes = rng.choice([0.0, 0.0, 0.05, 0.3])
        turns = rng.choice([0.0, 0.2, 0.5, 0.5])
        for position in range(rng.randint(0, 30)):
            mine = not self.chance(turns)
            bad = mine and position >= begins
            run = self.production_run(
                fall if bad else 0.0, gain / (slower if bad else 1.0) if mine else 1.0,
                crash=self.chance(crashes), differs=differs if mine else {},
            )  # fmt: skip
            (promoted if mine else baseline)["runs"].append(run)
        return document

    def _base(self, phase: str) -> Document:
        rng = self.rng
        quality: Document = {"metric": "eval", "goal": self.goal, "margin": self.margin}
        past = rng.choice([0, 2, 3, 8, 8, 20, 20])
        if past or self.chance(0.5):
            quality["history"] = [self.metric(0.0) for _ in range(past)]
        if self.chance(0.5):
            wall = self.base_seconds * self.full_steps
            quality["history_wall_seconds"] = [self.near(wall, 0.01) for _ in range(past)]
        document: Document = {
            "schema": 1, "workload": rng.choice(["lm", "bert-docs"]), "phase": phase,
            "promoted": None, "policy": self._policy(), "quality": quality, "arms": [],
        }  # fmt: skip
        if self.chance(0.9):
            document["usd_per_hour"] = rng.choice([1.408, 30.0, 98.32])
        if self.chance(0.8):
            document["runs_per_week"] = rng.choice([0.5, 3, 7, 2800])
        if self.chance(0.7):
            document["runs_remaining"] = rng.choice([0, 10, 156.0, 145600])
        document["full_run_steps"] = self.full_steps
        if self.chance(0.3):
            document["devices"] = rng.choice([1, 8])
        if self.chance(0.6):
            document["plan"] = self._plan()
        return document

    def _policy(self) -> Document:
        rng, policy = self.rng, {"quality_runs": self.rng.choice(["shadow", "canary", "hybrid"])}
        choices: dict[str, list[Any]] = {
            "min_mean_speedup": [1.0, 1.2, 1.3], "alpha": [0.01, 0.05, 0.2],
            "max_quality_runs": [2, 4, 8, 36], "max_trial_usd": [5.0, 200.0, 5000.0],
            "probation_runs": [1, 5, 12], "on_stale": ["keep", "fall_back"],
            "cooldown_days": [0, 30], "hold_models": [False], "approval": ["required"],
        }  # fmt: skip
        policy |= {key: rng.choice(values) for key, values in choices.items() if self.chance(0.3)}
        if self.chance(0.2):
            policy["min_proven_speedup"] = 1.0
        return policy

    def _plan(self) -> Document:
        rng = self.rng
        choices: dict[str, list[Any]] = {
            "speed_steps": [160, 320], "blocks_per_round": [1, 2, 3], "max_blocks": [2, 4, 6, 9],
            "production_beside": [True, False], "usd_per_block": [0.0, 0.4, 12.0],
            "usd_per_quality_run": [0.0, 2.5, 180.0], "spent_usd": [0.0, 3.0, 4990.0],
            "asked_quality_runs": ["shadow", "canary", "hybrid"],
        }  # fmt: skip
        plan = {key: rng.choice(values) for key, values in choices.items() if self.chance(0.6)}
        if self.chance(0.1):
            plan["runs_as_shadow_because"] = "no schedule is registered"
        return plan


def _broken(rng: random.Random, document: Document) -> Any:
    """One value somewhere replaced, removed, or added."""
    if rng.random() < 0.03:
        return rng.choice([[], "text", 7, None, {}])
    target: Any = document
    while True:
        keys = list(target) if isinstance(target, dict) else list(range(len(target)))
        key = rng.choice(keys)
        inner = target[key]
        if not isinstance(inner, dict | list) or not inner or rng.random() < 0.35:
            break
        target = inner
    if rng.random() < 0.4:
        del target[key]
    else:
        target[key] = rng.choice([None, -1, 0, "text", 1e308, True, [], {}, [None], 1e-300, "1"])
    return document


def _batch(differs: Document) -> int:
    batch = differs.get("global_batch")
    return batch if isinstance(batch, int) else 32
