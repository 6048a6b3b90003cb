"""Whole trials through the use cases and the real judge, production night by night, in memory."""

from __future__ import annotations

import json
import random
from dataclasses import dataclass, field, replace
from typing import Any

import pytest

from compilegate.domain import naming
from compilegate.domain.codec import write
from compilegate.domain.planning.rounds import DAY, MACHINE_SECONDS
from compilegate.domain.production.canary import open_slot
from compilegate.domain.production.history import history
from compilegate.domain.production.registration import Registration, TrainedJob
from compilegate.domain.records.production import BegunRun, ProductionRun
from compilegate.usecases.canary import close_after_run, open_canary
from compilegate.usecases.planning import plan_trial
from compilegate.usecases.records import read_document, to_json
from compilegate.usecases.trial.judge_arms import judge_arms
from compilegate.usecases.trial.lock import acquire_lock
from tests import fakes
from tests.archives import tarball
from tests.domain.workload_builder import SOUND, change
from tests.usecases.trial_builder import (
    EVENT,
    SPEC,
    arms_of,
    load,
    outcome,
    put_output,
    put_spec,
    speed_output,
)

SPEEDUP, RUN_SECONDS = 1.5, 6 * 3600.0
FINGERPRINT = {"gpu": "g"}


@dataclass
class Months:
    """One workload's trial and its production; ``spread`` and ``loss`` in margins of the metric."""

    mode: str
    runs_per_week: float = 7.0
    spread: float = 0.3
    loss: float = 0.0
    seed: int = 0
    services: Any = field(default_factory=lambda: fakes.services("prod"))
    nights: int = 0

    def __post_init__(self) -> None:
        workload = change(
            SOUND, schedule__cron="rate(1 day)", schedule__runs_per_week=self.runs_per_week,
            policy__quality_runs=self.mode, policy__max_trial_usd=1e6, quality__history=(),
        )  # fmt: skip
        self.chance = random.Random(f"{self.mode}-{self.loss}-{self.seed}")
        self.margin = workload.quality.margin
        put_spec(self.services, workload)
        self.job = TrainedJob(read_document(workload.to_dict()), "workloads/bert-docs/s.tgz").digest
        registered = Registration("bert-docs", SPEC, "d", schedule="rate(1 day)")
        key = naming.registration_key("bert-docs")
        self.services.store.put(key, to_json(write(registered)))
        acquire_lock(EVENT, services=self.services)
        plan_trial(EVENT, services=self.services)
        self.began = self.services.clock.now()

    def run(self) -> dict[str, Any]:
        """The decision; the state machine's part is played here."""
        outcomes: list[dict[str, Any]] = []
        round_number = 0
        while True:
            event = {**EVENT, "round": round_number, "runs": outcomes}
            answer = judge_arms(event, services=self.services)
            round_number, outcomes = answer["round"], []
            if answer["next_stage"] == "none":
                return load(self.services, "decision")
            if answer["next_stage"] == "canary":
                self.wait(answer["canary"])
            else:
                outcomes = [self.extra_job(run) for run in answer["runs"]]

    def wait(self, asked: dict[str, Any]) -> None:
        """Nights until the trial is notified, or its backoff is over."""
        token = f"token-{asked['round']}"
        self.services.tokens.waiting.add(token)
        open_canary({**EVENT, **asked, "token": token}, services=self.services)
        until = self.services.clock.now() + asked["timeout_seconds"]
        while token in self.services.tokens.waiting and self.services.clock.now() < until:
            self.night()

    def night(self) -> None:
        """One scheduled run of production."""
        self.services.clock.seconds += round(7 * DAY / self.runs_per_week)
        self.nights += 1
        now, run = self.services.clock.now(), f"r{self.nights:04d}"
        entries = self.services.ledger.raw.entries("bert-docs")
        slot = open_slot(history(entries), now=now, job=self.job)
        arm = slot.arm if slot else "baseline"
        begun = BegunRun(
            at=now, run=run, execution="e", arm="baseline", why="scheduled", seed=1, number=1,
            spec_key=SPEC, source_key="s",
        ).to_entry()  # fmt: skip
        self.services.ledger.raw.put_once("bert-docs", BegunRun.key_of(run=run), begun)
        result = {
            "stage": "quality", "finished": True, "applied": True, "seed": slot.seed if slot else 1,
            "metric": self.metric(arm), "wall_seconds": self.seconds(arm),
            "fingerprint": {**FINGERPRINT, "data_sha256": run},
        }  # fmt: skip
        made = ProductionRun(
            run=run, job=f"cg-bert-docs-{run}-p0-r0", arm=arm, started_at=now,
            ended_at=now + self.seconds(arm), result=result, counts=True, why="canary",
            canary=slot.canary if slot else None, usd=1.0,
        )  # fmt: skip
        entry = replace(made, at=now).to_entry()
        self.services.ledger.raw.put_once(
            "bert-docs", ProductionRun.key_of(run=run, job=made.job), entry
        )
        close_after_run("bert-docs", made, job=self.job, services=self.services)

    def extra_job(self, run: dict[str, str]) -> dict[str, Any]:
        """A job that the trial pays for, to its end."""
        done = outcome(run["run"])
        asked = json.loads(self.services.store.get(run["request_key"]))
        parsed, values = naming.parse_run(run["run"]), asked["HyperParameters"]
        if parsed.is_speed:
            first, blocks = int(values["first_block"]), int(values["blocks"])
            body = speed_output(range(first, first + blocks), speedup=SPEEDUP, arms=arms_of(asked))
            seconds = 600.0 * blocks
        else:
            arm = json.loads(values["arm"])
            seconds, body = self.seconds(arm), self.full_output(arm, parsed.seed)
        put_output(self.services, done["job"], body)
        now = self.services.clock.now()
        self.services.jobs.add(done["job"], "Completed", now, now + seconds)
        self.services.clock.seconds += round(seconds)
        return done

    def full_output(self, arm: str, seed: int | None) -> bytes:
        summary = {
            "schema": 1, "finished": True, "seed": seed, "fingerprint": FINGERPRINT,
            "metrics": {"eval_accuracy": self.metric(arm)}, "wall_seconds": self.seconds(arm),
            "compiler": {"applied": True, "compile_seconds": 1.0}, "initial_loss": 3.0,
            "steps": 2000,
        }  # fmt: skip
        return tarball({"evidence/summary.json": summary, "evidence/steps.jsonl": b""})

    def seconds(self, arm: str) -> float:
        return RUN_SECONDS / (SPEEDUP if arm == "compile" else 1.0)

    def metric(self, arm: str) -> float:
        lost = self.loss * self.margin if arm == "compile" else 0.0
        return 0.9 - lost + self.chance.gauss(0, self.spread * self.margin)

    @property
    def days(self) -> float:
        return (self.services.clock.now() - self.began) / DAY


@pytest.mark.parametrize("mode", ["shadow", "canary", "hybrid"])
def test_no_mode_promotes_a_candidate_that_loses_twice_the_margin(mode: str) -> None:
    assert "promote" != Months(mode, loss=2.0).run()["verdict"]


def test_the_longest_trial_of_weekly_runs_is_decided_within_the_machines_year() -> None:
    days = []
    for seed in (5, 8, 9):
        trial = Months("canary", runs_per_week=1.0, spread=1.3, seed=seed)
        assert trial.run()["reasons"][0]["code"] not in ("trial_over_time", "canary_overdue")
        days.append(trial.days)

    # 24 runs of each arm, the most that a year of weekly runs is asked for.
    assert 48 * 7 == pytest.approx(max(days), abs=1)
    assert max(days) * DAY < MACHINE_SECONDS
