"""Shows an explanation: a question, its answer, then each number with formula and meaning."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from typing import Any

from compilegate.cli.common.output import show
from compilegate.domain.formats import UNKNOWN, Format, count, fixed, money, number, significant
from compilegate_judge import TEMPLATES
from compilegate_judge.item import ANSWER, Item, Section

QUESTIONS = {
    Section.FAIRNESS: "Is the comparison fair?",
    Section.WORTH: "Is it worth measuring?",
    Section.SPEED: "Is it faster?",
    Section.EQUIVALENCE: "Does it train the same?",
    Section.FULL_RUNS: "Do full jobs confirm it?",
    Section.QUALITY: "Is quality maintained?",
    Section.PROBATION: "Does production confirm it?",
    Section.MONEY: "What does it save?",
    Section.NEXT: "What happens next?",
}

# Below it an exponent is easier to read than zeros.
SMALLEST = 1e-7


def show_explanation(items: Sequence[Item]) -> None:
    """Sections in the order of the questions, of each number one item or the rows of a table."""
    # A section is about one arm; fairness is about all of them.
    by_section = groupby(
        items, lambda item: (item.section, item.section != Section.FAIRNESS and item.arm)
    )
    sections = [
        {
            "title": f"{QUESTIONS[section]}{f' ({arm})' if arm else ''}",
            "groups": [
                list(same) for _, same in groupby(group, key=lambda one: (one.arm, one.name))
            ],
        }
        for (section, arm), group in by_section
    ]
    show(
        TEMPLATES / "judge_explained", {"sections": sections},
        ANSWER=ANSWER, table_of=_table, value_text=value_text,
    )  # fmt: skip


def _table(items: Sequence[Item]) -> dict[str, Any]:
    """What the rows share is shown once, below them."""
    sentences = {item.words for item in items}
    differ = len(sentences) > 1
    names = list(dict.fromkeys(name for item in items for name in item.inputs))
    rows = []
    for item in items:
        values = [(item.value, item.unit), *((item.inputs.get(name), None) for name in names)]
        cells = [_bare(value, unit, fixed) for value, unit in values]
        rows.append([item.symbol or "", *cells, *([item.words] if differ else [])])
    columns = ["", "value", *names, *([""] if differ else [])]
    right = [index for index, name in enumerate(columns) if name]
    words = "" if differ else items[0].words
    return {"columns": columns, "rows": rows, "right": right, "words": words}


def value_text(value: Any, unit: str | None) -> str:
    """A value with its unit."""
    text = _bare(value, unit, lambda x: significant(x, 4))
    if unit in (None, "USD") or text == UNKNOWN:
        return text
    return f"{text}x" if unit == "x" else f"{text} {unit}"


def _bare(value: Any, unit: str | None, as_text: Format) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, str):
        return value
    if isinstance(value, list | tuple):
        return " to ".join(_bare(item, unit, as_text) for item in value)
    figure = number(value)
    if figure is None:
        return UNKNOWN
    return _amount(figure, unit, as_text, whole=isinstance(value, int))


def _amount(value: float, unit: str | None, as_text: Format, *, whole: bool) -> str:
    if unit == "USD":
        return money(value)
    if whole:
        return count(value)
    if 0 < abs(value) <= SMALLEST:
        return significant(value)
    return significant(value, 3) if abs(value) < 1e-4 else as_text(value)
