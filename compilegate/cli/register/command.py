"""``compilegate register``: define what production trains, and when."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Annotated

import typer

from compilegate.adapters.workload_files import WorkloadFile
from compilegate.cli.check.files import find_files, read_files
from compilegate.cli.common.cloud import Cloud
from compilegate.cli.common.error_handling import explain, worst_exit_code
from compilegate.cli.common.output import error_text, progress
from compilegate.cli.common.own_compiling import notes_on
from compilegate.cli.common.session import (
    Invocation,
    on_cloud,
)
from compilegate.cli.common.template import show
from compilegate.cli.register.many import (
    Result,
    names_to_retire,
    register_files,
    retire_workloads,
)
from compilegate.domain.errors import InvalidInputError
from compilegate.domain.notes import said
from compilegate.domain.production.registering import UNCHANGED
from compilegate.domain.records.flags import HUMAN
from compilegate.usecases.drain_mark import refuse_if_drained
from compilegate.usecases.registration import RegisterOptions

# With more workloads than this, unchanged ones are only counted.
MOST_LINES = 20

TargetsArgument = Annotated[
    list[Path],
    typer.Argument(
        metavar="FILE_OR_FOLDER",
        help="Workload files (YAML), or folders of them; with --remove also workload names.",
    ),
]
RemoveOption = Annotated[
    bool, typer.Option("--remove", help="Retire: no more runs; history, flag and evidence stay.")
]
TakeOverOption = Annotated[
    bool, typer.Option("--take-over", help="Replace a workload that another owner registered.")
]
AgainOption = Annotated[
    bool, typer.Option("--again", help="Upload missing files and recreate the schedule.")
]
DryRunOption = Annotated[
    bool, typer.Option("--dry-run", help="Show what would change, and change nothing.")
]
WORDS = {
    "new": "new", "updated": "updated", "revived": "registered again", "retired": "retired",
    "completed": "completed an interrupted registration", "set_again": "recreated",
    "unchanged": "unchanged", "failed": "failed",
}  # fmt: skip
# At most this many changed fields are named; the JSON document names all.
MOST_NAMED = 6
# Longer values are not shown.
LONGEST_VALUE = 40


@on_cloud
def register(
    invocation: Invocation,
    targets: TargetsArgument,
    *,
    remove: RemoveOption = False,
    take_over: TakeOverOption = False,
    again: AgainOption = False,
    dry_run: DryRunOption = False,
) -> None:
    """Register workloads for production, on their schedules.

    Checks every file before anything is uploaded. Then uploads each workload's source and local
    inputs, creates, changes or removes its schedule, and records the change in the ledger.
    Repeating it changes nothing and completes an interrupted registration.

    \b
    compilegate register workloads/article-bert.yaml
    compilegate register workloads/ --dry-run
    compilegate register ~/teams --stage prod --json
    compilegate register --remove article-bert

    schedule.cron is in schedule.timezone, by default UTC. A workload without a schedule is
    started with `compilegate train NAME`.

    Exit code 0 all registered, 2 a file is invalid or its name belongs to another owner, 1 failure.
    A workload that fails does not stop the others; rerun the command for it.
    """
    files, wrong = ([], []) if remove else _read(targets)
    names = names_to_retire(targets) if remove else []
    options = partial(RegisterOptions, take_over=take_over, again=again, dry_run=dry_run)
    count = len(files) + len(names)
    acting = _act(files, names, invocation.open_cloud, options)
    acted = progress(acting, count, "Registering", above=MOST_LINES)
    results: list[Result] = []
    by_path = {str(file.path): file for file in files}
    for result in chain(wrong, acted):
        results.append(result)
        if not invocation.as_json:
            _show(
                result,
                by_path.get(result.subject),
                also_unchanged=len(wrong) + count <= MOST_LINES,
                local=invocation.local,
            )
    counts = Counter(result.what for result in results)
    invocation.answer(
        {"workloads": [result.to_dict() for result in results], "counts": dict(counts)},
        "register",
        parts=[f"{counts[what]} {WORDS[what]}" for what in WORDS if counts.get(what)],
        end=" Dry run: nothing was changed." if dry_run else "",
    )
    raise typer.Exit(worst_exit_code([result.exit_code for result in results]))


def _read(targets: Sequence[Path]) -> tuple[list[WorkloadFile], list[Result]]:
    """The valid files, and the errors of the others."""
    files, wrong = [], []
    paths = find_files(targets)
    for path, outcome in progress(read_files(paths), len(paths), "Checking", above=MOST_LINES):
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
    """Act on each workload; the cloud is opened only where there is one."""
    if not files and not names:
        return
    cloud = open_it()
    by = options(f"{HUMAN}{cloud.who()}")
    if files and not by.dry_run:
        refuse_if_drained(cloud.services)  # it would enable schedules
    yield from retire_workloads(names, cloud, by) if names else register_files(files, cloud, by)


def _show(result: Result, file: WorkloadFile | None, *, also_unchanged: bool, local: bool) -> None:
    """One workload's line; a failure goes to standard error."""
    if result.registered is None:
        message = explain(result.error) if result.error else "failed"
        if result.subject not in message:
            message = f"{result.subject}: {message}"
        sys.stderr.write(f"{error_text(message)}\n")
    elif also_unchanged or result.what != UNCHANGED:
        # Remarks about the job matter to the runs to come, where they change.
        changed = file if result.what != UNCHANGED else None
        show(
            "register_one", result.to_dict(),
            words=WORDS, most_named=MOST_NAMED, longest=LONGEST_VALUE,
            notes=said(notes_on(changed), "production") if changed else [],
            local=" --local" if local else "",
        )  # fmt: skip
    sys.stdout.flush()
