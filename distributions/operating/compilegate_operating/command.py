"""``compilegate drain`` and ``unlock``: end what runs or is held, and start nothing new."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, cast

import typer

from compilegate.cli.common.cloud import Cloud, check_workload_exists
from compilegate.cli.common.error_handling import STOPPED
from compilegate.cli.common.output import confirm, console
from compilegate.cli.common.session import Invocation, NameArgument, YesOption, on_cloud
from compilegate.domain.errors import EnvironmentNotReadyError, InvalidInputError, NotDeployedError
from compilegate.domain.flag_change import Override
from compilegate.domain.formats import plural
from compilegate.domain.naming import stack_name
from compilegate.domain.optional import map_optional
from compilegate.domain.production.orphans import NOT_ENDED
from compilegate.domain.records.flags import HUMAN
from compilegate.domain.records.ledger import DrainMark
from compilegate.domain.utc import iso
from compilegate.usecases.drain_mark import drain_mark
from compilegate.usecases.equivalence import restore_classes, revoked_classes
from compilegate.usecases.records import workload_names
from compilegate_operating.drainage import Deployment, Drainage, begin_drain, end_drain
from compilegate_operating.drainage import unlock as release
from compilegate_operating.work import Work, next_steps

if TYPE_CHECKING:
    from compilegate.ports import JobListing

TEMPLATES = Path(__file__).with_name("templates")
STILL_RUNNING = 11
KINDS = ("executions", "jobs", "locks")  # of what a drain stops


@on_cloud
def drain(
    invocation: Invocation,
    *,
    check: Annotated[
        bool, typer.Option("--check", help="Only show whether anything runs; changes nothing.")
    ] = False,
    undo: Annotated[
        bool, typer.Option("--undo", help="Allow work to start again and enable the schedules.")
    ] = False,
    stop_jobs: Annotated[
        bool,
        typer.Option("--stop-jobs", help="Also stop production's training jobs, unfinished."),
    ] = False,
    timeout: Annotated[
        float | None,
        typer.Option("--timeout", metavar="MINUTES", min=0, help="The longest wait."),
    ] = None,
    yes: YesOption = False,
) -> None:
    """Stop trials, start nothing new, wait until no job runs.

    Disables the schedules, and refuses run, train and register. Stops trials, and production runs
    that wait for machines, and releases their locks. Production runs that are training finish,
    unless --stop-jobs stops them. Flags do not change.

    \b
    compilegate drain
    compilegate drain --stop-jobs --timeout 30 --yes
    compilegate drain --check
    compilegate drain --undo

    Exit code 0 nothing runs, 11 something still runs (--check, --timeout), 1 failure. A repeated
    command continues; Ctrl-C stops only the waiting, and nothing starts until --undo.
    """
    if check and undo:
        raise InvalidInputError("exclude each other", field="--check and --undo", fix="choose one")
    if check:
        raise typer.Exit(_check(invocation))
    cloud = invocation.open_cloud()
    deployment, by = _deployment(cloud), f"{HUMAN}{cloud.who()}"
    stack = stack_name(cloud.stage)
    if undo:
        enabled = end_drain(deployment, by)
        undone = {"drained": False, "schedules_enabled": list(enabled or ())}
        invocation.answer(undone, TEMPLATES / "drain_undone", stack=stack, enabled=enabled)
        return
    jobs = "are stopped as well" if stop_jobs else "finish first"
    confirm(
        [f"Draining {stack}: schedules are disabled and nothing new starts until `compilegate "
         "drain --undo`. Running trials are stopped and have to be rerun. Production's training "
         f"jobs {jobs}. Flags do not change."], yes=yes, as_json=invocation.as_json,
    )  # fmt: skip
    mark = begin_drain(deployment, by)
    try:
        work, stopped = _wait(
            Drainage(deployment, time.monotonic), cloud.poll_seconds, stop_jobs=stop_jobs,
            minutes=timeout, quiet=invocation.as_json,
        )  # fmt: skip
    except KeyboardInterrupt:
        typer.echo(
            "Stopped waiting. Nothing new starts. To continue: compilegate drain\n"
            "To allow work again: compilegate drain --undo",
            err=True,
        )
        raise typer.Exit(STOPPED) from None
    _answer(invocation, cloud, "drain", work, mark, stopped=stopped)
    raise typer.Exit(0 if work.idle else STILL_RUNNING)


def _wait(
    drainage: Drainage, poll: float, *, stop_jobs: bool, minutes: float | None, quiet: bool
) -> tuple[Work, dict[str, list[str]]]:
    """Drain until nothing is left or the time is up; what is left, and what was stopped."""
    stopped = {kind: list[str]() for kind in KINDS}
    shown, began = "", time.monotonic()
    while True:
        work = drainage.read()
        if (line := in_progress(work)) != shown:
            shown = line
            console(stderr=quiet).print(line, soft_wrap=True)
        if work.idle:
            return work, stopped
        steps = next_steps(work, stop_jobs=stop_jobs)
        drainage.take(steps)
        names = (
            [one.name for one in steps.executions],
            [one.name for one in steps.jobs],
            [one.workload for one in steps.locks],
        )
        for kind, new in zip(KINDS, names, strict=True):
            stopped[kind] = list(dict.fromkeys([*stopped[kind], *new]))
        if minutes is not None and time.monotonic() - began >= minutes * 60:
            return work, stopped
        time.sleep(poll)


def _deployment(cloud: Cloud) -> Deployment:
    production, services = cloud.production, cloud.services

    def locks() -> list[tuple[str, str]]:
        held = services.locks.locks_of(workload_names(services.store))
        return [(lock.workload, lock.owner) for lock in held]

    return Deployment(
        services=services,
        trials=cloud.executions,
        runs=production.executions,
        schedules=production.schedules,
        listing=cast("JobListing", services.jobs),
        locks=locks,
    )


def _check(invocation: Invocation) -> int:
    """Show whether anything runs; a stage without a stack is idle."""
    try:
        cloud = invocation.open_cloud()
    except NotDeployedError as error:
        nothing = {"stage": invocation.stage_name, "deployed": False, "idle": True}
        invocation.answer(nothing, TEMPLATES / "drain_nothing", why=error)
        return 0
    deployment = _deployment(cloud)
    work = Drainage(deployment, time.monotonic).read()
    enabled, mark = deployment.schedules.enabled(), drain_mark(cloud.services.ledger)
    _answer(invocation, cloud, "drain_check", work, mark, enabled=enabled)
    return 0 if work.idle and not enabled else STILL_RUNNING


def _answer(
    invocation: Invocation, cloud: Cloud, template: str, work: Work, mark: DrainMark, *,
    enabled: Sequence[str] = (), stopped: Mapping[str, Sequence[str]] | None = None,
) -> None:  # fmt: skip
    """Print how far a drain is; ``enabled`` are schedules that could start a run."""
    at, by = (mark.at, mark.by) if mark.drained else (None, None)
    document = {
        "stage": cloud.stage,
        "drained": at is not None,
        "since": map_optional(at, iso),
        "by": by,
        "idle": work.idle,
        "in_progress": {
            "trials": [one.name for one in work.trials],
            "runs": [{"execution": one.name, "phase": one.phase} for one in work.runs],
            "jobs": [one.name for one in work.jobs],
            "locks": [one.workload for one in work.locks],
        },
        "schedules_enabled": list(enabled),
        "schedules_disabled": list(mark.schedules),
        "stopped": stopped or {kind: [] for kind in KINDS},
    }
    invocation.answer(
        document, TEMPLATES / template, stack=stack_name(cloud.stage), cloud=cloud,
        under_way=in_progress(work), drained_at=at,
        runs=[f"{one.name} ({one.phase})" for one in work.runs],
    )  # fmt: skip


def in_progress(work: Work) -> str:
    """One line: what is still in progress."""
    phases = Counter(f"production run{{}} {run.phase}" for run in work.runs)
    counts = [
        (len(work.trials), "trial{}"),
        *((phases[name], name) for name in sorted(phases)),
        (len(work.jobs), "training job{}"),
        (len(work.locks), "lock{}"),
    ]
    some = [plural(count, name.format(""), name.format("s")) for count, name in counts if count]
    return f"In progress: {', '.join(some)}." if some else "Nothing is in progress."


STOP_SECONDS = 30.0  # Step Functions ends an execution within about a second


@on_cloud
def unlock(
    invocation: Invocation,
    workload: NameArgument,
    *,
    reason: Annotated[str, typer.Option("--reason", metavar="TEXT", help="Why; recorded.")],
    force: Annotated[
        bool, typer.Option("--force", help="Stop the trial that holds it, if it still runs.")
    ] = False,
    equivalence: Annotated[
        bool, typer.Option("--equivalence", help="Restore the classes that its alarms revoked.")
    ] = False,
    yes: YesOption = False,
) -> None:
    """Release the lock that an ended trial has left.

    A workload has one trial at a time. The next trial takes a lock over whose trial has ended;
    this does it without a trial. Your name and reason are recorded. Flags do not change.

    With --equivalence, releases no lock: the equivalence check counts again for the classes that
    a confirmed alarm of this workload has revoked.

    \b
    compilegate unlock bert-docs --reason "its trial was stopped"
    compilegate unlock bert-docs --reason "wrong data" --force --yes
    compilegate unlock bert-docs --equivalence --reason "the data was wrong"
    """
    cloud = invocation.open_cloud()
    check_workload_exists(workload, cloud)
    if equivalence:
        _restore_classes(invocation, cloud, workload, Override(cloud.who(), reason), yes=yes)
        return
    override, execution = Override(cloud.who(), reason), cloud.services.locks.holder(workload)
    entry = None
    if execution is not None:
        end = cloud.services.ends.end_of(execution)
        stopped = end == NOT_ENDED
        if stopped and not force:
            raise InvalidInputError(
                f"is held by {execution}, which still runs", field="WORKLOAD", value=workload,
                fix="wait for it to end, or stop it with --force",
            )  # fmt: skip
        effect = (
            f"stops {execution} and its training jobs, and releases its lock" if stopped
            else f"releases the lock of {execution}, which has ended"
        )  # fmt: skip
        confirm([f"{workload}: {effect}."], yes=yes, as_json=invocation.as_json)
        if stopped:  # it ends first, so that it can take the lock no more
            cloud.executions.stop(execution, f"unlocked: {override.reason}")
            deadline = time.monotonic() + STOP_SECONDS
            while (end := cloud.services.ends.end_of(execution)) == NOT_ENDED:
                if time.monotonic() >= deadline:
                    raise EnvironmentNotReadyError(
                        f"{execution} was stopped but still runs", fix="run the command again"
                    )
                time.sleep(cloud.poll_seconds)
        made = release(workload, execution, end, override, stopped=stopped, services=cloud.services)
        entry = made.to_entry()
    document = {"workload": workload, "released": entry is not None, "unlocked": entry}
    invocation.answer(document, TEMPLATES / "unlock")


def _restore_classes(
    invocation: Invocation, cloud: Cloud, workload: str, override: Override, *, yes: bool
) -> None:
    """Let the equivalence check count again where an alarm of this workload ended that."""
    ledger = cloud.services.ledger
    revoked = [one for one in revoked_classes(ledger) if one.workload == workload]
    if not revoked:
        raise InvalidInputError(
            "has revoked no class of the equivalence check", field="WORKLOAD", value=workload,
            fix=f"see `{cloud.command('status')}`",
        )  # fmt: skip
    classes = " and ".join(one.job_class for one in revoked)
    effect = f"its alarms no longer revoke {classes} of the equivalence check"
    confirm([f"{workload}: {effect}."], yes=yes, as_json=invocation.as_json)
    restore_classes(revoked, override, cloud.services)
    document = {
        "workload": workload,
        "restored": [one.to_entry() for one in revoked],
        "revoked": [one.to_entry() for one in revoked_classes(ledger)],
    }
    invocation.answer(document, TEMPLATES / "unlock_equivalence")
