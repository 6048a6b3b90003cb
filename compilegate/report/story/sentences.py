"""The story in a sentence that a manager understands, and a few more under it."""

from __future__ import annotations

from datetime import UTC, datetime

from compilegate.domain.flag import parse_flag
from compilegate.domain.flag_change import HUMAN, is_human
from compilegate.domain.workload.model import BASELINE
from compilegate.report.formats import money, number, percent, plural, ratio, significant
from compilegate.report.model import Document
from compilegate.report.story.tale import Tale
from compilegate.report.words import LABELS as VERDICTS

LABELS = {
    "off": ("Off", "off"), "probation": ("On probation", "good"),
    "permanent": ("On for good", "good"), "reverted": ("Turned back off", "bad"),
    "stale": ("No longer what was proven", "open"),
}  # fmt: skip


def label(tale: Tale) -> tuple[str, str]:
    """Where it stands in two or three words, and their tone: good, off, open or bad."""
    if tale.retired:
        return "Retired", "off"
    if not tale.flags and not tale.runs:
        return "Not started", "off"
    if _alarmed(tale):
        return "Alarm being checked", "open"
    state = tale.flag.state
    if state == "reverted" and is_human(tale.flags[-1]):
        return "Turned off by hand", "off"
    return LABELS.get(state, (state, "open"))


def headline(tale: Tale) -> str:
    """One sentence; of what is retired, what became of it before."""
    said = _standing(tale)
    return f"Retired; before that: {said[0].lower()}{said[1:]}" if tale.retired else said


def lede(tale: Tale) -> list[str]:
    """How it came to that, each sentence left out where nothing is known."""
    found = [
        _promotion_sentence(tale) or _trial_sentence(tale),
        _watch_sentence(tale),
        _fault_sentence(tale),
        _money_sentence(tale),
        _clock_sentence(tale),
    ]
    return [sentence for sentence in found if sentence]


def cause(entry: Document) -> str:
    """Why the flag was changed, without the arm's name in front and the dot at the end."""
    reason = str(entry["reason"]).split("; ")[0].strip().rstrip(".")
    candidate, colon, rest = reason.partition(": ")
    return rest if colon and " " not in candidate else reason


def _standing(tale: Tale) -> str:
    if not tale.flags:
        return _without_flag(tale)
    last, flag = tale.flags[-1], tale.flag
    candidate = f"“{flag.candidate}”" if flag.candidate else "The compiler"
    if is_human(last):
        by, word = str(last["by"]).removeprefix(HUMAN), "on" if flag.enabled else "off"
        return f"{by} turned {candidate} {word} by hand: {cause(last)}"
    if flag.state == "probation":
        return _on_probation(tale, candidate)
    stale = "still on" if flag.enabled else "off until a new trial proves it again"
    said = {
        "reverted": f"{candidate} was turned off by itself: {cause(last)}",
        "permanent": f"{candidate} is on for good: {cause(last)}",
        "stale": f"{candidate} is {stale}: production is no longer what was proven",
    }
    return said.get(flag.state, f"Production trains without a compiler: {cause(last)}")


def _without_flag(tale: Tale) -> str:
    name, runs = tale.source["name"], plural(len(tale.runs), "run")
    if tale.runs:
        return f"{name} has trained without a compiler so far: no trial has turned one on in {runs}"
    if tale.registered:
        return f"{name} is registered, and production has not trained it yet"
    return f"Nothing has happened to {name} yet"


def _on_probation(tale: Tale, candidate: str) -> str:
    if _alarmed(tale):
        return f"{candidate} is on, and an alarm is being checked: {_last_reason(tale, 'alarm')}"
    return f"{candidate} is on and watched run by run: {_watched_words(tale)}"


def _watched_words(tale: Tale) -> str:
    if not tale.watches:
        return "no run of it has ended yet"
    reason = _last_reason(tale, "probation_goes_on")
    return reason or str(tale.watches[-1]["verdict"] or "nothing to judge yet")


def _alarmed(tale: Tale) -> bool:
    return tale.flag.enabled and bool(_last_reason(tale, "alarm"))


def _last_reason(tale: Tale, code: str) -> str:
    reasons = tale.watches[-1].get("reasons") or () if tale.watches else ()
    found = next((str(r["message"]) for r in reasons if r["code"] == code), "")
    return found.partition(": ")[2] or found


