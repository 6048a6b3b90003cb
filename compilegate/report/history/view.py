"""What a workload's page is made from: its history, and what each run is compared with."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import cached_property
from operator import attrgetter

from compilegate.domain.arithmetic import mean
from compilegate.domain.claims import stated_usd_per_run
from compilegate.domain.decision import Decision
from compilegate.domain.errors import InvalidEvidenceError
from compilegate.domain.flag import OFF, Flag
from compilegate.domain.formats import count
from compilegate.domain.judging.evidence import Evidence, FullRun, mean_or_none
from compilegate.domain.judging.evidence_file import read_evidence
from compilegate.domain.judging.figures import production_quality_figures
from compilegate.domain.judging.monitor import Monitor
from compilegate.domain.judging.probation import QUALITY_LOST, replay_probation
from compilegate.domain.optional import map_optional, with_known, without_none
from compilegate.domain.production.history import WorkloadHistory, latest_promotion
from compilegate.domain.production.registration import FAULT_VARIABLE
from compilegate.domain.production.savings import (
    ROLLING,
    Savings,
    metric_of,
    saving_of,
    wall_seconds_of,
)
from compilegate.domain.records.flags import FlagVersion
from compilegate.domain.records.production import (
    METRIC_NAME,
    ProductionRun,
    RegistrationChange,
    Review,
)
from compilegate.domain.workload.model import BASELINE
from compilegate.report.trial_report import Document

# A page draws and lists so many of the latest runs, and as many lines of what happened; the JSON
# has more of both. Figures, sums and sentences are of all.
MOST_SHOWN, MOST_LISTED = 1000, 10_000


@dataclass(frozen=True)
class Event:
    """One line of the timeline; ``at`` in epoch seconds.

    ``place`` is where it stands among the runs: 3 is the third run, 3.5 is after it. ``mark`` is
    its short name in the charts, None where they do not show it. ``kind`` is the ledger's.
    """

    at: float
    kind: str
    title: str
    text: str = ""
    tone: str = ""
    place: float = 0.0
    mark: str | None = None
    links: Sequence[str] = ()
    quiet: bool = False


@dataclass(frozen=True)
class Standard:
    """The rolling baseline that a run stands against; None where there is none yet."""

    metric: float | None
    wall_seconds: float | None


@dataclass(frozen=True)
class Difference:
    """Candidate minus baseline in the metric's own unit, and which baseline runs it is against."""

    delta: float
    against: str


@dataclass
class Sum:
    """The judge's cumulative sum of one monitor after each run; above ``limit`` it is an alarm.

    ``points`` are (run number, sum, arm, confirming run).
    """

    key: str
    noun: str
    limit: float
    shift: float
    points: list[tuple[int, float, str, bool]] = field(default_factory=list)


