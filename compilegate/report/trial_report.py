"""One trial's records read once, so that page, Markdown and message say the same."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NotRequired, TypedDict

from compilegate.domain.claims import Claims, claims_of, own_codes
from compilegate.domain.codec import read
from compilegate.domain.decision import (
    ArmFigures,
    ControlFigures,
    Decision,
    NextStep,
    QualityFigures,
    SavingFigures,
    Speedup,
    Verdict,
)
from compilegate.domain.judging.evidence import Evidence
from compilegate.domain.notes import Note, said
from compilegate.domain.planning.arms import ArmPlan
from compilegate.domain.reasons import Reason
from compilegate.domain.records.trials import FlagOutcome
from compilegate.domain.trial.plan import RecordedPlan
from compilegate.domain.trial.silent_arms import silent_arms
from compilegate.report.measured import Document, Measured, measure
from compilegate.report.reasons import ConfirmedFall, confirmed_fall, shown_reasons


class Context(TypedDict):
    """Where the trial ran; ``simulated`` says in one sentence what was not the real thing."""

    stage: str
    trial: str
    simulated: NotRequired[str | None]
    workload: NotRequired[str | None]  # needed only where there is no decision
    failure: NotRequired[str | None]  # why a trial ended without a decision
    place: NotRequired[str | None]  # where the report lies, if no command shows it
    owner: NotRequired[str | None]
    region: NotRequired[str | None]  # of the console that shows its jobs, None without one
    bucket: NotRequired[str | None]  # the data bucket


EarlierTrial = tuple[str, Decision | None]


class ReportInput(TypedDict):
    """The trial's records; a record that was never written is None.

    Decision and evidence are as they are stored: the page offers them for download.
    """

    decision: Document | None
    evidence: Document | None
    eligibility: Document | None
    plan: RecordedPlan | None
    flag: NotRequired[FlagOutcome | None]  # the outcome for the flag, once it is decided
    earlier: NotRequired[Sequence[EarlierTrial]]  # of the same workload, newest first
    context: Context


@dataclass(frozen=True)
class TrialReport:
    """What the records say; ``verdict`` is None for a failed trial, ``plan`` where there is none.

    ``reasons`` are as people read them (reasons.py).
    ``measured`` is a sentence where nothing was measured or the evidence cannot be read.
    ``decision`` is None for a failed trial too; ``eligibility`` is empty where there is none, and
    ``flag``, the outcome for it, None.
    """

    source: ReportInput
    decision: Decision | None
    eligibility: Document
    flag: FlagOutcome | None
    plan: RecordedPlan | None
    verdict: Verdict | None
    candidate: str | None
    reasons: tuple[Reason, ...]
    measured: Measured | str
    claims: Claims

    @property
    def speed(self) -> Speedup | None:
        """The whole job's speed-up, None where it was not judged."""
        return self.decision.speedup if self.decision else None

    @property
    def quality(self) -> QualityFigures | None:
        """The candidate's quality, None where it was not judged."""
        return self.decision.quality if self.decision else None

    @property
    def saving(self) -> SavingFigures | None:
        """The candidate's saving, None where it is not known."""
        return self.decision.saving if self.decision else None

    @property
    def workload(self) -> str:
        """The workload's name, from whichever record has it."""
        names = (
            self.decision and self.decision.workload,
            self.source["context"].get("workload"),
            self.eligibility.get("workload"),
            self.evidence and self.evidence.workload,
        )
        return next((str(name) for name in names if name), "workload")

    @property
    def evidence(self) -> Evidence | None:
        """The evidence, None where there is none that can be read."""
        return None if isinstance(self.measured, str) else self.measured.evidence

    @property
    def price_ratio(self) -> float:
        """The candidate's price per hour over the baseline's; 1 where either is unknown."""
        return 1.0 if isinstance(self.measured, str) else self.measured.price_ratio

    @property
    def thresholds(self) -> tuple[float, float] | None:
        """Reject and promote as ratios of times, adjusted for the price per hour."""
        return None if isinstance(self.measured, str) else self.measured.thresholds

    @property
    def metric(self) -> str:
        """The metric's name."""
        recorded = self.quality or (self.evidence and self.evidence.quality)
        return recorded.metric if recorded else "the quality metric"

    @property
    def arms(self) -> Sequence[ArmFigures]:
        """The judge's figures of each arm."""
        return self.decision.arms if self.decision else ()

    @property
    def priced_arms(self) -> Sequence[ArmFigures]:
        """``arms``; the candidate's run has the price that its saving is computed from.

        The judge's own ``usd_per_run`` of an arm is what its runs took: their difference is not
        the saving, which is of one estimate of whole jobs (blocks and full runs together).
        """
        if self.saving is None:
            return self.arms
        price = self.saving.usd_per_run_baseline - self.saving.usd_per_run
        return [
            replace(arm, usd_per_run=price) if arm.name == self.candidate else arm
            for arm in self.arms
        ]

    @property
    def planned_arms(self) -> Sequence[ArmPlan]:
        """The arms of the plan."""
        return self.plan.arms if self.plan else ()

    @cached_property
    def fall(self) -> ConfirmedFall | None:
        """What the runs that checked an alarm showed, where they turned the candidate off."""
        if self.decision is None or self.evidence is None or self.verdict is not Verdict.REVERT:
            return None
        return confirmed_fall(self.decision, self.evidence)

    @property
    def notes(self) -> Sequence[Note]:
        """Remarks about the job."""
        return self.plan.notes if self.plan else ()

    @property
    def remarks(self) -> Sequence[str]:
        """What they say where figures stand."""
        return said(self.notes)

    @property
    def against(self) -> Sequence[str]:
        """What an amount is against, where that is not the job as it runs today."""
        return said(self.notes, "against")

    @property
    def codes(self) -> set[str]:
        """The reasons' codes."""
        return {reason.code for reason in self.reasons}

    @property
    def own_codes(self) -> frozenset[str]:
        """The reasons' codes without those about other candidates than the one decided on."""
        return own_codes(self.decision) if self.decision else frozenset()

    @property
    def decision_id(self) -> str:
        """The decision's identity, empty without one."""
        return self.decision.decision_id if self.decision else ""

    @property
    def judge_version(self) -> str:
        """The version of the judge that decided, empty where none did."""
        return self.decision.judge_version if self.decision else ""

    @property
    def stage(self) -> str:
        """How far the trial had come when it was decided; empty without a decision."""
        return self.decision.stage if self.decision else ""

    @property
    def next_step(self) -> NextStep | None:
        """What a trial that continues does next, None where it has ended."""
        return self.decision.next if self.decision else None

    @property
    def controls(self) -> Sequence[ControlFigures]:
        """The judge's figures of each control."""
        return self.decision.controls if self.decision else ()

    @property
    def on_probation(self) -> bool:
        """Whether the decision is about production runs after a promotion."""
        return self.stage == "probation"

    @property
    def flag_was_held(self) -> bool:
        """Whether a person kept the flag from changing as the decision says."""
        return self.flag is not None and self.flag.was_held

    @property
    def trial_usd(self) -> float | None:
        """What the trial has cost by its jobs' billable time."""
        recorded = self.saving.trial_usd if self.saving else None
        if recorded is None and self.evidence is not None:
            return self.evidence.plan.spent_usd
        return recorded


def read_trial_report(source: ReportInput) -> TrialReport:
    """Read the records.

    Raises ValueError for a verdict outside the closed set, and when there is neither a
    decision nor a failure to report.
    """
    decision = read(Decision, source["decision"]) if source["decision"] else None
    if decision is None and not source["context"].get("failure"):
        raise ValueError("a report needs a decision, or context.failure saying why there is none")
    candidate = decision.candidate if decision else None
    measured = measure(source["evidence"], candidate)
    evidence = None if isinstance(measured, str) else measured.evidence
    return TrialReport(
        source=source,
        decision=decision,
        eligibility=source["eligibility"] or {},
        flag=source.get("flag"),
        plan=source["plan"],
        verdict=decision.verdict if decision else None,
        candidate=candidate,
        reasons=shown_reasons(decision, evidence, silent=silent_arms(source["evidence"]))
        if decision
        else (),
        measured=measured,
        claims=claims_of(decision) if decision else Claims(),
    )
