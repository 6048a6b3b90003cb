"""Asks a person before a promotion takes effect, waits for the answer, and records it.

Three steps of the state machine: ask, wait, close. Each may be repeated. What counts is the
answer in the ledger; a token only wakes the trial that waits.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from compilegate.domain import ledger_keys
from compilegate.domain.claims import command_at
from compilegate.domain.decision import SIGNAL, Decision, FlagAction
from compilegate.domain.errors import InvalidInputError, lock_lost
from compilegate.domain.flag_change import Override
from compilegate.domain.planning.rounds import LOCK_SECONDS
from compilegate.domain.production.history import Approval, check_answer
from compilegate.domain.records import trials
from compilegate.domain.records.flags import HUMAN
from compilegate.domain.workload.model import REQUIRED
from compilegate.ports import Ledger, ObjectStore, Services, Tokens
from compilegate.report.notifications.approval import approval_needed
from compilegate.usecases.flag.change_flag import latest_flag
from compilegate.usecases.records import Trial, load_decision, load_spec, readable_spec

UNANSWERED = f"nobody answered within {trials.WAIT_SECONDS // 86400} days"


def needs_approval(trial: Trial, decision: Decision, store: ObjectStore) -> bool:
    """Whether a person has to agree before the flag does what the decision says."""
    if decision.flag_action != FlagAction.ENABLE:
        return False
    return SIGNAL in decision.codes or load_spec(store, trial).workload.policy.approval == REQUIRED


def ask_approval(event: Mapping[str, Any], *, services: Services) -> dict[str, Any]:
    """Record the question and answer with the message that puts it to people."""
    trial, now = Trial.from_event(event), services.clock.now()
    key, until = str(event["decision_key"]), now + trials.WAIT_SECONDS
    decision = load_decision(services.store, key)
    # A month may pass until the next step: the lock has to outlive it. As in open_canary.
    execution = str(event["execution"])
    services.locks.extend(trial.workload, execution, expires_at=until + LOCK_SECONDS)
    request = trials.ApprovalRequested(
        at=now,
        until=until,
        trial=trial.trial,
        execution=execution,
        decision_id=decision.decision_id,
        decision_key=key,
        candidate=decision.candidate,
    )
    recorded = services.ledger.put_once(trial.workload, request)
    if services.locks.holder(trial.workload) != execution:
        abandon_approval(trial, services=services)
        raise lock_lost(trial.workload, execution)
    spec = readable_spec(trial, services.store)
    return approval_needed(
        decision,
        recorded,
        workload=trial.workload,
        trial=trial.trial,
        owner=spec.workload.owner if spec else None,
        stage=services.settings.stage,
        notes=spec.notes if spec else (),
    ).to_answer()


def await_approval(event: Mapping[str, Any], *, services: Services) -> dict[str, Any]:
    """Keep the token that wakes the state machine; use it at once where the answer is there.

    A repeated step waits with a token of its own.
    """
    trial, token = Trial.from_event(event), str(event["token"])
    while True:
        approval = approval_of(trial, services.ledger)
        if approval is None:
            raise LookupError(
                f"no approval was requested for trial {trial.trial} of {trial.workload}"
            )
        if token in approval.tokens:
            break
        number = len(approval.tokens)
        waiting = trials.ApprovalToken(services.clock.now(), trial.trial, number, token)
        services.ledger.put_once(trial.workload, waiting)
    answered = approval.answer is not None
    if answered:
        _wake(approval, services.tokens)
    return {"answered": answered}


def close_approval(event: Mapping[str, Any], *, services: Services) -> dict[str, Any]:
    """The answer; none in time is recorded as a refusal."""
    trial = Trial.from_event(event)
    answer = answer_once(trial, trials.NOBODY, UNANSWERED, approved=False, services=services)
    return {"approved": answer.approved, "by": answer.by, "reason": answer.reason}


def abandon_approval(trial: Trial, *, services: Services) -> None:
    """The trial has ended while it waited: answer its open question with no."""
    if approval_of(trial, services.ledger):  # an earlier answer stands
        reason = "the trial was stopped while it waited"
        answer_once(trial, trials.STOPPED, reason, approved=False, services=services)


def approval_of(trial: Trial, ledger: Ledger) -> Approval | None:
    """The question of one trial, None where there is none."""
    key = trials.ApprovalRequested.key_of(trial=trial.trial)
    approvals = ledger.history(trial.workload, key).approvals
    return next((one for one in approvals if one.trial == trial.trial), None)


def answer_once(
    trial: Trial, by: str, reason: str, *, approved: bool, services: Services
) -> trials.ApprovalAnswer:
    """The answer that stands: this one, or an earlier one."""
    # The answer accounts for every flag change up to this version.
    _, seen = latest_flag(trial.workload, services)
    now = services.clock.now()
    answer = trials.ApprovalAnswer(now, trial.trial, by, approved, reason, flag_version=seen)
    return services.ledger.put_once(trial.workload, answer)


@dataclass(frozen=True)
class Answered:
    """The answer that stands; ``repeated`` where it had been given before.

    ``woken`` says whether a trial still waited for it.
    """

    trial: str
    answer: trials.ApprovalAnswer
    repeated: bool
    woken: bool


def waiting_approvals(workload: str, ledger: Ledger) -> list[Approval]:
    """The open questions, oldest first."""
    return [*ledger.history(workload, ledger_keys.APPROVAL_ENTRIES).open_approvals]


def question(workload: str, services: Services) -> Approval:
    """What a person can answer: the newest open question, else the newest that was answered.

    Raises InvalidInputError where there is none.
    """
    history = services.ledger.history(workload, ledger_keys.APPROVAL_ENTRIES)
    if not history.approvals:
        status = command_at("compilegate status", services.settings.stage)
        raise InvalidInputError(
            "has no promotion that waits for approval", field="WORKLOAD", value=workload,
            fix=f"see `{status}` for what waits",
        )  # fmt: skip
    return (history.open_approvals or history.approvals)[-1]


def answer_approval(
    workload: str, override: Override, *, approved: bool, services: Services
) -> Answered:
    """Record the answer and wake the trial; the same answer again completes an interrupted call.

    Raises InvalidInputError where there is no question, or the recorded answer is the other one.
    """
    approval = question(workload, services)
    trial = Trial(workload, approval.trial, "")
    by, reason = f"{HUMAN}{override.who}", override.reason.strip()
    answer = answer_once(trial, by, reason, approved=approved, services=services)
    check_answer(answer, approved=approved, workload=workload, stage=services.settings.stage)
    current = approval_of(trial, services.ledger) or approval
    repeated = approval.answer is not None
    return Answered(approval.trial, answer, repeated, _wake(current, services.tokens))


def _wake(approval: Approval, tokens: Tokens) -> bool:
    """Wake the trial by its newest token first; returns whether it still waited."""
    output = {key: getattr(approval.answer, key, None) for key in ("approved", "by", "reason")}
    waited = [tokens.send_success(token, output) for token in reversed(approval.tokens)]
    return any(waited)
