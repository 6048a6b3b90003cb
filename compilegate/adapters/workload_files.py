"""Reads workload files from disk, and packs what their jobs need.

What is wrong with a file is said before anything starts.

Relative paths in a workload file start from its project folder: the file's own folder or the
one above it, whichever holds ``training.source_dir``.
"""

from __future__ import annotations

import difflib
import gzip
import hashlib
import io
import os
import re
import sys
import tarfile
import threading
import zoneinfo
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cache, lru_cache, partial
from pathlib import Path
from typing import Any, BinaryIO

from compilegate.adapters.yaml_document import YamlDocument, read_yaml
from compilegate.domain.errors import EnvironmentNotReadyError, InvalidInputError, together
from compilegate.domain.expected import Reading
from compilegate.domain.naming import LAUNCHER, RUNTIME_PACKAGE
from compilegate.domain.workload.limits import check_script_arguments
from compilegate.domain.workload.model import Workload
from compilegate.domain.workload.schedule_expression import UTC
from compilegate.place import INSTALLED, PROJECT
from compilegate.ports import ObjectStore
from compilegate.usecases.records import read_document
from compilegate.usecases.registration import InputFile, Package

# Files on this machine that are whole or as they were before, also where the disk is full.


def write_whole(path: Path, body: bytes) -> None:
    """Write a file; raises EnvironmentNotReadyError where that fails, the old one then stays."""
    fresh = None
    try:
        if path.exists() and not path.is_file():  # a device or a pipe cannot be replaced
            path.write_bytes(body)
            return
        place = path.resolve()  # what a link names, not the link
        fresh = place.with_name(f".{place.name}.{os.getpid()}")
        place.parent.mkdir(parents=True, exist_ok=True)
        fresh.write_bytes(body)
        fresh.replace(place)
    except BrokenPipeError:
        raise
    except OSError as error:
        with suppress(OSError):
            if fresh:
                fresh.unlink()
        raise unwritten(str(path), error) from error


def unwritten(what: str, error: OSError) -> EnvironmentNotReadyError:
    """That something could not be written, and what helps."""
    return EnvironmentNotReadyError(
        f"{what} could not be written: {error.strerror or error}",
        fix="free space on its disk or make its folder writable, then rerun the command",
    )


# Data on this disk; that of the shipped workloads is written by a script of theirs.

SCRIPT = Path("training") / "prepare_data.py"
FOLDER = Path("workloads") / "data"
# What the script writes below FOLDER.
SETS = ("docstrings", "table", "pictures")
COPY = "compilegate-examples"
PYTHON = Path(".venv-training") / "bin" / "python"


def preparing_command(place: Path, project: Path) -> str | None:
    """The shell command that writes the missing ``place``; None where no script of ours does."""
    made = any(place.is_relative_to(project / FOLDER / name) for name in SETS)
    if not made or not (project / SCRIPT).is_file():
        return None
    if INSTALLED:  # never into the package
        steps = [f"cp -r {project} {COPY}", f"cd {COPY}"] if project == PROJECT else []
        return " && ".join([*steps, f"{sys.executable} {SCRIPT} {FOLDER}"])
    steps = [] if project == Path.cwd() else [f"cd {project}"]
    if not (project / PYTHON).exists():
        steps.append("make setup")
    return " && ".join([*steps, f"{PYTHON} {SCRIPT} {FOLDER}"])


def read_input(channel: str, location: str, project: Path) -> Path:
    """A file or folder of the project; data may lie elsewhere behind a link that the team set."""
    field = f"training.inputs.{channel}"
    place = project / location
    if not place.exists():
        command = preparing_command(place, project)
        fix = f"write the data with `{command}`" if command else "create it, or write an s3:// URI"
        raise InvalidInputError(
            f"does not exist; looked at {place}", field=field, value=location, fix=fix
        )
    if place.is_dir() and not any(path.is_file() for path in place.rglob("*")):
        raise InvalidInputError(
            "is an empty folder", field=field, value=location, fix="put the data in it"
        )
    return place


# Reads on where a section of a workload document is wrong, to say what else is.

# In place of wrong sections: sound in every document, whatever its other sections say. Files,
# inputs and candidates are what `training` says; nothing stands in for it.
STAND_INS: Mapping[str, Any] = {
    "schema": 1,
    "name": "any",
    "framework": {"name": "pytorch", "version": "2.4"},
    "model": {"family": "transformer", "name": "any"},
    "shapes": {"static": True},
    "schedule": {"runs_per_week": 1, "run_hours": 1e-9},
    "quality": {"metric": "any", "goal": "maximize", "margin": 1},
}
# Candidates differ from a framework, so without it nothing is said of them.
_TOGETHER = {"framework": "candidates"}
_INNER = re.compile(r"[.\[]")


