"""The ``compilegate`` command."""

from __future__ import annotations

import io
import logging
import math
import signal
import sys
import time
from collections.abc import Callable, Mapping
from importlib.metadata import entry_points
from types import FrameType
from typing import Annotated

import typer

from compilegate import __version__
from compilegate.cli import flag
from compilegate.cli.check import check
from compilegate.cli.common.error_handling import ErrorHandlingGroup
from compilegate.cli.common.session import Session
from compilegate.cli.list import list_workloads
from compilegate.cli.operating import drain, unlock
from compilegate.cli.plan import plan
from compilegate.cli.register import register
from compilegate.cli.report import digest, report
from compilegate.cli.run import run, train
from compilegate.cli.schema import schema
from compilegate.cli.statement import statement
from compilegate.cli.status import status
from compilegate.cli.synth import synth

# A person who presses again after this time wants an end to what still goes on.
REPEATED_SECONDS = 5.0


class Stop:
    """A handler of signals: the first stops the command, those that follow at once do nothing.

    A key that is held down, or a runner that signals again, would interrupt what ends the trials
    and keeps their records.
    """

    since = -math.inf

    def __call__(self, _number: int, _frame: FrameType | None) -> None:
        """Raise KeyboardInterrupt, unless that was done just now."""
        now = time.monotonic()
        if now - self.since > REPEATED_SECONDS:
            self.since = now
            raise KeyboardInterrupt


app = typer.Typer(
    cls=ErrorHandlingGroup,
    no_args_is_help=True,
    rich_markup_mode=None,  # help reads the same on a terminal and in a file
    pretty_exceptions_enable=False,
)
# In the order of the help. Those without a function are found as entry points of other
# distributions (distributions/checkup, exports, facts, init, judge, local).
COMMANDS: Mapping[str, typer.Typer | Callable[..., None] | None] = {
    "init": None, "check": check, "doctor": None, "try": None, "schema": schema, "plan": plan,
    "facts": None, "register": register, "train": train, "run": run, "list": list_workloads,
    "status": status, "unlock": unlock, "drain": drain, "digest": digest, "statement": statement,
    "judge": None, "report": report, "export": None, "flag": flag.app, "local": None,
    "synth": synth, "demo": None, "demo-production": None,
}  # fmt: skip
_of_others = {one.name: one.load() for one in entry_points(group="compilegate.commands")}
for _name, _command in {**COMMANDS, **_of_others}.items():
    if isinstance(_command, typer.Typer):
        app.add_typer(_command, name=_name)
    elif _command:
        app.command(_name)(_command)


def _version(show: bool) -> None:
    if show:
        typer.echo(f"compilegate {__version__}")
        raise typer.Exit


@app.callback()
def root(
    ctx: typer.Context,
    debug: Annotated[
        bool, typer.Option("--debug", help="Show tracebacks; so does COMPILEGATE_DEBUG=1.")
    ] = False,
    version: Annotated[  # noqa: ARG001 - its callback does it
        bool, typer.Option("--version", is_eager=True, callback=_version, help="Show the version.")
    ] = False,
) -> None:
    """Measure a training job with a graph compiler on and off, and decide which to use.

    \b
    Try it on this machine:         compilegate demo
    Describe a job by its script:   compilegate init train.py
    Could a compiler help a job?    compilegate check workloads/my-job.yaml
    Measure it:                     compilegate run workloads/my-job.yaml

    Exit codes: 0 promote or eligible, 10 stay off or ineligible, 11 inconclusive or benchmark,
    12 revert, 13 invalid evidence, 2 bad input, 1 failure.
    """
    # Commands print what matters; without a handler Python would print warnings.
    logging.getLogger("compilegate").addHandler(logging.NullHandler())
    if isinstance(ctx.obj, Session):  # a test's own
        ctx.obj.debug = ctx.obj.debug or debug
    else:
        ctx.obj = Session(debug=debug)


def main(command: typer.Typer = app, name: str = "compilegate") -> None:
    """Run a command, by default this one, whatever the terminal's encoding.

    SIGTERM and SIGHUP are handled like Ctrl-C, so that it cleans up.
    """
    stop = Stop()
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(number) is not signal.SIG_IGN:  # ignored under nohup, on purpose
            signal.signal(number, stop)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):  # what the encoding lacks is shown by its code
            stream.reconfigure(errors="backslashreplace")
    command(prog_name=name)


if __name__ == "__main__":
    main()
