"""One stage of the app as commands reach it, also when it has ended, and the workloads it knows."""

from __future__ import annotations

import contextlib
import getpass
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from compilegate.adapters.kept_trials import TRIALS, KeptTrials, NothingRuns, keep_trial
from compilegate.adapters.wiring import SystemClock
from compilegate.cli.common.output import error_text
from compilegate.domain import naming
from compilegate.domain.errors import InvalidInputError, NotFoundError
from compilegate.domain.utc import minute
from compilegate.ports import FleetTable, Ledger, Schedules, Services, Settings, Topic
from compilegate.usecases.records import Trial, load_registration

if TYPE_CHECKING:
    from compilegate.adapters.sagemaker import JobLogs
    from compilegate.adapters.state_machines import StepFunctionsExecutions
    from compilegate.cli.trials import View

MOST_NAMES = 3
# Workloads whose names are compared with one that does not exist: ten pages of a listing.
MOST_LISTED = 10_000


def os_user() -> str:
    """The user of this machine; their number where they have no name."""
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return f"uid {os.getuid()}"


def aws_caller(sts: Any) -> str:
    """The ARN that AWS knows the caller by (sts:GetCallerIdentity, which needs no permission)."""
    return str(sts.get_caller_identity()["Arn"])


@dataclass(frozen=True)
class Production:
    """What starts production runs: TRAIN, by hand or on a schedule."""

    executions: StepFunctionsExecutions
    schedules: Schedules


@dataclass(frozen=True)
class Cloud:
    """One stage of the app; ``poll_seconds`` is how often a watcher may ask.

    ``executions`` are EVALUATE's. ``who`` names the person at the keyboard. ``topic`` is None where
    the stack names none.
    """

    services: Services
    executions: StepFunctionsExecutions
    logs: JobLogs
    poll_seconds: float
    production: Production
    who: Callable[[], str] = os_user
    topic: Topic | None = None

    @property
    def is_local(self) -> bool:
        """Whether it is the embedded cloud, which trains on this machine."""
        return self.services.settings.simulated is not None

    @property
    def stage(self) -> str:
        """The deployed stage."""
        return self.services.settings.stage

    def command(self, words: str) -> str:
        """A command to copy, ``compilegate WORDS``, with the option that selects this cloud."""
        return f"compilegate {words}{' --local' if self.is_local else ''}"


@dataclass(frozen=True)
class StartedCloud:
    """An embedded cloud with the app deployed; ``deploy_seconds`` are wall clock.

    ``resumed`` says that it had been killed and goes on where it was.
    """

    cloud: Cloud
    started_now: bool
    deploy_seconds: float
    resumed: bool = False


def is_workload(workload: str, cloud: Cloud) -> bool:
    """Whether ledger, flag or registration has the name.

    In the order of the permissions that they take: those of a reader of flags come first.
    """
    services = cloud.services
    flag = naming.flag_parameter(services.settings.stage, workload)
    return (
        bool(services.ledger.history(workload, since=services.clock.now()).records)
        or services.flags.read(flag) is not None
        or services.store.has(naming.registration_key(workload))
    )


def check_workload_exists(workload: str, cloud: Cloud) -> None:
    """Raises InvalidInputError for a name that is no workload of the stage."""
    if not is_workload(workload, cloud):
        raise _unknown(workload, cloud, "is not a workload of this stage", "WORKLOAD")


def check_registered(workload: str, cloud: Cloud, *, field: str) -> None:
    """Raises InvalidInputError for a workload that never was registered."""
    try:
        load_registration(cloud.services.store, workload)
    except NotFoundError as error:
        raise _unknown(workload, cloud, "is not registered", field) from error