def _promotion_sentence(tale: Tale) -> str:
    if tale.promotion is None:
        return ""
    at = datetime.fromtimestamp(float(tale.promotion["at"]), tz=UTC)
    speed = number((tale.decision.get("speedup") or {}).get("estimate"))
    proven = f": whole jobs were proven {ratio(speed)} as fast" if speed else ""
    name = parse_flag(str(tale.promotion["to"])).candidate
    return f"Trial {tale.promotion['trial']} turned “{name}” on ({at:%Y-%m-%d}){proven}."


def _trial_sentence(tale: Tale) -> str:
    """What the latest trial came to, where none has ever turned anything on."""
    decided = [entry for entry in tale.entries if entry.get("kind") == "decision"]
    if not decided:
        return ""
    last = decided[-1]
    verdict = {str(known): words for known, words in VERDICTS.items()}.get(str(last["verdict"]))
    reasons = last.get("reasons") or ["no reason was recorded"]
    said = f"{(verdict or str(last['verdict'])).lower()}: {str(reasons[0]).rstrip('.')}"
    return f"The latest trial ({last['trial']}) ended with “{said}”."


def _watch_sentence(tale: Tale) -> str:
    """How long it took from the alarm's first sign to the end."""
    if tale.promotion is None:
        return ""
    since = [run for run in tale.runs if run.started_at >= float(tale.promotion["at"])]
    candidates = sum(run.arm != BASELINE for run in since)
    confirming = sum(run.confirm for run in since)
    text = f"Since then production has trained {plural(candidates, 'time')} with it"
    text += f" and {plural(len(since) - candidates, 'time')} without" if since else ""
    if confirming:
        text += f"; {plural(confirming, 'run')} of both took turns to check an alarm"
    return f"{text}."


def _fault_sentence(tale: Tale) -> str:
    """What was broken on purpose, and how soon that was seen."""
    if not tale.faulty:
        return ""
    faults = ", ".join(sorted({str(tale.fault_of(run)) for run in tale.faulty}))
    text = f"The fault was injected on purpose ({faults})"
    alarm = next((w for w in tale.watches if _has(w, "alarm") and _after(tale, w)), None)
    if alarm is not None:
        runs = sum(run.ended_at <= alarm["at"] + 1 for run in tale.faulty)
        text += f" and raised the alarm after {plural(max(runs, 1), 'faulty run')}"
    return f"{text}."


def _has(watch: Document, code: str) -> bool:
    return any(reason["code"] == code for reason in watch.get("reasons") or ())


def _after(tale: Tale, watch: Document) -> bool:
    """Whether it was the look at a faulty run, or a later one."""
    return bool(watch["at"] >= int(tale.faulty[0].ended_at))


def _money_sentence(tale: Tale) -> str:
    found = tale.savings
    if found is None or found.saved_usd is None:
        return ""
    word = "saved" if found.saved_usd >= 0 else "cost"
    text = f"It has {word} {money(abs(found.saved_usd))} in {plural(found.priced_runs, 'run')}"
    if found.expected_usd:
        text += f", against {money(found.expected_usd)} that the trial expected"
        share = found.share_of_estimate
        text += f" ({percent(share)})" if share is not None and share > 0 else ""
    return f"{text}."


def _clock_sentence(tale: Tale) -> str:
    if not tale.ahead:
        return ""
    return (
        "The clock of the runs is simulated: they were started one after another and stand for "
        "the nights named beside them."
    )


def tile_quality(tale: Tale) -> tuple[float, float] | None:
    """Means of the metric of both arms since the promotion: baseline, candidate."""
    if tale.promotion is None:
        return None
    since = [run for run in tale.runs if run.started_at >= float(tale.promotion["at"])]
    means = []
    for is_base in (True, False):
        values = [
            value
            for run in since
            if (run.arm == BASELINE) is is_base and run.counts
            if (value := number(run.result.get("metric"))) is not None
        ]
        if not values:
            return None
        means.append(sum(values) / len(values))
    return means[0], means[1]


def difference(tale: Tale, means: tuple[float, float]) -> str:
    """The candidate's mean against the baseline's, in words."""
    gap = means[1] - means[0]
    if tale.quality.get("goal") == "minimize":
        gap = -gap
    if gap == 0:
        return "no different"
    return f"{significant(abs(gap), 2)} {'better' if gap > 0 else 'worse'}"