def errors_elsewhere(
    document: object,
    errors: Sequence[InvalidInputError],
    examine: Callable[[Workload], object],
) -> list[InvalidInputError]:
    """What is wrong in the sections of a document that none of ``errors`` is in.

    ``examine`` raises InvalidInputError for what is wrong with a workload outside its document.
    """
    behind: list[InvalidInputError] = []
    wrong = _sections(errors)
    while isinstance(document, Mapping):
        sound = {key: value for key, value in document.items() if str(key) not in wrong}
        stand_ins = {key: value for key, value in STAND_INS.items() if key in wrong}
        try:
            examine(read_document(sound | stand_ins))
        except InvalidInputError as error:
            fresh = [one for one in error.each if not _sections([one]) & wrong]
        else:
            fresh = []
        if not fresh:
            break
        behind += fresh
        wrong |= _sections(fresh)
    return behind


def _sections(errors: Sequence[InvalidInputError]) -> set[str]:
    named = {_INNER.split(one.field)[0] for one in errors}
    return named | {_TOGETHER[name] for name in named if name in _TOGETHER}


S3 = "s3://"
# What `compilegate init` writes where it could not read a value.
TO_DO = "TODO"
PACKAGE_FILE = "setup.py"


@dataclass(frozen=True)
class WorkloadFile:
    """A checked workload file; ``local_inputs`` are the channels that are on this disk."""

    path: Path
    workload: Workload
    source_dir: Path
    local_inputs: Mapping[str, Path]

    @property
    def origin(self) -> str:
        """The file from its project folder: the same wherever the project is checked out."""
        path, named = self.path.resolve(), self.workload.training.source_dir
        project = next(one for one in path.parents if one / named == self.source_dir)
        return path.relative_to(project).as_posix()


def read_workload(
    path: Path,
    *,
    store: ObjectStore | None = None,
    needs_inputs: bool = True,
    needs_prepared: bool = True,
    elsewhere: Collection[str] = (),
) -> WorkloadFile:
    """Read and check one file; S3 inputs are checked where there is a store.

    Without ``needs_inputs`` only the code has to be there, not the data; without
    ``needs_prepared`` data may be missing that the project's own script writes. Channels named in
    ``elsewhere`` are not looked at.
    Raises InvalidInputError with every error found: file, line, field, value and fix.
    """
    document = None

    def checked(workload: Workload) -> WorkloadFile:
        if not needs_inputs:
            workload = replace(workload, training=replace(workload.training, inputs={}))
        return _checked(path, workload, store, needs_prepared=needs_prepared, elsewhere=elsewhere)

    try:
        document = read_yaml(path)
        still_open = {field: _still_open(field, document) for field in _to_do(document.value, "")}
        try:
            workload = read_document(document.value)
            Reading([*still_open.values()]).end()
        except InvalidInputError as error:
            own = [one for one in error.each if one.field not in still_open]
            every = [*still_open.values(), *own]
            elsewhere_ = errors_elsewhere(document.value, every, checked)
            raise together([*every, *elsewhere_]) from error
        return checked(workload)
    except InvalidInputError as error:
        raise together([_placed(one, path, document) for one in error.each]) from error
    except (OSError, RuntimeError) as error:  # names too long, links in a circle, no permission
        raise InvalidInputError(
            f"contains a path that cannot be read: {error}",
            file=str(path), fix="correct its paths, or the permissions",
        ) from error  # fmt: skip


def _placed(
    error: InvalidInputError, path: Path, document: YamlDocument | None
) -> InvalidInputError:
    """The error with its file, and its line and value as they are written there."""
    place = document.place(error.field) if document else None
    if not place:
        return error.in_file(str(path))
    # Values other than text, such as 2.10, are shown as they are written.
    written = None if isinstance(error.value, str) else place.written
    return error.in_file(str(path), line=place.line, written=written)


def _to_do(value: object, path: str) -> Iterator[str]:
    """The dotted paths of values that ``compilegate init`` has left open."""
    if value == TO_DO:
        yield path
    elif isinstance(value, dict):
        for key, item in value.items():
            yield from _to_do(item, f"{path}.{key}" if path else str(key))
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield from _to_do(item, f"{path}[{index}]")


def _still_open(field: str, document: YamlDocument) -> InvalidInputError:
    comment = document.comment(field)
    fix = f"replace TODO: {comment}" if comment else "replace TODO by its value"
    return InvalidInputError("is still to be written", field=field, value=TO_DO, fix=fix)


