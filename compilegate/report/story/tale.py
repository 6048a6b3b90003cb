"""The ledger of a workload read once: runs, flag, promotion, and what each run stands against."""

from __future__ import annotations

import math
from collections import Counter, deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from typing import Any

from compilegate.domain.arithmetic import mean
from compilegate.domain.flag import Flag, parse_flag
from compilegate.domain.flag_change import flag_entries, flag_of
from compilegate.domain.production.fault import VARIABLE
from compilegate.domain.production.promotion import latest_promotion
from compilegate.domain.production.registration import REGISTERED, RETIRED
from compilegate.domain.production.runs import ProductionRun, production_runs
from compilegate.domain.production.savings import ROLLING, Savings, savings_so_far
from compilegate.domain.workload.model import BASELINE
from compilegate.report.formats import number
from compilegate.report.model import Document
from compilegate.report.story.model import StoryInput


@dataclass(frozen=True)
class Standard:
    """The rolling baseline that a run stands against; None where there is none yet."""

    metric: float | None
    wall_seconds: float | None


class Tale:
    """One workload; everything is computed from ``source`` when it is first asked for."""

    def __init__(self, source: StoryInput) -> None:
        self.source = source
        self.entries: Sequence[Document] = sorted(
            source["entries"], key=lambda entry: float(entry.get("at") or 0)
        )

    @cached_property
    def runs(self) -> list[ProductionRun]:
        """Every run in the order of time, each attempt on its own."""
        return production_runs(self.entries)

    @cached_property
    def places(self) -> Mapping[str, int]:
        """The number of each job's run, from 1."""
        return {run.job: place for place, run in enumerate(self.runs, 1)}

    def place_at(self, at: float) -> float:
        """Between which runs a moment lies: 3.5 is after the third."""
        return sum(run.started_at <= at for run in self.runs) + 0.5

    @cached_property
    def flags(self) -> list[Document]:
        """Every change of the flag, oldest first."""
        return flag_entries(self.entries)

    @property
    def flag(self) -> Flag:
        """What production is told now."""
        return flag_of(self.flags)

    @cached_property
    def promotion(self) -> Document | None:
        """The flag's entry by which a trial last turned a candidate on."""
        return latest_promotion(self.flags)

    @cached_property
    def retired(self) -> bool:
        """Whether production trains it no more."""
        found = [e for e in self.entries if e.get("kind") in (REGISTERED, RETIRED)]
        return bool(found) and found[-1]["kind"] == RETIRED

    @property
    def registered(self) -> bool:
        """Whether it ever was registered."""
        return any(e.get("kind") == REGISTERED for e in self.entries)

    @property
    def quality(self) -> Document:
        """``metric``, ``goal`` and ``margin``, from the latest record that has them."""
        for record in (self.source["evidence"], self.source["workload"]):
            if record and record.get("quality"):
                found: Document = record["quality"]
                return found
        return {}

    @property
    def metric(self) -> str:
        """What the runs are measured by."""
        return str(self.quality.get("metric") or "the metric")

    @cached_property
    def decision(self) -> Document:
        """The decision of the promotion's trial, empty where it is not known."""
        trial = str(self.promotion["trial"]) if self.promotion else ""
        return self.source["trials"].get(trial) or {}

    @property
    def usd_per_run(self) -> float | None:
        """What that trial expected a run to save."""
        return number((self.decision.get("saving") or {}).get("usd_per_run"))

    @cached_property
    def savings(self) -> Savings | None:
        """What the promotion has saved so far, None where nothing was ever turned on."""
        if self.promotion is None:
            return None
        since = float(self.promotion["at"])
        return savings_so_far(self.runs, usd_per_run=self.usd_per_run, since=since)

    @cached_property
    def watches(self) -> list[Document]:
        """Looks at production since the latest promotion, oldest first."""
        if self.promotion is None:
            return []
        since, trial = self.promotion["at"], self.promotion["trial"]
        return [
            entry
            for entry in self.entries
            if entry.get("kind") == "watch" and entry["trial"] == trial and entry["at"] >= since
        ]

    @property
    def counts(self) -> Counter[str]:
        """Runs by arm."""
        return Counter(run.arm for run in self.runs)

    def fault_of(self, run: ProductionRun) -> str | None:
        """The fault that was put into this run on purpose, None for a sound one."""
        if run.arm == BASELINE:
            return None
        return self.source["faults"].get(str(run.details.get("spec_key")))

    @cached_property
    def faulty(self) -> list[ProductionRun]:
        """The runs that had one."""
        return [run for run in self.runs if self.fault_of(run)]

    @cached_property
    def ahead(self) -> bool:
        """Whether runs were started before the time that they stand for, as a demo's are."""
        return any(_scheduled_later(run) for run in self.runs)

    @cached_property
    def standards(self) -> list[Standard]:
        """What each run stands against: the latest baseline runs, at first those of the trial."""
        metrics: deque[float] = deque(maxlen=ROLLING)
        walls: deque[float] = deque(maxlen=ROLLING)
        before = _before_production(self.source["evidence"])
        since = float(self.promotion["at"]) if self.promotion else math.inf
        found = []
        for run in self.runs:
            if run.started_at >= since and not (metrics or walls):
                metrics.extend(before[0])
                walls.extend(before[1])
            own = run.arm == BASELINE and run.counts and run.finished
            if own:
                metrics.extend(_known(run.result.get("metric")))
                walls.extend(_durations(run.result.get("wall_seconds")))
            found.append(Standard(_mean(metrics), _mean(walls)))
        return found

    @cached_property
    def states(self) -> list[Flag]:
        """The flag while each run trained: what held when it began."""
        found, index, flag = [], 0, parse_flag(None)
        for run in self.runs:
            while index < len(self.flags) and self.flags[index]["at"] <= run.started_at:
                flag = parse_flag(str(self.flags[index]["to"]))
                index += 1
            found.append(flag)
        return found


