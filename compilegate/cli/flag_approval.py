"""``compilegate flag approve | reject``: a person's answer to a promotion that waits."""

from __future__ import annotations

import typer

from compilegate.cli import project
from compilegate.cli.cloud import Cloud
from compilegate.cli.confirm import YesOption, confirm
from compilegate.cli.doors import open_cloud
from compilegate.cli.options import (
    JsonOption,
    LocalOption,
    NameArgument,
    ReasonOption,
    StageOption,
)
from compilegate.cli.output import emit_json, say
from compilegate.cli.shell import session
from compilegate.domain.approval import Approval
from compilegate.domain.flag_change import HUMAN
from compilegate.domain.notification import command_at
from compilegate.domain.utc import minute
from compilegate.usecases.answer_approval import (
    Answered,
    answer_approval,
    answer_words,
    question,
    refuse_other,
)
from compilegate.usecases.flag_by_hand import Word


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
    cloud = open_cloud(session(ctx).doors, local=local, stage=project.stage_name(stage))
    asked = question(workload, cloud.services)
    word = Word(cloud.who(), reason)
    if asked.answer is not None and asked.answer["approved"] is not approved:
        refuse_other(workload, asked.answer, cloud.services)
    what = _what_it_does(workload, asked, approved=approved)
    confirm([what], yes=yes, as_json=as_json)
    answered = answer_approval(workload, word, approved=approved, services=cloud.services)
    if as_json:
        emit_json(_document(workload, answered))
    else:
        _tell(answered, cloud)


def _what_it_does(workload: str, asked: Approval, *, approved: bool) -> str:
    candidate = asked.asked["candidate"]
    if asked.answer is not None:
        return (
            f"{workload}: trial {asked.trial} ({candidate}) was already answered: "
            f"{answer_words(asked.answer)}. Nothing changes; a trial that still waits is woken."
        )
    if approved:
        return (
            f"{workload}: the flag goes on with candidate {candidate}, which trial {asked.trial} "
            "has proven; production trains with it from its next run on, and is watched."
        )
    return (
        f"{workload}: the flag stays as it is; what trial {asked.trial} has proven ({candidate}) "
        "is not promoted."
    )


def _document(workload: str, answered: Answered) -> dict[str, object]:
    keys = ("approved", "by", "at", "reason")
    return {
        "workload": workload,
        "trial": answered.trial,
        **{key: answered.answer[key] for key in keys},
        "repeated": answered.repeated,
        "woken": answered.woken,
    }


def _tell(answered: Answered, cloud: Cloud) -> None:
    answer = answered.answer
    word = "approved" if answer["approved"] else "not approved"
    by = str(answer["by"]).removeprefix(HUMAN)
    before = "had already been" if answered.repeated else "is now"
    say(f"Trial {answered.trial} {before} {word} by {by}, {minute(answer['at'])}.")
    if answered.woken:
        say("The trial that waited goes on.")
    elif answered.repeated:
        say("Nothing waits for it any more.")
    else:
        status = command_at("compilegate status", cloud.services.settings.stage)
        say(f"The trial takes the answer as soon as it begins to wait; see `{status}`.")
