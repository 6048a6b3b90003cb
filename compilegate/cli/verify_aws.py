"""``compilegate verify-aws``: check on an account what the project assumes of AWS."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.table import Table

from compilegate import __version__
from compilegate.cli import project
from compilegate.cli.cloud import Cloud
from compilegate.cli.confirm import YesOption, confirm
from compilegate.cli.doors import Doors
from compilegate.cli.options import JsonOption, LocalOption, StageOption
from compilegate.cli.output import console, emit_json, say, say_line
from compilegate.cli.shell import session
from compilegate.domain.errors import EnvironmentNotReadyError, InvalidInputError, NoStackError
from compilegate.domain.naming import stack_name, trial_id

if TYPE_CHECKING:
    from compilegate.verify.prepare import Prepared
    from compilegate.verify.record import Row

PAGE, DOCUMENT = "verified-on-aws.md", "verified-on-aws.json"
SMALLEST_GPU, SMALLEST_CPU = "ml.g4dn.xlarge", "ml.m5.xlarge"
RECORDS = Path("docs")
DIFFERS = 1


def verify_aws(
    ctx: typer.Context,
    *,
    cpu: Annotated[
        bool, typer.Option("--cpu", help=f"Use {SMALLEST_CPU} instead of {SMALLEST_GPU}.")
    ] = False,
    max_usd: Annotated[
        float, typer.Option("--max-usd", help="Do not start if the jobs could cost more.")
    ] = 5.0,
    out: Annotated[
        Path | None,
        typer.Option(
            "--out", help="Folder of the record: docs, or none with --local.", file_okay=False
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
    """Check on your AWS account what Compilegate assumes of AWS.

    \b
    compilegate verify-aws
    compilegate verify-aws --cpu --max-usd 1
    compilegate verify-aws --local --out /tmp/dry-run

    Runs a speed job, a quality job and three short probe jobs, one after the other in about
    half an hour. Shows what is assumed beside what was seen, and writes it to two files to be
    committed. Asks before it spends, and removes what it created, also after Ctrl-C.
    With --local it is a dry run on the embedded cloud.

    Exit code 0 nothing differs, 1 something differs, or failure.
    """
    doors, chosen = session(ctx).doors, project.stage_name(stage)
    kind = SMALLEST_CPU if cpu else SMALLEST_GPU
    with _opened(doors, chosen, local=local, deploy=deploy, yes=yes, as_json=as_json) as cloud:
        prepared = _prepare(doors, cloud, kind, max_usd=max_usd)
        if not cloud.is_local:
            _ask(prepared, yes=yes, as_json=as_json)
        rows = _verify(prepared, simulated=cloud.is_local)
        record = _record(rows, prepared, simulated=cloud.is_local)
        folder = out or (None if cloud.is_local else RECORDS)
        if folder is not None:
            _write(rows, record, folder)
    if as_json:
        emit_json(record)
    else:
        _show(rows)
        if folder is not None:
            say_line(f"Written to {folder / PAGE} and {folder / DOCUMENT}.")
    raise typer.Exit(DIFFERS if any(row.agreement == "differs" for row in rows) else 0)


@contextmanager
def _opened(
    doors: Doors, stage: str, *, local: bool, deploy: bool, yes: bool, as_json: bool
) -> Iterator[Cloud]:
    if local:
        with doors.started_local(keep=False) as started:
            yield started.cloud
        return
    with _deployed(doors, stage, deploy=deploy, yes=yes, as_json=as_json):
        yield doors.aws(stage)


def _deployed(
    doors: Doors, stage: str, *, deploy: bool, yes: bool, as_json: bool
) -> AbstractContextManager[None]:
    """Makes sure that the stage is there; one that was deployed here is destroyed again."""

    @contextmanager
    def for_now(*, here: bool) -> Iterator[None]:
        try:
            if here:
                _make("deploy")
            yield
        finally:
            if here:
                _make("destroy")

    try:
        doors.aws(stage)
    except NoStackError:  # one that is there in any state is not ours to deploy and destroy
        if not deploy:
            raise
        _check_deployable(stage)
        name = stack_name(stage)
        text = (f"{name} is not deployed. It is deployed now and destroyed at the end; its data "
                "bucket, ledger and key stay.")  # fmt: skip
        confirm([text], yes=yes, as_json=as_json)
        return for_now(here=True)
    return for_now(here=False)


def _check_deployable(stage: str) -> None:
    """Refuses a stage that ``make`` would not deploy: it would update and destroy another."""
    by_make = project.deployed_by_make()
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
    done = subprocess.run(  # noqa: S603 - fixed words
        ["make", target, "YES=1"], cwd=project.REPOSITORY, check=False, stdout=sys.stderr  # noqa: S607
    )  # fmt: skip
    if done.returncode:
        raise EnvironmentNotReadyError(f"make {target} failed. Fix: see its output above.")


def _prepare(doors: Doors, cloud: Cloud, instance_type: str, *, max_usd: float) -> Prepared:
    """A verification that may start: its type has a quota, and it fits ``max_usd``."""
    from compilegate.verify.prepare import prepare_verification  # noqa: PLC0415 - boto3 is slow

    region = cloud.services.settings.region
    prepared = prepare_verification(
        lambda service: doors.client(service, region), cloud.services, instance_type,
        trial=trial_id(time.time_ns() // 1_000_000), poll_seconds=cloud.poll_seconds,
    )  # fmt: skip
    if prepared.verification.quota == 0:
        raise EnvironmentNotReadyError(
            f"This account may run no training job on {instance_type} in {region} (quota 0). Fix: "
            "use --cpu, or ask for one instance under Service Quotas, Amazon SageMaker."
        )
    if not prepared.usd <= max_usd:  # also where it is not a number
        raise InvalidInputError(
            f"is less than the ${prepared.usd:.2f} that the jobs can cost on {instance_type}",
            field="--max-usd", value=max_usd, fix="allow more, or use --cpu",
        )  # fmt: skip
    return prepared


def _ask(prepared: Prepared, *, yes: bool, as_json: bool) -> None:
    count = len(prepared.verification.jobs)
    confirm(
        [f"{count} training jobs on {prepared.instance_type} in {prepared.region}, one after the "
         f"other. They cost at most ${prepared.usd:.2f}: each has a time limit. Queue, rules, "
         "schedule and state machines of the temporary stack cost less than a cent."],
        yes=yes, as_json=as_json,
    )  # fmt: skip


def _verify(prepared: Prepared, *, simulated: bool) -> tuple[Row, ...]:
    """Run it and clean up, however it ends."""
    from compilegate.verify.assumptions import load_assumptions  # noqa: PLC0415 - as above
    from compilegate.verify.record import compare  # noqa: PLC0415

    progress = console(stderr=True)
    verification = prepared.verification
    verification.say = progress.print
    try:
        observed = verification.run()
    finally:
        progress.print("Cleaning up …")
        left = verification.clean_up()
        for what in left:
            progress.print(f"  could not be removed, please remove it yourself: {what}")
    return compare(load_assumptions(), observed, simulated=simulated)


def _record(rows: Sequence[Row], prepared: Prepared, *, simulated: bool) -> dict[str, Any]:
    from compilegate.verify.record import document  # noqa: PLC0415 - as above

    circumstances = {
        "date": datetime.now(UTC).date().isoformat(),
        "cloud": "embedded cloud, a dry run" if simulated else "AWS",
        "region": prepared.region,
        "instance_type": prepared.instance_type,
        "image": prepared.image.rpartition("/")[2],  # without the registry's account
        "compilegate": __version__,
    }
    return document(rows, circumstances)


def _write(rows: Sequence[Row], record: Mapping[str, Any], folder: Path) -> None:
    from compilegate.verify.record import page  # noqa: PLC0415 - as above

    folder.mkdir(parents=True, exist_ok=True)
    (folder / DOCUMENT).write_text(json.dumps(record, indent=2) + "\n", encoding="utf-8")
    (folder / PAGE).write_text(page(rows, record), encoding="utf-8")


def _show(rows: Sequence[Row]) -> None:
    table = Table(box=None, pad_edge=False)
    table.add_column("assumption", no_wrap=True)
    table.add_column("assumed", overflow="fold")
    table.add_column("seen", overflow="fold")
    table.add_column("agrees")
    for row in rows:
        table.add_row(row.id, row.assumed, row.seen, str(row.agreement))
    console().print(table)
    for row in rows:
        if row.agreement == "differs":
            say(f"{row.id}: {row.behaviour}. Seen: {row.detail or row.seen}", hang=2)
