"""How a trial ended, and where its report is."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from typing import Any

from compilegate.adapters.state_machines import ExecutionState
from compilegate.adapters.workload_files import write_whole
from compilegate.cli.common.cloud import Cloud
from compilegate.cli.common.error_handling import FAILURE
from compilegate.domain.claims import claims_of
from compilegate.domain.codec import read, write
from compilegate.domain.decision import EXIT_CODES, Decision, FlagAction, Verdict
from compilegate.domain.economics import Range
from compilegate.domain.errors import EnvironmentNotReadyError, NotFoundError
from compilegate.domain.failures import explain
from compilegate.domain.flag_change import TRAIN
from compilegate.domain.formats import UNKNOWN, money, shown, significant
from compilegate.domain.ledger_keys import FLAG_ENTRIES, TRIAL_ENTRIES
from compilegate.domain.notes import Note, note_documents, read_notes
from compilegate.domain.optional import map_optional
from compilegate.domain.reasons import Reason
from compilegate.domain.records.flags import HUMAN, Author
from compilegate.domain.records.trials import FlagOutcome, GivenAnswer, TrialDecided
from compilegate.ports import Services
from compilegate.report import statements
from compilegate.report.render import render
from compilegate.usecases import records
from compilegate.usecases.reports import trial_report

# What is said of a step that failed after the flag, and the command that helps, in the order of the
# states that may fail (stacks/evaluate.py).
AFTER_THE_FLAG = {
    "models_failed": (
        "Models that the candidate trained in production stay tagged compilegate:release=hold "
        "({why}): pipelines that check the tag do not release them until it is changed.", "",
    ),
    "report_failed": (
        "The decision stands, its report is missing ({why}). To write it again:",
        "report {workload} --trial {trial}",
    ),
    "notify_failed": ("The owner was not notified of the decision ({why}).", ""),
    "release_failed": (
        "The workload's lock was not released ({why}); its next trial takes it over. To release "
        "it now:", 'unlock {workload} --reason "not released"',
    ),
}  # fmt: skip
Missing = Mapping[str, str | None]
MADE_HERE = (
    "The decision stands; the trial could not write its report ({why}), so this one was made "
    "from its records."
)


@dataclass(frozen=True)
class Outcome:
    """One trial's end; without a ``recorded`` decision it failed, and ``failure`` says why.

    ``applied`` is the outcome for the flag (usecases/trial/apply_flag.py), ``full_runs`` who made
    them where production had a part in it, ``where_time_goes`` as the report has it, ``reasons``
    the decision's with causes and fixes, ``notes`` remarks about the job. ``missing`` is what an
    ended trial lacks, each with the command that makes or shows it. ``kept`` is whether what a
    local trial recorded outlives its cloud.
    """

    workload: str
    trial: str
    recorded: Mapping[str, Any] | None
    headline: str
    failure: str | None
    report: Path | None
    missing: Sequence[Missing] = ()
    applied: FlagOutcome | None = None
    full_runs: Mapping[str, Any] | None = None
    where_time_goes: Mapping[str, Any] | None = None
    reasons: tuple[Reason, ...] = ()
    notes: tuple[Note, ...] = ()
    kept: bool = True

    @cached_property
    def decision(self) -> Decision | None:
        """The decision, None when the trial failed."""
        return map_optional(self.recorded, partial(read, Decision))

    @property
    def verdict(self) -> str:
        """The decision's verdict, else ``failed``."""
        return self.decision.verdict if self.decision else "failed"

    @property
    def exit_code(self) -> int:
        """The contract's exit code; a failure too where the report or the records are lost."""
        if self.decision is None or self.report is None or not self.kept:
            return FAILURE
        return EXIT_CODES[Verdict(self.verdict)]

    def to_dict(self) -> dict[str, Any]:
        """For ``--json``."""
        return {
            "workload": self.workload,
            "trial": self.trial,
            "verdict": self.verdict,
            "headline": self.headline,
            "failure": self.failure,
            "report": self.report and str(self.report),
            "missing": [*self.missing],
            "decision": self.recorded,
            "flag": write(self.applied) if self.applied else None,
            "full_runs": self.full_runs,
            **({"where_time_goes": self.where_time_goes} if self.where_time_goes else {}),
            "reasons": [reason.as_document() for reason in self.reasons],
            "claims": claims_of(self.decision).to_dict() if self.decision else None,
            **note_documents(self.notes),
        }


def read_outcome(
    trial: records.Trial, cloud: Cloud, state: ExecutionState, reports: Path
) -> Outcome:
    """The end of a trial whose execution has ended; its report is saved under ``reports``."""
    services = cloud.services
    if not state.succeeded:
        return _failed(trial, cloud, state)
    recorded = records.find_record(services.store, trial, "decision")
    if recorded is None:
        failure = "the execution ended without a decision"
        return Outcome(trial.workload, trial.trial, None, failure, failure, None)
    failed = {
        name: explain(str(ended["error"]), str(ended["cause"])).rstrip(".")
        for name in AFTER_THE_FLAG
        if isinstance(ended := state.output.get(name), Mapping)
    }
    report = None
    try:
        report = save_report(trial, services, reports)
    except EnvironmentNotReadyError as error:  # it could not be written here
        failed["report_failed"] = str(error)
    except Exception as error:  # noqa: BLE001 - the verdict stands, whatever a report fails of
        failed = {"report_failed": str(error), **failed}
    decision = read(Decision, recorded)
    why = next(iter(decision.messages), "no reason was recorded")
    document = json.loads(report.with_suffix(".json").read_text("utf-8")) if report else {}
    return Outcome(
        trial.workload,
        trial.trial,
        recorded,
        document.get("headline") or why,
        None,
        report,
        [_missing(trial, step, why, report, cloud) for step, why in failed.items()],
        applied=records.find_flag_outcome(services.store, trial),
        full_runs=document.get("full_runs"),
        where_time_goes=document.get("where_time_goes"),
        reasons=tuple(read(Reason, one) for one in document.get("reasons") or ())
        or decision.reasons,
        notes=read_notes(document),
    )