def _checked(
    path: Path,
    workload: Workload,
    store: ObjectStore | None,
    *,
    needs_prepared: bool,
    elsewhere: Collection[str],
) -> WorkloadFile:
    project = _project(workload, path)
    source_dir = project / workload.training.source_dir
    reading, local = Reading(), {}
    with reading.noting():
        # The toolkit decides by this one file (sagemaker-training, ``_entry_point_type.py``).
        if (source_dir / PACKAGE_FILE).is_file():
            raise InvalidInputError(
                f"has {PACKAGE_FILE} at its root: SageMaker's container toolkit would install the "
                "folder as a package and start a module of it instead of the entry point",
                field="training.source_dir",
                value=workload.training.source_dir,
                fix=f"name a folder without {PACKAGE_FILE}, and list what it installs in "
                "requirements.txt there",
            )
    for start in _starts(workload, source_dir):
        with reading.noting():
            for field, script in start.items():
                _check_script(script, field, source_dir)
    with reading.noting():
        check_script_arguments(workload)
    with reading.noting():
        _check_timezone(workload.schedule.timezone)
    for channel, location in workload.training.inputs.items():
        if channel in elsewhere:
            continue
        with reading.noting():
            if not location.startswith(S3):
                later = not needs_prepared and preparing_command(project / location, project)
                if not later or (project / location).exists():
                    local[channel] = read_input(channel, location, project)
            elif store and not store.exists(location):
                raise InvalidInputError(
                    "does not exist, or these credentials may not list it",
                    field=f"training.inputs.{channel}", value=location,
                    fix="correct the URI, or upload the data first",
                )  # fmt: skip
    reading.end()
    return WorkloadFile(path, workload, source_dir, local)


@cache
def _timezones() -> frozenset[str]:
    return frozenset(zoneinfo.available_timezones())  # reads hundreds of files


def _check_timezone(zone: str) -> None:
    """Whether this machine knows the zone; one without a list of zones leaves it to AWS."""
    if zone != UTC and _timezones() and zone not in _timezones():
        close = difflib.get_close_matches(zone, _timezones())
        raise InvalidInputError(
            "is not a time zone",
            field="schedule.timezone",
            value=zone,
            fix=f"write {close[0] if close else 'a name such as Europe/Berlin'}",
        )


def _project(workload: Workload, path: Path) -> Path:
    source_dir = workload.training.source_dir
    folders = path.resolve().parents[:2]
    for folder in folders:
        if (folder / source_dir).is_dir():
            if not (folder / source_dir).resolve().is_relative_to(folder):
                raise InvalidInputError(
                    f"is a link to a place outside the project {folder}",
                    field="training.source_dir", value=source_dir,
                    fix="copy what it points to into the project",
                )  # fmt: skip
            return folder
    looked = " and ".join(str(folder / source_dir) for folder in folders)
    raise InvalidInputError(
        f"does not exist as a folder; looked at {looked}",
        field="training.source_dir",
        value=source_dir,
        fix="create it, or name the folder that holds the entry point",
    )


def _starts(workload: Workload, source_dir: Path) -> Iterator[dict[str, str]]:
    """The scripts that each start names, by field.

    Under the launcher, which every bundle has, the script that it runs.
    """
    training = workload.training
    starts: list[tuple[str, str, Mapping[str, object]]] = [
        ("training", training.entry_point, training.hyperparameters)
    ]
    for index, candidate in enumerate(workload.candidates):
        if candidate.entry_point is not None:
            values = {**training.hyperparameters, **candidate.hyperparameters}
            starts.append((f"candidates[{index}]", candidate.entry_point, values))
    for place, entry_point, start in starts:
        scripts = {f"{place}.entry_point": entry_point}
        if entry_point == LAUNCHER:
            own = scripts if (source_dir / LAUNCHER).is_file() else {}
            scripts = {**own, f"{place}.hyperparameters.script": str(start.get("script", ""))}
        yield scripts


def _check_script(name: str, field: str, source_dir: Path) -> None:
    script = (source_dir / name).resolve()
    if not script.is_relative_to(source_dir.resolve()):
        problem = "lies outside the source folder"
    elif not script.is_file():
        problem = f"is not in the source folder {source_dir}"
    elif script.suffix != ".py":
        problem = "is not a Python file"
    else:
        return
    scripts = sorted(path.name for path in source_dir.glob("*.py"))
    listing = f": {', '.join(scripts)}" if scripts else ", which has none at its root"
    raise InvalidInputError(
        problem,
        field=field,
        value=name,
        fix=f"name a Python file of the source folder{listing}",
    )


# The source bundle of a workload: the same files make the same bytes on every machine.

RUNTIME = PROJECT / "training" / RUNTIME_PACKAGE
SKIPPED_FOLDERS = ("__pycache__", "compilegate-reports")
SKIPPED_SUFFIXES = (".pyc", ".pyo")
# A file with all of these keys is a workload file. To change it does not change the code.
OF_A_WORKLOAD = {"schema", "framework", "training", "schedule", "quality"}
_TOP_KEY = re.compile(rb"^(\w+):", re.MULTILINE)
DIGEST_LENGTH = 12


