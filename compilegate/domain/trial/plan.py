"""When a trial may begin, its plan as it is recorded, and the mode of its full runs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import TYPE_CHECKING, Any

from compilegate.domain import flag_change, naming
from compilegate.domain.codec import read
from compilegate.domain.decision import SHADOW, Verdict
from compilegate.domain.errors import InvalidInputError
from compilegate.domain.flag import Flag
from compilegate.domain.notes import Note, read_notes
from compilegate.domain.planning import rounds
from compilegate.domain.planning.arms import CANDIDATE, CONTROL, ON, ArmPlan, promoted
from compilegate.domain.production.history import DAY_SECONDS, WorkloadHistory
from compilegate.domain.production.registration import Registration, TrainedJob
from compilegate.domain.reasons import Reason
from compilegate.domain.records.flags import FlagVersion
from compilegate.domain.records.production import TRAIN
from compilegate.domain.records.trials import TrialDecided
from compilegate.domain.spreads import ASSUMED, Spreads
from compilegate.domain.utc import minute
from compilegate.domain.workload.model import BASELINE, HOUR, PREVIOUS, Training

if TYPE_CHECKING:  # what reads a plan does not load what makes one
    from compilegate.domain.planning.plan import Plan


@dataclass(frozen=True)
class QualityMode:
    """The mode that policy asks for and the one that a trial uses; ``why`` where they differ.

    ``beside``: production trains the same job meanwhile, so that its own baseline runs are
    evidence as well.
    """

    asked: str
    used: str
    why: str | None = None
    beside: bool = False


@dataclass(frozen=True)
class TrialContext:
    """What a plan is recorded with: whose trial it is and what its jobs train.

    ``stands_on`` is the flag's version on which its candidates are tried on top of what is on, 0
    where they are tried alone.
    """

    trial: str
    spec_key: str
    execution: str
    source_key: str
    started_at: int
    quality_mode: QualityMode
    stands_on: int


@dataclass(frozen=True)
class RecordedPlan:
    """What a running trial goes by; the baseline is the first arm, controls are among the arms.

    ``spec_key`` says where the workload lies as it was when the trial started. ``quotas`` are the
    instances of each type that the account allows at one time, None unknown. ``notes`` are
    remarks about the job.
    ``expected_usd`` is the estimate of the whole trial's cost, None unknown. ``spreads`` are those
    that were learned before it, ``pairs`` whether a job makes whole runs of both arms,
    ``stands_on`` is the context's.
    """

    arms: tuple[ArmPlan, ...]
    speed_steps: int
    blocks_per_round: int
    max_blocks: int
    usd_per_block: float
    usd_per_quality_run: float
    max_trial_usd: float
    max_quality_runs: int
    quality_mode: QualityMode
    spec_key: str = ""
    execution: str = ""
    started_at: int = 0
    quotas: Mapping[str, int | None] = field(default_factory=dict)
    notes: tuple[Note, ...] = ()
    expected_usd: float | None = None
    spreads: Spreads = ASSUMED
    pairs: bool = False
    stands_on: int = 0

    @property
    def baseline(self) -> ArmPlan:
        """The arm that everything is compared with."""
        return self.arms[0]

    @property
    def judged_arms(self) -> tuple[ArmPlan, ...]:
        """The baseline, the candidates and what is on; a control decides nothing."""
        return tuple(arm for arm in self.arms if arm.role != CONTROL)

    @property
    def candidates(self) -> int:
        """How many candidates are tried."""
        return sum(arm.role == CANDIDATE for arm in self.arms[1:])

    @property
    def on_top_of(self) -> str:
        """The name of the arm that is on, empty where candidates are tried alone."""
        return next((arm.name for arm in self.arms if arm.role == ON), "")

    @property
    def runs_in_production(self) -> bool:
        """Whether production's own runs are evidence of the trial."""
        return self.quality_mode.beside or self.is_canary

    @property
    def is_canary(self) -> bool:
        """Whether production makes the trial's full runs."""
        return self.quality_mode.used != SHADOW

    def arm(self, name: str) -> ArmPlan:
        """The arm of that name; raises KeyError where the trial has none."""
        return {arm.name: arm for arm in self.arms}[name]

    def overrides(self, name: str) -> Mapping[str, Any]:
        """What the flag would change if the arm of that name were promoted."""
        if name == BASELINE:
            return {}
        return promoted(self.arm(name), self.baseline, decision_id="").overrides


def plan_document(plan: Plan, context: TrialContext, training: Training) -> dict[str, Any]:
    """The plan as it is kept: what was designed, and what the trial began with.

    Its limits say whether even the longest path ends in time, without rounds that production makes.
    """
    mode = context.quality_mode
    candidates = sum(arm.role == CANDIDATE for arm in plan.arms[1:])
    turns = max(layout.waves for layout in plan.layout)
    each = rounds.round_seconds(training.longest_job_hours, turns)
    longest = rounds.max_rounds(candidates) * each + rounds.ENDING_SECONDS
    most = most_seconds(mode)
    limits = {
        "max_rounds": most_rounds(candidates, plan.max_quality_runs, mode),
        "longest_hours": round(longest / HOUR, 2),
        "machine_hours": most / HOUR,
        "fits": longest <= most,
    }
    document = {**plan.to_dict(), **asdict(context), "limits": limits}
    if not context.stands_on:
        del document["stands_on"]
    return document


def read_plan(document: Mapping[str, Any]) -> RecordedPlan:
    """A recorded plan; fields of a later release are left out. Raises KeyError, DocumentError."""
    quotas = {need["instance_type"]: need["quota"] for need in document["quotas"]}
    expected_usd = (document.get("estimate") or {}).get("usd")
    completed = {**document, "quotas": quotas, "notes": None, "expected_usd": expected_usd}
    completed["pairs"] = bool(document.get("pairs"))
    return replace(read(RecordedPlan, completed), notes=read_notes(document))


