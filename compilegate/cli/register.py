"""``compilegate register``: define what production trains, and when."""

from __future__ import annotations

import sys
from collections import Counter, deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import asdict, dataclass
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Annotated, Any

import typer

from compilegate.adapters.stores import CONNECTIONS
from compilegate.adapters.workload_files import Packages, WorkloadFile, read_workload
from compilegate.adapters.yaml_document import load_yaml
from compilegate.cli.check import find_files, is_folder, notes_on, read_files
from compilegate.cli.common.cloud import Cloud, check_registered
from compilegate.cli.common.error_handling import error_fields, exit_code, explain, worst_exit_code
from compilegate.cli.common.output import error_text, progress, show
from compilegate.cli.common.session import Invocation, on_cloud
from compilegate.domain.codec import write
from compilegate.domain.errors import InvalidInputError
from compilegate.domain.fields import Fields
from compilegate.domain.notes import said
from compilegate.domain.production.registration import UNCHANGED
from compilegate.domain.records.flags import HUMAN
from compilegate.domain.workload.file import parse_name
from compilegate.usecases import registration
from compilegate.usecases.drain_mark import refuse_if_drained
from compilegate.usecases.production.begin_run import check_trainable
from compilegate.usecases.registration import (
    RegisterOptions,
    RegistrationOutcome,
    RegistrationRequest,
)

# A workload that changes makes twelve calls of 20 ms or more, one or two of them to EventBridge
# Scheduler: some 130 a second from all workers together, below its lowest quota of 250. Throttled
# calls are retried.
WORKERS = CONNECTIONS
# With more workloads than this, unchanged ones are only counted.
MOST_LINES = 20
WORDS = {
    "new": "new", "updated": "updated", "revived": "registered again", "retired": "retired",
    "completed": "completed an interrupted registration", "repaired": "repaired",
    "unchanged": "unchanged", "failed": "failed",
}  # fmt: skip


@on_cloud
def register(
    invocation: Invocation,
    targets: Annotated[
        list[Path],
        typer.Argument(
            metavar="FILE_OR_FOLDER",
            help="Workload files (YAML), or folders of them; with --remove also workload names.",
        ),
    ],
    *,
    remove: Annotated[
        bool,
        typer.Option("--remove", help="Retire: no more runs; history, flag and evidence stay."),
    ] = False,
    take_over: Annotated[
        bool, typer.Option("--take-over", help="Replace a workload that another owner registered.")
    ] = False,
    repair: Annotated[
        bool, typer.Option("--repair", help="Upload missing files and recreate the schedule.")
    ] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Show what would change, and change nothing.")
    ] = False,
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
    files: dict[str, WorkloadFile] = {}
    wrong: list[Result] = []
    names = names_to_retire(targets) if remove else []
    paths = [] if remove else find_files(targets)
    for path, read in progress(read_files(paths), len(paths), "Checking", above=MOST_LINES):
        if isinstance(read, InvalidInputError):
            wrong.append(Result(str(path), None, read))
        else:
            files[str(path)] = read
    count = len(files) + len(names)

    def act() -> Iterator[Result]:
        if not count:
            return
        cloud = invocation.open_cloud()
        options = RegisterOptions(f"{HUMAN}{cloud.who()}", take_over, repair, dry_run)
        if files and not dry_run:
            refuse_if_drained(cloud.services)  # it would enable schedules
        yield from retire_workloads(names, cloud, options)
        yield from register_files([*files.values()], cloud, options)

    results: list[Result] = []
    for result in chain(wrong, progress(act(), count, "Registering", above=MOST_LINES)):
        results.append(result)
        few = len(wrong) + count <= MOST_LINES
        if not invocation.as_json and (few or result.what != UNCHANGED):
            _show(result, files.get(result.subject), local=invocation.local)
    counts = Counter(result.what for result in results)
    invocation.answer(
        {"workloads": [result.to_dict() for result in results], "counts": dict(counts)},
        "register",
        parts=[f"{counts[what]} {WORDS[what]}" for what in WORDS if counts.get(what)],
        end=" Dry run: nothing was changed." if dry_run else "",
    )
    raise typer.Exit(worst_exit_code([result.exit_code for result in results]))


