"""The ``compilegate`` command."""

from __future__ import annotations

import logging
import signal
from types import FrameType
from typing import Annotated, NoReturn

import typer

from compilegate import __version__
from compilegate.cli import digest, local, run
from compilegate.cli.check import command as check
from compilegate.cli.common.error_handling import ErrorHandlingGroup, Session
from compilegate.cli.common.providers import CloudProviders
from compilegate.cli.demo.command import demo
from compilegate.cli.demo.production import demo_production
from compilegate.cli.doctor.command import doctor
from compilegate.cli.drain import command as drain
from compilegate.cli.facts import command as facts
from compilegate.cli.flag import command as flag
from compilegate.cli.judge import command as judge
from compilegate.cli.plan import command as plan
from compilegate.cli.register import command as register
from compilegate.cli.report import command as report
from compilegate.cli.status import status
from compilegate.cli.train import command as train
from compilegate.cli.verify_aws import verify_aws

app = typer.Typer(
    cls=ErrorHandlingGroup,
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,  # help reads the same on a terminal and in a file
    pretty_exceptions_enable=False,
)
app.command("check")(check.check)
app.command("doctor")(doctor)
app.command("plan")(plan.plan)
app.add_typer(facts.app, name="facts")
app.command("register")(register.register)
app.command("train")(train.train)
app.command("run")(run.run)
app.command("status")(status)
app.command("drain")(drain.drain)
app.command("digest")(digest.digest)
app.command("judge")(judge.judge)
app.command("report")(report.report)
app.add_typer(flag.app, name="flag")
app.add_typer(local.app, name="local")
app.command("verify-aws")(verify_aws)
app.command("demo")(demo)
app.command("demo-production")(demo_production)


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
    """Measures a training job with a graph compiler on and off, and decides.

    \b
    See it work on this machine:    compilegate demo
    Could a compiler help my job?   compilegate check workloads/my-job.yaml
    Find out:                       compilegate run workloads/my-job.yaml

    Exit codes: 0 promote or eligible, 10 stay off or ineligible, 11 inconclusive or benchmark,
    12 revert, 13 invalid evidence, 2 bad input, 1 failure.
    """
    # Commands say themselves what matters; without a handler Python prints warnings to the screen.
    logging.getLogger("compilegate").addHandler(logging.NullHandler())
    if isinstance(ctx.obj, Session):  # a test's own
        ctx.obj.debug = ctx.obj.debug or debug
    else:
        ctx.obj = Session(providers=CloudProviders(), debug=debug)


def main() -> None:
    """Run the command; a polite request to end is taken like Ctrl-C, so that all is cleared up."""
    for number in (signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(number) is not signal.SIG_IGN:  # ignored under nohup, on purpose
            signal.signal(number, _stop)
    app(prog_name="compilegate")


def _stop(_number: int, _frame: FrameType | None) -> NoReturn:
    raise KeyboardInterrupt


if __name__ == "__main__":
    main()
