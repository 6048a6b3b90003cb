"""``compilegate flag``: what production training reads, how it changed, and changes by hand."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import asdict
from typing import Annotated, Any

import typer

from compilegate.cli.common.cloud import Cloud, check_workload_exists
from compilegate.cli.common.error_handling import FAILURE
from compilegate.cli.common.help_layout import CommandGroup
from compilegate.cli.common.output import confirm
from compilegate.cli.common.session import (
    Invocation,
    NameArgument,
    ReasonOption,
    YesOption,
    on_cloud,
)
from compilegate.domain import naming
from compilegate.domain.arithmetic import ratio
from compilegate.domain.claims import command_at
from compilegate.domain.decision import Verdict
from compilegate.domain.errors import InvalidInputError
from compilegate.domain.flag import OFF, Flag, parse_flag
from compilegate.domain.flag_change import Override, agrees
from compilegate.domain.production.history import answer_words, check_answer
from compilegate.domain.records.flags import HUMAN, Author, FlagVersion
from compilegate.domain.utc import minute
from compilegate.ports import Services
from compilegate.report.notifications.production import flag_changed
from compilegate.usecases.flag.approval import answer_approval, question
from compilegate.usecases.flag.change_flag import (
    Changed,
    find_candidate,
    flag_versions,
    latest_flag,
    repair_flag,
    revert_by_hand,
    set_by_hand,
)
from compilegate.usecases.records import owner_of_workload
from compilegate.usecases.reports import rewrite_reports

# One workload's flag: parameter, ledger and latest override, and the words for its changes.

WHO = {"evaluate": "a trial (EVALUATE)", "train": "production monitoring (TRAIN)"}
HUMAN_KEYS = ("at", "by", "action", "reason")
CHANGE_KEYS = (
    *HUMAN_KEYS, "trial", "decision_key", "evidence_key", "overrode", "approved_by",
)  # fmt: skip


def flag_screen(workload: str, services: Services) -> tuple[dict[str, Any], dict[str, Any]]:
    """The flag as it stands, for programs, and what its screen shows beside that.

    A parameter that cannot be read is off, as TRAIN's next run takes it; ``problem`` is why the
    flag is not what the parameter says.
    """
    name = naming.flag_parameter(services.settings.stage, workload)
    raw, versions = services.flags.read(name), flag_versions(workload, services)
    fits, parameter, problem, flag = agrees(raw, versions), None, None, OFF
    try:
        parameter = parse_flag(raw)
    except InvalidInputError as error:
        problem = str(error)
    else:
        if parameter.enabled and not fits:
            problem = f"it is on ({parameter.candidate}), but no recorded change turned it on"
        else:
            flag = parameter
    last = versions[-1] if versions else None
    human = next((version for version in reversed(versions) if version.by_human), None)
    changed, by_hand = (one.to_entry() if one else {} for one in (last, human))
    document = {
        "workload": workload,
        "name": name,
        "set": raw is not None,
        **asdict(flag),
        "version": last.version if last else 0,
        "change": {key: changed.get(key) for key in CHANGE_KEYS} if changed else None,
        "human": {key: by_hand.get(key) for key in HUMAN_KEYS} if by_hand else None,
        "agrees": fits,
        "problem": problem,
    }
    if not flag.layers:
        del document["layers"]
    factors = " x ".join(f"{ratio(one.speedup)} {one.candidate}" for one in flag.layers)
    total = ratio(math.prod(one.speedup for one in flag.layers))
    return document, {
        "stack": f"{factors} = {total}",
        "parameter": parameter, "flag": flag, "last": last, "override": human, **WORDS,
    }  # fmt: skip


def change_line(version: FlagVersion) -> str:
    """``2026-11-20 10:00 UTC  off -> on (probation), candidate compile, by …: enable``."""
    after, before = version.flag, "on" if version.previous.enabled else "off"
    candidate = f", candidate {after.candidate}" if after.candidate else ""
    step = f"{before} -> {on_words(after)}"
    return f"{minute(version.at)}  {step}{candidate}, {version.action} by {who(version)}"


def who(author: FlagVersion | Author) -> str:
    """A person's name or the state machine's, and who approved the change."""
    name = WHO.get(author.by, author.by.removeprefix(HUMAN))
    approved_by = author.details.get("approved_by") if isinstance(author, FlagVersion) else None
    return f"{name}, approved by {approved_by.removeprefix(HUMAN)}" if approved_by else name


def on_words(flag: Flag) -> str:
    """``on (probation)``; a flag that is simply off is ``off``."""
    on = "on" if flag.enabled else "off"
    return on if flag.state == OFF.state else f"{on} ({flag.state})"


# What the flag's templates call.
WORDS = {"who": who, "change_line": change_line, "on_words": on_words}


# ``compilegate flag set | revert``: manual overrides.

PRECEDENCE = "Trials that have already begun cannot change this; newer evidence can."


@on_cloud
def set_flag(
    invocation: Invocation,
    workload: NameArgument,
    *,
    candidate: Annotated[
        str, typer.Option("--candidate", metavar="NAME", help="A candidate of a trial.")
    ],
    reason: ReasonOption,
    yes: YesOption = False,
) -> None:
    """Turn a workload's flag on for a candidate, by hand.

    The change is recorded with your name and reason. The flag is in probation: a proven regression
    in production turns it off again.

    \b
    compilegate flag set bert-docs --candidate compile --reason "agreed"
    compilegate flag set demo-lm --candidate compile --reason "try" --local -y
    """
    cloud = invocation.open_cloud()
    chosen = find_candidate(workload, candidate, cloud.services)
    override = Override(cloud.who(), reason)
    changes = ", ".join(f"{key} {value}" for key, value in chosen.flag.overrides.items())
    of_another = " of another candidate" if chosen.verdict == Verdict.PROMOTE else ""
    proof = (
        f"Trial {chosen.trial} has proven it."
        if chosen.proven
        else f"No trial has proven it: trial {chosen.trial} ended with "
        f"{chosen.verdict}{of_another}."
    )
    effect = [
        f"{workload}: turns the flag on for candidate {chosen.name} ({changes}); production trains "
        "with it from its next run on.",
        f"{proof} The flag is in probation: a proven regression in production turns it off again.",
        PRECEDENCE,
    ]
    confirm(effect, yes=yes, as_json=invocation.as_json)
    made = set_by_hand(workload, chosen, override, services=cloud.services)
    _report_change(invocation, cloud, workload, made, override)


@on_cloud
def revert(
    invocation: Invocation,
    workload: NameArgument,
    *,
    reason: ReasonOption,
    yes: YesOption = False,
) -> None:
    """Turn a workload's flag off, by hand.

    The change is recorded with your name and reason, even if the flag is already off: trials that
    have already begun cannot turn it on.

    \b
    compilegate flag revert bert-docs --reason "loss spikes since Monday"
    compilegate flag revert bert-docs --reason "code freeze" --yes --json
    """
    cloud = invocation.open_cloud()
    check_workload_exists(workload, cloud)
    override = Override(cloud.who(), reason)
    now, _ = latest_flag(workload, cloud.services)
    effect = "turns the flag off" if now.enabled else "keeps the flag off"
    sentence = f"{workload}: {effect}; production trains the baseline from its next run on."
    confirm([sentence, PRECEDENCE], yes=yes, as_json=invocation.as_json)
    made = revert_by_hand(workload, override, services=cloud.services)
    _report_change(invocation, cloud, workload, made, override)


def _report_change(
    invocation: Invocation, cloud: Cloud, workload: str, made: Changed, override: Override
) -> None:
    """Notify the owner and show the record; typer.Exit(1) if the parameter was not written.

    The flag has changed in any case, so what fails after that is only reported.
    """
    versions = flag_versions(workload, cloud.services)
    version, unsaved = versions[made.version - 1], None
    try:
        rewrite_reports(workload, versions, cloud.services)
    except Exception as error:  # noqa: BLE001 - see above
        unsaved = f"{type(error).__name__}: {error}"
    unsent = None if cloud.topic else "the stack has no topic"
    if cloud.topic is not None:
        try:
            owner = owner_of_workload(workload, cloud.services.store)
            cloud.topic.publish(flag_changed(workload, version, owner=owner, stage=cloud.stage))
        except Exception as error:  # noqa: BLE001 - see above
            unsent = f"{type(error).__name__}: {error}"
    document = {
        "workload": workload, "changed": made.changed, "version": made.version,
        "by": override.who, "reason": version.reason, "enabled": made.flag.enabled,
        "state": made.flag.state, "candidate": made.flag.candidate,
        "overrides": dict(made.flag.overrides), "since": made.flag.since,
        "written": made.unwritten is None, "unwritten_because": made.unwritten,
        "notified": unsent is None, "not_notified_because": unsent,
        "report_not_written_because": unsaved,
    }  # fmt: skip
    repair = cloud.command(f"flag repair {workload}")
    invocation.answer(document, "flag_changed", change=change_line(version), repair=repair)
    if made.unwritten is not None:
        raise typer.Exit(FAILURE)


# ``compilegate flag approve | reject``: answer a promotion that waits for approval.

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
        trial, candidate = approval.trial, approval.asked.candidate
        effect = (
            f"turns the flag on for candidate {candidate}, proven by trial {trial}. Production "
            "uses it from the next run and monitors the results."
            if approved
            else f"leaves the flag unchanged. Candidate {candidate} of trial {trial} is not "
            "promoted."
        )
        if approval.answer is not None:
            check_answer(approval.answer, approved=approved, workload=workload, stage=cloud.stage)
            effect = (
                f"trial {trial} ({candidate}) was already answered: "
                f"{answer_words(approval.answer)}. Nothing changes; a waiting trial resumes."
            )
        confirm([f"{workload}: {effect}"], yes=yes, as_json=invocation.as_json)
        answered = answer_approval(workload, override, approved=approved, services=cloud.services)
        answer = answered.answer
        document = {
            "workload": workload, "trial": answered.trial, "approved": answer.approved,
            "by": answer.by, "at": answer.at, "reason": answer.reason,
            "repeated": answered.repeated, "woken": answered.woken,
        }  # fmt: skip
        invocation.answer(
            document, "flag_answer", who=answer.by.removeprefix(HUMAN),
            status=command_at("compilegate status", cloud.stage),
        )  # fmt: skip

    return command


app = typer.Typer(cls=CommandGroup, no_args_is_help=True, rich_markup_mode=None)


@app.callback()
def flag() -> None:
    """Show a workload's flag and its history, or change it."""


