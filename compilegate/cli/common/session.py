"""What the commands of one invocation share: ways into a cloud, and the options for them.

boto3 and the embedded cloud are imported when a cloud is opened: that is half of what ``check``,
``judge`` or ``--help`` would otherwise take.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Annotated, Any

import typer

from compilegate.adapters.kept_trials import TRIALS
from compilegate.cli.common import project
from compilegate.cli.common.cloud import Cloud, StartedCloud, is_workload, kept_cloud
from compilegate.cli.common.output import answer
from compilegate.domain.errors import EnvironmentNotReadyError
from compilegate.domain.naming import record_key

# What a shell completes without asking a cloud: names of workloads that are near the folder.

FOLDERS = (Path(), Path("workloads"))
MOST_FILES = 200  # a shell waits for the answer
HEAD_BYTES = 2000
_NAME = re.compile(rb"^name:[ \t]*[\"']?([a-z0-9-]{1,32})", re.MULTILINE)


def workload_names(incomplete: str) -> list[str]:
    """Names in workload files here and in ``workloads``, and of local trials that are kept."""
    trials = islice(TRIALS.glob("*/"), MOST_FILES)
    names = {folder.name.rpartition("-")[0] for folder in trials}
    files = (path for folder in FOLDERS for path in folder.glob("*.y*ml"))
    for path in islice(files, MOST_FILES):
        with suppress(OSError), path.open("rb") as file:
            if name := _NAME.search(file.read(HEAD_BYTES)):
                names.add(name[1].decode())
    return sorted(name for name in names if name.startswith(incomplete))


POSITIONAL, KEYWORD = inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY


class Providers:
    """AWS and the embedded cloud of this machine; tests provide others."""

    def aws(self, stage: str) -> Cloud:
        """The stage's stack in the account of the environment; EnvironmentNotReadyError."""
        from compilegate.cli.common import connect  # noqa: PLC0415 - see above

        return connect.aws(stage)

    def local(self) -> Cloud:
        """The embedded cloud that runs; EnvironmentNotReadyError."""
        from compilegate.cli.common import connect  # noqa: PLC0415 - see above

        return connect.local()

    def client(self, service: str, region: str) -> Any:
        """A client of an AWS service in a region, with the environment's credentials."""
        from compilegate.adapters.stores import client  # noqa: PLC0415 - see above

        return client(service, region)

    def started_local(self, *, keep: bool) -> AbstractContextManager[StartedCloud]:
        """The embedded cloud with the app as it is now, started if it does not run.

        One that was started here ends with the block unless ``keep``.
        """
        from compilegate.cli.common import connect  # noqa: PLC0415 - see above

        return connect.started_local(keep=keep)


@dataclass
class Session:
    """What the commands of one invocation share."""

    providers: Providers = field(default_factory=Providers)
    debug: bool = False


def session(ctx: typer.Context) -> Session:
    """This invocation's session."""
    current = ctx.find_object(Session)
    if current is None:
        raise RuntimeError("the root command has not run")
    return current


@dataclass(frozen=True)
class Invocation:
    """One call of a command on a cloud: the options that all of these have."""

    session: Session
    local: bool
    stage: str | None
    as_json: bool

    def open_cloud(self) -> Cloud:
        """The selected cloud; raises EnvironmentNotReadyError."""
        name = self.stage_name
        return self.session.providers.local() if self.local else self.session.providers.aws(name)

    def open_records(self, workload: str | None = None, trial: str | None = None) -> Cloud:
        """The selected cloud, to be read. Raises EnvironmentNotReadyError.

        Where no local cloud runs, or another trial's, which does not know these: what trials left
        in this folder.
        """
        try:
            cloud = self.open_cloud()
        except EnvironmentNotReadyError:
            kept = kept_cloud("does not run") if self.local else None
            if kept is None:
                raise
            return kept
        if not self.local or workload is None:
            return cloud
        answers = is_workload(workload, cloud) and (
            trial is None or cloud.services.store.has(record_key(workload, trial, "decision"))
        )
        what = f"{workload}, trial {trial}" if trial else workload
        return (not answers and kept_cloud(f"does not know {what}", workload, trial)) or cloud

    def answer(self, document: Any, template: str | Path, **more: Any) -> None:
        """Print the document with ``--json``, else its screen (output.py)."""
        answer(document, template, as_json=self.as_json, **more)

    @property
    def stage_name(self) -> str:
        """The selected stage, by default the one in cdk.json."""
        return project.stage_name(self.stage)


JsonOption = Annotated[bool, typer.Option("--json", help="Print one JSON document.")]
LocalOption = Annotated[
    bool, typer.Option("--local", help="Use the embedded cloud on this machine.")
]
StageOption = Annotated[
    str | None,
    typer.Option(
        "--stage",
        envvar="COMPILEGATE_STAGE",
        help="The deployed stage. Default: the one in cdk.json.",
    ),
]
RegionOption = Annotated[
    str | None,
    typer.Option(
        "--region",
        help="The AWS region. Default: the environment's, else the one in cdk.json.",
        show_default=False,
    ),
]


# What every command on a cloud takes besides its own parameters: name, type and default.
SHARED = (
    ("local", LocalOption, False),
    ("stage", StageOption, None),
    ("as_json", JsonOption, False),
)


def on_cloud(command: Callable[..., None]) -> Callable[..., None]:
    """Adds the shared options to a command; it gets them as an Invocation, its first argument."""

    def run(ctx: typer.Context, **options: Any) -> None:
        shared = {name: options.pop(name) for name, _, _ in SHARED}
        command(Invocation(session(ctx), **shared), **options)

    _, *own = inspect.signature(command, eval_str=True).parameters.values()
    context = inspect.Parameter("ctx", POSITIONAL, annotation=typer.Context)
    added = [
        inspect.Parameter(name, KEYWORD, default=default, annotation=annotation)
        for name, annotation, default in SHARED
    ]
    run.__doc__ = command.__doc__
    run.__signature__ = inspect.Signature([context, *own, *added])  # type: ignore[attr-defined]
    return run


FileArgument = Annotated[Path, typer.Argument(metavar="FILE", help="A workload file (YAML).")]
NameArgument = Annotated[
    str,
    typer.Argument(metavar="WORKLOAD", help="The workload's name.", autocompletion=workload_names),
]
ReasonOption = Annotated[
    str, typer.Option("--reason", metavar="TEXT", help="Why; recorded and sent to the owner.")
]
YesOption = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask for confirmation.")]
ReportsOption = Annotated[
    Path, typer.Option("--out", help="Folder that reports are saved in.", file_okay=False)
]
REPORTS = Path("compilegate-reports")
