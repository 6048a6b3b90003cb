"""Evidence documents as they are stored, generated from a seed: trials and probations."""

from __future__ import annotations

import random
from typing import Any

from tests.frozen.evidence_runs import FINGERPRINT, Document, Runs

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
    return _Maker(random.Random(f"trial {number}")).trial()


def probation(number: int) -> Document:
    """The probation of that number."""
    return _Maker(random.Random(f"probation {number}")).probation()


def malformed(number: int) -> Any:
    """A sound document with one thing wrong with it."""
    rng = random.Random(f"malformed {number}")
    document = _Maker(rng).trial() if rng.random() < 0.7 else _Maker(rng).probation()
    return _broken(rng, document)


class _Maker(Runs):
    """Draws one document."""

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
        for night in range(rng.randint(0, 30)):
            mine = not self.chance(turns)
            bad = mine and night >= begins
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
            "promote_speedup": [1.0, 1.2, 1.3], "alpha": [0.01, 0.05, 0.2],
            "max_quality_runs": [2, 4, 8, 36], "max_trial_usd": [5.0, 200.0, 5000.0],
            "probation_runs": [1, 5, 12], "on_stale": ["keep", "fall_back"],
            "cooldown_days": [0, 30], "hold_models": [False], "approval": ["required"],
        }  # fmt: skip
        policy |= {key: rng.choice(values) for key, values in choices.items() if self.chance(0.3)}
        if self.chance(0.2):
            policy["reject_speedup"] = 1.0
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