def most_seconds(mode: QualityMode) -> int:
    """How long a trial may take; production's schedule sets the pace of the runs it makes."""
    return rounds.TRIAL_SECONDS if mode.used == SHADOW else rounds.MACHINE_SECONDS


def most_rounds(candidates: int, max_quality_runs: int, mode: QualityMode) -> int:
    """How many rounds a sound trial may take."""
    return rounds.max_rounds(candidates, 0 if mode.used == SHADOW else max_quality_runs)


def cooling_down(
    versions: Sequence[FlagVersion], days: float, *, now: int, workload: str
) -> Reason | None:
    """Why a trial is not begun yet, None once it may be; times in epoch seconds.

    ``versions`` is every change of the flag, oldest first. Only a revert by the probation starts
    the time; any manual change after it ends it.
    """
    by_probation = (flag_change.TRAIN, flag_change.REVERT)
    if not versions or (versions[-1].by, versions[-1].action) != by_probation:
        return None
    last = versions[-1]
    until = last.at + round(days * DAY_SECONDS)
    if until <= now:
        return None
    reason = last.reason.rstrip(".")
    return Reason(
        "cooling_down",
        f"the flag was reverted on {minute(last.at)} ({reason}); no trial starts before "
        f"{minute(until)} (policy.cooldown_days: {days:g})",
        fix=f'once the cause is known, `compilegate flag revert {workload} --reason "…"` ends the '
        "wait, or set policy.cooldown_days to 0",
    )


def quality_mode(
    measured: TrainedJob,
    registration: Registration | None,
    produced: TrainedJob | None,
    history: WorkloadHistory,
) -> QualityMode:
    """The mode of a trial of ``measured``.

    ``registration`` and ``produced``, the spec it names, say what production trains; None where
    nothing is registered. ``history`` is the workload's.
    """
    policy = measured.workload.policy.quality_runs
    why = _why_not(measured, registration, produced, history)
    if why:
        return QualityMode(policy, SHADOW, why if policy != SHADOW else None)
    return QualityMode(policy, policy, beside=True)


def _why_not(
    measured: TrainedJob,
    registration: Registration | None,
    produced: TrainedJob | None,
    history: WorkloadHistory,
) -> str:
    """Why production cannot make runs of the trial, empty where it can."""
    if registration is None or produced is None:
        return "the workload is not registered with production (compilegate register)"
    if not registration.active:
        return "the workload was retired from production (compilegate register brings it back)"
    ours, theirs = measured.fields, produced.fields
    changed = [key for key in sorted({*ours, *theirs}) if ours.get(key) != theirs.get(key)]
    changed += ["the source"] if measured.code != produced.code else []
    if changed:
        fields = ", ".join(changed)
        return f"production trains another job, which differs in {fields}: register the file again"
    # A team that starts its own jobs reads the flag, and that says baseline until the verdict.
    if registration.schedule is None and TRAIN not in (run.launched_by for run in history.runs):
        return (
            "schedule.cron is not set and no production run has gone through TRAIN yet "
            "(compilegate train), so none is to be expected"
        )
    training = measured.workload.training
    if training.starts_from == PREVIOUS:
        return (
            "a run starts from the last run's model (training.starts_from: previous), so in turns "
            "each arm would go on from the other's models"
        )
    unsaid = (  # what is not said and may be is taken to be
        f"{training.unsaid_start} may hold an earlier run's model, in which case each arm would go "
        "on from the other's: say so or not in training.starts_from"
    )
    return unsaid if training.unsaid_start else ""


# The candidates that a person may turn on: those that decided trials have planned.


@dataclass(frozen=True)
class PlannedCandidate:
    """A candidate as the newest trial that decided on it has planned it.

    ``proven`` says whether that trial promoted this very candidate. ``details`` name the trial's
    records.
    """

    name: str
    trial: str
    flag: Flag
    verdict: str
    proven: bool
    details: Mapping[str, Any]


def planned_candidates(
    workload: str, planned: Iterable[tuple[TrialDecided, RecordedPlan]]
) -> dict[str, PlannedCandidate]:
    """Every candidate of a workload's decided trials, by name; the newest trial counts."""
    candidates: dict[str, PlannedCandidate] = {}
    for decided, plan in sorted(planned, key=lambda pair: pair[0].at, reverse=True):
        details = {
            "trial": decided.trial,
            "decision_key": decided.decision_key,
            "evidence_key": naming.record_key(workload, decided.trial, "evidence"),
        }
        for arm in plan.arms:
            if arm.role != CANDIDATE or arm.name in candidates:
                continue
            candidates[arm.name] = PlannedCandidate(
                name=arm.name,
                trial=decided.trial,
                flag=promoted(arm, plan.baseline, decision_id=decided.decision_id),
                verdict=decided.verdict,
                proven=(decided.verdict, decided.candidate) == (Verdict.PROMOTE, arm.name),
                details=details,
            )
    return candidates


def candidate_named(
    name: str, candidates: Mapping[str, PlannedCandidate], workload: str
) -> PlannedCandidate:
    """The candidate of that name; raises InvalidInputError that names those there are."""
    if name not in candidates:
        fix = f"use one of {', '.join(sorted(candidates))}" if candidates else (
            f"run a trial of {workload} first, so that its overrides are recorded"
        )  # fmt: skip
        problem = "is not a candidate that a decided trial of this workload has planned"
        raise InvalidInputError(problem, field="--candidate", value=name, fix=fix)
    return candidates[name]
