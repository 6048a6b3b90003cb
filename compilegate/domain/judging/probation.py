"""The probation: production runs are watched after a promotion, on quality and on speed.

Each of the two has a cumulative sum (cusum.py) against a fall of one margin, or of the whole
gain. An alarm reverts nothing: the next runs alternate baseline and candidate, and only if
these confirm the fall is the flag turned off. A team's own pipeline cannot be asked to
take turns: while an alarm is open, all that it trains checks it. The order of runs in time is
replayed, each judged with what was known by then, so that a later run never rewrites an
earlier alarm. A run counts as watched if both sums had a figure of it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from compilegate.domain.decision import ProbationStep, Verdict
from compilegate.domain.judging.evidence import Arm, Evidence, FullRun
from compilegate.domain.judging.monitor import Monitor, quality_monitor, speed_monitor
from compilegate.domain.judging.validity import is_unapplied
from compilegate.domain.reasons import Reason
from compilegate.domain.workload.model import BASELINE

# Runs of each arm that check an alarm.
CONFIRMATIONS = 3
# Baseline runs without which there is nothing to compare production with.
LEAST_REFERENCE = 3
# Why a run counts for neither, by what could not be watched.
BLIND = {
    "quality": "there was no baseline run to compare them with",
    "speed": "they, or the baseline runs before them, recorded no wall-clock time",
}
# A candidate that crashes once may have been unlucky; twice is a pattern.
CRASHES = 2


@dataclass
class _Watch:
    """The state that the replay carries from run to run."""

    monitors: Mapping[str, Monitor]
    alarm: str | None = None
    confirmations: dict[str, list[FullRun]] = field(default_factory=dict)
    watched: int = 0
    blind: Counter[str] = field(default_factory=Counter)
    baselines: int = 0
    crashes: int = 0
    reverted: Reason | None = None
    cleared: int = 0
    unapplied: int = 0
    failed_baselines: int = 0


@dataclass(frozen=True)
class ProbationFinding:
    """What the replay says: verdict, reasons and the next production run."""

    verdict: Verdict
    reasons: tuple[Reason, ...]
    next: ProbationStep | None
    monitors: Mapping[str, Monitor]


# Called after every run that was watched: its arm, the run, the monitors as they stand after it.
Observer = Callable[[str, FullRun, Mapping[str, Monitor]], None]


def judge_probation(
    evidence: Evidence, speedup: float | None, observer: Observer | None = None
) -> ProbationFinding:
    """Decide the probation; ``speedup`` is what the trial's short blocks proved, if known.

    ``observer`` follows the replay, for a chart; it changes nothing.
    """
    promoted = evidence.promoted_arm
    watch = _Watch(
        {
            "quality": quality_monitor(evidence, promoted),
            "speed": speed_monitor(evidence, promoted, speedup),
        }
    )
    for name, run in _in_time(evidence, promoted):
        if name == promoted.name and run.finished and is_unapplied(run, promoted):
            watch.unapplied += 1  # it says nothing about the change, for or against
            continue
        _take(watch, name, run, promoted.name)
        if observer is not None:
            observer(name, run, watch.monitors)
        if watch.reverted:
            return ProbationFinding(Verdict.REVERT, (watch.reverted,), None, watch.monitors)
        if watch.alarm is None and watch.watched >= evidence.policy.probation_runs:
            watch.alarm = next((key for key, m in watch.monitors.items() if m.suspicious), None)
    return _standing(watch, evidence, promoted)


def _in_time(evidence: Evidence, promoted: Arm) -> Iterator[tuple[str, FullRun]]:
    runs = [(BASELINE, run) for run in evidence.baseline.probation]
    runs += [(promoted.name, run) for run in promoted.probation]
    return iter(sorted(runs, key=lambda item: item[1].order))


def _take(watch: _Watch, name: str, run: FullRun, promoted: str) -> None:
    if not run.finished:
        _take_failure(watch, name, promoted)
    elif watch.alarm and run.may_check:
        watch.confirmations.setdefault(name, []).append(run)
    elif name == promoted:
        _count(watch, run)
        for key, monitor in watch.monitors.items():
            if monitor.watch(run) and watch.alarm is None:
                watch.alarm = key
    else:
        watch.baselines += 1
        for monitor in watch.monitors.values():
            monitor.learn(run)
    if watch.alarm and _confirmed_enough(watch, promoted):
        _close_alarm(watch, promoted)


def _count(watch: _Watch, run: FullRun) -> None:
    """A run that one of the sums could not see was not watched: it cannot end a probation."""
    unseen = [key for key, monitor in watch.monitors.items() if not monitor.sees(run)]
    watch.blind.update(unseen)
    watch.watched += not unseen


def _take_failure(watch: _Watch, name: str, promoted: str) -> None:
    if name != promoted:
        watch.failed_baselines += 1
        return
    watch.crashes += 1
    watch.alarm = watch.alarm or "crash"
    if watch.crashes >= CRASHES:
        text = f"{promoted}: {watch.crashes} production runs crashed or diverged"
        watch.reverted = Reason("candidate_crashed", text, promoted)


def _confirmed_enough(watch: _Watch, promoted: str) -> bool:
    counts = {name: len(watch.confirmations.get(name, ())) for name in (BASELINE, promoted)}
    if watch.failed_baselines >= CONFIRMATIONS:  # earlier ones have to do
        counts[BASELINE] = CONFIRMATIONS
    return min(counts.values()) >= CONFIRMATIONS


def _close_alarm(watch: _Watch, promoted: str) -> None:
    """Revert if a fall is confirmed: of what raised the alarm, or of what is suspicious too.

    Three runs of each arm differ by half a margin by chance often enough; a figure that was calm
    when the alarm came is not checked because the other one was. A crash casts doubt on both.
    """
    ours, theirs = watch.confirmations[promoted], watch.confirmations.get(BASELINE, [])
    for key, monitor in watch.monitors.items():
        if watch.alarm not in (key, "crash") and not monitor.suspicious:
            continue
        fall = monitor.confirmed_fall(ours, theirs)
        if fall:
            watch.reverted = Reason(fall.code, f"{promoted}: {fall.message}", promoted)
    for run in theirs:
        for monitor in watch.monitors.values():
            monitor.learn(run)
    for monitor in watch.monitors.values():
        monitor.reset()
    for run in ours:
        _count(watch, run)
    watch.alarm, watch.confirmations, watch.failed_baselines = None, {}, 0
    watch.cleared += 1


def _standing(watch: _Watch, evidence: Evidence, promoted: Arm) -> ProbationFinding:
    needed = evidence.policy.probation_runs
    reasons = [reason for m in watch.monitors.values() for reason in m.weaknesses()]
    if watch.cleared:
        text = f"{watch.cleared} alarm{'s' * (watch.cleared > 1)} checked and not confirmed"
        reasons.append(Reason("alarm_cleared", text, promoted.name))
    for key, runs in watch.blind.items():
        text = f"{promoted.name}: {key} was not watched in {runs} production runs: {BLIND[key]}"
        reasons.append(Reason(f"{key}_not_watched", text, promoted.name))
    if watch.unapplied:
        text = f"{promoted.name}: {watch.unapplied} production runs ran without the change"
        reasons.insert(0, Reason("treatment_not_applied", text, promoted.name))
        if 2 * watch.unapplied > sum(run.finished for run in promoted.probation):
            return ProbationFinding(Verdict.INVALID, tuple(reasons), None, watch.monitors)
    if watch.alarm:
        text = f"{promoted.name}: {_alarm_words(watch)}; runs of both arms check it"
        step = _step(_confirmation_runs(watch, promoted.name), "to check the alarm", confirm=True)
        return _open(watch, [Reason("alarm", text, promoted.name), *reasons], step)
    if watch.watched >= needed:
        text = f"{promoted.name}: {watch.watched} production runs held quality and speed"
        passed = Reason("probation_passed", text, promoted.name)
        return ProbationFinding(Verdict.PERMANENT, (passed, *reasons), None, watch.monitors)
    text = f"{promoted.name}: {watch.watched} of {needed} production runs watched, no alarm"
    missing = min(m.reference_runs for m in watch.monitors.values()) < LEAST_REFERENCE
    # Jobs that do not record a figure do not record it however often they are asked.
    missing = missing and watch.baselines < LEAST_REFERENCE
    if missing and watch.failed_baselines >= LEAST_REFERENCE:
        text = "the baseline keeps failing: there is nothing to compare production with"
        failed = Reason("baseline_failed", text, BASELINE)
        return ProbationFinding(Verdict.INCONCLUSIVE, (failed, *reasons), None, watch.monitors)
    name = BASELINE if missing else promoted.name
    why = "a baseline run to compare with" if missing else "the next scheduled production run"
    return _open(
        watch, [Reason("probation_goes_on", text, promoted.name), *reasons], _step([name], why)
    )


def _open(watch: _Watch, reasons: Sequence[Reason], step: ProbationStep) -> ProbationFinding:
    return ProbationFinding(Verdict.CONTINUE, tuple(reasons), step, watch.monitors)


def _alarm_words(watch: _Watch) -> str:
    if watch.alarm == "crash":
        return "a production run crashed or diverged"
    return watch.monitors[str(watch.alarm)].alarm_words()


def _confirmation_runs(watch: _Watch, promoted: str) -> list[str]:
    """The runs still missing, in turn: B C C B B C, so that a steady drift hits both alike."""
    missing = {
        name: max(CONFIRMATIONS - len(watch.confirmations.get(name, ())), 0)
        for name in (BASELINE, promoted)
    }
    turns = [BASELINE, promoted, promoted, BASELINE] * CONFIRMATIONS
    names = []
    for name in turns[2 * CONFIRMATIONS - sum(missing.values()) :]:
        if missing[name] > 0:
            missing[name] -= 1
            names.append(name)
    return names


def _step(arms: Sequence[str], why: str, *, confirm: bool = False) -> ProbationStep:
    return ProbationStep(tuple(arms), confirm, why)
