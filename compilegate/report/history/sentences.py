"""The history in a sentence that a manager understands, and a few more under it."""

from __future__ import annotations

from compilegate.domain.flag_change import EVALUATE
from compilegate.domain.formats import money, percent, plural
from compilegate.domain.judging.evidence import mean_or_none
from compilegate.domain.production.run_figures import metric_of
from compilegate.domain.records.flags import HUMAN, FlagVersion
from compilegate.domain.utc import day
from compilegate.domain.words import ALARM, FLAG_STATES, Label, verdict_label
from compilegate.domain.workload.model import BASELINE
from compilegate.report import statements
from compilegate.report.history.view import HistoryView


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
    return (
        f"Retired; before that: {state[0].lower()}{state[1:]}" if view.history.is_retired else state
    )


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
        return f"{by} turned {candidate} {word} by hand: {_cause(view, last)}"
    if flag.state == "probation":
        return _on_probation(view, candidate)
    # The reasons of automated changes name the candidate.
    stale = "still on" if flag.enabled else "off until a new trial proves it again"
    sentences = {
        "reverted": f"The candidate was turned off automatically: {_cause(view, last)}",
        "permanent": f"The candidate is on permanently: {_cause(view, last)}",
        "stale": f"{candidate} is {stale}: production has changed since the proof",
    }
    return sentences.get(flag.state, f"Production trains without a compiler: {_cause(view, last)}")


def _without_flag(view: HistoryView) -> str:
    name, runs = view.name, plural(len(view.runs), "run")
    if view.runs:
        return f"{name} has trained without a compiler so far: no trial has turned one on in {runs}"
    if view.registered:
        return f"{name} is registered, and production has not trained it yet"
    return f"Nothing has happened to {name} yet"


def _on_probation(view: HistoryView, candidate: str) -> str:
    if _alarmed(view):
        alarm = _last_reason(view, "alarm")
        return f"The candidate is on, and an alarm is being checked: {alarm}"
    progress = _last_reason(view, "probation_goes_on")
    if progress:
        return f"The candidate is on and watched run by run: {progress}"
    so_far = "no run of it has ended yet"
    if view.reviews:
        so_far = str(view.reviews[-1].verdict or "nothing to judge yet")
    return f"{candidate} is on and watched run by run: {so_far}"


def _alarmed(view: HistoryView) -> bool:
    return view.flag.enabled and bool(_last_reason(view, "alarm"))


def _last_reason(view: HistoryView, code: str) -> str:
    return (view.reviews[-1].reason(code) or "") if view.reviews else ""


def _promotion_sentence(view: HistoryView) -> str:
    if view.promotion is None:
        return ""
    speed = view.expected_speed
    measured = f": whole jobs are {statements.speedup(speed)}" if speed.estimate else ""
    name = view.promotion.flag.candidate
    return f"Trial {view.promotion.trial} turned “{name}” on ({day(view.promotion.at)}){measured}."


def _trial_sentence(view: HistoryView) -> str:
    """The latest trial's verdict, where none has ever turned anything on."""
    decided = view.history.decided
    if not decided:
        return ""
    last = decided[-1]
    verdict = verdict_label(last.verdict).text.lower()
    reason = (last.reasons or ("no reason was recorded",))[0].rstrip(".")
    return f"The latest trial ({last.trial}) ended with “{verdict}: {reason}”."


def _watch_sentence(view: HistoryView) -> str:
    """How many runs production has trained since the promotion, and with which arm."""
    if view.promotion is None:
        return ""
    since = view.since_promotion
    candidates = sum(run.arm != BASELINE for run in since)
    confirming = sum(run.confirm for run in since)
    text = f"Since then production has trained {plural(candidates, 'time')} with it"
    text += f" and {plural(len(since) - candidates, 'time')} without" if since else ""
    if confirming:
        text += f"; {plural(confirming, 'run')} of both took turns to check an alarm"
    return f"{text}."


def _fault_sentence(view: HistoryView) -> str:
    """The injected fault, and how soon it raised the alarm."""
    if not view.faulty:
        return ""
    faults = ", ".join(sorted({str(view.fault_of(run)) for run in view.faulty}))
    text = f"The fault was injected on purpose ({faults})"
    alarms = (review for review in view.reviews if review.reason("alarm"))
    # That of a faulty run, or a later one.
    alarm = next((one for one in alarms if one.at >= int(view.faulty[0].ended_at)), None)
    if alarm is not None:
        runs = sum(run.ended_at <= alarm.at + 1 for run in view.faulty)
        text += f" and raised the alarm after {plural(max(runs, 1), 'faulty run')}"
    return f"{text}."


def _money_sentence(view: HistoryView) -> str:
    savings = view.savings
    if savings is None or savings.saved_usd is None:
        return ""
    word = "saved" if savings.saved_usd >= 0 else "cost"
    text = f"It has {word} {money(abs(savings.saved_usd))} in {plural(savings.priced_runs, 'run')}"
    if savings.expected_usd:
        text += f", against {money(savings.expected_usd)} that the trial expected"
        share = savings.share_of_estimate
        text += f" ({percent(share)})" if share is not None and share > 0 else ""
    return f"{text}."


def _clock_sentence(view: HistoryView) -> str:
    if not view.ahead:
        return ""
    return (
        "The clock of the runs is simulated: they were started one after another, and each stands "
        "for the scheduled time beside it."
    )


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
