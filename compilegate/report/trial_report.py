"""One trial's records, read once (usecases/reports.py): page, Markdown and message say the same."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NotRequired, TypedDict

from compilegate.domain.claims import Claims, claims_of, own_codes
from compilegate.domain.decision import ArmFigures, Decision, QualityFigures, Verdict
from compilegate.domain.formats import number
from compilegate.domain.judging.evidence import Evidence
from compilegate.domain.judging.measured import ConfirmedFall, Measured, confirmed_fall
from compilegate.domain.notes import Note
from compilegate.domain.optional import map_optional, without_none
from compilegate.domain.planning.arms import ArmPlan
from compilegate.domain.reasons import Reason
from compilegate.domain.records.flags import FlagVersion
from compilegate.domain.records.trials import FlagOutcome
from compilegate.domain.trial.plan import RecordedPlan
from compilegate.domain.where_time_goes import WhereTimeGoes, where_time_goes
from compilegate.domain.workload.quality import Quality

Document = Mapping[str, Any]


class Context(TypedDict):
    """Where the trial ran; ``simulated`` says in one sentence what was not the real thing."""

    stage: str
    trial: str
    simulated: NotRequired[str | None]
    workload: NotRequired[str | None]  # needed only where there is no decision
    failure: NotRequired[str | None]  # why a trial ended without a decision
    place: NotRequired[str | None]  # where the report lies, if no command shows it
    owner: NotRequired[str | None]
    origin: NotRequired[str | None]  # the workload file, as a command names it
    region: NotRequired[str | None]  # of the console that shows its jobs, None without one
    bucket: NotRequired[str | None]  # the data bucket
    as_of: NotRequired[int]  # when the report was made, epoch seconds: a copy does not change


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
    followed: NotRequired[FlagVersion | None]  # the last change of the flag that it had turned on
    context: Context


# In place of the decision of a trial that failed: it has no figures.
UNDECIDED = Decision("", "", "", "", Verdict.INVALID, None, ())


@dataclass(frozen=True)
class TrialReport:
    """What the records say; ``decision`` is None for a trial that failed.

    ``judged`` is then a decision without figures, so that no reader asks for one. ``reasons`` are
    as people read them (statements.py). ``measured`` is None where nothing was measured or the
    evidence cannot be read, which ``not_measured`` says in a sentence. ``eligibility`` is empty
    where there is none; ``flag`` is the outcome for it, once it is decided. ``earlier`` are the
    trials before it with what may be said of each.
    """

    source: ReportInput
    decision: Decision | None
    judged: Decision
    reasons: tuple[Reason, ...]
    measured: Measured | None
    not_measured: str
    verdict: Verdict | None
    candidate: str | None
    eligibility: Document
    plan: RecordedPlan | None
    flag: FlagOutcome | None
    earlier: Sequence[tuple[str, Decision | None, Claims]] = ()

    @cached_property
    def claims(self) -> Claims:
        """What may be said of the figures."""
        return claims_of(self.judged)

    @property
    def workload(self) -> str:
        """The workload's name, from whichever record has it."""
        names = (
            self.judged.workload,
            self.source["context"].get("workload"),
            self.eligibility.get("workload"),
            map_optional(self.evidence, lambda one: one.workload),
        )
        return next((str(name) for name in names if name), "workload")

    @property
    def simulated(self) -> str | None:
        """What was not the real thing; None where nothing was trained."""
        untrained = self.verdict is Verdict.INELIGIBLE or self.judged.stage == "plan"
        return None if untrained else self.source["context"].get("simulated")

    @property
    def evidence(self) -> Evidence | None:
        """The evidence, None where there is none that can be read."""
        return self.measured.evidence if self.measured else None

    @property
    def price_ratio(self) -> float:
        """The candidate's price per hour over the baseline's; 1 where either is unknown."""
        return self.measured.price_ratio if self.measured else 1.0

    @property
    def thresholds(self) -> tuple[float, float] | None:
        """What must be proven and what the mean must be, as ratios of times: dollars decide."""
        return self.measured.thresholds if self.measured else None

    @cached_property
    def usd_by_job(self) -> Mapping[str, float | None]:
        """What the trial's jobs cost, None where the evidence does not say it."""
        plan = (self.source["evidence"] or {}).get("plan") or {}
        return {job: number(usd) for job, usd in (plan.get("usd_by_job") or {}).items()}

    @property
    def metric(self) -> str:
        """The metric's name."""
        return self.quality.metric if self.quality else "the quality metric"

    @property
    def quality(self) -> QualityFigures | Quality | None:
        """The metric and its margin: as the decision has them, else as the evidence has."""
        return self.judged.quality or map_optional(self.evidence, lambda one: one.quality)

    @property
    def arms(self) -> Sequence[ArmFigures]:
        """The judge's figures, with the steady step that its estimate is from, where measured.

        The candidate's run has the price that its saving is computed from. The judge's own
        ``usd_per_run`` of an arm is what its runs took: their difference is not the saving, which
        is of one estimate of whole jobs (blocks and full runs together).
        """
        saving, measured = self.judged.saving, self.measured.arms if self.measured else ()
        steady = {arm.name: arm.steady_step_seconds for arm in measured}
        arms = [replace(arm, step_seconds_median=steady.get(arm.name)) for arm in self.judged.arms]
        if saving is None:
            return arms
        price = saving.usd_per_run_baseline - saving.usd_per_run
        return [
            replace(arm, usd_per_run=price) if arm.name == self.candidate else arm for arm in arms
        ]

    @property
    def planned_arms(self) -> Sequence[ArmPlan]:
        """The arms of the plan."""
        return self.plan.arms if self.plan else ()

    @cached_property
    def times(self) -> WhereTimeGoes | None:
        """Where a step's time goes in the candidate and the baseline; None where it is unknown."""
        return where_time_goes(self.measured) if self.measured else None

    @cached_property
    def fall(self) -> ConfirmedFall | None:
        """What the runs that checked an alarm showed, where they turned the candidate off."""
        if self.verdict is not Verdict.REVERT:
            return None
        return map_optional(self.evidence, lambda seen: confirmed_fall(self.judged, seen))

    @property
    def notes(self) -> Sequence[Note]:
        """Remarks about the job."""
        return self.plan.notes if self.plan else ()

    @property
    def codes(self) -> set[str]:
        """The reasons' codes."""
        return {reason.code for reason in self.reasons}

    @property
    def own_codes(self) -> frozenset[str]:
        """The reasons' codes without those about other candidates than the one decided on."""
        return own_codes(self.judged)

    @property
    def on_probation(self) -> bool:
        """Whether the decision is about production runs after a promotion."""
        return self.judged.stage == "probation"

    @property
    def trial_usd(self) -> float | None:
        """What the trial has cost by its jobs' billable time."""
        recorded = map_optional(self.judged.saving, lambda one: one.trial_usd)
        spent = map_optional(self.evidence, lambda one: one.plan.spent_usd)
        return next(iter(without_none((recorded, spent))), None)