def failed(run: ProductionRun) -> bool:
    """Whether it did not train to its end; of one that left no evidence nobody knows."""
    return run.status != "Completed" or run.result.get("finished") is False


def problem(run: ProductionRun) -> str:
    """What is known to be wrong with it, without a dot at the end."""
    return str(run.reason or run.result.get("reason") or "").rstrip(".")


def fault_in(registration: Document) -> str | None:
    """The fault that a registration's changes put in; ``""`` where they took it out."""
    for change in registration.get("changes") or ():
        if str(change.get("field", "")).endswith(f"environment.{VARIABLE}"):
            return str(change.get("after") or "")
    return None


def _scheduled_later(run: ProductionRun) -> bool:
    scheduled = run.details.get("scheduled")
    return scheduled is not None and datetime.fromisoformat(scheduled).timestamp() > run.ended_at


def _before_production(evidence: Document | None) -> tuple[list[float], list[float]]:
    """Metrics and wall clocks of the baseline as the trial knew them, history first."""
    if evidence is None:
        return [], []
    quality = evidence.get("quality") or {}
    arms = [arm for arm in evidence.get("arms") or () if arm.get("name") == BASELINE]
    runs = [run for arm in arms for run in arm.get("runs") or () if run.get("stage") == "quality"]
    metrics = [*(quality.get("history") or ()), *(run.get("metric") for run in runs)]
    walls = [
        *(quality.get("history_wall_seconds") or ()), *(run.get("wall_seconds") for run in runs)
    ]  # fmt: skip
    return [v for m in metrics for v in _known(m)], [v for w in walls for v in _durations(w)]


def _known(value: Any) -> list[float]:
    found = number(value)
    return [] if found is None else [found]


def _durations(value: Any) -> list[float]:
    """A job that took no time was not measured."""
    return [seconds for seconds in _known(value) if seconds > 0]


def _mean(values: Sequence[float]) -> float | None:
    return mean(values) if values else None
