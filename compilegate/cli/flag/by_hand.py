"""``compilegate flag set | revert``: manual overrides."""

from __future__ import annotations

from typing import Annotated

import typer

from compilegate.cli.common.cloud import Cloud, check_workload_exists
from compilegate.cli.common.error_handling import FAILURE
from compilegate.cli.common.output import confirm
from compilegate.cli.common.session import (
    Invocation,
    NameArgument,
    ReasonOption,
    YesOption,
    on_cloud,
)
from compilegate.cli.flag.status import change_line
from compilegate.domain.decision import Verdict
from compilegate.domain.flag_change import Override
from compilegate.domain.records.flags import FlagVersion
from compilegate.domain.trial.planned_candidates import PlannedCandidate
from compilegate.report.notifications.production import flag_changed
from compilegate.usecases.flag.change_flag import Changed, flag_versions, latest_flag
from compilegate.usecases.flag.override import find_candidate, revert_by_hand, set_by_hand
from compilegate.usecases.registered import owner_of_workload

CandidateOption = Annotated[
    str, typer.Option("--candidate", metavar="NAME", help="A candidate of a trial.")
]
PRECEDENCE = "Trials that have already begun cannot change this; newer evidence can."


@on_cloud
def set_flag(
    invocation: Invocation,
    workload: NameArgument,
    *,
    candidate: CandidateOption,
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
    confirm(_effect_of_set(workload, chosen), yes=yes, as_json=invocation.as_json)
    made = set_by_hand(workload, chosen, override, services=cloud.services)
    _report(invocation, cloud, workload, made, override)


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
    _report(invocation, cloud, workload, made, override)


def _effect_of_set(workload: str, chosen: PlannedCandidate) -> list[str]:
    changes = ", ".join(f"{key} {value}" for key, value in chosen.flag.overrides.items())
    of_another = " of another candidate" if chosen.verdict == Verdict.PROMOTE else ""
    proof = (
        f"Trial {chosen.trial} has proven it."
        if chosen.proven
        else f"No trial has proven it: trial {chosen.trial} ended with "
        f"{chosen.verdict}{of_another}."
    )
    return [
        f"{workload}: turns the flag on for candidate {chosen.name} ({changes}); production trains "
        "with it from its next run on.",
        f"{proof} The flag is in probation: a proven regression in production turns it off again.",
        PRECEDENCE,
    ]


def _report(
    invocation: Invocation, cloud: Cloud, workload: str, made: Changed, override: Override
) -> None:
    """Notify the owner and show the record; typer.Exit(1) if the parameter was not written."""
    version = flag_versions(workload, cloud.services)[made.version - 1]
    unsent = _publish(workload, version, cloud)
    document = {
        "workload": workload, "changed": made.changed, "version": made.version,
        "by": override.who, "reason": version.reason, "enabled": made.flag.enabled,
        "state": made.flag.state, "candidate": made.flag.candidate,
        "overrides": dict(made.flag.overrides), "since": made.flag.since,
        "written": made.unwritten is None, "unwritten_because": made.unwritten,
        "told": unsent is None, "untold_because": unsent,
    }  # fmt: skip
    repair = cloud.command(f"flag repair {workload}")
    invocation.answer(document, "flag_changed", change=change_line(version), repair=repair)
    if made.unwritten is not None:
        raise typer.Exit(FAILURE)


def _publish(workload: str, version: FlagVersion, cloud: Cloud) -> str | None:
    """Publish the change; returns why that failed, else None. The change stands either way."""
    if cloud.topic is None:
        return "the stack has no topic"
    try:
        owner = owner_of_workload(workload, cloud.services.store)
        cloud.topic.publish(flag_changed(workload, version, owner=owner, stage=cloud.stage))
    except Exception as error:  # noqa: BLE001 - the flag has changed in any case
        return f"{type(error).__name__}: {error}"
    return None
