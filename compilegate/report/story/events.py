"""The timeline: every entry of the ledger that a person would want to hear of, in words."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from compilegate.domain.approval import ANSWER, ASKED
from compilegate.domain.flag_change import HUMAN
from compilegate.domain.flag_change import KIND as FLAG
from compilegate.domain.production.begun import KIND as BEGUN
from compilegate.domain.production.canary import CLOSED, OPENED
from compilegate.domain.production.next_arm import PROBLEMS
from compilegate.domain.production.registration import REGISTERED, RETIRED
from compilegate.domain.production.runs import KIND as RUN
from compilegate.domain.production.waiting import KIND as WAITING
from compilegate.report.formats import duration, plural
from compilegate.report.model import Document
from compilegate.report.story.flag_events import change, looked
from compilegate.report.story.model import Event
from compilegate.report.story.run_events import ended, unfinished
from compilegate.report.story.tale import Tale, fault_in
from compilegate.report.words import LABELS

Telling = Callable[[Tale, Document], Iterator[Event]]
CLOSED_WORDS = {
    "complete": "all its runs have their results",
    "lost": "the candidate failed or ran without the change",
    "changed": "production trains another job by now",
    "overdue": "its runs did not come in time",
    "aborted": "the trial was given up",
}


def events(tale: Tale) -> list[Event]:
    """Oldest first; what the ledger keeps for machines alone is left out."""
    found = [
        event
        for entry in tale.entries
        for event in TELLINGS.get(str(entry.get("kind")), _nothing)(tale, entry)
    ]
    return sorted(found, key=lambda event: (event.at, _rank(event)))


def _rank(event: Event) -> int:
    """What comes first of what the ledger dates alike: a run, then what the judge said of it."""
    return {"run": 0, "alarm": 1, "cleared": 1, "unproven": 1}.get(event.kind, 2)


def _nothing(_tale: Tale, _entry: Document) -> Iterator[Event]:
    yield from ()


def _registered(tale: Tale, entry: Document) -> Iterator[Event]:
    at, fault = float(entry["at"]), fault_in(entry)
    by = f"by {_person(entry)}" if entry.get("by") else ""
    if fault:
        yield Event(
            at, "fault", "Fault injected on purpose",
            f"From now on every job with the compiler trains with {fault} (training.environment, "
            f"registered {by}). The baseline has no fault.",
            tone="bad", place=tale.place_at(at), mark="fault injected",
        )  # fmt: skip
        return
    if fault == "":
        yield Event(at, "fault", "Injected fault taken out", by, place=tale.place_at(at))
        return
    changes = entry.get("changes") or ()
    what = "Registered anew" if changes else "Registered"
    names = ", ".join(str(one["field"]) for one in changes)
    schedule = (entry.get("registration") or {}).get("schedule")
    when = f"schedule {schedule}" if schedule else "the team starts its runs"
    text = "; ".join(part for part in (by, f"changed: {names}" if names else when) if part)
    yield Event(at, REGISTERED, what, text, place=tale.place_at(at))


def _retired(tale: Tale, entry: Document) -> Iterator[Event]:
    at = float(entry["at"])
    text = f"by {_person(entry)}; history, flag and evidence stay"
    yield Event(
        at, RETIRED, "Taken out of production", text, tone="off", place=tale.place_at(at),
        mark="retired",
    )  # fmt: skip


def _trial_started(tale: Tale, entry: Document) -> Iterator[Event]:
    at = float(entry["at"])
    trial = str(entry["execution"]).rpartition("-")[2]
    yield Event(at, "started", "Trial begins", f"trial {trial}", place=tale.place_at(at))


def _decided(tale: Tale, entry: Document) -> Iterator[Event]:
    at, verdict = float(entry["at"]), str(entry["verdict"])
    words = {str(known): label for known, label in LABELS.items()}.get(verdict, verdict)
    text = "; ".join(str(reason).rstrip(".") for reason in entry.get("reasons") or ())
    yield Event(
        at, "decision", f"Trial {entry['trial']} decided: {words.lower()}", f"{text}.",
        tone="good" if verdict == "promote" else "open", place=tale.place_at(at),
        links=[str(entry["decision_key"])],
    )  # fmt: skip


def _trial_failed(tale: Tale, entry: Document) -> Iterator[Event]:
    at = float(entry["at"])
    title = f"Trial {entry.get('trial', '')} failed"
    text = str(entry.get("reason") or "")
    yield Event(at, "failed", title, text, tone="bad", place=tale.place_at(at))


def _canary_opened(tale: Tale, entry: Document) -> Iterator[Event]:
    at, runs = float(entry["at"]), entry.get("runs") or ()
    arms = ", ".join(str(run["arm"]) for run in runs)
    text = f"The next {plural(len(runs), 'run')} of production train in turn: {arms}."
    yield Event(at, OPENED, "Production carries the trial", text, place=tale.place_at(at))


def _canary_closed(tale: Tale, entry: Document) -> Iterator[Event]:
    at, reason = float(entry["at"]), str(entry["reason"])
    text = CLOSED_WORDS.get(reason, reason)
    good = reason == "complete"
    yield Event(
        at, CLOSED, "Round of the trial is over", f"{text}.", tone="" if good else "open",
        place=tale.place_at(at),
    )  # fmt: skip


def _asked(tale: Tale, entry: Document) -> Iterator[Event]:
    at = float(entry["at"])
    text = f"“{entry.get('candidate')}” takes effect when a person says yes."
    yield Event(at, ASKED, "Waits for approval", text, tone="open", place=tale.place_at(at))


def _answered(tale: Tale, entry: Document) -> Iterator[Event]:
    at, by = float(entry["at"]), _person(entry)
    what = "Approved" if entry["approved"] is True else "Not approved"
    text = f"by {by}: {entry.get('reason') or 'no reason was given'}"
    yield Event(at, ANSWER, what, text, place=tale.place_at(at), mark=what.lower())


def _person(entry: Document) -> str:
    return str(entry["by"]).removeprefix(HUMAN)


def _waited(tale: Tale, entry: Document) -> Iterator[Event]:
    at = float(entry["at"])
    next_type = entry.get("next_instance_type")
    again = f"tries {next_type} next" if next_type else (
        f"tries again in {duration(float(entry['wait_seconds']))}"
    )  # fmt: skip
    text = f"run {entry['run']}, {entry['arm']}: {entry.get('reason')}; {again}"
    yield Event(at, WAITING, "Waits for machines", text, tone="open", place=tale.place_at(at))


def _begun(tale: Tale, entry: Document) -> Iterator[Event]:
    if entry.get("flag_problem") in PROBLEMS:
        at = float(entry["at"])
        yield Event(
            at, "flag_problem", "Flag not followed",
            f"{entry.get('flag_told')}; the run trains the baseline.", tone="bad",
            place=tale.place_at(at), mark="flag not followed",
        )  # fmt: skip
    yield from unfinished(tale, entry)


# By the entry's kind; tokens, notes that somebody was told and the like are for machines.
TELLINGS: Mapping[str, Telling] = {
    REGISTERED: _registered,
    RETIRED: _retired,
    "started": _trial_started,
    "decision": _decided,
    "failed": _trial_failed,
    OPENED: _canary_opened,
    CLOSED: _canary_closed,
    ASKED: _asked,
    ANSWER: _answered,
    FLAG: change,
    BEGUN: _begun,
    RUN: ended,
    WAITING: _waited,
    "watch": looked,
}
