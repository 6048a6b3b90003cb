"""One trial's records read once, so that page, Markdown and message say the same."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from compilegate.domain.decision import Verdict
from compilegate.report.formats import number, pair
from compilegate.report.measured import Measured, measure
from compilegate.report.model import Document, ReportInput

NOTHING: Mapping[str, Any] = {}


@dataclass(frozen=True)
class Case:
    """The input with its verdict and evidence parsed; ``verdict`` is None for a failed trial."""

    source: ReportInput
    verdict: Verdict | None
    measured: Measured | str

    @property
    def decision(self) -> Document:
        """The decision, empty for a failed trial."""
        return self.source["decision"] or NOTHING

    @property
    def plan(self) -> Document:
        """The plan, empty when there was none."""
        return self.source["plan"] or NOTHING

    @property
    def evidence(self) -> Document:
        """The evidence document, empty when there was none."""
        return self.source["evidence"] or NOTHING

    @property
    def eligibility(self) -> Document:
        """The eligibility document, empty when there was none."""
        return self.source["eligibility"] or NOTHING

    @property
    def flag(self) -> Document:
        """What became of the flag, empty while that is not settled."""
        return self.source.get("flag") or NOTHING

    @property
    def workload(self) -> str:
        """The workload's name, from whichever record has it."""
        context: Mapping[str, Any] = self.source["context"]
        records = (self.decision, context, self.plan, self.eligibility, self.evidence)
        return next((str(r["workload"]) for r in records if r.get("workload")), "workload")

    @property
    def candidate(self) -> str | None:
        """The candidate that the decision is about."""
        name = self.decision.get("candidate")
        return None if name is None else str(name)

    @property
    def speed(self) -> Document:
        """Speed-up figures, empty when unknown."""
        return self.decision.get("speedup") or NOTHING

    @property
    def quality(self) -> Document:
        """Quality figures, empty when unknown."""
        return self.decision.get("quality") or NOTHING

    @property
    def saving(self) -> Document:
        """Saving figures, empty when unknown."""
        return self.decision.get("saving") or NOTHING

    @property
    def policy(self) -> Document:
        """What the team accepts, empty when no evidence carries it."""
        return self.evidence.get("policy") or NOTHING

    @property
    def price_ratio(self) -> float:
        """The candidate's price per hour over the baseline's; 1 where either is unknown."""
        return 1.0 if isinstance(self.measured, str) else self.measured.price_ratio

    def bar(self, key: str) -> float | None:
        """A threshold of policy as a ratio of times: dollars decide, so that it has the price."""
        value = number(self.policy.get(key))
        return None if value is None else value * self.price_ratio

    @property
    def metric(self) -> str:
        """The metric's name."""
        named = self.quality.get("metric") or (self.evidence.get("quality") or {}).get("metric")
        return str(named or "the quality metric")

    @property
    def reasons(self) -> Sequence[Mapping[str, str]]:
        """The decision's reasons, each with code and message."""
        return [
            {
                "code": str(r.get("code") or ""),
                "message": str(r.get("message") or r.get("code") or ""),
            }
            for r in self.decision.get("reasons") or ()
            if r and (r.get("message") or r.get("code"))
        ]

    @property
    def arms(self) -> Sequence[Document]:
        """The decision's arms that have a name."""
        return named(self.decision.get("arms"))

    @property
    def codes(self) -> set[str]:
        """The reasons' codes."""
        return {reason["code"] for reason in self.reasons}

    @property
    def own_codes(self) -> set[str]:
        """The reasons' codes without those about other candidates than the one decided on."""
        if self.candidate is None:
            return self.codes
        others = [f"{arm['name']}: " for arm in self.arms if arm["name"] != self.candidate]
        told = (r for r in self.reasons if not r["message"].startswith(tuple(others)))
        return {reason["code"] for reason in told}

    @property
    def on_probation(self) -> bool:
        """Whether the decision is about production runs after a promotion."""
        return bool(self.decision.get("stage") == "probation")

    @property
    def speedup(self) -> float | None:
        """Estimated full-run speed-up."""
        return number(self.speed.get("estimate"))

    @property
    def speedup_interval(self) -> tuple[float, float] | None:
        """Its interval."""
        return pair(self.speed.get("interval"))

    @property
    def runs_per_week(self) -> float | None:
        """Production runs per week."""
        return number(self.evidence.get("runs_per_week"))

    @property
    def trial_usd(self) -> float | None:
        """What the trial has cost by its jobs' billable time."""
        spent = number(self.saving.get("trial_usd"))
        return spent if spent is not None else number(
            (self.evidence.get("plan") or NOTHING).get("spent_usd")
        )  # fmt: skip


def named(arms: Sequence[Document | None] | None) -> list[Document]:
    """The arms that have a name to show."""
    return [arm for arm in arms or () if arm and arm.get("name")]


def read_case(source: ReportInput) -> Case:
    """Parse the input.

    Raises ValueError for a verdict outside the closed set, and when there is neither a
    decision nor a failure to report.
    """
    decision = source["decision"]
    if decision is None:
        if not source["context"].get("failure"):
            raise ValueError(
                "a report needs a decision, or context.failure saying why there is none"
            )
        return Case(source, None, measure(source["evidence"], None))
    candidate = decision.get("candidate")
    return Case(source, Verdict(decision["verdict"]), measure(source["evidence"], candidate))
