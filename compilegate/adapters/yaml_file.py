"""Reads the YAML document of a file; says what a file is that holds none."""

from __future__ import annotations

from pathlib import Path

import yaml

from compilegate.adapters.yaml_document import YamlDocument
from compilegate.domain.errors import InvalidInputError
from compilegate.place import PROJECT

SCRIPT, NOTEBOOK = ".py", ".ipynb"
EXAMPLE = PROJECT / "workloads" / "article-bert.yaml"
# Thousands of past results fit; no text in a file this size takes long to read.
MOST_BYTES = 256 * 1024


def load_yaml(path: Path) -> object:
    """The file's document. Raises InvalidInputError for what is not one YAML document."""
    return read_yaml(path).value


def read_yaml(path: Path) -> YamlDocument:
    """As ``load_yaml``, with where everything stands."""
    text = _text(path)
    try:
        return YamlDocument(text)
    except yaml.YAMLError as error:
        raise _not_yaml(error, text) from error


def _text(path: Path) -> str:
    if path.suffix == NOTEBOOK and path.is_file():
        raise InvalidInputError(
            "is a notebook, not a workload file",
            fix=f"convert it first: `jupyter nbconvert --to script {path}`; then `compilegate "
            "init` writes the script's workload file",
        )
    if path.suffix == SCRIPT and path.is_file():
        raise InvalidInputError(
            "is a script, not a workload file",
            fix=f"`compilegate init {path}` writes its workload file; "
            f"`compilegate doctor {path}` examines the script",
        )
    if not path.is_file():
        raise InvalidInputError(
            _no_file(path),
            fix=f"name a workload file, such as {_example()}, or write one from a training "
            "script: `compilegate init train.py`",
        )
    try:
        with path.open("rb") as file:
            data = file.read(MOST_BYTES + 1)
        text = data.decode("utf-8-sig")
    except (UnicodeDecodeError, OSError) as error:
        raise InvalidInputError(
            f"cannot be read as UTF-8 text: {error}", fix="save it as UTF-8"
        ) from error
    if len(data) > MOST_BYTES:
        limit = f"{MOST_BYTES // 1024} KiB"
        raise InvalidInputError(f"is larger than {limit}: not a workload file", fix="shorten it")
    return text


def _no_file(path: Path) -> str:
    if path.is_dir():
        return "is a folder"
    return "is not a plain file" if path.exists() else "does not exist"


def _example() -> Path:
    """A file that is there, in a checkout as in an installed package."""
    here = Path.cwd()
    return EXAMPLE.relative_to(here) if EXAMPLE.is_relative_to(here) else EXAMPLE


def _not_yaml(error: yaml.YAMLError, text: str) -> InvalidInputError:
    mark = getattr(error, "problem_mark", None)
    problem = str(getattr(error, "problem", None) or error).split("\n", maxsplit=1)[0]
    if mark is None:
        return InvalidInputError(f"is not YAML: {problem}", fix="write it as `key: value` lines")
    lines = text.splitlines()
    content = lines[mark.line].strip() if mark.line < len(lines) else ""
    return InvalidInputError(
        f"is not YAML: {problem}",
        field=f"line {mark.line + 1}, column {mark.column + 1}",
        value=content,
        fix="correct the line, or the one above it; tabs cannot indent, "
        "and text with `: ` or `#` needs quotes",
    )
