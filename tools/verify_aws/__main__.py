"""``make verify-aws``: check on an account what the project assumes of AWS."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any

import typer

from compilegate import __version__
from compilegate.cli.common import project
from compilegate.cli.common.cloud import Cloud
from compilegate.cli.common.error_handling import ErrorHandlingGroup
from compilegate.cli.common.output import confirm, console, emit_json, say, say_table
from compilegate.cli.common.session import (
    JsonOption,
    LocalOption,
    Providers,
    Session,
    StageOption,
    YesOption,
)
from compilegate.cli.main import main
from compilegate.domain.errors import (
    EnvironmentNotReadyError,
    InvalidInputError,
    NoStackError,
)
from compilegate.domain.formats import money
from compilegate.domain.naming import stack_name, trial_id
from compilegate.place import PROJECT
from tools.verify_aws.assumptions import load_assumptions
from tools.verify_aws.record import Record, Row, compare
from tools.verify_aws.run import Prepared, prepare_verification

NAME = "python -m tools.verify_aws"
SMALLEST_GPU, SMALLEST_CPU = "ml.g4dn.xlarge", "ml.m5.xlarge"
RECORDS = Path("docs")
DIFFERS = 1


class OneCommand(ErrorHandlingGroup):
    """A group without commands: its own options are the command."""

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """Lists none."""


app = typer.Typer(
    cls=OneCommand,
    invoke_without_command=True,
    subcommand_metavar="",
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)


@app.callback()
def verify_aws(
    ctx: typer.Context,
    *,
    cpu: Annotated[
        bool, typer.Option("--cpu", help=f"Use {SMALLEST_CPU} instead of {SMALLEST_GPU}.")
    ] = False,
    max_usd: Annotated[
        float, typer.Option("--max-usd", help="Do not start if the jobs could cost more than this.")
    ] = 5.0,
    out: Annotated[
        Path | None,
        typer.Option(
            "--out", help="Folder of the record. Default: docs, with --local none.", file_okay=False
        ),
    ] = None,
    deploy: Annotated[
        bool,
        typer.Option("--deploy", help="Deploy a stage that is missing; destroy it at the end."),
    ] = False,
    local: LocalOption = False,
    stage: StageOption = None,
    yes: YesOption = False,
    as_json: JsonOption = False,
) -> None:
    """Check on an account what Compilegate assumes of AWS.

    \b
    python -m tools.verify_aws
    python -m tools.verify_aws --cpu --max-usd 1
    python -m tools.verify_aws --local --out /tmp/dry-run

    Runs a speed job, a quality job and three short probe jobs, one after the other, in about half
    an hour. Shows each assumption beside what was observed, and writes the record to two files to
    commit. Asks before it spends, and removes what it created, also after Ctrl-C. With --local it
    is a dry run on the embedded cloud.

    Exit code 0 nothing differs, 1 something differs, or failure.
    """
    providers = (ctx.find_object(Session) or Session()).providers
    if local:
        opened = _embedded(providers)
    else:
        name = project.stage_name(stage)
        opened = open_stage(providers, name, deploy=deploy, yes=yes, as_json=as_json)
    with opened as cloud:
        prepared = _prepare(
            providers, cloud, SMALLEST_CPU if cpu else SMALLEST_GPU, max_usd=max_usd
        )
        if not cloud.is_local:
            _ask(prepared, yes=yes, as_json=as_json)
        record = _verify(prepared, simulated=cloud.is_local)
        folder = out or (None if cloud.is_local else RECORDS)
    if as_json:
        emit_json(record.document())
    else:
        show(record.rows)
    if folder is not None:  # shown before: it was paid for, and the disk may be full
        files = record.save(folder)
        if not as_json:
            typer.echo(f"Written to {' and '.join(map(str, files))}.")
    raise typer.Exit(DIFFERS if any(row.differs for row in record.rows) else 0)


@contextmanager
def _embedded(providers: Providers) -> Iterator[Cloud]:
    with providers.started_local(keep=False) as started:
        yield started.cloud


def _prepare(providers: Providers, cloud: Cloud, instance_type: str, *, max_usd: float) -> Prepared:
    """A verification whose instance type has a quota and that costs at most ``max_usd``."""
    region = cloud.services.settings.region
    prepared = prepare_verification(
        lambda service: providers.client(service, region), cloud.services, instance_type,
        trial=trial_id(time.time_ns() // 1_000_000), poll_seconds=cloud.poll_seconds,
    )  # fmt: skip
    if prepared.verification.quota == 0:
        raise EnvironmentNotReadyError(
            f"This account may run no training job on {instance_type} in {region} (quota 0)",
            fix="use --cpu, or request one instance under Service Quotas, Amazon SageMaker.",
        )
    if not prepared.usd <= max_usd:  # also where it is not a number
        raise InvalidInputError(
            f"is less than the {money(prepared.usd)} that the jobs can cost on {instance_type}",
            field="--max-usd", value=max_usd, fix="raise it, or use --cpu",
        )  # fmt: skip
    return prepared


def _ask(prepared: Prepared, *, yes: bool, as_json: bool) -> None:
    count = len(prepared.verification.jobs)
    confirm(
        [f"{count} training jobs on {prepared.instance_type} in {prepared.region}, one after the "
         f"other. They cost at most {money(prepared.usd)}: each has a time limit. Queue, rules, "
         "schedule and state machines of the temporary stack cost less than a cent."],
        yes=yes, as_json=as_json,
    )  # fmt: skip


def _verify(prepared: Prepared, *, simulated: bool) -> Record:
    """Run it and clean up, however it ends."""
    progress = console(stderr=True)
    verification = prepared.verification
    verification.say = progress.print
    try:
        observed = verification.run()
    finally:
        progress.print("Cleaning up …")
        for remainder in verification.clean_up():
            progress.print(f"  could not be removed, remove it by hand: {remainder}")
    circumstances = {
        "date": datetime.now(UTC).date().isoformat(),
        "cloud": "embedded cloud, a dry run" if simulated else "AWS",
        "region": prepared.region,
        "instance_type": prepared.instance_type,
        "image": prepared.image.rpartition("/")[2],  # without the registry's account
        "compilegate": __version__,
    }
    return Record(circumstances, compare(load_assumptions(), observed, simulated=simulated))


def show(rows: Sequence[Row]) -> None:
    """A table, then each row that differs in full."""
    cells = [(row.id, row.assumed, row.seen, str(row.agreement)) for row in rows]
    columns = ("assumption", "assumed", "seen", "agrees")
    say_table(columns, cells, whole=(0,))
    for row in rows:
        if row.differs:
            say(f"{row.id}: {row.behaviour}. Seen: {row.detail or row.seen}", hang=2)


@contextmanager
def open_stage(
    providers: Providers, stage: str, *, deploy: bool, yes: bool, as_json: bool
) -> Iterator[Cloud]:
    """The stage's cloud. With ``deploy`` a stage that is missing exists for the block only."""
    try:
        cloud = providers.aws(stage)
    except NoStackError:  # a stack in any other state is not ours to deploy and destroy
        if not deploy:
            raise
    else:
        yield cloud
        return
    _check_deployable(stage)
    confirm(
        [f"{stack_name(stage)} is not deployed. It is deployed now and destroyed at the end; its "
         "data bucket, ledger and key stay."], yes=yes, as_json=as_json,
    )  # fmt: skip
    try:
        _make("deploy")
        yield providers.aws(stage)
    finally:
        _make("destroy")


def _check_deployable(stage: str) -> None:
    """Refuse a stage that ``make`` would not deploy: it would update and destroy another."""
    by_make = project.deployment(PROJECT)
    if stage != by_make.stage:
        raise InvalidInputError(
            "cannot be deployed from here: cdk.json names another stage", field="--stage",
            value=stage, fix="deploy it beforehand, or leave --deploy out",
        )  # fmt: skip
    if project.region() != by_make.region:
        raise InvalidInputError(
            f"cannot be deployed to: cdk.json names {by_make.region}", field="AWS_REGION",
            value=project.region(), fix=f"unset it to use {by_make.region}, or change cdk.json",
        )  # fmt: skip


def _make(target: str) -> None:
    # Standard output is the command's own: with --json one document.
    ended = subprocess.run(  # noqa: S603 - fixed words
        ["make", target, "YES=1"], cwd=PROJECT, check=False, stdout=sys.stderr  # noqa: S607
    )  # fmt: skip
    if ended.returncode:
        raise EnvironmentNotReadyError(f"make {target} failed", fix="see its output above.")


if __name__ == "__main__":
    main(app, NAME)
