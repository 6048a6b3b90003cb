"""``compilegate flag approve | reject``: a person's answer to a promotion that waits."""

from __future__ import annotations

import typer

from compilegate.cli.common import project
from compilegate.cli.common.cloud import Cloud
from compilegate.cli.common.error_handling import session
from compilegate.cli.common.options import (
    JsonOption,
    LocalOption,
    NameArgument,
    ReasonOption,
    StageOption,
)
from compilegate.cli.common.output import YesOption, confirm, emit_json, say
from compilegate.cli.common.providers import open_cloud
from compilegate.domain.notification import command_at
from compilegate.domain.production.history import Approval
from compilegate.domain.records.flags import HUMAN
from compilegate.domain.utc import minute
from compilegate.usecases.flag.approval import (
    Answered,
    answer_approval,
    answer_words,
    question,
    refuse_other,
)
from compilegate.usecases.flag.override import Override


def approve(
    ctx: typer.Context,
    workload: NameArgument,
    *,
    reason: ReasonOption,
    yes: YesOption = False,
    local: LocalOption = False,
    stage: StageOption = None,
    as_json: JsonOption = False,
) -> None:
    """Agree to a promotion that waits for a person; its flag then goes on.

    `compilegate status` shows what waits. Giving the same answer again is harmless.

    \b
    compilegate flag approve bert-docs --reason "numbers look right"
    compilegate flag approve bert-docs --reason "agreed" --yes --json
    """
    _answer(ctx, workload, reason, approved=True, yes=yes, local=local, stage=stage,
            as_json=as_json)  # fmt: skip


def reject(
    ctx: typer.Context,
    workload: NameArgument,
    *,
    reason: ReasonOption,
    yes: YesOption = False,
    local: LocalOption = False,
    stage: StageOption = None,
    as_json: JsonOption = False,
) -> None:
    """Refuse a promotion that waits for a person; its flag stays as it is.

    \b
    compilegate flag reject bert-docs --reason "not before the release"
    compilegate flag reject bert-docs --reason "too little gain" --local --yes
    """
    _answer(ctx, workload, reason, approved=False, yes=yes, local=local, stage=stage,
            as_json=as_json)  # fmt: skip


def _answer(
    ctx: typer.Context,
    workload: str,
    reason: str,
    *,
    approved: bool,
    yes: bool,
    local: bool,
    stage: str | None,
    as_json: bool,
) -> None:
    cloud = open_cloud(session(ctx).providers, local=local, stage=project.stage_name(stage))
    approval = question(workload, cloud.services)
    override = Override(cloud.who(), reason)
    if approval.answer is not None and approval.answer.approved is not approved:
        refuse_other(workload, approval.answer, cloud.services)
    what = _what_it_does(workload, approval, approved=approved)
    confirm([what], yes=yes, as_json=as_json)
    answered = answer_approval(workload, override, approved=approved, services=cloud.services)
    if as_json:
        emit_json(_document(workload, answered))
    else:
        _tell(answered, cloud)


def _what_it_does(workload: str, approval: Approval, *, approved: bool) -> str:
    candidate = approval.asked.candidate
    if approval.answer is not None:
        return (
            f"{workload}: trial {approval.trial} ({candidate}) was already answered: "
            f"{answer_words(approval.answer)}. Nothing changes; a waiting trial resumes."
        )
    if approved:
        return (
            f"{workload}: turns the flag on for candidate {candidate}, proven by trial "
            f"{approval.trial}. Production uses it from the next run, and monitors the results."
        )
    return (
        f"{workload}: leaves the flag unchanged. Candidate {candidate} of trial {approval.trial} "
        "is not promoted."
    )


def _document(workload: str, answered: Answered) -> dict[str, object]:
    keys = ("approved", "by", "at", "reason")
    return {
        "workload": workload,
        "trial": answered.trial,
        **{key: getattr(answered.answer, key) for key in keys},
        "repeated": answered.repeated,
        "woken": answered.woken,
    }


def _tell(answered: Answered, cloud: Cloud) -> None:
    answer = answered.answer
    verdict = "approved" if answer.approved else "not approved"
    by = answer.by.removeprefix(HUMAN)
    before = "had already been" if answered.repeated else "is now"
    say(f"Trial {answered.trial} {before} {verdict} by {by}, {minute(answer.at)}.")
    if answered.woken:
        say("The waiting trial resumes.")
    elif answered.repeated:
        say("No trial is waiting for it.")
    else:
        status = command_at("compilegate status", cloud.services.settings.stage)
        say(f"The trial takes the answer as soon as it begins to wait; see `{status}`.")
