"""What a batch of checks adds up to: verdicts, dollars, the most to gain and the dearest losers."""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from compilegate.domain.formats import number, pair

LISTED = 5
INELIGIBLE = "ineligible"


@dataclass(frozen=True, order=True)
class Ranked:
    """A workload in a list of the few with the most; ``usd`` per year."""

    usd: float
    workload: str
    note: str = field(compare=False)


@dataclass
class Totals:
    """Sums over many checks in constant memory; USD per year.

    The saving is of workloads that may be tried; ``unpriced`` are those without a known price.
    """

    verdicts: Counter[str] = field(default_factory=Counter)
    errors: int = 0
    training_usd: float = 0.0
    unpriced: int = 0
    saving_low: float = 0.0
    saving_high: float = 0.0
    stopped_by: Counter[str] = field(default_factory=Counter)
    most_to_gain: list[Ranked] = field(default_factory=list)
    dearest_stopped: list[Ranked] = field(default_factory=list)

    def add(self, document: Mapping[str, Any]) -> None:
        """Count one eligibility document."""
        verdict, name = str(document["verdict"]), str(document["workload"])
        economics = document.get("economics") or {}
        usd = number(economics.get("annual_training_usd"))
        self.verdicts[verdict] += 1
        self.training_usd += usd or 0.0
        self.unpriced += usd is None
        if verdict == INELIGIBLE:
            reason = first_stop(document)
            self.stopped_by[reason["code"]] += 1
            _keep(self.dearest_stopped, Ranked(usd or 0.0, name, reason["message"]))
            return
        saving = pair(economics.get("plausible_annual_saving_usd"))
        if saving is not None:
            self.saving_low += saving[0]
            self.saving_high += saving[1]
            _keep(self.most_to_gain, Ranked(saving[1], name, verdict))


def first_stop(document: Mapping[str, Any]) -> Mapping[str, Any]:
    """The first reason that stops a workload, its own before its candidates'."""
    for source in (document, *document["candidates"]):
        for reason in source["reasons"]:
            if reason["severity"] == "block":
                return dict(reason)
    return {"code": "none", "message": "no candidate is left"}


def _keep(few: list[Ranked], entry: Ranked) -> None:
    if len(few) < LISTED:
        heapq.heappush(few, entry)
    else:
        heapq.heappushpop(few, entry)
