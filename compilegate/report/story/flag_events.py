"""Changes of the flag, and what the judge said of production that changed nothing yet."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from compilegate.domain.flag import parse_flag
from compilegate.domain.flag_change import HUMAN, is_human
from compilegate.report.model import Document
from compilegate.report.story.model import Event
from compilegate.report.story.tale import Tale

TITLES = {
    "enable": "Turned on",
    "disable": "Left off",
    "revert": "Turned off by itself",
    "permanent": "On for good",
    "stale": "No longer what was proven",
    "resume": "Again what was proven",
}
BY_HAND = {"set": "Turned on by hand", "revert": "Turned off by hand"}
TONES = {
    "enable": "good", "permanent": "good", "resume": "good", "revert": "bad", "stale": "open",
    "disable": "off", "set": "open",
}  # fmt: skip
MARKS = {
    "enable": "on", "revert": "off by itself", "permanent": "on for good", "stale": "stale",
    "resume": "resumed",
}  # fmt: skip


def change(tale: Tale, entry: Document) -> Iterator[Event]:
    """One change of the flag: what, by whom, why, and whose word it set aside."""
    at, action = float(entry["at"]), str(entry["action"])
    human = is_human(entry)
    flag = parse_flag(str(entry["to"]))
    titles = BY_HAND if human else TITLES
    title = titles.get(action, action.capitalize())
    if flag.candidate:
        title += f": {flag.candidate}"
    parts = [f"by {_person(entry)}:" if human else "", str(entry["reason"]).rstrip(".") + "."]
    if entry.get("overrode"):
        parts.append(f"This sets aside what {_person(entry['overrode'])} said: "
                     f"“{str(entry['overrode']['reason']).rstrip('.')}”.")  # fmt: skip
    if action == "stale":
        parts.append("The flag stays on." if flag.enabled else "The flag is off.")
    yield Event(
        at, "flag", title, " ".join(part for part in parts if part),
        tone="open" if human else TONES.get(action, ""), place=tale.place_at(at),
        mark=f"{_person(entry)}: {action}" if human else MARKS.get(action),
        links=[str(entry[key]) for key in ("decision_key", "evidence_key") if entry.get(key)],
    )  # fmt: skip


def looked(tale: Tale, entry: Document) -> Iterator[Event]:
    """What was new after a run; a look that changes the flag is told by that change."""
    at, before = float(entry["at"]), _before(tale, entry)
    place = float(_place(tale, entry))
    if _says(entry, "alarm") and not _says(before, "alarm"):
        yield Event(
            at, "alarm", "Alarm", _message(entry, "alarm"), tone="bad", place=place, mark="alarm"
        )
    elif entry.get("tell") == "failed":
        text = "; ".join(reason["message"] for reason in entry.get("reasons") or ())
        yield Event(at, "unproven", "Production cannot be judged", f"{text}.", "bad", place)
    cleared = _message(entry, "alarm_cleared")
    if cleared and cleared != _message(before, "alarm_cleared"):
        yield Event(
            at, "cleared", "Alarm not borne out", f"{cleared}; nothing was changed.",
            tone="good", place=place, mark="cleared",
        )  # fmt: skip


def _place(tale: Tale, entry: Document) -> float:
    """After the run that was looked at."""
    own = [tale.places[run.job] for run in tale.runs if run.run == entry["run"]]
    return max(own) + 0.5 if own else tale.place_at(float(entry["at"]))


def _before(tale: Tale, entry: Document) -> Document:
    earlier = [one for one in tale.entries if one.get("kind") == "watch" and _older(one, entry)]
    return earlier[-1] if earlier else {}


def _older(one: Document, entry: Document) -> bool:
    if one["trial"] != entry["trial"]:
        return False
    return bool((one["at"], one["run"]) < (entry["at"], entry["run"]))


def _says(entry: Document, code: str) -> bool:
    return bool(_message(entry, code))


def _message(entry: Document, code: str) -> str:
    found = (r["message"] for r in entry.get("reasons") or () if r["code"] == code)
    return str(next(found, ""))


def _person(entry: Mapping[str, Any]) -> str:
    return str(entry["by"]).removeprefix(HUMAN)
