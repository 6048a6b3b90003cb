"""The words of what people are told after a look at production."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from compilegate.domain.decision import Verdict
from compilegate.domain.flag import Flag
from compilegate.domain.flag_change import REVERT
from compilegate.domain.production.consequence import RESUME, STALE, WATCHED
from compilegate.domain.production.next_arm import REFRESH_EVERY
from compilegate.domain.production.runs import TEAM, TRAIN
from compilegate.domain.production.unwatched import UNWATCHED
from compilegate.domain.utc import minute
from compilegate.report import Report
from compilegate.usecases.change_flag import Changed

ALARM, FAILED = "alarm", "failed"
LOCAL = "local"
Entry = Mapping[str, Any]

# What a message is about that tells no verdict; by what is done to the flag.
SUBJECTS = {
    STALE: "production is not what was proven",
    RESUME: "trains again what was proven",
    None: "is on and not watched",
}
# What to do where the judge cannot go on; by the reason's code.
ADVICE = {
    "baseline_failed": "Repair the baseline first: without it nothing shows whether production "
    "got worse. The flag stays as it is until then.",
    "evidence_invalid": "Repair what the job records. Until then no run is judged, and the flag "
    "stays as it is.",
    "nothing_to_judge": "See what its jobs record. Until then nothing is watched, and once "
    f"{UNWATCHED} of them have trained to their end like that, the promotion is stale.",
    "not_measured": "Measure it with a trial; only then can a fall be told from the baseline.",
    "quality_not_watched": "Such runs do not count: the promotion stays on probation until enough "
    "others have been watched.",
    "run_unreadable": "Repair what the job records. What cannot be read counts for nothing.",
    "speed_not_watched": "Let the jobs be timed: runs without a wall clock do not count, and the "
    "promotion stays on probation until enough others have been watched.",
    "treatment_not_applied": "See why the jobs train without the change: the flag says on, and "
    "nothing is saved.",
}


@dataclass(frozen=True)
class Said:
    """What was found and done: the look's entry, the flag as it is now, how it was changed."""

    workload: str
    stage: str
    entry: Entry
    flag: Flag
    made: Changed | None


def codes(entry: Entry) -> set[str]:
    """What the judge gave as reasons, and what the watch noted beside them."""
    return {told["code"] for key in ("reasons", "notes") for told in entry.get(key, ())}


def action(entry: Entry) -> str | None:
    """What the look does to the flag."""
    return str(entry["change"]["action"]) if entry["change"] else None


def subject(said: Said, report: Report | None) -> str:
    """The report's where it is the judge's word that is told."""
    entry = said.entry
    unseen = entry["tell"] == FAILED and entry["verdict"] == Verdict.CONTINUE
    if report is not None and not unseen:
        return report.subject
    what = "some of its runs are not watched" if unseen else SUBJECTS[action(entry)]
    if action(entry) == STALE and entry["differs"] == [WATCHED]:
        what = "nobody sees what it does"
    return f"[compilegate {said.stage}] {said.workload}: {entry['candidate']}: {what}"


def paragraphs(said: Said, report: Report | None, price: str | None) -> Iterator[str]:
    """The message; ``price`` says what a new trial would cost."""
    entry, made = said.entry, said.made
    yield from _news(said) if report is None else [report.message.rstrip()]
    yield from (f"{note['message']}." for note in entry["notes"])
    yield from (words for code, words in ADVICE.items() if code in codes(entry))
    if entry["tell"] == REVERT and entry["cooldown_days"] > 0:
        yield f"No trial is begun for {entry['cooldown_days']:g} days (policy.cooldown_days)."
    if entry["tell"] == ALARM:
        yield _check_words(said)
    if made is not None and made.held_by is not None:
        yield f"The flag was left as it is: {_word_of(made.held_by)}"
    if made is not None and made.superseded_by is not None:
        yield f"The flag was left as it is: newer is {_word_of(made.superseded_by)}"
    if made is not None and made.overrode is not None:
        yield f"This sets aside {_word_of(made.overrode)}"
    if price is not None:
        yield price


def _news(said: Said) -> Iterator[str]:
    entry = said.entry
    by = "turned on by a person after" if entry["by_human"] else "promoted by"
    yield f"{said.workload}: {entry['candidate']}, {by} trial {entry['trial']}."
    if entry["change"]:
        yield entry["change"]["reason"].replace("; ", "\n")
    if not said.flag.enabled:
        yield (
            "The flag is off: production trains the baseline until a trial proves it again, or a "
            "person turns it on."
        )
    else:
        policy = " (policy.on_stale says what a change does to it)" if entry["change"] else ""
        yield f"The flag is on, state {said.flag.state}{policy}."


def _check_words(said: Said) -> str:
    """Who makes the runs that check an alarm: TRAIN is asked, a team's pipeline cannot be."""
    launched: Sequence[str] = said.entry["launched_by"]
    if TEAM not in launched:
        return "Baseline and candidate take turns now, three runs each; nothing is turned off yet."
    if TRAIN in launched:
        return (
            "TRAIN's runs take turns now, baseline and candidate, and every job that a team "
            "launches counts too. Three of each settle it; nothing is turned off yet."
        )
    local = " --local" if said.stage == LOCAL else ""
    return (
        "Nothing is turned off yet. Every job that your pipeline launches from now on checks it, "
        "until three of the baseline and three of the candidate have ended. One job in "
        f"{REFRESH_EVERY} is the baseline, by chance, so this may take {3 * REFRESH_EVERY} jobs. "
        f"`compilegate train {said.workload}{local}` starts the next one that is missing at once."
    )


def _word_of(said: Mapping[str, Any]) -> str:
    at = minute(said["at"])
    return f"what {said['by']} said on {at}: {said['reason']}"
