"""``compilegate register``: define what production trains, and when."""

from __future__ import annotations

import sys
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import asdict, dataclass
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Annotated, Any, TypeVar

import typer

from compilegate.adapters.bundle import Packages
from compilegate.adapters.stores import CONNECTIONS
from compilegate.adapters.workload_files import WorkloadFile, read_workload
from compilegate.adapters.yaml_file import load_yaml
from compilegate.cli.check import find_files, is_folder, read_files
from compilegate.cli.common.cloud import Cloud, check_registered
from compilegate.cli.common.error_handling import error_fields, exit_code, explain, worst_exit_code
from compilegate.cli.common.output import error_text, progress
from compilegate.cli.common.own_compiling import notes_on
from compilegate.cli.common.session import Invocation, on_cloud
from compilegate.cli.common.template import show
from compilegate.domain.codec import write
from compilegate.domain.errors import InvalidInputError
from compilegate.domain.fields import Fields
from compilegate.domain.notes import said
from compilegate.domain.production.registering import UNCHANGED
from compilegate.domain.records.flags import HUMAN
from compilegate.domain.workload.file import parse_name
from compilegate.usecases import registration
from compilegate.usecases.drain_mark import refuse_if_drained
from compilegate.usecases.production.build_request import check_trainable
from compilegate.usecases.registration import (
    RegisterOptions,
    RegistrationOutcome,
    RegistrationRequest,
)

# Registers or retires many workloads at once; one that fails does not stop the others.

# A workload that changes makes twelve calls of 20 ms or more, one or two of them to EventBridge
# Scheduler: some 130 a second from all workers together, below its lowest quota of 250. Throttled
# calls are retried.
WORKERS = CONNECTIONS
Item = TypeVar("Item")


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
        return 0 if self.error is None else exit_code(self.error)

    @property
    def what(self) -> str:
        """What was done, in one word."""
        return "failed" if self.registered is None else self.registered.what

    def to_dict(self) -> dict[str, Any]:
        """For programs."""
        if self.registered is None:
            error = {"problem": ""} if self.error is None else error_fields(self.error)
            return {"subject": self.subject, "what": self.what, "error": error}
        registered = self.registered
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


def register_files(
    files: Sequence[WorkloadFile], cloud: Cloud, options: RegisterOptions
) -> Iterator[Result]:
    """Register each file, in their order."""
    schedules, packages = cloud.production.schedules, Packages()

    def one(file: WorkloadFile) -> RegistrationOutcome:
        try:
            packed = packages.pack(file)
            request = RegistrationRequest(
                packed, file.origin, lambda spec: _verify(file, spec, cloud)
            )
            return registration.register(
                request, services=cloud.services, schedules=schedules, options=options
            )
        except InvalidInputError as error:
            raise error.in_file(error.file or str(file.path)) from error

    return _each(files, one, lambda file: str(file.path))


def retire_workloads(
    names: Sequence[str], cloud: Cloud, options: RegisterOptions
) -> Iterator[Result]:
    """Retire each workload, in their order."""
    schedules = cloud.production.schedules

    def one(name: str) -> RegistrationOutcome:
        check_registered(name, cloud, field="--remove")
        return registration.retire(
            name, services=cloud.services, schedules=schedules, options=options
        )

    return _each(names, one, str)


def names_to_retire(arguments: Sequence[Path]) -> list[str]:
    """The workload names that arguments are or that their files have; files need only a name.

    Raises InvalidInputError for what is neither.
    """
    names: list[str] = []
    for one in arguments:
        if is_folder(one) or one.is_file():
            names += [_name_in(file) for file in find_files([one])]
        else:
            names.append(_as_name(str(one)))
    return list(dict.fromkeys(names))


def _as_name(argument: str) -> str:
    try:
        return parse_name(Fields({"name": argument}))
    except InvalidInputError as error:
        raise InvalidInputError(
            "is neither a workload's name nor an existing file",
            field="--remove", value=argument, fix="use the name that it is registered under",
        ) from error  # fmt: skip


def _name_in(file: Path) -> str:
    try:
        return parse_name(Fields(load_yaml(file)))
    except InvalidInputError as error:
        raise error.in_file(str(file)) from error


def _verify(file: WorkloadFile, spec: Mapping[str, Any], cloud: Cloud) -> None:
    """Check its S3 inputs, for the lines by reading the file again, and its training image."""
    read_workload(file.path, store=cloud.services.store)
    check_trainable(spec, cloud.services)


def _each(
    items: Iterable[Item],
    act: Callable[[Item], RegistrationOutcome],
    subject: Callable[[Item], str],
) -> Iterator[Result]:
    """Act on several at once; results come in order, and few are held at a time."""
    waiting: deque[tuple[Item, Future[RegistrationOutcome]]] = deque()
    pool = ThreadPoolExecutor(WORKERS, thread_name_prefix="register")

    def result() -> Result:
        item, future = waiting.popleft()
        try:
            return Result(subject(item), future.result())
        except Exception as error:  # noqa: BLE001 - the others continue in any case
            return Result(subject(item), None, error)

    try:
        for item in items:
            waiting.append((item, pool.submit(act, item)))
            if len(waiting) > 2 * WORKERS:
                yield result()
        while waiting:
            yield result()
    finally:
        pool.shutdown(cancel_futures=True)


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
