"""The history in a sentence that a manager understands, a few more under it, and key figures."""

from __future__ import annotations

import math
from functools import partial

from compilegate.domain.arithmetic import mean, ratio
from compilegate.domain.claims import ALARM, FLAG_STATES, Label, verdict_label
from compilegate.domain.flag_change import EVALUATE
from compilegate.domain.formats import UNKNOWN, money, percent, plural, shown, significant
from compilegate.domain.judging.evidence import mean_or_none
from compilegate.domain.production.savings import failed, metric_of, wall_seconds_of
from compilegate.domain.records.flags import HUMAN, FlagVersion
from compilegate.domain.utc import day
from compilegate.domain.workload.model import BASELINE
from compilegate.report import statements, wording
from compilegate.report.history.view import HistoryView
from compilegate.report.metric_cards import MetricCard

say = partial(wording.say, "history")


def label(view: HistoryView) -> Label:
    """Where it stands in two or three words, with their tone."""
    if view.history.is_retired:
        return Label("Retired", "off")
    if not view.flags and not view.runs:
        return Label("Not started", "off")
    if _alarmed(view):
        return ALARM
    state = view.flag.state
    if state == "reverted" and view.flags[-1].by_human:
        return Label("Turned off by hand", "off")
    return FLAG_STATES.get(state, Label(state, "open"))


def headline(view: HistoryView) -> str:
    """One sentence; of a retired workload, its last state."""
    state = _standing(view)
    before = f"{state[0].lower()}{state[1:]}"
    return say("retired", before=before) if view.history.is_retired else state


def lede(view: HistoryView) -> list[str]:
    """What led to it, each sentence left out where nothing is recorded."""
    sentences = [
        _promotion_sentence(view) or _trial_sentence(view),
        _watch_sentence(view),
        _fault_sentence(view),
        _money_sentence(view),
        _clock_sentence(view),
    ]
    return [sentence for sentence in sentences if sentence]


def _cause(view: HistoryView, version: FlagVersion) -> str:
    """The first reason of the trial or review that changed the flag, else the recorded text."""
    if version.by == EVALUATE:
        decided = view.history.decided
        messages = [text for one in decided if one.trial == version.trial for text in one.reasons]
    else:
        messages = [
            reason.message
            for review in view.reviews
            if review.transition and review.transition.change_id == version.change_id
            for reason in review.reasons
        ]
    return (messages or [version.reason])[0].strip().rstrip(".")


def _standing(view: HistoryView) -> str:
    if not view.flags:
        return _without_flag(view)
    last, flag = view.flags[-1], view.flag
    candidate = f"“{flag.candidate}”" if flag.candidate else "The compiler"
    if last.by_human:
        by, word = last.by.removeprefix(HUMAN), "on" if flag.enabled else "off"
        cause = _cause(view, last)
        return say("by_hand", by=by, candidate=candidate, word=word, cause=cause)
    if flag.state == "probation":
        return _on_probation(view, candidate)
    if flag.state == "stale":
        return say("stale_on" if flag.enabled else "stale_off", candidate=candidate)
    # The reasons of automated changes name the candidate.
    return say(
        "reverted" if flag.state == "reverted" else
        "permanent" if flag.state == "permanent" else "off",
        cause=_cause(view, last),
    )  # fmt: skip


def _without_flag(view: HistoryView) -> str:
    if view.runs:
        return say("never_on", name=view.name, runs=len(view.runs))
    return say("not_trained" if view.registered else "nothing_yet", name=view.name)


def _on_probation(view: HistoryView, candidate: str) -> str:
    if _alarmed(view):
        return say("alarm_checked", alarm=_last_reason(view, "alarm"))
    progress = _last_reason(view, "probation_goes_on")
    if progress:
        return say("watched", progress=progress)
    so_far = "no run of it has ended yet"
    if view.reviews:
        so_far = view.reviews[-1].verdict or "nothing to judge yet"
    return say("just_on", candidate=candidate, so_far=so_far)


def _alarmed(view: HistoryView) -> bool:
    return view.flag.enabled and bool(_last_reason(view, "alarm"))


def _last_reason(view: HistoryView, code: str) -> str:
    return (view.reviews[-1].reason(code) or "") if view.reviews else ""


def _promotion_sentence(view: HistoryView) -> str:
    if view.promotion is None:
        return ""
    speed, promotion = view.expected_speed, view.promotion
    return say(
        "promoted", trial=promotion.trial, candidate=promotion.flag.candidate,
        day=day(promotion.at), speed=statements.speedup(speed) if speed else None,
    )  # fmt: skip


def _trial_sentence(view: HistoryView) -> str:
    """The latest trial's verdict, where none has ever turned anything on."""
    decided = view.history.decided
    if not decided:
        return ""
    last = decided[-1]
    reason = (last.reasons or ("no reason was recorded",))[0].rstrip(".")
    verdict = verdict_label(last.verdict).text.lower()
    return say("latest_trial", trial=last.trial, verdict=verdict, reason=reason)


