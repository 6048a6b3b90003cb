"""One trial's records read once, so that page, Markdown and message say the same."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from compilegate.domain.decision import Verdict
from compilegate.domain.formats import number, pair
from compilegate.domain.reasons import Reason
from compilegate.report.measured import Measured, measure
from compilegate.report.model import Document, ReportInput

NOTHING: Mapping[str, Any] = {}


@dataclass(frozen=True)
class TrialReport:
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
    def reasons(self) -> Sequence[Reason]:
        """The decision's reasons; those of release 0.1 name their arm in the message only."""
        arms = [str(arm["name"]) for arm in self.arms]
        return [
            _read_reason(document, arms)
            for document in self.decision.get("reasons") or ()
            if document and (document.get("message") or document.get("code"))
        ]

    @property
    def arms(self) -> Sequence[Document]:
        """The decision's arms that have a name."""
        return named(self.decision.get("arms"))

    @property
    def codes(self) -> set[str]:
        """The reasons' codes."""
        return {reason.code for reason in self.reasons}

    @property
    def own_codes(self) -> set[str]:
        """The reasons' codes without those about other candidates than the one decided on."""
        if self.candidate is None:
            return self.codes
        others = {arm["name"] for arm in self.arms} - {self.candidate}
        return {reason.code for reason in self.reasons if reason.arm not in others}

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


def _read_reason(document: Document, arms: Sequence[str]) -> Reason:
    message = str(document.get("message") or document.get("code"))
    arm = document.get("arm")
    if "arm" not in document:
        arm = next((name for name in arms if message.startswith(f"{name}: ")), None)
    return Reason(str(document.get("code") or ""), message, arm, fix=str(document.get("fix") or ""))


def named(arms: Sequence[Document | None] | None) -> list[Document]:
    """The arms that have a name to show."""
    return [arm for arm in arms or () if arm and arm.get("name")]


def read_trial_report(source: ReportInput) -> TrialReport:
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
        return TrialReport(source, None, measure(source["evidence"], None))
    candidate = decision.get("candidate")
    return TrialReport(source, Verdict(decision["verdict"]), measure(source["evidence"], candidate))
