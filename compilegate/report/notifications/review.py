"""The message after a review of production."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial

from compilegate.domain.claims import command_at, subject_line
from compilegate.domain.decision import Verdict
from compilegate.domain.flag import Flag
from compilegate.domain.flag_change import REVERT
from compilegate.domain.followers import REFRESH_EVERY
from compilegate.domain.judging.monitor import FIRST, LAST
from compilegate.domain.outside import shorten
from compilegate.domain.production.probation import RESUME, STALE, WATCHED
from compilegate.domain.production.review import ALARM, FAILED, SLOWER
from compilegate.domain.reasons import advice_for
from compilegate.domain.records.flags import Author
from compilegate.domain.records.production import TEAM, TRAIN, Review
from compilegate.domain.utc import minute
from compilegate.report import wording
from compilegate.report.render import Report

say = partial(wording.say, "messages")

# The subject of a message without a verdict, by what is done to the flag.
SUBJECTS = {
    STALE: "production differs from what was proven",
    RESUME: "production again matches what was proven",
    SLOWER: "half of its speed-up or more is probably lost",
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
    lost = SLOWER if review.message_kind == SLOWER else review.action
    what = "some of its runs are not watched" if unseen else SUBJECTS[lost]
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
        yield say("cooldown", days=review.cooldown_days)
    if review.message_kind == ALARM:
        yield _check_words(news)
    if news.held_by:
        yield say("held", change=_change_by(news.held_by))
    if news.superseded_by:
        yield say("superseded", change=_change_by(news.superseded_by))
    if news.overrode:
        yield say("overrode", change=_change_by(news.overrode))
    if price is not None:
        yield price


def _summary(news: ReviewNews) -> Iterator[str]:
    review = news.review
    yield say(
        "by_hand_after" if review.by_human else "promoted_by",
        workload=news.workload, candidate=review.candidate, trial=review.trial,
    )  # fmt: skip
    if review.transition:
        yield shorten(review.transition.reason)
    if news.flag.enabled:
        yield say("flag_on", state=news.flag.state, changed=review.transition is not None)
    else:
        yield say("flag_off")


def _check_words(news: ReviewNews) -> str:
    """Who makes the runs that check an alarm: TRAIN does, a team's pipeline may not."""
    launched = news.review.launched_by
    if TEAM not in launched:
        return say("check_by_train", first=FIRST, last=LAST)
    if TRAIN in launched:
        return say("check_by_both", first=FIRST, last=LAST)
    return say(
        "check_by_team", first=FIRST, last=LAST, every=REFRESH_EVERY, jobs=FIRST * REFRESH_EVERY,
        train=command_at(f"compilegate train {news.workload}", news.stage),
    )  # fmt: skip


def _change_by(author: Author) -> str:
    return say("change_by", by=author.by, at=minute(author.at), reason=author.reason)
