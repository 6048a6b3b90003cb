"""``compilegate flag set | revert | repair``: a person's override, and a parameter put right."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from compilegate.cli.common import project
from compilegate.cli.common.cloud import Cloud
from compilegate.cli.common.error_handling import FAILURE, session
from compilegate.cli.common.options import (
    JsonOption,
    LocalOption,
    NameArgument,
    ReasonOption,
    StageOption,
)
from compilegate.cli.common.output import YesOption, confirm, emit_json, say, say_line
from compilegate.cli.common.providers import open_cloud
from compilegate.cli.common.workload_names import check_workload_exists
from compilegate.cli.flag.screen import change_line, on_words
from compilegate.domain.records.flags import FlagVersion
from compilegate.report.notifications.production import flag_changed
from compilegate.usecases.flag.change_flag import Changed, flag_versions, latest_flag, repair_flag
from compilegate.usecases.flag.override import (
    PROMOTE,
    Override,
    PlannedCandidate,
    find_candidate,
    revert_by_hand,
    set_by_hand,
)
from compilegate.usecases.registration.load import owner_of_workload

CandidateOption = Annotated[
    str, typer.Option("--candidate", metavar="NAME", help="A candidate that a trial has planned.")
]
BINDS = "A trial that began before now cannot change this; newer evidence can, and says so."


def set_flag(
    ctx: typer.Context,
    workload: NameArgument,
    *,
    candidate: CandidateOption,
    reason: ReasonOption,
    yes: YesOption = False,
    local: LocalOption = False,
    stage: StageOption = None,
    as_json: JsonOption = False,
) -> None:
    """Turn a workload's flag on with a candidate, by hand.

    Recorded under your name with the reason. The flag is in probation: where production runs are
    recorded, a proven regression turns it off again.

    \b
    compilegate flag set bert-docs --candidate compile --reason "agreed"
    compilegate flag set demo-lm --candidate compile --reason "try" --local -y
    """
    cloud = open_cloud(session(ctx).providers, local=local, stage=project.stage_name(stage))
    chosen = find_candidate(workload, candidate, cloud.services)
    override = Override(cloud.who(), reason)
    confirm(_what_set_does(workload, chosen), yes=yes, as_json=as_json)
    made = set_by_hand(workload, chosen, override, services=cloud.services)
    _tell(workload, made, override, cloud, as_json=as_json)


def revert(
    ctx: typer.Context,
    workload: NameArgument,
    *,
    reason: ReasonOption,
    yes: YesOption = False,
    local: LocalOption = False,
    stage: StageOption = None,
    as_json: JsonOption = False,
) -> None:
    """Turn a workload's flag off, by hand.

    Recorded under your name with the reason, even where the flag is off already: no trial that
    has begun by now can then turn it on.

    \b
    compilegate flag revert bert-docs --reason "loss spikes since Monday"
    compilegate flag revert bert-docs --reason "code freeze" --yes --json
    """
    cloud = open_cloud(session(ctx).providers, local=local, stage=project.stage_name(stage))
    check_workload_exists(workload, cloud)
    override = Override(cloud.who(), reason)
    now, _ = latest_flag(workload, cloud.services)
    what = "goes off" if now.enabled else "is off and stays off"
    sentence = f"{workload}: the flag {what}; production trains the baseline from its next run on."
    confirm([sentence, BINDS], yes=yes, as_json=as_json)
    made = revert_by_hand(workload, override, services=cloud.services)
    _tell(workload, made, override, cloud, as_json=as_json)


def repair(
    ctx: typer.Context,
    workload: NameArgument,
    *,
    local: LocalOption = False,
    stage: StageOption = None,
    as_json: JsonOption = False,
) -> None:
    """Give the parameter the value that the ledger says, where it was lost or written by hand.

    \b
    compilegate flag repair bert-docs
    compilegate flag repair bert-docs --local --json
    """
    cloud = open_cloud(session(ctx).providers, local=local, stage=project.stage_name(stage))
    check_workload_exists(workload, cloud)
    repaired = repair_flag(workload, cloud.services)
    current, version = latest_flag(workload, cloud.services)
    if as_json:
        emit_json({"workload": workload, "repaired": repaired, "version": version,
                   "enabled": current.enabled, "state": current.state})  # fmt: skip
        return
    done = "now says what the ledger does" if repaired else "already says what the ledger does"
    say(f"{workload}: the parameter {done}: {on_words(current)}.")


def _what_set_does(workload: str, chosen: PlannedCandidate) -> list[str]:
    changes = ", ".join(f"{key} {value}" for key, value in chosen.flag.overrides.items())
    of_another = " of another candidate" if chosen.verdict == PROMOTE else ""
    proof = (
        f"Trial {chosen.trial} has proven it."
        if chosen.proven
        else f"No trial has proven it: trial {chosen.trial} ended with "
        f"{chosen.verdict}{of_another}."
    )
    return [
        f"{workload}: the flag goes on with candidate {chosen.name} ({changes}); production trains "
        "with that from its next run on.",
        f"{proof} The flag is in probation: a proven regression in production turns it off again.",
        BINDS,
    ]


def _tell(workload: str, made: Changed, override: Override, cloud: Cloud, *, as_json: bool) -> None:
    """What was recorded; raises typer.Exit(1) where the parameter does not say so yet."""
    version = flag_versions(workload, cloud.services)[made.version - 1]
    untold = _publish(workload, version, cloud)
    if as_json:
        document: dict[str, Any] = {
            "workload": workload, "changed": made.changed, "version": made.version,
            "by": override.who, "reason": version.reason, "enabled": made.flag.enabled,
            "state": made.flag.state, "candidate": made.flag.candidate,
            "overrides": dict(made.flag.overrides), "since": made.flag.since,
            "written": made.unwritten is None, "unwritten_because": made.unwritten,
            "told": untold is None, "untold_because": untold,
        }  # fmt: skip
        emit_json(document)
    else:
        _say_recorded(workload, made, version, local=cloud.is_local)
        if untold is not None:
            say(f"Nobody was told of it ({untold}).")
    if made.unwritten is not None:
        raise typer.Exit(FAILURE)


def _say_recorded(workload: str, made: Changed, version: FlagVersion, *, local: bool) -> None:
    agrees = made.unwritten is None
    recorded = f"Recorded as version {made.version}"
    say(f"{recorded}, and the parameter agrees:" if agrees else f"{recorded}:")
    say(change_line(version), indent=2)
    if not agrees:
        say(f"The parameter could not be written: {made.unwritten}. Production goes by what it "
            "said before until it is. To write it:")  # fmt: skip
        say_line(f"  compilegate flag repair {workload}{' --local' if local else ''}")


def _publish(workload: str, version: FlagVersion, cloud: Cloud) -> str | None:
    """Tell the topic; why that failed, None where it did not. The change stands either way."""
    if cloud.topic is None:
        return "the stack names no topic"
    services = cloud.services
    try:
        owner, stage = owner_of_workload(workload, services), services.settings.stage
        cloud.topic.publish(flag_changed(workload, version, owner=owner, stage=stage))
    except Exception as error:  # noqa: BLE001 - whatever it is, the flag has changed
        return f"{type(error).__name__}: {error}"
    return None
