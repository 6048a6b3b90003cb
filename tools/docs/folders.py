"""Which folders import which, read from the code."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
ROW = re.compile(r"^\| `(?P<folder>[\w./]+)` \| (?P<content>.*) \| .* \|$", re.MULTILINE)
# The table of steps names its use cases by text.
BY_NAME = re.compile(r"compilegate\.(\w+)\.")


def with_imports(page: str) -> str:
    """The table of folders with what each imports."""
    folders = [row["folder"].removesuffix(".py") for row in ROW.finditer(page)]

    def line(row: re.Match[str]) -> str:
        imported = _imported(row["folder"]) - {row["folder"].removesuffix(".py")}
        names = [folder.rpartition("/")[2] for folder in folders if folder in imported]
        return f"| `{row['folder']}` | {row['content']} | {', '.join(names) or '—'} |"

    return ROW.sub(line, page)


def _imported(folder: str) -> set[str]:
    place = ROOT / folder
    files = [place] if place.is_file() else sorted(place.rglob("*.py"))
    files = [file for file in files if "tests" not in file.relative_to(ROOT).parts]
    return {_folder(module) for file in files for module in _modules(file)}


def _folder(module: str) -> str:
    """Where the code of a module lies, as a row names it."""
    first, *others = module.split(".")
    own, _, distribution = first.partition("_")
    if own == "compilegate" and distribution:
        return f"distributions/{distribution}"
    return "/".join([first, *others[:1]]) if own == first == "compilegate" else first


def _modules(file: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(file.read_text("utf-8"))):
        if isinstance(node, ast.Import):
            yield from (name.name for name in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module == "compilegate":
            yield from (f"compilegate.{name.name}" for name in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module
        elif isinstance(node, ast.Constant) and BY_NAME.fullmatch(str(node.value)):
            yield str(node.value)