@dataclass(frozen=True)
class Result:
    """One workload's outcome: its registration, or the error.

    ``subject`` is its file or, when it is retired, its name.
    """

    subject: str
    registered: RegistrationOutcome | None
    error: Exception | None = None

    @property
    def exit_code(self) -> int:
        """The command's exit code, if there were no other workload."""
        return exit_code(self.error) if self.error else 0

    @property
    def what(self) -> str:
        """What was done, in one word."""
        return self.registered.what if self.registered else "failed"

    def to_dict(self) -> dict[str, Any]:
        """For programs."""
        registered = self.registered
        if not registered:
            error = error_fields(self.error) if self.error else {}
            return {"subject": self.subject, "what": self.what, "error": error}
        return {
            "subject": self.subject,
            "what": self.what,
            "workload": registered.registration.workload,
            "changes": [asdict(change) for change in registered.changes],
            "uploaded": registered.uploaded,
            "replaces": registered.replaces,
            "still_on": registered.still_on,
            "registration": write(registered.registration),
        }


def _show(result: Result, file: WorkloadFile | None, *, local: bool) -> None:
    """One workload's line; a failure goes to standard error."""
    if result.error:
        message = str(explain(result.error))
        if result.subject not in message:
            message = f"{result.subject}: {message}"
        sys.stderr.write(f"{error_text(message)}\n")
    else:
        # Remarks about the job matter to the runs to come, where they change.
        notes = said(notes_on(file), "production") if file and result.what != UNCHANGED else []
        option = " --local" if local else ""
        show("register_one", result.to_dict(), words=WORDS, notes=notes, local=option)
    sys.stdout.flush()


def register_files(
    files: Sequence[WorkloadFile], cloud: Cloud, options: RegisterOptions
) -> Iterator[Result]:
    """Register each file, in their order."""
    packages = Packages()

    def act(file: WorkloadFile) -> RegistrationOutcome:
        def verify(spec: Mapping[str, Any]) -> None:
            # Its S3 inputs, for the lines by reading the file again, and its training image.
            read_workload(file.path, store=cloud.services.store)
            check_trainable(spec, cloud.services)

        try:
            request = RegistrationRequest(packages.pack(file), file.origin, verify)
            return registration.register(
                request,
                services=cloud.services,
                schedules=cloud.production.schedules,
                options=options,
            )
        except InvalidInputError as error:
            raise error.in_file(error.file or str(file.path)) from error

    return _each([(str(file.path), partial(act, file)) for file in files])


def retire_workloads(
    names: Sequence[str], cloud: Cloud, options: RegisterOptions
) -> Iterator[Result]:
    """Retire each workload, in their order."""

    def act(name: str) -> RegistrationOutcome:
        check_registered(name, cloud, field="--remove")
        return registration.retire(
            name, services=cloud.services, schedules=cloud.production.schedules, options=options
        )

    return _each([(name, partial(act, name)) for name in names])


def _each(actions: Sequence[tuple[str, Callable[[], RegistrationOutcome]]]) -> Iterator[Result]:
    """Act on several at once; results come in order, and few are held at a time."""
    waiting: deque[tuple[str, Future[RegistrationOutcome]]] = deque()
    left = deque(actions)
    pool = ThreadPoolExecutor(WORKERS, thread_name_prefix="register")
    try:
        while left or waiting:
            while left and len(waiting) <= 2 * WORKERS:
                subject, act = left.popleft()
                waiting.append((subject, pool.submit(act)))
            subject, future = waiting.popleft()
            try:
                result = Result(subject, future.result())
            except Exception as error:  # noqa: BLE001 - the others continue in any case
                result = Result(subject, None, error)
            yield result
    finally:
        pool.shutdown(cancel_futures=True)


def names_to_retire(arguments: Sequence[Path]) -> list[str]:
    """The workload names that arguments are or that their files have; files need only a name.

    Raises InvalidInputError for what is neither.
    """
    names: list[str] = []
    for argument in arguments:
        if is_folder(argument) or argument.is_file():
            for file in find_files([argument]):
                try:
                    names.append(parse_name(Fields(load_yaml(file))))
                except InvalidInputError as error:
                    raise error.in_file(str(file)) from error
            continue
        try:
            names.append(parse_name(Fields({"name": str(argument)})))
        except InvalidInputError as error:
            raise InvalidInputError(
                "is neither a workload's name nor an existing file", field="--remove",
                value=str(argument), fix="use the name that it is registered under",
            ) from error  # fmt: skip
    return list(dict.fromkeys(names))
