"""A local cloud that has ended, as its trials left it in the folder that the command runs in."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from compilegate.adapters.kept_trials import TRIALS, KeptTrials, NothingRuns, keep_trial
from compilegate.adapters.wiring import SystemClock
from compilegate.cli.common.cloud import Cloud
from compilegate.cli.common.output import error_text
from compilegate.domain.errors import EnvironmentNotReadyError
from compilegate.domain.utc import minute
from compilegate.ports import Ledger, Services, Settings
from compilegate.usecases.records import Trial

if TYPE_CHECKING:
    from compilegate.cli.trials import View


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


def kept_cloud(unavailable: EnvironmentNotReadyError) -> Cloud:
    """What the trials of this folder left, to be read; raises ``unavailable`` where none did."""
    trials = KeptTrials(Path.cwd())
    if not trials.trials:
        raise unavailable
    document = trials.trials[-1].document
    typer.echo(
        f"The local cloud does not run; shown is what trials left in {TRIALS}, the newest at "
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
        store=kept, ledger=Ledger(kept), locks=nothing, flags=kept, jobs=nothing,
        outputs=nothing, roles=nothing, quotas=nothing, tokens=nothing, ends=nothing,
        clock=SystemClock(),
        settings=Settings(
            stage=str(document["stage"]), region=str(document["region"]), job_roles="",
            simulated=str(document["simulated"]),
        ),
    )  # fmt: skip
    return Cloud(services, executions, nothing, kept, poll_seconds=0.0, production=nothing)
