"""Ledgers of a workload as time goes by, with every kind of entry that a row is made from."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from hypothesis import strategies as st

from compilegate.domain.flag import Flag
from compilegate.domain.naming import time_of, trial_id
from compilegate.domain.production.attempts import RUN_SECONDS
from compilegate.domain.records import LedgerRecord
from compilegate.domain.records.flags import FlagVersion
from compilegate.domain.records.production import (
    TEAM,
    TRAIN,
    BegunRun,
    CanaryClosed,
    CanaryRound,
    ProductionRun,
    RegistrationChange,
    Review,
    SpeedSum,
)
from compilegate.domain.records.trials import (
    ApprovalAnswer,
    ApprovalRequested,
    TrialDecided,
    TrialFailed,
    TrialStarted,
)
from compilegate.domain.spreads import Measured, Sample

DAY = 86_400
BEGIN = 1_790_000_000
EXECUTION = "arn:aws:states:us-east-1:111122223333:execution:compilegate-dev-evaluate:w-{}"
STATES = [("probation", True), ("permanent", True), ("reverted", False), ("stale", False)]


@dataclass
class Growing:
    """A ledger while it is drawn; ``now`` moves on with each entry."""

    draw: Callable[[Any], Any]
    apart: int = 0
    now: int = BEGIN
    flags: int = 0
    trials: int = 0
    revisions: int = 0
    run: str = ""

    def entries(self, kind: str) -> list[LedgerRecord]:
        """The next of a kind, by a clock that may be ahead or behind."""
        at, self.now = self.now, self.now + self.apart * self.draw(st.sampled_from([0, 0, -1, 1]))
        made: list[LedgerRecord] = getattr(self, kind)()
        self.now = at
        return made

    def ran(self) -> list[LedgerRecord]:
        begun = self.now - self.draw(st.integers(0, 27 * DAY) | st.just(90 * DAY))
        self.run = trial_id(1000 * begun)
        finished, priced = self.draw(st.booleans()), self.draw(st.booleans())
        arm = self.draw(st.sampled_from(["baseline", "baseline", "compile", "compile", "p4d"]))
        work = {"steps": 100.0, "samples_per_step": 8.0, "tokens_per_step": 0.0}
        run = ProductionRun(
            self.run, f"cg-w-{self.run}-p0-r0", arm, begun, float(self.now),
            {"finished": finished, "work": work, "steps": 100}, self.draw(st.booleans()), "flag",
            launched_by=self.draw(st.sampled_from([TRAIN, TEAM])), at=self.now,
            usd=self.draw(st.floats(1, 100)) if priced else None,
        )  # fmt: skip
        return [self._begun(begun), run]

    def ran_again(self) -> list[LedgerRecord]:
        run = ProductionRun(
            self.run, f"cg-w-{self.run}-p1-r0", "baseline", self.now - 60.0, float(self.now),
            {"finished": True}, counts=False, why="rerun", at=self.now,
        )  # fmt: skip
        return [run] if self.run and self.now - time_of(self.run) <= RUN_SECONDS else []

    def _begun(self, at: int) -> BegunRun:
        return BegunRun(at, self.run, "arn", "compile", "flag", 1, 1, "spec", "source")

    def began(self) -> list[LedgerRecord]:
        self.run = trial_id(1000 * self.now)
        return [self._begun(self.now)]

    def turned(self) -> list[LedgerRecord]:
        state, enabled = self.draw(st.sampled_from(STATES))
        candidate = self.draw(st.sampled_from(["compile", "p4d"]))
        flag = Flag(enabled, state, candidate)
        review = Review(self.now, self.run, "t", candidate, differs=(state, f"v{self.flags}"))
        self.flags += 1
        change = FlagVersion(
            self.flags, self.now, f"c{self.flags}", "train", "change", "why", flag.to_json(),
            details={"run": self.run},
        )  # fmt: skip
        return [review, change] if self.run else [change]

    def reviewed(self) -> list[LedgerRecord]:
        lost_at = self.draw(st.sampled_from([None, self.now]))
        speed = SpeedSum(1.0, self.run, lost_at)
        return [Review(self.now, self.run, "t", "compile", speed=speed)] if self.run else []

    def tried(self) -> list[LedgerRecord]:
        self.trials += 1
        return [TrialStarted(self.now, EXECUTION.format(f"t{self.trials}"))]

    def ended(self) -> list[LedgerRecord]:
        trial, usd = f"t{self.trials}", self.draw(st.none() | st.floats(0, 100))
        if self.draw(st.booleans()):
            walls = Sample(self.draw(st.sampled_from([0.1, 0.2])), 3, 5)
            shown = Measured(self.draw(st.sampled_from(["ml.g5.xlarge", "ml.p5.large"])), walls)
            spreads = self.draw(st.sampled_from([None, shown]))
            return [TrialDecided(self.now, trial, "promote", spent_usd=usd, spreads=spreads)]
        error = self.draw(st.sampled_from(["States.Timeout", "ABORTED"]))
        return [TrialFailed(self.now, trial, error=error, spent_usd=usd)]

    def asked(self) -> list[LedgerRecord]:
        return [ApprovalRequested(self.now, self.now + 30 * DAY, f"t{self.trials}")]

    def answered(self) -> list[LedgerRecord]:
        return [ApprovalAnswer(self.now, f"t{self.trials}", "human:ana", approved=True)]

    def opened(self) -> list[LedgerRecord]:
        return [CanaryRound(f"t{self.trials}", 1, (), {}, "job", self.now, 60, False, self.now)]

    def closed(self) -> list[LedgerRecord]:
        return [CanaryClosed(self.now, f"t{self.trials}", 1, "complete")]

    def registered(self) -> list[LedgerRecord]:
        self.revisions += 1
        active, document = self.draw(st.booleans()), {"owner": f"o{self.revisions}"}
        return [RegistrationChange(self.revisions, active, self.now, document=document)]

    def damaged(self) -> list[LedgerRecord]:
        return [Damaged(self.now)]


@dataclass(frozen=True)
class Damaged(LedgerRecord):
    """An entry that no release can read, among the runs."""

    kind = "run"
    key_form = "run#{run}#damaged"

    at: int

    @property
    def run(self) -> str:
        return trial_id(1000 * self.at)

    @property
    def key(self) -> str:
        return f"run#{self.run}#damaged"


KINDS = [
    *["ran"] * 12, "began", "ran_again", *["turned"] * 3, "tried", "ended", "asked", "answered",
    "opened", "closed", "registered", *["reviewed"] * 2,
]  # fmt: skip


@st.composite
def ledgers(
    draw: Any, kinds: list[str] = KINDS, apart: int = 0
) -> list[tuple[int, list[LedgerRecord]]]:
    """What is written, and when (epoch seconds), in the order of time; up to three years.

    ``apart`` is how many seconds clocks may be ahead or behind.
    """
    ledger = Growing(draw, apart)
    written = []
    for kind in draw(st.lists(st.sampled_from(kinds), min_size=1, max_size=40)):
        ledger.now += draw(st.sampled_from([60, DAY, 5 * DAY, 30 * DAY, 200 * DAY]))
        written.append((ledger.now, ledger.entries(kind)))
    return written
