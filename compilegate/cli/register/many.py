"""Registers or retires many workloads at once; one that fails does not stop the others."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, TypeVar

from compilegate.adapters.bundle import Packages
from compilegate.adapters.stores import CONNECTIONS
from compilegate.adapters.workload_files import WorkloadFile, read_workload
from compilegate.adapters.yaml_file import load_yaml
from compilegate.cli.check.files import find_files, is_folder
from compilegate.cli.common.cloud import Cloud, check_registered
from compilegate.cli.common.error_handling import error_fields, exit_code
from compilegate.domain.errors import InvalidInputError
from compilegate.domain.fields import Fields
from compilegate.domain.workload.file import parse_name
from compilegate.usecases.production.build_request import check_trainable
from compilegate.usecases.registration import (
    RegisterOptions,
    RegistrationOutcome,
    RegistrationRequest,
    register,
    retire,
)

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
            "registration": registered.registration.to_dict(),
        }


def register_files(
    files: Sequence[WorkloadFile], cloud: Cloud, options: RegisterOptions
) -> Iterator[Result]:
    """Register each file, in their order."""
    schedules, packages = cloud.with_production().schedules, Packages()

    def one(file: WorkloadFile) -> RegistrationOutcome:
        try:
            packed = packages.pack(file)
            request = RegistrationRequest(
                packed, file.origin, lambda spec: _verify(file, spec, cloud)
            )
            return register(request, services=cloud.services, schedules=schedules, options=options)
        except InvalidInputError as error:
            raise error.in_file(error.file or str(file.path)) from error

    return _each(files, one, lambda file: str(file.path))


def retire_workloads(
    names: Sequence[str], cloud: Cloud, options: RegisterOptions
) -> Iterator[Result]:
    """Retire each workload, in their order."""
    schedules = cloud.with_production().schedules

    def one(name: str) -> RegistrationOutcome:
        check_registered(name, cloud, field="--remove")
        return retire(name, services=cloud.services, schedules=schedules, options=options)

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