def _unknown(workload: str, cloud: Cloud, problem: str, field: str) -> InvalidInputError:
    """The error; its fix names the workloads that are spelt alike."""
    names: Sequence[str] = ()
    with contextlib.suppress(Exception):  # without the permission to list them: no suggestions
        listed = cloud.services.store.folders(naming.WORKLOADS_PREFIX)
        names = list(islice(listed, MOST_LISTED))
    near = get_close_matches(workload, names, n=MOST_NAMES)
    if workload in names:
        fix = f"put it into production with `{cloud.command('register FILE')}`"
    else:
        fix = f"did you mean {' or '.join(near)}? " if near else ""
        fix += f"`{cloud.command('list')}` lists the workloads of this stage"
    return InvalidInputError(problem, field=field, value=workload, fix=fix)


# A local cloud that has ended, as its trials left it in the folder that the command runs in.


class _NoExecutions(NothingRuns):
    def running(self) -> Sequence[Any]:
        """None."""
        return ()


class Keeper:
    """Keeps what local trials record, as they go on: their cloud can be killed at any moment.

    ``kept`` are those of which, at the end, everything was.
    """

    def __init__(self, cloud: Cloud) -> None:
        self._cloud = cloud
        self._seen: dict[Trial, object] = {}
        self._kept_at: dict[Trial, float] = {}
        self.kept: set[Trial] = set()

    def look(self, views: Sequence[View]) -> None:
        """Keep the trials that have changed; what fails now is tried again with the next look."""
        for view in views:
            jobs = tuple((job.name, job.status) for job in view.jobs)
            # Each time where nothing is measured: documents are written between jobs.
            if self._seen.get(view.trial) != jobs or not any(j.active for j in view.jobs):
                with contextlib.suppress(Exception):
                    self._keep(view.trial)
                    self._seen[view.trial] = jobs

    def end(self, trials: Sequence[Trial]) -> None:
        """Keep all of it; where that fails, say so: the verdicts stand."""
        for trial in trials:
            try:
                self._keep(trial)
                self.kept.add(trial)
            except Exception as error:  # noqa: BLE001 - verdicts are shown, whatever keeping fails of
                at = self._kept_at.get(trial)
                since = f" after {minute(at)}" if at is not None else ""
                what = f"what the trial of {trial.workload} recorded{since} was not kept: {error}"
                typer.echo(error_text(what), err=True)

    def _keep(self, trial: Trial) -> None:
        keep_trial(trial, self._cloud.services, Path.cwd())
        self._kept_at[trial] = self._cloud.services.clock.now()


def kept_cloud(why: str, workload: str | None = None, trial: str | None = None) -> Cloud | None:
    """What the trials of this folder left, to be read; None where none of these did.

    ``why`` it is shown instead of the local cloud.
    """
    trials = KeptTrials(Path.cwd())
    names = {(one.workload, one.document["trial"]) for one in trials.trials}
    if not any(workload in (None, name) and trial in (None, at) for name, at in names):
        return None
    document = trials.trials[-1].document
    typer.echo(
        f"The local cloud {why}; shown is what trials left in {TRIALS}, the newest at "
        f"{minute(document['kept_at'])}.",
        err=True,
    )
    for one in trials.trials:
        if not one.ended:
            folder, at = one.folder.relative_to(Path.cwd()), minute(one.document["kept_at"])
            typer.echo(
                f"{folder.name} did not end; it is kept in {folder} as it was at {at}.", err=True
            )
    # They serve what reads, and refuse the rest.
    kept: Any = trials
    nothing: Any = NothingRuns()
    executions: Any = _NoExecutions()
    services = Services(
        store=kept, ledger=Ledger(kept), fleet=FleetTable(kept), locks=kept, flags=kept,
        jobs=nothing, outputs=nothing, roles=nothing, quotas=nothing, tokens=nothing, ends=nothing,
        clock=SystemClock(),
        settings=Settings(
            stage=str(document["stage"]), region=str(document["region"]), job_roles="",
            simulated=str(document["simulated"]),
        ),
    )  # fmt: skip
    return Cloud(services, executions, nothing, poll_seconds=0.0, production=nothing)