def _watch_sentence(view: HistoryView) -> str:
    """How many runs production has trained since the promotion, and with which arm."""
    if view.promotion is None:
        return ""
    since = view.since_promotion
    candidates = sum(run.arm != BASELINE for run in since)
    return say(
        "trained_since", runs=candidates, any=bool(since), without=len(since) - candidates,
        confirming=sum(run.confirm for run in since) or None,
    )  # fmt: skip


def _fault_sentence(view: HistoryView) -> str:
    """The injected fault, and how soon it raised the alarm."""
    if not view.faulty:
        return ""
    faults = ", ".join(sorted({str(view.fault_of(run)) for run in view.faulty}))
    alarms = (review for review in view.reviews if review.reason("alarm"))
    # That of a faulty run, or a later one.
    alarm = next((one for one in alarms if one.at >= int(view.faulty[0].ended_at)), None)
    before = [run for run in view.faulty if alarm and run.ended_at <= alarm.at + 1]
    return say("injected", faults=faults, runs=len(before) or None)


def _money_sentence(view: HistoryView) -> str:
    savings = view.savings
    if savings is None or savings.saved_usd is None:
        return ""
    share = savings.share_of_estimate
    return say(
        "saved", verb="saved" if savings.saved_usd >= 0 else "cost",
        usd=abs(savings.saved_usd), runs=savings.priced_runs,
        expected=savings.expected_usd or None,
        share=share if share and share > 0 and savings.expected_usd else None,
    )  # fmt: skip


def _clock_sentence(view: HistoryView) -> str:
    return say("simulated_clock") if view.ahead else ""


def quality_difference(view: HistoryView) -> str | None:
    """The candidate's mean metric since the promotion minus the baseline's."""
    counted = [run for run in view.since_promotion if run.counts]
    metrics = [(run.arm == BASELINE, metric_of(run)) for run in counted]
    ours, theirs = (
        mean_or_none([value for is_base, value in metrics if value is not None and is_base is side])
        for side in (False, True)
    )
    if ours is None or theirs is None:
        return None
    return statements.delta(ours - theirs)


# The key figures of a history.


def metric_cards(view: HistoryView) -> list[MetricCard]:
    """Where it stands, how production does, what it is worth; empty before the first run."""
    if not view.runs:
        return []
    return [_flag(view), _runs(view), _quality(view), _speed(view), _saved(view)]


def _flag(view: HistoryView) -> MetricCard:
    flag = view.flag
    since = str(flag.since or "").replace("T", " ")[:16]
    note = f"state {flag.state}, since {since}" if view.flags else "never changed"
    return MetricCard("Flag", "on" if flag.enabled else "off", note)


def _runs(view: HistoryView) -> MetricCard:
    lost = sum(failed(run) for run in view.runs)
    parts = [f"{count} {arm}" for arm, count in view.counts.items()]
    parts += [f"{lost} failed"] if lost else []
    return MetricCard("Production runs", str(len(view.runs)), ", ".join(parts))


def _quality(view: HistoryView) -> MetricCard:
    name = f"{view.metric} since it was turned on"
    difference = quality_difference(view)
    if difference is None:
        return MetricCard(name, UNKNOWN, "Needs runs of both arms since then.")
    margin = shown(view.quality.get("margin"), significant)
    goal = statements.BETTER.get(str(view.quality.get("goal")))
    parts = ("mean of all its runs", f"margin {margin}", goal)
    return MetricCard(name, difference, "; ".join(part for part in parts if part))


def _speed(view: HistoryView) -> MetricCard:
    name = "Speed-up in production"
    gains = [gain for _, gain in speedups(view)]
    if not gains:
        return MetricCard(name, UNKNOWN, "Needs runs of both arms.")
    average = math.exp(mean([math.log(gain) for gain in gains]))
    note = f"full jobs, {plural(len(gains), 'run')}"
    expected = view.expected_speed
    note += f"; trial {statements.speedup(expected)}" if expected else ""
    return MetricCard(name, ratio(average), note)


def _saved(view: HistoryView) -> MetricCard:
    name, savings = "Saved so far", view.savings
    if savings is None:
        return MetricCard(name, UNKNOWN, "Nothing has been turned on.")
    if savings.saved_usd is None:
        return MetricCard(name, UNKNOWN, "No run of it has a price and a baseline to compare with.")
    parts = [plural(savings.priced_runs, "run")]
    if savings.expected_usd:
        parts.append(f"expected {money(savings.expected_usd)}")
        share = savings.share_of_estimate
        parts += [f"{percent(share)} of it"] if share is not None else []
    return MetricCard(name, money(savings.saved_usd), "; ".join(parts))


def speedups(view: HistoryView) -> list[tuple[int, float]]:
    """(run number, speed-up against the rolling baseline) of every finished candidate's run."""
    gains = []
    for place, (run, standard) in enumerate(zip(view.runs, view.standards, strict=True), 1):
        wall = wall_seconds_of(run)
        if wall is None or standard.wall_seconds is None:
            continue
        if run.arm != BASELINE and run.finished and run.counts:
            gains.append((place, standard.wall_seconds / wall))
    return gains
