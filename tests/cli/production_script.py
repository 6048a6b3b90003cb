"""What the state machines would do to a month of production in a cloud in memory."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from compilegate.cli.common.cloud import Cloud
from compilegate.domain import naming
from compilegate.domain.production.registration import injected_fault
from compilegate.domain.records.production import METRIC_NAME, ProductionRun
from compilegate.domain.workload.model import BASELINE
from compilegate.usecases.production.begin_run import begin_run, load_begun
from compilegate.usecases.production.review_production import review_production
from compilegate.usecases.records import spec_at
from compilegate.usecases.trial.lock import acquire_lock, release_lock
from tests.cli.trial_script import decided, executions
from tests.domain.evidence_builder import FINGERPRINT, GOOD
from tests.fake_clouds import MACHINE, ScriptedExecutions
from tests.fakes import FixedClock

# Of one job, from the evidence that the trial is decided on.
WALLS = {BASELINE: 65.0, "compile": 47.9}
METRIC, SPREAD = 2.5, 0.002


@dataclass
class Production:
    """``loss`` is what a faulty run loses; ``broken`` are nights whose run fails, from 1.

    The trial sees ``metrics``.
    """

    cloud: Cloud
    loss: float = 0.1
    broken: tuple[int, ...] = ()
    metrics: Mapping[str, list[float]] | None = None

    def __post_init__(self) -> None:
        production = self.cloud.production.executions
        assert isinstance(production, ScriptedExecutions)
        production.on_start = self.night
        executions(self.cloud).on_start = self.trial
        self.nights = 0

    def trial(self, payload: Mapping[str, Any]) -> None:
        """EVALUATE, to its decision."""
        self._pass(100)
        name = naming.execution_name(str(payload["workload"]), str(payload["trial"]))
        event = {**payload, "execution": MACHINE + name}
        acquire_lock(event, services=self.cloud.services)  # what the trial knows of the flag
        decided(self.cloud, payload, metrics=GOOD if self.metrics is None else self.metrics)
        release_lock(event, services=self.cloud.services)

    def night(self, payload: Mapping[str, Any]) -> None:
        """TRAIN, with figures instead of training."""
        self.nights += 1
        self._pass(100)
        services, workload = self.cloud.services, str(payload["workload"])
        event = {**payload, "execution": "arn:x", "started": payload["scheduled"]}
        run = str(begin_run(event, services=services)["run"])
        begun = load_begun(workload, run, services.ledger)
        began = float(services.clock.now())
        self._pass(100)
        job = f"{naming.job_base(workload, run, naming.attempt(0))}-r0"
        fault = injected_fault(spec_at(services.store, begun.spec_key).workload.to_dict())
        finished = self.nights not in self.broken
        lost = self.loss if fault and begun.arm != BASELINE else 0.0
        ended = ProductionRun(
            run=run, job=job, arm=begun.arm, started_at=began,
            ended_at=began + WALLS[begun.arm], counts=True, why=begun.why, confirm=begun.confirm,
            decision_id=begun.decision_id, usd=WALLS[begun.arm] / 3600,
            billable_seconds=WALLS[begun.arm],
            status="Completed" if finished else "Failed",
            details={"scheduled": begun.scheduled, "spec_key": begun.spec_key},
            result={
                METRIC_NAME: "eval_loss",  # the trial's, as its evidence says
                "metric": METRIC + SPREAD * (-1) ** self.nights + lost if finished else None,
                "wall_seconds": WALLS[begun.arm] if finished else None, "finished": finished,
                "applied": True if begun.arm != BASELINE else None, "seed": begun.seed,
                "fingerprint": dict(FINGERPRINT),
            },
        )  # fmt: skip
        entry = replace(ended, at=services.clock.now()).to_entry()
        services.ledger.raw.put_once(workload, ProductionRun.key_of(run=run, job=job), entry)
        review_production({"workload": workload, "run": run}, services=services)

    def _pass(self, seconds: int) -> None:
        clock = self.cloud.services.clock
        assert isinstance(clock, FixedClock)
        clock.seconds += seconds
