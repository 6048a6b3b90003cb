"""The approval of a promotion: which question a person answers, and answers that contradict."""

from __future__ import annotations

from collections.abc import Sequence

from compilegate.domain.errors import InvalidInputError
from compilegate.domain.notification import command_at
from compilegate.domain.production.history import Approval
from compilegate.domain.records.flags import HUMAN
from compilegate.domain.records.trials import ApprovalAnswer


def unanswered(approvals: Sequence[Approval]) -> list[Approval]:
    """The open questions, in their order."""
    return [approval for approval in approvals if approval.answer is None]


def answerable(approvals: Sequence[Approval], *, workload: str, stage: str) -> Approval:
    """What a person can answer: the newest open question, else the newest that was answered.

    Raises InvalidInputError where there is none.
    """
    if not approvals:
        raise InvalidInputError(
            "has no promotion that waits for approval", field="WORKLOAD", value=workload,
            fix=f"see `{command_at('compilegate status', stage)}` for what waits",
        )  # fmt: skip
    return (unanswered(approvals) or approvals)[-1]


def check_answer(answer: ApprovalAnswer, *, approved: bool, workload: str, stage: str) -> None:
    """Raises InvalidInputError where the recorded answer is the other one."""
    if answer.approved is approved:
        return
    off = command_at(f'compilegate flag revert {workload} --reason "..."', stage)
    on = command_at(f'compilegate flag set {workload} --candidate NAME --reason "..."', stage)
    raise InvalidInputError(
        f"was already answered: {answer_words(answer)} ({answer.reason})",
        field=workload,
        fix=f"to turn it off: {off}" if answer.approved else f"to turn it on anyway: {on}",
    )


def answer_words(answer: ApprovalAnswer) -> str:
    """``approved by ana``."""
    outcome = "approved" if answer.approved else "not approved"
    return f"{outcome} by {answer.by.removeprefix(HUMAN)}"
