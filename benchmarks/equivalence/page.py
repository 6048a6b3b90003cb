"""The kept results as tables of the README here and of docs/how-it-decides.md. Needs no torch."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from compilegate.domain.judging.equivalence import upper_bound

PAGE = Path(__file__).with_name("README.md")
HOW_IT_DECIDES = PAGE.parents[2] / "docs" / "how-it-decides.md"
KEPT = Path(__file__).with_name("results.json")
BLOCK = re.compile(
    r"(<!-- (results|classes) of the equivalence check: generated -->\n).*?(\n<!-- end -->)",
    re.DOTALL,
)
NOTHING = "**Not measured yet.**"
Row = tuple[object, ...]
Trial = Mapping[str, Any]


def write() -> None:
    """Bring the pages up to date."""
    results = json.loads(KEPT.read_text(encoding="utf-8"))
    for page in (PAGE, HOW_IT_DECIDES):
        text = refreshed(page.read_text(encoding="utf-8"), results)
        page.write_text(text, encoding="utf-8")


def refreshed(text: str, results: Mapping[str, Any]) -> str:
    """The page with the tables of the results, or of classes, one device after the other."""
    makers = {"results": _parts, "classes": _classes}

    def block(place: re.Match[str]) -> str:
        parts = "\n\n".join(part for one in results.values() for part in makers[place[2]](one))
        return f"{place[1]}\n{parts or NOTHING}\n{place[3]}"

    return BLOCK.sub(block, text)


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
    yield from _classes(found)
    yield _table(
        ("class", "harmful faults", "from the tracker", "live", "sound compilations"),
        (_counted(row, harmful_in(found["faults"], row["precision"]))
         for row in found["table"]["classes"]),
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


def _classes(found: Mapping[str, Any]) -> Iterator[str]:
    """What was measured of each class, and beside it what rests on fewer trials."""
    yield (
        f"PyTorch {found['torch']}, {found['device']}, {found['date']}, check `{found['check']}`."
    )
    rows = []
    for row in found["table"]["classes"]:
        harmful = harmful_in(found["faults"], row["precision"])
        blind = [one for one in harmful if one["half"] == "second"]
        sound = [one for one in found["sound"] if one["precision"] == row["precision"]]
        # Seeds are 0, 1, 2, ...; the even ones set the bounds, and cannot alarm.
        could = sum(one["count"] // 2 for one in sound)
        alarmed = sum(one["of_odd_seeds"] for one in sound)
        rows.append((_name(row), *_missed(harmful), *_missed(blind), *_share(alarmed, could)))
    yield _table(
        ("class", "harmful faults", "missed", "rho at most", "of the second half", "missed",
         "rho at most", "sound ones that could alarm", "alarms", "at most"),
        rows,
    )  # fmt: skip


def _missed(faults: list[Trial]) -> Row:
    return _share(sum(not one["caught"] for one in faults), len(faults))


def _share(seen: int, tried: int) -> Row:
    """How many were tried, how many were seen to fail, and the upper 95 % bound of their share."""
    return tried, seen, f"{upper_bound(seen, tried):.3f}"


def _counted(row: Mapping[str, Any], harmful: list[Trial]) -> Row:
    tracker = sum(one["issue"] is not None for one in harmful)
    live = sum(one["live"] for one in harmful)
    return (_name(row), row["faults"], tracker, live, row["sound"])


def _name(row: Mapping[str, Any]) -> str:
    return f"{row['framework']}, {row['device']}, {row['precision']}"


def _group(name: str, members: list[Trial]) -> Row:
    missed = sum(not one["caught"] for one in members)
    return name, len({one["name"] for one in members}), len(members), missed


def _trial(one: Trial) -> str:
    return f"{one['name']} ({one['family']}, {one['precision']})"


def _table(head: Row, rows: Iterable[Row]) -> str:
    lines = [head, ("---",) * len(head), *rows]
    return "\n".join(f"| {' | '.join(map(str, line))} |" for line in lines)