@app.command("show")
@on_cloud
def show(invocation: Invocation, workload: NameArgument) -> None:
    """Show a workload's flag, since when it holds, and why.

    \b
    compilegate flag show bert-docs
    compilegate flag show bert-docs --local --json
    """
    cloud = invocation.open_records(workload)
    document, beside = flag_screen(workload, cloud.services)
    if not document["set"] and document["change"] is None:
        check_workload_exists(workload, cloud)
    invocation.answer(document, "flag_show", **beside, cloud=cloud)


@app.command("history")
@on_cloud
def history(invocation: Invocation, workload: NameArgument) -> None:
    """Show every change of a workload's flag, newest first.

    With author, reason and evidence.

    \b
    compilegate flag history bert-docs
    compilegate flag history bert-docs --json
    """
    cloud = invocation.open_records(workload)
    changes = flag_versions(workload, cloud.services)[::-1]
    if not changes:
        check_workload_exists(workload, cloud)
    invocation.answer(
        [version.to_entry() for version in changes], "flag_history", workload=workload,
        versions=changes, bucket=cloud.services.store.bucket, **WORDS,
    )  # fmt: skip


@app.command("repair")
@on_cloud
def repair(invocation: Invocation, workload: NameArgument) -> None:
    """Restore a lost or edited parameter from the ledger.

    \b
    compilegate flag repair bert-docs
    compilegate flag repair bert-docs --local --json
    """
    cloud = invocation.open_cloud()
    check_workload_exists(workload, cloud)
    repaired = repair_flag(workload, cloud.services)
    current, version = latest_flag(workload, cloud.services)
    document = {
        "workload": workload, "repaired": repaired, "version": version,
        "enabled": current.enabled, "state": current.state,
    }  # fmt: skip
    invocation.answer(document, "flag_repair", now=on_words(current))


app.command("set")(set_flag)
app.command("revert")(revert)
app.command("approve", help=APPROVE_HELP)(answer_command(approved=True))
app.command("reject", help=REJECT_HELP)(answer_command(approved=False))
