"""The message after a review of production."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from compilegate.domain.claims import command_at, subject_line
from compilegate.domain.decision import Verdict
from compilegate.domain.errors import shorten
from compilegate.domain.flag import Flag
from compilegate.domain.flag_change import REVERT
from compilegate.domain.followers import REFRESH_EVERY
from compilegate.domain.judging.monitor import FIRST, LAST
from compilegate.domain.production.review import ALARM, FAILED
from compilegate.domain.production.watch import RESUME, STALE, WATCHED
from compilegate.domain.reasons import advice_for
from compilegate.domain.records.flags import Author
from compilegate.domain.records.reviews import Review
from compilegate.domain.records.runs import TEAM, TRAIN
from compilegate.domain.utc import minute
from compilegate.report.render import Report

# The subject of a message without a verdict, by what is done to the flag.
SUBJECTS = {
    STALE: "production differs from what was proven",
    RESUME: "production again matches what was proven",
    None: "on but not watched",
}


@dataclass(frozen=True)
class ReviewNews:
    """A review with its effect: the flag as it is now, and what prevented a change.

    ``held_by`` and ``superseded_by`` are changes for which the flag was left as it is, ``overrode``
    is the one that was replaced.
    """

    workload: str
    stage: str
    review: Review
    flag: Flag
    held_by: Author | None = None
    superseded_by: Author | None = None
    overrode: Author | None = None


def subject(news: ReviewNews, report: Report | None) -> str:
    """The report's, where the message is the judge's verdict."""
    review = news.review
    unseen = review.message_kind == FAILED and review.verdict == Verdict.CONTINUE
    if report is not None and not unseen:
        return report.subject
    what = "some of its runs are not watched" if unseen else SUBJECTS[review.action]
    if review.action == STALE and review.differs == (WATCHED,):
        what = "its runs record nothing to judge"
    return subject_line(news.stage, f"{news.workload}: {review.candidate}: {what}")


def paragraphs(news: ReviewNews, report: Report | None, price: str | None) -> Iterator[str]:
    """The message; ``price`` says what a new trial would cost."""
    review = news.review
    yield from _summary(news) if report is None else [report.message.rstrip()]
    yield from (f"{shorten(note.message)}." for note in review.notes)
    yield from advice_for(reason.code for reason in (*review.reasons, *review.notes))
    if review.message_kind == REVERT and review.cooldown_days > 0:
        yield f"No trial starts for {review.cooldown_days:g} days (policy.cooldown_days)."
    if review.message_kind == ALARM:
        yield _check_words(news)
    if news.held_by is not None:
        yield f"The flag was left as it is, because of {_change_by(news.held_by)}"
    if news.superseded_by is not None:
        later = _change_by(news.superseded_by)
        yield f"The flag was left as it is, because it has changed since: {later}"
    if news.overrode is not None:
        yield f"This replaces {_change_by(news.overrode)}"
    if price is not None:
        yield price


def _summary(news: ReviewNews) -> Iterator[str]:
    review = news.review
    by = "turned on by hand after" if review.by_human else "promoted by"
    yield f"{news.workload}: {review.candidate}, {by} trial {review.trial}."
    if review.transition:
        yield shorten(review.transition.reason)
    if not news.flag.enabled:
        yield (
            "The flag is off: production trains the baseline until a trial proves the candidate "
            "again, or a person turns it on."
        )
    else:
        policy = " (policy.on_stale decides what a change does to it)" if review.transition else ""
        yield f"The flag is on, state {news.flag.state}{policy}."


def _check_words(news: ReviewNews) -> str:
    """Who makes the runs that check an alarm: TRAIN does, a team's pipeline may not."""
    launched = news.review.launched_by
    if TEAM not in launched:
        return (
            f"Baseline and candidate now take turns, {FIRST} to {LAST} runs each. The flag stays "
            "on meanwhile."
        )
    if TRAIN in launched:
        return (
            "TRAIN's runs now take turns, baseline and candidate, and every job that a team "
            f"launches counts too. The check takes {FIRST} to {LAST} of each. The flag stays on "
            "meanwhile."
        )
    train = command_at(f"compilegate train {news.workload}", news.stage)
    return (
        "The flag stays on meanwhile. Every job that your pipeline launches from now on checks the "
        f"alarm, which takes {FIRST} to {LAST} runs of each arm. One job in {REFRESH_EVERY} is a "
        f"baseline at random, so this takes about {FIRST * REFRESH_EVERY} jobs or more. "
        f"`{train}` starts the next missing one at once."
    )


def _change_by(author: Author) -> str:
    return f"the change by {author.by} on {minute(author.at)}: {shorten(author.reason)}"