@dataclass(frozen=True)
class Bundle:
    """A ``sourcedir.tar.gz``; ``digest`` is of its contents, before compression.

    ``code_digest`` is of the team's own part of it: a newer recorder does not change their code.
    """

    body: bytes
    digest: str
    code_digest: str
    names: tuple[str, ...]


def make_bundle(source_dir: Path, *, runtime: Path = RUNTIME) -> Bundle:
    """The source folder at the root, with recorder and launcher unless they are in there.

    Raises EnvironmentNotReadyError when the recorder is not where it is installed, and
    InvalidInputError for a link to what lies outside the folder, which would be uploaded too.
    """
    files = {name: path for name, path in files_under(source_dir).items() if not _is_workload(path)}
    inside = source_dir.resolve()
    for name, path in files.items():
        if not path.resolve().is_relative_to(inside):
            raise InvalidInputError(
                f"contains a link to a file outside it: {name}",
                field="training.source_dir",
                value=str(source_dir),
                fix="copy the file into the folder, or remove the link",
            )
    recorder = f"{RUNTIME_PACKAGE}/"
    own = {name: path for name, path in files.items() if not name.startswith(recorder)}
    if len(own) == len(files):
        if not runtime.is_dir():
            raise EnvironmentNotReadyError(
                f"{runtime} is missing",
                fix=f"install Compilegate again, or copy {RUNTIME_PACKAGE}/ into {source_dir}.",
            )
        files |= {f"{RUNTIME_PACKAGE}/{name}": path for name, path in files_under(runtime).items()}
        launcher = runtime.parent / LAUNCHER
        if launcher.is_file():
            files.setdefault(LAUNCHER, launcher)
    plain = _tar(files)
    return Bundle(
        body=gzip.compress(plain, mtime=0),
        digest=_digest(plain),
        code_digest=_digest(_tar(own)),
        names=tuple(sorted(files)),
    )


def _digest(plain: bytes) -> str:
    """Of what is not compressed: compression differs between zlib builds."""
    return hashlib.sha256(plain).hexdigest()[:DIGEST_LENGTH]


def _is_workload(path: Path) -> bool:
    if path.suffix not in (".yaml", ".yml"):
        return False
    return {key.decode() for key in _TOP_KEY.findall(path.read_bytes())} >= OF_A_WORKLOAD


def files_under(folder: Path) -> dict[str, Path]:
    """Relative name to path of every file but hidden ones, compiled Python and saved reports."""
    files = {}
    for path in sorted(folder.rglob("*")):
        parts = path.relative_to(folder).parts
        skipped = any(part.startswith(".") or part in SKIPPED_FOLDERS for part in parts)
        if not skipped and path.suffix not in SKIPPED_SUFFIXES and path.is_file():
            files["/".join(parts)] = path
    return files


def _tar(files: Mapping[str, Path]) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w", format=tarfile.USTAR_FORMAT) as archive:
        for name in sorted(files):
            body = files[name].read_bytes()
            entry = tarfile.TarInfo(name)  # mtime, uid and gid are 0 unless set
            entry.size = len(body)
            entry.mode = 0o755 if files[name].stat().st_mode & 0o100 else 0o644
            archive.addfile(entry, io.BytesIO(body))
    return buffer.getvalue()


# Workloads of one team share a source folder; so many folders' bundles are kept.
KEPT = 4


class Packages:
    """Packs workload files; bundles of a source folder are made once. Safe for threads.

    The folders must not change as long as one of these is used.
    """

    def __init__(self) -> None:
        self._bundle = lru_cache(KEPT)(make_bundle)
        self._lock = threading.Lock()

    def pack(self, file: WorkloadFile) -> Package:
        """The file's package; raises as ``make_bundle``."""
        source_dir = file.source_dir.resolve()
        with self._lock:
            bundle = self._bundle(source_dir)
        return Package(
            workload=file.workload,
            source=bundle.body,
            source_digest=bundle.digest,
            inputs={channel: _input_files(place) for channel, place in file.local_inputs.items()},
            code_digest=bundle.code_digest,
        )


def package(file: WorkloadFile) -> Package:
    """What has to be uploaded for one workload file."""
    return Packages().pack(file)


def _input_files(place: Path) -> tuple[InputFile, ...]:
    """The files of a channel, each opened when it is read: it need not fit into memory."""
    files = files_under(place) if place.is_dir() else {place.name: place}
    rows = []
    for name, path in sorted(files.items()):
        with path.open("rb") as file:
            digest = hashlib.file_digest(file, "sha256").hexdigest()
        rows.append(InputFile(name, digest, partial(_opened, path)))
    return tuple(rows)


def _opened(path: Path) -> BinaryIO:
    return path.open("rb")