def _failed(trial: records.Trial, cloud: Cloud, state: ExecutionState) -> Outcome:
    """The ledger's reason, else the error of the execution."""
    history = cloud.services.ledger.history(trial.workload)
    reasons = (one.reason for one in history.failed if one.trial == trial.trial)
    failure = next(reasons, None) or explain(state.error or state.status, state.cause)
    # An execution may be stopped from outside after its decision was recorded.
    command = cloud.command(f"flag show {trial.workload}")
    missing: list[Missing] = [
        {"message": f"Its decision was recorded before ({one.verdict}). The flag now:",
         "command": command}
        for one in history.decided
        if one.trial == trial.trial
    ]  # fmt: skip
    return Outcome(trial.workload, trial.trial, None, failure, failure, None, missing[:1])


def _missing(
    trial: records.Trial, step: str, why: str, report: Path | None, cloud: Cloud
) -> Missing:
    message, command = AFTER_THE_FLAG[step]
    if step == "report_failed" and report:
        message, command = MADE_HERE, ""
    words = command.format(workload=trial.workload, trial=trial.trial)
    return {"message": message.format(why=why), "command": cloud.command(words) if words else None}


def newest_decision(
    workload: str | None, trial: str | None, cloud: Cloud
) -> tuple[records.Trial, TrialDecided] | None:
    """The newest decided trial of a workload, of all without one, or the trial with this id."""
    services = cloud.services
    names = records.workload_names(services.store) if workload is None else [workload]
    histories = records.at_once(lambda name: services.ledger.history(name, TRIAL_ENTRIES), names)
    decided = [
        (records.Trial(name, decision.trial, ""), decision)
        for name, history in zip(names, histories, strict=True)
        for decision in history.decided
        if trial in (None, decision.trial)
    ]
    return max(decided, key=lambda pair: pair[1].at, default=None)


def save_report(trial: records.Trial, services: Services, reports: Path) -> Path:
    """Render a trial's report as it stands now, with what followed; returns the HTML file.

    Raises NotFoundError when the trial left no decision.
    """
    page = reports / f"{trial.workload}-{trial.trial}" / "report.html"
    changes = services.ledger.history(trial.workload, FLAG_ENTRIES).readable_flags
    try:
        made = render(trial_report(trial, services, changes))
    except ValueError as error:
        raise NotFoundError(
            f"trial {trial.trial} of {trial.workload} left no decision, so there is no report"
        ) from error
    for ending, text in made.texts.items():
        write_whole(page.with_suffix(f".{ending}"), text.encode())
    return page


# A decision's figures as short text; what is unknown is a dash.

FLAG_WORDS = {FlagAction.ENABLE: "on", FlagAction.DISABLE: "off", FlagAction.KEEP: "unchanged"}


def decision_rows(decision: Decision, applied: FlagOutcome | None = None) -> list[tuple[str, str]]:
    """A decision's figures by name; ``applied`` is the outcome for the flag."""
    claims = claims_of(decision)
    proofs = statements.proofs(decision.quality, claims)
    scheduled = statements.at_length(decision.scheduled)
    return [
        (statements.speed_name(decision.speedup, "speed-up"), statements.speedup(decision.speedup)),
        *([] if scheduled == UNKNOWN else [("by run_hours", scheduled)]),
        ("quality", statements.quality(decision.quality, claims)),
        *([] if proofs == UNKNOWN else [("rests on", proofs)]),
        ("saving", statements.saving(decision.saving, claims)),
        ("flag", flag_words(decision, applied)),
    ]


def saving_between(saving: Range) -> str:
    """``up to $50,797``; of a saving that is never 0 both ends."""
    return f"{f'{money(saving.low)} to' if saving.low else 'up to'} {money(saving.high)}"


def flag_words(decision: Decision, applied: FlagOutcome | None = None) -> str:
    """What the decision does to the flag, or what an override has ``applied`` instead."""
    if applied and not applied.approved:
        return f"unchanged: not approved ({_author(applied.approval)})"
    if applied and applied.held_by:
        whose = "proven regression" if applied.held_by.by == TRAIN else "manual override"
        return f"unchanged: a {whose} stands ({_author(applied.held_by)})"
    return FLAG_WORDS[decision.flag_action]


def full_run_words(full_runs: Mapping[str, Any] | None) -> str:
    """Who made the full runs and at what extra cost; empty for a trial without production."""
    if not full_runs:
        return ""
    usd = shown(full_runs["extra"]["usd"], money)
    hours = shown(full_runs["extra"]["gpu_hours"], significant)
    extra = f"made by {full_runs['made_by']}; extra {usd}, {hours} GPU-hours"
    return f"{extra}; {full_runs['exposed']}" if full_runs["production"]["runs"] else extra


def _author(change: Author | GivenAnswer | None) -> str:
    if change is None:
        return "no approval requested"
    by = "production monitoring" if change.by == TRAIN else change.by
    return f"{by.removeprefix(HUMAN)}: {change.reason}"
