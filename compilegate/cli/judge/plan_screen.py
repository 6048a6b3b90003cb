"""Shows ``judge --plan``: the planning table, or the answer for one case."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from rich.table import Table

from compilegate.cli.common.output import console, say
from compilegate.domain.formats import percent, plural, significant
from compilegate.domain.judging.looks import SCHEDULE

NONE = "-"


def show_table(table: Mapping[str, Any]) -> None:
    """Runs needed by spread over margin, then what so many runs could prove."""
    say("Full runs of a candidate that a proof of quality takes", "bold")
    say(
        f"For an 80% / 90% chance of a proof, if the candidate loses nothing. Rows: how much the "
        f"metric differs from run to run, in margins. {_terms(table)} {NONE} is underpowered: "
        "shrink the spread or accept a larger margin.",
        indent=2,
    )
    say()
    cells = table["runs_needed"]
    _grid(cells, "spread_per_margin", "spread/margin", lambda c: _pair(c["runs_80"], c["runs_90"]))
    say()
    say("Smallest margin that so many runs prove", "bold")
    say("In spreads, with an 80% chance.", indent=2)
    say()
    _grid(
        table["provable_margin"], "runs", "runs",
        lambda c: f"{c['margin_per_spread']:.2f}" if c["margin_per_spread"] else NONE,
    )  # fmt: skip


def _terms(table: Mapping[str, Any]) -> str:
    several = f", shared by {table['candidates']} candidates" if table["candidates"] > 1 else ""
    return (
        f"Columns: past runs known. A bad candidate is promoted in at most "
        f"{percent(table['alpha'])} of trials{several}."
    )


def _grid(cells: Sequence[Mapping[str, Any]], row: str, title: str, shown: Any) -> None:
    columns = list(dict.fromkeys((c["mode"], c["max_runs"], c["history"]) for c in cells))
    table = Table(box=None, padding=(0, 1, 0, 0), pad_edge=False)
    table.add_column(title, justify="right")
    for index, (mode, most, history) in enumerate(columns):
        first = index == 0 or columns[index - 1][0] != mode
        table.add_column(f"{f'{mode} <= {most}' if first else ''}\n{history}", justify="right")
    for key in dict.fromkeys(c[row] for c in cells):
        cell_texts = {
            (c["mode"], c["max_runs"], c["history"]): shown(c) for c in cells if c[row] == key
        }
        table.add_row(f"{key:g}", *[cell_texts.get(column, "") for column in columns])
    console().print(table)


def _pair(low: int | None, high: int | None) -> str:
    return f"{low or NONE}/{high or NONE}"


def show_case(plan: Mapping[str, Any]) -> None:
    """The case in words, a table of what each mode can prove, then what would happen."""
    relative = significant(plan["spread_per_margin"])
    say(
        f"A loss of {plan['margin']:g} is to be ruled out where runs differ by "
        f"{significant(plan['spread'])} ({relative} margins); "
        f"{plural(plan['history'], 'past run')}, {plural(plan['candidates'], 'candidate')}, "
        f"error {percent(plan['alpha'])}."
    )
    say()
    designs = [design for design in plan["designs"] if design["max_runs"]]
    if designs:
        console().print(_case_table(designs))
        say()
    for design in plan["designs"]:
        say(_outcome(design, plan), indent=2, hang=2)
    say(f"The judge looks at {', '.join(map(str, SCHEDULE))} runs.", indent=2)


def _case_table(designs: Sequence[Mapping[str, Any]]) -> Table:
    table = Table(box=None, padding=(0, 2, 0, 0), pad_edge=False)
    table.add_column("runs of a candidate")
    for design in designs:
        table.add_column(f"{design['mode']} <= {design['max_runs']}", justify="right")
    for words, key in (
        ("for an 80% chance of a proof", "runs_80"),
        ("for a 90% chance", "runs_90"),
        ("one single test, 80%", "single_test_80"),
        ("one single test, 90%", "single_test_90"),
    ):
        table.add_row(words, *[str(design[key] or NONE) for design in designs])
    table.add_row("")
    table.add_row("margin that they prove, 80%")
    longest = max((d["provable_margin_by_runs"] for d in designs), key=len)
    for index, row in enumerate(longest):
        table.add_row(f"{row['runs']:>4} runs", *[_margin(design, index) for design in designs])
    return table


def _margin(design: Mapping[str, Any], index: int) -> str:
    rows = design["provable_margin_by_runs"]
    margin = rows[index]["margin"] if index < len(rows) else None
    return "" if index >= len(rows) else significant(margin) if margin else NONE


def _outcome(design: Mapping[str, Any], plan: Mapping[str, Any]) -> str:
    mode = design["mode"]
    if design["max_runs"] is None:
        return f"{mode}: refused: too few production runs remain to prove anything on."
    best = significant(design["provable_margin"])
    limit = f"{design['max_runs']} runs could prove a margin of {best}"
    if design["refused"]:
        when = "refused" if design["refused_before_start"] else "given up on the way"
        chance = percent(design["least_chance"])
        return (
            f"{mode}: {when} as underpowered, its chance is below {chance}; {limit}, not "
            f"{plan['margin']:g}."
        )
    if design["runs_80"] is None:
        return f"{mode}: possible, with less than an 80% chance; {limit}."
    return f"{mode}: {design['runs_80']} runs for an 80% chance; {limit}."
