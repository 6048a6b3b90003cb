"""Changes of the flag, and reviews of production that changed nothing yet."""

from __future__ import annotations

from collections.abc import Iterator

from compilegate.domain.records.flags import HUMAN, FlagVersion
from compilegate.domain.records.reviews import Review
from compilegate.report.history.model import Event
from compilegate.report.history.view import HistoryView

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


def flag_changed(view: HistoryView, version: FlagVersion) -> Event:
    """One change of the flag: what, by whom, why, and which manual change it replaced."""
    at, action, flag = float(version.at), version.action, version.flag
    human = version.by_human
    title = (BY_HAND if human else TITLES).get(action, action.capitalize())
    if flag.candidate:
        title += f": {flag.candidate}"
    parts = [f"by {_person(version.by)}:" if human else "", version.reason.rstrip(".") + "."]
    if version.overrode:
        replaced = version.overrode
        parts.append(
            f"This replaces the change by {_person(replaced.by)}: “{replaced.reason.rstrip('.')}”."
        )
    if action == "stale":
        parts.append("The flag stays on." if flag.enabled else "The flag is off.")
    keys = ("decision_key", "evidence_key")
    return Event(
        at, "flag", title, " ".join(part for part in parts if part),
        tone="open" if human else TONES.get(action, ""), place=view.place_at(at),
        mark=f"{_person(version.by)}: {action}" if human else MARKS.get(action),
        links=[str(version.details[key]) for key in keys if version.details.get(key)],
    )  # fmt: skip


def reviewed(view: HistoryView, review: Review) -> Iterator[Event]:
    """What was new after a run; a review that changes the flag shows as that change."""
    at, before = float(review.at), _before(view, review)
    place = _place(view, review)
    alarm, cleared = review.reason("alarm"), review.reason("alarm_cleared")
    if alarm and not (before and before.reason("alarm")):
        yield Event(at, "alarm", "Alarm", alarm, tone="bad", place=place, mark="alarm")
    elif review.message_kind == "failed":
        text = "; ".join(reason.message for reason in review.reasons)
        yield Event(at, "unproven", "Production cannot be judged", f"{text}.", "bad", place)
    if cleared and cleared != (before and before.reason("alarm_cleared")):
        yield Event(
            at, "cleared", "Alarm not confirmed", f"{cleared}; nothing was changed.",
            tone="good", place=place, mark="cleared",
        )  # fmt: skip


def _place(view: HistoryView, review: Review) -> float:
    """After the run that was reviewed."""
    own = [view.places[run.job] for run in view.runs if run.run == review.run]
    return max(own) + 0.5 if own else view.place_at(float(review.at))


def _before(view: HistoryView, review: Review) -> Review | None:
    """The review of the same trial's promotion before this one."""
    earlier = [
        one
        for one in view.history.reviews
        if one.trial == review.trial and (one.at, one.run) < (review.at, review.run)
    ]
    return earlier[-1] if earlier else None


def _person(by: str) -> str:
    return by.removeprefix(HUMAN)
