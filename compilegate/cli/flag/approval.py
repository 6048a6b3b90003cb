"""``compilegate flag approve | reject``: answer a promotion that waits for approval."""

from __future__ import annotations

from collections.abc import Callable

from compilegate.cli.common.output import confirm
from compilegate.cli.common.session import (
    Invocation,
    NameArgument,
    ReasonOption,
    YesOption,
    on_cloud,
)
from compilegate.domain.claims import command_at
from compilegate.domain.flag_change import Override
from compilegate.domain.production.history import Approval, answer_words, check_answer
from compilegate.domain.records.flags import HUMAN
from compilegate.usecases.flag.approval import answer_approval, question

APPROVE_HELP = """Approve a promotion that waits for approval.

The workload's flag is then turned on.

`compilegate status` shows what waits. Repeating the same answer is harmless.

\b
compilegate flag approve bert-docs --reason "numbers look right"
compilegate flag approve bert-docs --reason "agreed" --yes --json
"""
REJECT_HELP = """Reject a promotion that waits for approval.

The workload's flag does not change.

\b
compilegate flag reject bert-docs --reason "not before the release"
compilegate flag reject bert-docs --reason "too little gain" --local --yes
"""
ANSWER_KEYS = ("approved", "by", "at", "reason")


def answer_command(*, approved: bool) -> Callable[..., None]:
    """The command that gives one of the two answers."""

    @on_cloud
    def command(
        invocation: Invocation,
        workload: NameArgument,
        *,
        reason: ReasonOption,
        yes: YesOption = False,
    ) -> None:
        cloud = invocation.open_cloud()
        approval = question(workload, cloud.services)
        override = Override(cloud.who(), reason)
        if approval.answer is not None:
            check_answer(approval.answer, approved=approved, workload=workload, stage=cloud.stage)
        confirm(
            [_effect(workload, approval, approved=approved)], yes=yes, as_json=invocation.as_json
        )
        answered = answer_approval(workload, override, approved=approved, services=cloud.services)
        invocation.answer(
            {
                "workload": workload,
                "trial": answered.trial,
                **{key: getattr(answered.answer, key) for key in ANSWER_KEYS},
                "repeated": answered.repeated,
                "woken": answered.woken,
            },
            "flag_answer",
            who=answered.answer.by.removeprefix(HUMAN),
            status=command_at("compilegate status", cloud.stage),
        )

    return command


def _effect(workload: str, approval: Approval, *, approved: bool) -> str:
    candidate = approval.asked.candidate
    if approval.answer is not None:
        return (
            f"{workload}: trial {approval.trial} ({candidate}) was already answered: "
            f"{answer_words(approval.answer)}. Nothing changes; a waiting trial resumes."
        )
    if approved:
        return (
            f"{workload}: turns the flag on for candidate {candidate}, proven by trial "
            f"{approval.trial}. Production uses it from the next run and monitors the results."
        )
    return (
        f"{workload}: leaves the flag unchanged. Candidate {candidate} of trial {approval.trial} "
        "is not promoted."
    )
