"""What CONTRIBUTING.md says of the code itself holds."""

from __future__ import annotations

import ast
import io
import re
import tokenize
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

from tests.docs.test_docs import ROOT, TRACKED

FILES = [name for name in TRACKED if name.endswith(".py") and (ROOT / name).exists()]
PRODUCT = [name for name in FILES if "tests" not in name.split("/")]
LINES_OF_A_FILE = 500
LINES_OF_A_FUNCTION = 50
FILE_NAME = re.compile(r"[\w/.-]*\w\.py\b")
# Files of other projects that comments cite.
ELSEWHERE = {"_entry_point_type.py", "pytorch_xla.py", "run_glue.py", "training.py"}
# What joins a problem and its fix into one text: each in one place. Whoever else has those letters
# writes around that, or searches a text for them.
JOINS_FIX = {
    "compilegate/cli/common/output.py",
    "compilegate/domain/errors.py", "compilegate/domain/reasons.py",
    "compilegate/flags/__init__.py", "compilegate/flags/document.py",
    "distributions/doctor/compilegate_doctor/sarif.py",
    "distributions/doctor/compilegate_doctor/script.py",
    "distributions/localcloud/compilegate_localcloud/emulator/sagemaker/runner.py",
    "distributions/localcloud/compilegate_localcloud/errors.py",
}  # fmt: skip
DOCUMENTED = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)


def written(lines: list[str]) -> int:
    return sum(bool(line.strip()) for line in lines)


def body(function: ast.FunctionDef | ast.AsyncFunctionDef, lines: list[str]) -> int:
    """Lines below the signature and the docstring."""
    statements = function.body[ast.get_docstring(function) is not None :]
    return written(lines[statements[0].lineno - 1 : function.end_lineno]) if statements else 0


def comments(source: str) -> Iterator[str]:
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT:
            yield token.string


@dataclass
class Taken:
    """What the tests ask of a module of the product, so that each is taken apart once."""

    too_long: list[str] = field(default_factory=list)  # functions
    docstrings: list[str] = field(default_factory=list)
    has_fix: bool = False


@cache
def taken_apart(name: str) -> Taken:
    source = (ROOT / name).read_text()
    lines, taken = source.splitlines(), Taken()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, DOCUMENTED):
            taken.docstrings.append(ast.get_docstring(node) or "")
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            if body(node, lines) > LINES_OF_A_FUNCTION:
                taken.too_long.append(node.name)
        elif isinstance(node, ast.Constant):
            taken.has_fix |= "Fix:" in str(node.value)
    return taken


def is_there(name: str) -> bool:
    return any(file == name or file.endswith("/" + name) for file in FILES)


def test_no_file_and_no_function_is_longer_than_contributing_says():
    too_long = []
    for name in FILES:
        if written((ROOT / name).read_text().splitlines()) > LINES_OF_A_FILE:
            too_long.append(name)
        if name in PRODUCT:
            too_long += [f"{name}: {function}" for function in taken_apart(name).too_long]
    said = " ".join((ROOT / "CONTRIBUTING.md").read_text().split())

    assert [] == too_long
    assert (
        f"Files up to {LINES_OF_A_FILE} lines with one reason to change, "
        f"function bodies outside of tests up to {LINES_OF_A_FUNCTION}" in said
    )


def test_a_fix_is_given_as_one_and_never_searched_in_a_text():
    has_it = {
        name
        for name in PRODUCT
        if name.startswith(("compilegate/", "distributions/", "lambdas/", "stacks/"))
        if taken_apart(name).has_fix
    }

    assert JOINS_FIX == has_it


def test_every_file_that_an_explanation_names_exists():
    missing = {
        f"{name}: {file}"
        for name in PRODUCT
        for source in [(ROOT / name).read_text()]
        if FILE_NAME.search(source)  # most name none, and need not be taken apart
        for text in (*comments(source), *taken_apart(name).docstrings)
        for file in FILE_NAME.findall(text)
        if Path(file).name not in ELSEWHERE and not is_there(file)
    }

    assert set() == missing
