"""The ``compilegate`` command."""

from __future__ import annotations

import gc
import io
import logging
import math
import signal
import sys
import time
from collections.abc import Mapping
from importlib import import_module
from importlib.metadata import entry_points
from types import FrameType
from typing import Annotated, Any

import typer

from compilegate import __version__
from compilegate.cli.common.error_handling import ErrorHandlingGroup
from compilegate.cli.common.session import Session

# A person who presses again after this time wants an end to what still goes on.
REPEATED_SECONDS = 5.0
OBJECTS_BETWEEN_COLLECTIONS = 200_000


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


# Module and name of each command, by its part of the help. Those without are found as entry points
# of other distributions (distributions/checkup, discover, exports, facts, init, judge, local).
SECTIONS: Mapping[str, Mapping[str, tuple[str, str] | None]] = {
    "Before a trial": {
        "discover": None, "first": None, "init": None, "check": ("check", "check"),
        "doctor": None, "try": None, "schema": None, "plan": ("plan", "plan"),
        "facts": None,
    },
    "Trials": {
        "run": ("run", "run"), "judge": None, "report": ("report", "report"), "export": None,
    },
    "Production": {
        "register": ("register", "register"), "train": ("run", "train"), "flag": ("flag", "app"),
    },
    "Every workload": {
        "list": None, "status": None, "digest": ("report", "digest"), "statement": None,
    },
    "The deployment": {
        "synth": None, "unlock": None, "drain": None,
    },
    "This machine": {"demo": None, "demo-production": None, "local": None},
}  # fmt: skip
COMMANDS = {name: place for section in SECTIONS.values() for name, place in section.items()}
OF_OTHERS = "compilegate.commands"
# Help reads the same on a terminal and in a file.
STYLE: dict[str, Any] = {"rich_markup_mode": None, "pretty_exceptions_enable": False}


class _Commands(ErrorHandlingGroup):
    """Commands that are loaded one by one: to load all of them takes longer than most of them."""

    sections = SECTIONS

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        # The names that a mistyped one is compared with.
        self.commands: dict[str, Any] = dict.fromkeys(COMMANDS)

    def list_commands(self, ctx: Any) -> list[str]:  # noqa: ARG002 - click's signature
        """Those that are installed, in the order of the help."""
        of_others = [one.name for one in entry_points(group=OF_OTHERS)]
        names = dict.fromkeys((*COMMANDS, *of_others))
        return [name for name in names if COMMANDS.get(name) or name in of_others]

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """The command, None where there is none."""
        if self.commands.get(cmd_name) is None and (command := _load(cmd_name)):
            self.commands[cmd_name] = command
        return super().get_command(ctx, cmd_name)


def _load(name: str) -> Any:
    if place := COMMANDS.get(name):
        module, attribute = place
        command = getattr(import_module(f"compilegate.cli.{module}"), attribute)
    else:
        of_others = entry_points(group=OF_OTHERS, name=name)
        command = next((one.load() for one in of_others), None)
    group = typer.Typer(**STYLE)
    if isinstance(command, typer.Typer):
        group.add_typer(command, name=name)
    elif command is not None:
        group.command(name)(command)
    return typer.main.get_group(group).commands.get(name)


app = typer.Typer(
    cls=_Commands, no_args_is_help=True, context_settings={"help_option_names": ["--help", "-h"]},
    **STYLE,
)  # fmt: skip


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
    What would your script gain?    compilegate first train.py
    A trial, on this machine:       compilegate run train.yaml --local
    A trial, on AWS:                compilegate run train.yaml

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
    # A fleet has a million objects, hardly one in a cycle, and most commands end soon.
    gc.set_threshold(OBJECTS_BETWEEN_COLLECTIONS)
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
