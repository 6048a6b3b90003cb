"""A person's answer to a promotion that waits: the ledger first, then whoever waits is woken."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from compilegate.domain import ledger_keys
from compilegate.domain.errors import InvalidInputError
from compilegate.domain.notification import command_at
from compilegate.domain.production.history import Approval, history
from compilegate.domain.records.flags import HUMAN
from compilegate.domain.records.trials import ApprovalAnswer
from compilegate.ports import Services
from compilegate.usecases.flag.approval import answer_once, approval_of, wake
from compilegate.usecases.flag.override import Override
from compilegate.usecases.trial.documents import Trial


@dataclass(frozen=True)
class Answered:
    """The answer that stands; ``repeated`` where it had been given before.

    ``woken`` says whether a trial still waited for it.
    """

    trial: str
    answer: ApprovalAnswer
    repeated: bool
    woken: bool


def waiting_approvals(workload: str, services: Services) -> list[Approval]:
    """The questions that nobody has answered, oldest first."""
    return [approval for approval in _questions(workload, services) if approval.answer is None]


def question(workload: str, services: Services) -> Approval:
    """What a person can answer: the open question, else the newest that was answered.

    Raises InvalidInputError where nobody was ever asked.
    """
    approvals = _questions(workload, services)
    if not approvals:
        raise InvalidInputError(
            "has no promotion that waits for approval", field="WORKLOAD", value=workload,
            fix=f"see `{command_at('compilegate status', services.settings.stage)}` for what waits",
        )  # fmt: skip
    still_open = [one for one in approvals if one.answer is None]
    return (still_open or approvals)[-1]


def answer_approval(
    workload: str, override: Override, *, approved: bool, services: Services
) -> Answered:
    """Record the answer and wake the trial; answering twice alike is harmless.

    Whoever gave the same answer before and was cut off finishes it by giving it again. Raises
    InvalidInputError where nobody was asked, or where the answer was the other one.
    """
    approval = question(workload, services)
    trial = Trial(workload, approval.trial, "")
    repeated = approval.answer is not None
    answer = answer_once(
        trial,
        f"{HUMAN}{override.who}",
        override.reason.strip(),
        approved=approved,
        services=services,
    )
    if answer.approved is not approved:
        refuse_other(workload, answer, services)
    current = approval_of(trial, services) or approval
    return Answered(approval.trial, answer, repeated, wake(current, services))


def _questions(workload: str, services: Services) -> Sequence[Approval]:
    entries = services.ledger.entries(workload, ledger_keys.APPROVAL_ENTRIES)
    return history(entries).approvals


def refuse_other(workload: str, answer: ApprovalAnswer, services: Services) -> None:
    """The error of whoever answers otherwise than it was answered; raises InvalidInputError."""
    stage = services.settings.stage
    off = command_at(f'compilegate flag revert {workload} --reason "..."', stage)
    on = command_at(f'compilegate flag set {workload} --candidate NAME --reason "..."', stage)
    raise InvalidInputError(
        f"was already answered: {answer_words(answer)} ({answer.reason})",
        field=workload,
        fix=f"to turn it off: {off}" if answer.approved else f"to turn it on all the same: {on}",
    )


def answer_words(answer: ApprovalAnswer) -> str:
    """``approved by ana``."""
    outcome = "approved" if answer.approved else "not approved"
    return f"{outcome} by {answer.by.removeprefix(HUMAN)}"
