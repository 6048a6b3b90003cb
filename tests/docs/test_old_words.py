"""Old words, and words that fit anything, name nothing."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache

from tools.docs.folders import ROOT

CODE = (
    "compilegate", "distributions/checkup/compilegate_checkup",
    "distributions/doctor/compilegate_doctor",
    "distributions/exports/compilegate_exports", "distributions/facts/compilegate_facts",
    "distributions/init/compilegate_init", "distributions/judge/compilegate_judge",
    "distributions/local/compilegate_local",
    "distributions/localcloud/compilegate_localcloud",
    "distributions/operating/compilegate_operating",
    "distributions/statement/compilegate_statement", "lambdas", "stacks", "tools", "training",
)  # fmt: skip
OLD = frozenset(
    ("carried", "doors", "nights", "patience", "promised", "rulers", "settle", "settled", "story",
     "surroundings", "tale", "teller", "tiles", "told", "toll", "unsettled", "untold")
)  # fmt: skip
PHRASES = ("take_in", "easier_proof", "count_down", "no_result")
# Words that fit anything, as whole names; `known_fields` says what it is.
EMPTY = frozenset(("found", "given", "known", "wanted"))
# The same, but for a variable of a loop or a lambda.
SAYS_NOTHING = frozenset(("again", "one", "past", "this"))
# Recorded results name a digest of the code that they are of, its names included.
OF_THE_JUDGE = "compilegate/domain/judging/"
OF_THE_CHECK = "training/compilegate_runtime/equivalence/"
QUOTED = re.compile(r"`([^`\n]+)`")


def test_code_names_nothing_by_an_old_word():
    assert {name: file for name, file in _code().names if _is_old(name)} == {}
    assert dict(_old_texts()) == {}


def test_code_calls_nothing_by_a_word_that_fits_anything():
    assert {
        name: file
        for name, file in _code().names
        if name.strip("_").lower() in EMPTY and not file.startswith(OF_THE_JUDGE)
    } == {}


def test_no_function_class_parameter_or_field_is_called_by_a_word_that_says_nothing():
    assert {
        name: file
        for name, file in _code().declared
        if name in SAYS_NOTHING and not file.startswith(OF_THE_CHECK)
    } == {}


def _is_old(name: str) -> bool:
    words = re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name).lower()
    return bool(OLD & set(re.split(r"[^a-z]+", words))) or any(one in words for one in PHRASES)


def _old_texts() -> Iterator[tuple[str, str]]:
    """Each contract name with an old word, and a file that has it."""
    for text, file in _code().texts:
        yield from _short([text], file)
    for page in sorted((ROOT / "docs").rglob("*.md")):
        quoted = QUOTED.findall(page.read_text("utf-8"))
        yield from _short((word for text in quoted for word in text.split()), page.name)


def _short(texts: Iterable[str], file: str) -> Iterator[tuple[str, str]]:
    """The last part of each path or key that has an old word."""
    names = (re.split(r"[/#]", text)[-1].strip("-.") for text in texts)
    return ((name, file) for name in names if _is_old(name))


@dataclass(frozen=True)
class _Code:
    """Each name, declaration and text without a space that code has, with each file that has it."""

    names: set[tuple[str, str]]
    declared: set[tuple[str, str]]
    texts: set[tuple[str, str]]


@cache
def _code() -> _Code:
    code = _Code(set(), set(), set())
    for folder in CODE:
        for path in sorted((ROOT / folder).rglob("*.py")):
            file = str(path.relative_to(ROOT))
            for node in ast.walk(ast.parse(path.read_text("utf-8"))):
                code.names.update((name, file) for name in _names(node))
                code.declared.update((name, file) for name in _declared(node))
                if isinstance(node, ast.Constant) and " " not in str(node.value):
                    code.texts.add((str(node.value), file))
    return code


def _names(node: ast.AST) -> Iterator[str]:
    for field in ("id", "arg", "attr", "name"):
        if isinstance(name := getattr(node, field, None), str):
            yield name


def _declared(node: ast.AST) -> Iterator[str]:
    """The function or class that a node declares, its parameters or fields."""
    if isinstance(node, ast.ClassDef):
        yield node.name
        yield from (name for field in node.body if isinstance(field, ast.AnnAssign)
                    for name in _names(field.target))  # fmt: skip
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
        yield node.name
        yield from (each.arg for each in ast.walk(node.args) if isinstance(each, ast.arg))
