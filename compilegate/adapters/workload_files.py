"""Reads workload files from disk; what is wrong with one is said before anything starts.

Relative paths in a workload file start from its project folder: the file's own folder or the
one above it, whichever holds ``training.source_dir``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from compilegate.domain.errors import InvalidInputError
from compilegate.domain.workload import Workload
from compilegate.domain.workload_file import parse_workload
from compilegate.ports import ObjectStore

S3 = "s3://"


@dataclass(frozen=True)
class WorkloadFile:
    """A checked workload file; ``local_inputs`` are the channels that are on this disk."""

    path: Path
    workload: Workload
    source_dir: Path
    local_inputs: Mapping[str, Path]


def read_workload(path: Path, *, store: ObjectStore | None = None) -> WorkloadFile:
    """Read and check one file; S3 inputs are looked for when a store is given.

    Raises InvalidInputError naming file, field, value and fix.
    """
    try:
        workload = parse_workload(load_yaml(path))
        project = _project(workload, path)
        source_dir = project / workload.training.source_dir
        _check_entry_point(workload, source_dir)
        inputs = workload.training.inputs
        local = {
            channel: _local_input(channel, given, project)
            for channel, given in inputs.items()
            if not given.startswith(S3)
        }
        if store is not None:
            _check_s3_inputs(inputs, store)
    except InvalidInputError as error:
        raise error.in_file(str(path)) from error
    return WorkloadFile(path, workload, source_dir, local)


def load_yaml(path: Path) -> object:
    """The file's document. Raises InvalidInputError for what is not one YAML document."""
    if not path.is_file():
        raise InvalidInputError(
            "is a folder" if path.is_dir() else "does not exist",
            fix="name a workload file, such as workloads/bert-docs.yaml",
        )
    try:
        text = path.read_text(encoding="utf-8")
    except (UnicodeDecodeError, OSError) as error:
        raise InvalidInputError(
            f"cannot be read as UTF-8 text: {error}", fix="save it as UTF-8"
        ) from error
    try:
        # The loader is a SafeLoader that also refuses a key given twice.
        return yaml.load(text, Loader=_OneValuePerKey)  # noqa: S506
    except RecursionError as error:
        raise InvalidInputError("is not YAML: nested too deeply", fix="write it flat") from error
    except yaml.YAMLError as error:
        raise _not_yaml(error, text) from error
    except ValueError as error:
        # A date that is none, or a number of thousands of digits.
        problem = f"holds a value that cannot be read: {error}"
        raise InvalidInputError(problem, fix="put it in quotes or correct it") from error


class _OneValuePerKey(yaml.SafeLoader):
    """YAML's safe loader keeps the last of two equal keys; here that is an error."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        seen = set()
        for key_node, _ in node.value:
            key = key_node.value if isinstance(key_node, yaml.ScalarNode) else None
            if key is not None and key != "<<" and key in seen:
                raise InvalidInputError(
                    f"is given twice, the second time on line {key_node.start_mark.line + 1}",
                    field=str(key),
                    fix="keep one of the two",
                )
            seen.add(key)
        return super().construct_mapping(node, deep=deep)


def _not_yaml(error: yaml.YAMLError, text: str) -> InvalidInputError:
    mark = getattr(error, "problem_mark", None)
    problem = str(getattr(error, "problem", None) or error).split("\n", maxsplit=1)[0]
    if mark is None:
        return InvalidInputError(f"is not YAML: {problem}", fix="write it as `key: value` lines")
    lines = text.splitlines()
    found = lines[mark.line].strip() if mark.line < len(lines) else ""
    return InvalidInputError(
        f"is not YAML: {problem}",
        field=f"line {mark.line + 1}, column {mark.column + 1}",
        value=found,
        fix="correct the line, or the one above it; tabs cannot indent, "
        "and text with `: ` or `#` needs quotes",
    )


def _project(workload: Workload, path: Path) -> Path:
    given = workload.training.source_dir
    folders = path.resolve().parents[:2]
    if Path(given).is_absolute() or ".." in Path(given).parts:
        raise InvalidInputError(
            "must be a folder inside the project",
            field="training.source_dir",
            value=given,
            fix="write it relative to the workload file's folder or the one above it",
        )
    for folder in folders:
        if (folder / given).is_dir():
            return folder
    looked = " and ".join(str(folder / given) for folder in folders)
    raise InvalidInputError(
        f"does not exist as a folder; looked at {looked}",
        field="training.source_dir",
        value=given,
        fix="create it, or name the folder that holds the entry point",
    )


def _check_entry_point(workload: Workload, source_dir: Path) -> None:
    given = workload.training.entry_point
    entry = (source_dir / given).resolve()
    if not entry.is_relative_to(source_dir.resolve()):
        problem = "lies outside the source folder"
    elif not entry.is_file():
        problem = f"is not in the source folder {source_dir}"
    elif entry.suffix != ".py":
        problem = "is not a Python file"
    else:
        return
    scripts = sorted(path.name for path in source_dir.glob("*.py"))
    known = f": {', '.join(scripts)}" if scripts else ", which has none at its root"
    raise InvalidInputError(
        problem,
        field="training.entry_point",
        value=given,
        fix=f"name a Python file of the source folder{known}",
    )


def _local_input(channel: str, given: str, project: Path) -> Path:
    field = f"training.inputs.{channel}"
    if "://" in given:
        raise InvalidInputError(
            "is neither an S3 URI nor a path", field=field, value=given, fix="write s3://bucket/key"
        )
    place = project / given
    if not place.exists():
        raise InvalidInputError(
            f"does not exist; looked at {place}",
            field=field,
            value=given,
            fix="create it, or write an s3:// URI",
        )
    if place.is_dir() and not any(path.is_file() for path in place.rglob("*")):
        raise InvalidInputError(
            "is an empty folder", field=field, value=given, fix="put the data in it"
        )
    return place


def _check_s3_inputs(inputs: Mapping[str, str], store: ObjectStore) -> None:
    for channel, given in inputs.items():
        if given.startswith(S3) and not store.exists(given):
            raise InvalidInputError(
                "does not exist, or these credentials may not list it",
                field=f"training.inputs.{channel}",
                value=given,
                fix="correct the URI, or upload the data first",
            )