@dataclass(frozen=True)
class HistoryView:
    """The records of one workload; what was never recorded is None or empty.

    ``history`` is the fold of its ledger, ``decision`` that of the latest promotion's trial,
    ``evidence`` that of the promotion's probation. ``workload`` is the registered document,
    ``faults`` the faults that specs requested, by spec key. ``simulated`` says in one sentence what
    was not the real thing. ``region`` is that of the console that shows the data ``bucket``, None
    without one.
    """

    name: str
    history: WorkloadHistory
    stage: str
    decision: Decision | None = None
    evidence: Document | None = None
    workload: Document | None = None
    faults: Mapping[str, str] = field(default_factory=dict)
    simulated: str | None = None
    region: str | None = None
    bucket: str | None = None

    @property
    def runs(self) -> Sequence[ProductionRun]:
        """Every run in the order of time, each attempt on its own."""
        return self.history.runs

    @property
    def left_out(self) -> int:
        """How many of the earliest runs the page does not show."""
        return max(0, len(self.runs) - MOST_SHOWN)

    @cached_property
    def places(self) -> Mapping[str, int]:
        """The number of each job's run, from 1."""
        return {run.job: place for place, run in enumerate(self.runs, 1)}

    @cached_property
    def _last_places(self) -> Mapping[str, int]:
        """The number of each run's last job."""
        return {run.run: place for place, run in enumerate(self.runs, 1)}

    def place_at(self, at: float) -> float:
        """Between which runs a moment lies: 3.5 is after the third."""
        return bisect_right(self.runs, at, key=attrgetter("started_at")) + 0.5

    def place_of(self, review: Review) -> float:
        """Right after the run that it reviewed; by the clock where that is not recorded."""
        last = self._last_places.get(review.run)
        return map_optional(last, lambda place: place + 0.5) or self.place_at(float(review.at))

    @cached_property
    def codes_before(self) -> Mapping[str, frozenset[str]]:
        """What the review before one said of the same trial's candidate, by the one's key.

        Reviews are in the order of time (domain/production/history.py).
        """
        codes: dict[str, frozenset[str]] = {}
        last: dict[str, frozenset[str]] = {}
        for review in self.history.reviews:
            codes[review.key] = last.get(review.trial, frozenset())
            last[review.trial] = review.codes
        return codes

    @cached_property
    def candidates(self) -> Sequence[str]:
        """The arms but the baseline, by when they first ran."""
        return [arm for arm in dict.fromkeys(run.arm for run in self.runs) if arm != BASELINE]

    @cached_property
    def promotion(self) -> FlagVersion | None:
        """The flag's version by which a trial last turned a candidate on."""
        return latest_promotion(self.history.flags)

    @cached_property
    def promoted_at(self) -> float:
        """When that was; never without one."""
        return float(self.promotion.at) if self.promotion else math.inf

    @cached_property
    def since_promotion(self) -> Sequence[ProductionRun]:
        """The runs since the latest promotion; none without one."""
        return [run for run in self.runs if run.started_at >= self.promoted_at]

    @property
    def quality(self) -> Document:
        """``metric``, ``goal`` and ``margin``, from the latest record that has them."""
        for record in (self.evidence, self.workload):
            if record and record.get("quality"):
                quality: Document = record["quality"]
                return quality
        return {}

    @property
    def metric(self) -> str:
        """What the runs are measured by."""
        return str(self.quality.get("metric") or "the metric")

    def reached(self, run: ProductionRun) -> float | None:
        """What the run reached of the metric; None where it recorded another."""
        names = {self.quality.get("metric"), run.result.get(METRIC_NAME)} - {None}
        return metric_of(run) if len(names) < 2 else None

    @property
    def usd_per_run(self) -> float | None:
        """What the promotion's trial expected a run to save."""
        return stated_usd_per_run(self.decision) if self.decision else None

    @cached_property
    def savings(self) -> Savings | None:
        """What the promotion has saved so far, None where nothing was ever turned on."""
        return map_optional(
            self.promotion,
            lambda one: saving_of(self.runs, one.at, usd_per_run=self.usd_per_run),
        )

    @cached_property
    def reviews(self) -> Sequence[Review]:
        """Reviews of production since the latest promotion, oldest first."""
        if self.promotion is None:
            return ()
        return self.history.reviews_of(str(self.promotion.trial), since=self.promotion.at)

    def fault_of(self, run: ProductionRun) -> str | None:
        """The fault that was put into this run on purpose, None for a sound one."""
        if run.arm == BASELINE:
            return None
        return self.faults.get(str(run.details.get("spec_key")))

    @cached_property
    def probation(self) -> Evidence | None:
        """The evidence as the judge reads it, None where there is none or it cannot be read."""
        try:
            return map_optional(self.evidence, read_evidence)
        except InvalidEvidenceError:
            return None

    @cached_property
    def sums(self) -> Mapping[str, Sum]:
        """The sums of the latest promotion's probation; empty where no evidence can be read."""
        if self.probation is None:
            return {}
        sums: dict[str, Sum] = {}

        def after_run(arm: str, run: FullRun, monitors: Mapping[str, Monitor]) -> None:
            for key, monitor in monitors.items() if run.job in self.places else ():
                cusum = sums.setdefault(key, Sum(key, monitor.noun, monitor.limit, monitor.shift))
                cusum.points.append((self.places[run.job], monitor.total, arm, run.confirm))

        try:
            replay_probation(self.probation, after_run)
        except InvalidEvidenceError:
            return {}
        return sums

    @cached_property
    def faulty(self) -> list[ProductionRun]:
        """The runs that had one."""
        return [run for run in self.runs if self.fault_of(run)]

    @property
    def unsound(self) -> str:
        """Why what the runs saved is not what was promised; empty where nothing speaks against."""
        faulty = f"{count(len(self.faulty))} of them with the fault" if self.faulty else ""
        reverted = self.history.flag.state == "reverted"
        lost = (
            "without what the quality that was lost costs"
            if reverted
            and any(
                reason.code in QUALITY_LOST
                for review in self.reviews[-1:]
                for reason in review.reasons
            )
            else ""
        )
        return ", ".join(filter(None, (faulty, lost)))

    @cached_property
    def ahead(self) -> bool:
        """Whether runs were started before their scheduled time, as a demo's are."""
        due = with_known(self.runs, lambda run: run.details.get("scheduled"))
        return any(datetime.fromisoformat(at).timestamp() > run.ended_at for run, at in due)

    @cached_property
    def standards(self) -> list[Standard]:
        """What each run stands against: the latest baseline runs, at first those of the trial."""
        metrics: deque[float] = deque(maxlen=ROLLING)
        walls: deque[float] = deque(maxlen=ROLLING)
        before = _before_production(self.probation)
        standards = []
        for run in self.runs:
            if run.started_at >= self.promoted_at and not (metrics or walls):
                metrics.extend(before[0])
                walls.extend(before[1])
            if run.arm == BASELINE and run.counts and run.finished:
                for seen, figure in ((metrics, self.reached(run)), (walls, wall_seconds_of(run))):
                    seen.extend(without_none([figure]))
            standards.append(Standard(mean_or_none(metrics), mean_or_none(walls)))
        return standards

    @cached_property
    def quality_difference(self) -> Difference | None:
        """The candidate's mean metric since the promotion minus the baseline's.

        The judge's own figure where it has seen all of these runs: it knows earlier ones, too.
        """
        seen = with_known((run for run in self.since_promotion if run.counts), self.reached)
        ours, theirs = (
            [metric for run, metric in seen if (run.arm == BASELINE) is side]
            for side in (False, True)
        )
        judged = self.probation
        if judged:
            arm = judged.promoted_arm
            delta = production_quality_figures(judged, arm).delta
            measured = without_none(run.metric for run in arm.probation)
            if delta is not None and len(measured) == len(ours):
                return Difference(delta, "every baseline run known, the trial's too")
        if not ours or not theirs:
            return None
        return Difference(mean(ours) - mean(theirs), "the baseline runs since then")

    @cached_property
    def speedups(self) -> list[tuple[int, float]]:
        """(run number, speed-up against the rolling baseline) of every finished candidate's run."""
        gains = []
        for place, (run, standard) in enumerate(zip(self.runs, self.standards, strict=True), 1):
            walls = without_none((standard.wall_seconds, wall_seconds_of(run)))
            if len(walls) == 2 and run.arm != BASELINE and run.finished and run.counts:
                gains.append((place, walls[0] / walls[1]))
        return gains

    @cached_property
    def states(self) -> list[Flag]:
        """The flag while each run trained: what held when it began."""
        states, flag, changes = [], OFF, deque(self.history.flags)
        for run in self.runs:
            while changes and changes[0].at <= run.started_at:
                flag = changes.popleft().flag
            states.append(flag)
        return states


def fault_in(registration: RegistrationChange) -> str | None:
    """The fault that a registration's changes put in; ``""`` where they took it out."""
    for change in registration.changes:
        if str(change.get("field", "")).endswith(f"environment.{FAULT_VARIABLE}"):
            return str(change.get("after") or "")
    return None


def _before_production(evidence: Evidence | None) -> tuple[list[float], list[float]]:
    """Metrics and wall clocks of the baseline in the trial, history first."""
    if evidence is None:
        return [], []
    runs = evidence.baseline.quality
    metrics = without_none(run.metric for run in runs)
    walls = [run.wall_seconds for run in runs if run.wall_seconds]
    return [*evidence.quality.history, *metrics], [*evidence.history_wall_seconds, *walls]
