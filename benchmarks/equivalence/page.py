"""The kept results as tables of benchmarks/equivalence/README.md. Needs no torch."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from compilegate.domain.judging.equivalence import upper_bound

PAGE = Path(__file__).with_name("README.md")
KEPT = Path(__file__).with_name("results.json")
BLOCK = re.compile(r"(<!-- results: generated -->\n).*?(\n<!-- end -->)", re.DOTALL)
NOTHING = "**Not measured yet.**"
Row = tuple[object, ...]
Trial = Mapping[str, Any]


def write() -> None:
    """Bring the page up to date."""
    results = json.loads(KEPT.read_text(encoding="utf-8"))
    page = PAGE.read_text(encoding="utf-8")
    PAGE.write_text(refreshed(page, results), encoding="utf-8")


def refreshed(text: str, results: Mapping[str, Any]) -> str:
    """The page with the tables of the results, one of each device after the other."""
    parts = "\n\n".join(part for found in results.values() for part in _parts(found))
    return BLOCK.sub(lambda found: f"{found[1]}\n{parts or NOTHING}\n{found[2]}", text)


def harmful_in(faults: Iterable[Mapping[str, Any]], precision: str) -> list[dict[str, Any]]:
    """The faults that do harm in a precision, each ``caught`` where it is in every such family.

    One fault in several families is no independent trial, as Clopper and Pearson's bound needs
    them: it counts once.
    """
    found = []
    for fault in faults:
        trials = [t for t in fault["trials"] if t["precision"] == precision and t["harmful"]]
        if trials:
            found.append({**fault, "caught": all(one["caught"] for one in trials)})
    return found


def _parts(found: Mapping[str, Any]) -> Iterator[str]:
    trials = [{**fault, **trial} for fault in found["faults"] for trial in fault["trials"]]
    harmful = [one for one in trials if one["harmful"]]
    classes = found["table"]["classes"]
    yield (
        f"PyTorch {found['torch']}, {found['device']}, {found['date']}, check `{found['check']}`."
    )
    yield _table(
        ("class", "harmful faults", "from the tracker", "live", "missed", "rho at most (95 %)",
         "sound compilations", "false alarms"),
        (_class(row, harmful_in(found["faults"], row["precision"])) for row in classes),
    )  # fmt: skip
    yield _table(
        ("kind of fault", "faults", "tried", "missed"),
        (_group(kind, [one for one in harmful if one["kind"] == kind])
         for kind in sorted({one["kind"] for one in harmful})),
    )  # fmt: skip
    halves = sorted({one["half"] for one in harmful})
    yield _table(
        ("half", "faults", "tried", "missed"),
        (_group(half, [one for one in harmful if one["half"] == half]) for half in halves),
    )
    yield from _tries(trials)
    yield from _apart(found)


def _tries(trials: list[dict[str, Any]]) -> Iterator[str]:
    """What was missed, and what is no harm."""
    missed = [one for one in trials if one["harmful"] and not one["caught"]]
    if missed:
        yield _table(
            ("missed", "family", "precision", "effect", "the judge says"),
            ((one["name"], one["family"], one["precision"], f"{one['effect']:.1e}", one["reason"])
             for one in missed),
        )  # fmt: skip
    harmless = sorted({_trial(one) for one in trials if not one["harmful"]})
    if harmless:
        yield f"Without harm by both measures, and counted for neither side: {', '.join(harmless)}."


def _apart(found: Mapping[str, Any]) -> Iterator[str]:
    """What the classes do not count: older versions, and what was not examined."""
    older = [
        {**fault, **trial}
        for fault in found["older"]
        for trial in fault["trials"]
        if trial["harmful"]  # where the compiler of that version has the defect indeed
    ]
    if older:
        yield _table(
            ("with the version that had it", "issue", "PyTorch", "precision", "caught"),
            ((one["name"], one["issue"], one["version"], one["precision"],
              "yes" if one["caught"] else "no") for one in older),
        )  # fmt: skip
    unexamined = [one for one in found["sound"] if one["unexamined"]]
    if unexamined:
        yield _table(
            ("sound, and not examined", "precision", "mode", "compilations", "the judge says"),
            ((one["family"], one["precision"], one["mode"],
              f"{one['unexamined']} of {one['count']}", "; ".join(one["why"]))
             for one in unexamined),
        )  # fmt: skip


def _class(row: Mapping[str, Any], harmful: list[Trial]) -> Row:
    names = f"{row['framework']}, {row['device']}, {row['precision']}"
    bound = f"{upper_bound(row['missed'], row['faults']):.3f}" if row["faults"] else "1"
    tracker = sum(one["issue"] is not None for one in harmful)
    live = sum(one["live"] for one in harmful)
    counts = (row["missed"], bound, row["sound"], row["false_alarms"])
    return (names, row["faults"], tracker, live, *counts)


def _group(name: str, members: list[Trial]) -> Row:
    missed = sum(not one["caught"] for one in members)
    return name, len({one["name"] for one in members}), len(members), missed


def _trial(one: Trial) -> str:
    return f"{one['name']} ({one['family']}, {one['precision']})"


def _table(head: Row, rows: Iterable[Row]) -> str:
    lines = [head, ("---",) * len(head), *rows]
    return "\n".join(f"| {' | '.join(map(str, line))} |" for line in lines)
