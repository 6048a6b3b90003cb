"""A local cloud that has ended, as its trials left it in the folder that the command runs in."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import typer

from compilegate.adapters.kept_trials import TRIALS, KeptStore, KeptTrials, NothingRuns, keep_trial
from compilegate.adapters.ledger import RecordLedger
from compilegate.adapters.wiring import SystemClock
from compilegate.cli.common.cloud import Cloud
from compilegate.cli.common.output import error_text
from compilegate.domain.errors import EnvironmentNotReadyError
from compilegate.domain.utc import minute
from compilegate.ports import Services, Settings
from compilegate.usecases.records import Trial


class _NoExecutions(NothingRuns):
    def running(self) -> Sequence[Any]:
        """None."""
        return ()


def keep(trials: Sequence[Trial], cloud: Cloud) -> None:
    """Keep what local trials recorded; where that fails, say so: their verdicts stand."""
    try:
        for trial in trials:
            keep_trial(trial, cloud.services, Path.cwd())
    except Exception as error:  # noqa: BLE001 - the verdict is shown, whatever keeping fails of
        typer.echo(error_text(f"what the trial recorded was not kept: {error}"), err=True)


def kept_cloud(unavailable: EnvironmentNotReadyError) -> Cloud:
    """What the trials of this folder left, to be read; raises ``unavailable`` where none did."""
    trials = KeptTrials(Path.cwd())
    if not trials.trials:
        raise unavailable
    document = trials.newest.document
    typer.echo(
        f"The local cloud does not run; shown is what trials left in {TRIALS}, the newest at "
        f"{minute(document['kept_at'])}.",
        err=True,
    )
    # They serve what reads, and refuse the rest.
    kept: Any = trials
    store: Any = KeptStore(trials)
    nothing: Any = NothingRuns()
    executions: Any = _NoExecutions()
    services = Services(
        store=store, ledger=RecordLedger(kept), locks=nothing, flags=kept, jobs=nothing,
        outputs=nothing, roles=nothing, quotas=nothing, tokens=nothing, ends=nothing,
        clock=SystemClock(),
        settings=Settings(
            stage=str(document["stage"]), region=str(document["region"]), job_roles="",
            simulated=str(document["simulated"]),
        ),
    )  # fmt: skip
    return Cloud(services, executions, nothing, overview=kept, poll_seconds=0.0)
