"""``compilegate register``: tell production what to train, and when."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Annotated, TypeVar

import typer

from compilegate.adapters.workload_files import WorkloadFile
from compilegate.cli.check.files import find_files, read_files
from compilegate.cli.common import project
from compilegate.cli.common.cloud import Cloud
from compilegate.cli.common.error_handling import session
from compilegate.cli.common.options import JsonOption, LocalOption, StageOption
from compilegate.cli.common.outcome import worst_exit_code
from compilegate.cli.common.output import console, emit_json, say
from compilegate.cli.common.providers import open_cloud
from compilegate.cli.register.many import (
    Result,
    names_to_retire,
    register_files,
    retire_workloads,
)
from compilegate.cli.register.screen import document, show, summary
from compilegate.domain.errors import InvalidInputError
from compilegate.domain.records.flags import HUMAN
from compilegate.usecases.operations.drain_mark import refuse_if_drained
from compilegate.usecases.registration.register import RegisterOptions

# Of more, those that are as they were are only counted.
MOST_LINES = 20
Item = TypeVar("Item")

TargetsArgument = Annotated[
    list[Path],
    typer.Argument(
        metavar="FILE_OR_FOLDER",
        help="Workload files (YAML), or folders of them; with --remove also workload names.",
    ),
]
RemoveOption = Annotated[
    bool, typer.Option("--remove", help="Retire: no more runs; history, flag, evidence stay.")
]
TakeOverOption = Annotated[
    bool, typer.Option("--take-over", help="Replace a workload that another owner registered.")
]
AgainOption = Annotated[
    bool, typer.Option("--again", help="Upload what is missing and set the schedule anew.")
]
DryRunOption = Annotated[
    bool, typer.Option("--dry-run", help="Say what would change, and change nothing.")
]


def register(
    ctx: typer.Context,
    targets: TargetsArgument,
    *,
    remove: RemoveOption = False,
    take_over: TakeOverOption = False,
    again: AgainOption = False,
    dry_run: DryRunOption = False,
    local: LocalOption = False,
    stage: StageOption = None,
    as_json: JsonOption = False,
) -> None:
    """Let production train workloads, from these files and on their schedules.

    Every file is checked before anything is uploaded. Then each workload's source and local
    inputs are uploaded, its schedule is created, changed or removed, and the ledger says what
    changed. Doing it again changes nothing, and completes what an interrupted one had begun.

    \b
    compilegate register workloads/article-bert.yaml
    compilegate register workloads/ --dry-run
    compilegate register ~/teams --stage prod --json
    compilegate register --remove article-bert

    schedule.cron is read in schedule.timezone, UTC where there is none; without a cron the team
    starts its runs: `compilegate train NAME`.

    Exit code 0 all registered, 2 a file is wrong or its name another owner's, 1 failure. One
    workload that fails does not stop the others; run it again for those.
    """
    files, wrong = ([], []) if remove else _read(targets)
    names = names_to_retire(targets) if remove else []
    options = partial(RegisterOptions, take_over=take_over, again=again, dry_run=dry_run)

    def cloud() -> Cloud:
        return open_cloud(session(ctx).providers, local=local, stage=project.stage_name(stage))

    total = len(wrong) + len(files) + len(names)
    results, counts, codes = [], Counter[str](), set[int]()
    acted = _followed(_act(files, names, cloud, options), len(files) + len(names), "Registering")
    for result in chain(wrong, acted):
        counts[result.what] += 1
        codes.add(result.exit_code)
        if as_json:
            results.append(result)
        else:
            show(result, also_unchanged=total <= MOST_LINES, local=local)
    if as_json:
        emit_json(document(results, counts))
    else:
        say(summary(counts, dry_run=dry_run))
    raise typer.Exit(worst_exit_code(list(codes)))


def _read(targets: Sequence[Path]) -> tuple[list[WorkloadFile], list[Result]]:
    """The files that are sound, and what is wrong with the others."""
    files, wrong = [], []
    paths = find_files(targets)
    for path, outcome in _followed(read_files(paths), len(paths), "Checking"):
        if isinstance(outcome, InvalidInputError):
            wrong.append(Result(str(path), None, outcome))
        else:
            files.append(outcome)
    return files, wrong


def _act(
    files: Sequence[WorkloadFile],
    names: Sequence[str],
    open_it: Callable[[], Cloud],
    options: Callable[[str], RegisterOptions],
) -> Iterator[Result]:
    """Nothing to do needs no cloud, and what is wrong with files is said before there is one."""
    if not files and not names:
        return
    cloud = open_it()
    by = options(f"{HUMAN}{cloud.who()}")
    if files and not by.dry_run:
        refuse_if_drained(cloud.services)  # it would enable schedules
    yield from retire_workloads(names, cloud, by) if names else register_files(files, cloud, by)


def _followed(items: Iterator[Item], total: int, doing: str) -> Iterator[Item]:
    """The same, with a bar on a terminal that waits for many."""
    if total <= MOST_LINES or not sys.stderr.isatty():
        yield from items
        return
    from rich.progress import Progress  # noqa: PLC0415 - only where somebody watches

    with Progress(
        console=console(stderr=True), transient=True, redirect_stdout=sys.stdout.isatty()
    ) as bar:
        yield from bar.track(items, total=total, description=doing)
