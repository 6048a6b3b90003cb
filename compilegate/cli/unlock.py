"""``compilegate unlock``: release a workload's lease that nothing else releases."""

from __future__ import annotations

import time
from typing import Annotated

import typer

from compilegate.cli.common.cloud import Cloud, check_workload_exists
from compilegate.cli.common.output import confirm
from compilegate.cli.common.session import Invocation, NameArgument, YesOption, on_cloud
from compilegate.domain.errors import EnvironmentNotReadyError, InvalidInputError, ProblemWithFix
from compilegate.domain.flag_change import Override
from compilegate.domain.production.orphans import ExecutionEnd
from compilegate.usecases.operations.drain import unlock as release

STOP_SECONDS = 30.0  # Step Functions ends an execution within about a second
WhyOption = Annotated[str, typer.Option("--reason", metavar="TEXT", help="Why; recorded.")]
ForceOption = Annotated[
    bool, typer.Option("--force", help="Stop the trial that holds it, if it still runs.")
]


@on_cloud
def unlock(
    invocation: Invocation,
    workload: NameArgument,
    *,
    reason: WhyOption,
    force: ForceOption = False,
    yes: YesOption = False,
) -> None:
    """Release the lease that an ended trial has left.

    A workload has one trial at a time. The next trial takes a lease over whose trial has ended;
    this does it without a trial. Your name and reason are recorded. Flags do not change.

    \b
    compilegate unlock bert-docs --reason "its trial was stopped"
    compilegate unlock bert-docs --reason "wrong data" --force --yes
    """
    cloud = invocation.open_cloud()
    check_workload_exists(workload, cloud)
    override, execution = Override(cloud.who(), reason), cloud.services.locks.holder(workload)
    entry = None
    if execution is not None:
        end = cloud.services.ends.end_of(execution)
        stopped = end is None
        if stopped and not force:
            raise InvalidInputError(
                f"is held by {execution}, which still runs", field="WORKLOAD", value=workload,
                fix="wait for it to end, or stop it with --force",
            )  # fmt: skip
        effect = (
            f"stops {execution} and its training jobs, and releases its lease" if stopped
            else f"releases the lease of {execution}, which has ended"
        )  # fmt: skip
        confirm([f"{workload}: {effect}."], yes=yes, as_json=invocation.as_json)
        end = end or _stop(execution, override.reason, cloud)
        made = release(workload, execution, end, override, stopped=stopped, services=cloud.services)
        entry = made.to_entry()
    document = {"workload": workload, "released": entry is not None, "unlocked": entry}
    invocation.answer(document, "unlock")


def _stop(execution: str, reason: str, cloud: Cloud) -> ExecutionEnd:
    """Stop the execution and wait for its end, so that it can take the lease no more."""
    cloud.executions.stop(execution, f"unlocked: {reason}")
    deadline = time.monotonic() + STOP_SECONDS
    while (end := cloud.services.ends.end_of(execution)) is None:
        if time.monotonic() >= deadline:
            raise EnvironmentNotReadyError(
                ProblemWithFix(
                    f"{execution} was stopped but still runs", fix="run the command again"
                )
            )
        time.sleep(cloud.poll_seconds)
    return end
