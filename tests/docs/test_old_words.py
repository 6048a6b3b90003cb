"""Old words live on only in names that other programs rely on; the contracts list those."""

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
    "distributions/localcloud/compilegate_localcloud", "lambdas", "stacks", "training",
)  # fmt: skip
CONTRACTS = ROOT / "docs" / "contracts.md"
OLD = frozenset(
    ("carried", "doors", "nights", "patience", "promised", "rulers", "settle", "settled", "story",
     "surroundings", "tale", "teller", "tiles", "told", "toll", "unsettled", "untold")
)  # fmt: skip
PHRASES = ("take_in", "easier_proof", "count_down", "no_result")
# Words that fit anything, as whole names; `known_fields` says what it is.
EMPTY = frozenset(("found", "given", "known", "told", "wanted"))
# Part of the judge, whose recorded digest covers its names.
OF_THE_JUDGE = "compilegate/domain/judging/"
# Fields of records that are called what their JSON key is.
FIELDS = {"carried", "settled"}
SECTION = re.compile(r"## Names that keep an old word\n(.*?)(?=\n## |\Z)", re.DOTALL)
QUOTED = re.compile(r"`([^`\n]+)`")


def test_an_old_word_is_recognised_in_every_form() -> None:
    old = ["story", "story_key", "SettleRunErrors", "TALE", "take_in_round", "reports/x/story.html"]

    assert old == [name for name in [*old, "history", "history_key", "tolerance"] if _is_old(name)]


def test_code_names_nothing_by_an_old_word_but_the_fields_of_records() -> None:
    names = ((name, file) for name, file in _code().names if _is_old(name))

    assert {name: file for name, file in names if name not in FIELDS} == {}


def test_code_calls_nothing_by_a_word_that_fits_anything() -> None:
    assert {
        name: file
        for name, file in _code().names
        if name.strip("_").lower() in EMPTY and not file.startswith(OF_THE_JUDGE)
    } == {}


def test_contracts_list_every_text_and_page_that_keeps_an_old_word() -> None:
    used = dict(_old_texts())

    assert {name: file for name, file in used.items() if name not in _listed()} == {}
    assert _listed() - used.keys() - FIELDS == set()


def _listed() -> set[str]:
    section = SECTION.search(CONTRACTS.read_text("utf-8"))
    assert section is not None
    rows = [row.split("|") for row in section[1].splitlines() if row.startswith("| `")]
    return {name for row in rows for name in QUOTED.findall(row[1])}


def _is_old(name: str) -> bool:
    words = re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name).lower()
    return bool(OLD & set(re.split(r"[^a-z]+", words))) or any(one in words for one in PHRASES)


def _old_texts() -> Iterator[tuple[str, str]]:
    """Each contract name with an old word, and a file that has it."""
    for text, file in _code().texts:
        yield from _short([text], file)
    for page in sorted((ROOT / "docs").rglob("*.md")):
        if page != CONTRACTS:
            quoted = QUOTED.findall(page.read_text("utf-8"))
            yield from _short((word for text in quoted for word in text.split()), page.name)


def _short(texts: Iterable[str], file: str) -> Iterator[tuple[str, str]]:
    """The last part of each path or key that has an old word."""
    names = (re.split(r"[/#]", text)[-1].strip("-.") for text in texts)
    return ((name, file) for name in names if _is_old(name))


@dataclass(frozen=True)
class _Code:
    """Each name and each text without a space that code has, with each file that has it."""

    names: set[tuple[str, str]]
    texts: set[tuple[str, str]]


@cache
def _code() -> _Code:
    code = _Code(set(), set())
    for folder in CODE:
        for path in sorted((ROOT / folder).rglob("*.py")):
            file = str(path.relative_to(ROOT))
            for node in ast.walk(ast.parse(path.read_text("utf-8"))):
                code.names.update((name, file) for name in _names(node))
                if isinstance(node, ast.Constant) and " " not in str(node.value):
                    code.texts.add((str(node.value), file))
    return code


def _names(node: ast.AST) -> Iterator[str]:
    for field in ("id", "arg", "attr", "name"):
        if isinstance(name := getattr(node, field, None), str):
            yield name
