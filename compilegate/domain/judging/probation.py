"""The probation: production runs are watched after a promotion, on quality and on speed.

Each of the two has a cumulative sum (monitor.py) against a fall of one margin, or of the whole
gain. An alarm reverts nothing: the next runs alternate baseline and candidate, and only if
these confirm the fall (monitor.py) is the flag turned off. A team's own pipeline cannot be
asked to take turns: while an alarm is open, all that it trains checks it. The order of runs in
time is replayed, each judged with what was known by then, so that a later run never rewrites an
earlier alarm. A run counts as watched if both sums had a figure of it.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

from compilegate.domain.arithmetic import ratio
from compilegate.domain.decision import (
    JUDGE_VERSION,
    Decision,
    ProbationStep,
    RequestedArm,
    Verdict,
)
from compilegate.domain.errors import InvalidEvidenceError
from compilegate.domain.formats import significant
from compilegate.domain.judging.equivalence import State, equivalence_of
from compilegate.domain.judging.evidence import PROBATION, Arm, Evidence, FullRun
from compilegate.domain.judging.evidence_file import decision_id
from compilegate.domain.judging.figures import (
    arm_figures,
    control_figures,
    production_quality_figures,
    saving_figures,
)
from compilegate.domain.judging.monitor import (
    FIRST,
    LAST,
    RELIABLE_SPREAD,
    Look,
    Monitor,
    Outcome,
    guardrail_monitor,
    quality_monitor,
    speed_monitor,
)
from compilegate.domain.judging.speed import judge_speed
from compilegate.domain.judging.validity import invalid_reasons, is_unapplied
from compilegate.domain.judging.whole_job import estimate_whole_job
from compilegate.domain.reasons import Reason
from compilegate.domain.workload.model import BASELINE

# Baseline runs without which there is nothing to compare production with.
LEAST_REFERENCE = 3
# A run that one of the sums could not see, by the code of that sum: the reason's code, and why.
BLIND = {
    "quality_regressed": (
        "quality_not_watched", "there was no baseline run to compare them with",
    ),
    "guardrail_regressed": (
        "guardrail_not_watched", "they did not report it, or no baseline run before them did",
    ),
    "speedup_gone": (
        "speed_not_watched",
        "they, or the baseline runs before them, were not timed or did other work",
    ),
}  # fmt: skip
# A candidate that crashes once may have been unlucky; twice is a pattern.
CRASHES = 2
# What says that the change did harm, and what follows where the equivalence check saw none.
QUALITY_LOST = ("quality_regressed", "guardrail_regressed", "candidate_crashed")
REVOKED = "equivalence_revoked"
# The alarm that a crash raises; the others have the name of their sum.
CRASH = "crash"


@dataclass(frozen=True)
class CheckedPairs:
    """What the pairs of a check said of one monitor's figure, after so many of them."""

    monitor: str
    pairs: int
    look: Look


@dataclass(frozen=True)
class ProbationFinding:
    """What the replay says: verdict, reasons, the next production runs, and each check so far."""

    verdict: Verdict
    reasons: tuple[Reason, ...]
    next: ProbationStep | None
    monitors: Mapping[str, Monitor]
    checks: tuple[CheckedPairs, ...] = ()


# Called after every run that was watched: its arm, the run, the monitors as they stand after it.
Observer = Callable[[str, FullRun, Mapping[str, Monitor]], None]


@dataclass
class _Watch:
    """The state that the replay carries from run to run; only these methods change it.

    ``alarm`` is what an open alarm is about, ``confirmations`` the runs of each arm that check it,
    ``pairs`` how many of each are wanted by now. ``blind`` counts runs that a sum could not see;
    ``reverted`` is why the candidate is turned off.
    """

    promoted: Arm
    monitors: Mapping[str, Monitor]
    alarm: str | None = None
    confirmations: dict[str, list[FullRun]] = field(default_factory=dict)
    pairs: int = FIRST
    checks: list[CheckedPairs] = field(default_factory=list)
    watched: int = 0
    blind: Counter[str] = field(default_factory=Counter)
    baselines: int = 0
    crashes: int = 0
    reverted: Reason | None = None
    cleared: int = 0
    unapplied: int = 0
    failed_baselines: int = 0

    def take(self, name: str, run: FullRun) -> bool:
        """Take in the next run; False for one that says nothing about the change."""
        ours = name == self.promoted.name
        if ours and run.finished and is_unapplied(run, self.promoted):
            self.unapplied += 1
            return False
        if not run.finished and ours:
            self._take_crash()
        elif not run.finished:
            self.failed_baselines += 1
        elif self.alarm and run.may_check:
            self.confirmations.setdefault(name, []).append(run)
        elif ours:
            self._count(run)
            alarmed = [key for key, monitor in self.monitors.items() if monitor.watch(run)]
            self.alarm = self.alarm or next(iter(alarmed), None)
        else:
            self.baselines += 1
            self._learn(run)
        # Where the baseline keeps failing, its earlier runs have to do.
        compared = self.failed_baselines >= FIRST or not self.missing(BASELINE)
        if self.alarm and compared and not self.missing(self.promoted.name):
            self._check()
        return True

    def missing(self, name: str) -> int:
        """How many runs of an arm the check of the alarm wants next."""
        return max(self.pairs - len(self.confirmations.get(name, ())), 0)

    def _learn(self, run: FullRun) -> None:
        for monitor in self.monitors.values():
            monitor.learn(run)

    def _count(self, run: FullRun) -> None:
        """A run that one of the sums could not see was not watched: it cannot end a probation."""
        unseen = [key for key, monitor in self.monitors.items() if not monitor.sees(run)]
        self.blind.update(unseen)
        self.watched += not unseen

    def _take_crash(self) -> None:
        name = self.promoted.name
        self.crashes += 1
        self.alarm = self.alarm or CRASH
        if self.crashes >= CRASHES:
            text = f"{name}: {self.crashes} production runs crashed or diverged"
            self.reverted = Reason("candidate_crashed", text, name)

    def _check(self) -> None:
        """Revert where a fall is confirmed, end the check where none is, or ask for a pair more.

        Only what raised the alarm or is suspicious too is on trial: a figure that was calm when
        the alarm came is not checked because the other one was. A crash casts doubt on both.
        """
        ours, theirs = self.confirmations[self.promoted.name], self.confirmations.get(BASELINE, [])
        last = self.pairs >= LAST or self.missing(BASELINE) > 0
        outcomes = set()
        for key, monitor in self.monitors.items():
            if self.alarm not in (key, CRASH) and not monitor.suspicious:
                continue
            seen = monitor.check(ours, theirs, last=last)
            if seen is None:  # nothing that could have fallen
                continue
            outcomes.add(seen.outcome)
            self.checks.append(CheckedPairs(key, self.pairs, seen))
            if seen.outcome is Outcome.REVERT:
                fall = seen.fall.size
                text = f"full jobs are only {ratio(math.exp(-fall))} as fast as the baseline's"
                if key != "speed":
                    text = f"{monitor.noun} is worse by {significant(fall, 2)}, confirmed by the "
                    text += "runs that checked the alarm"
                name = self.promoted.name
                self.reverted = Reason(monitor.code, f"{name}: {text}", name)
        if Outcome.OPEN in outcomes and not self.reverted:
            self.pairs += 1
        else:
            self._close_alarm(ours, theirs)

    def _close_alarm(self, ours: Sequence[FullRun], theirs: Sequence[FullRun]) -> None:
        for run in theirs:
            self._learn(run)
        for monitor in self.monitors.values():
            monitor.total = 0.0
        for run in ours:
            self._count(run)
        self.alarm, self.confirmations, self.failed_baselines = None, {}, 0
        self.pairs = FIRST
        self.cleared += 1

    def finding(
        self,
        verdict: Verdict,
        *reasons: Reason,
        runs: Iterable[str] = (),
        why: str = "",
    ) -> ProbationFinding:
        """What follows; the next ``runs`` check an open alarm."""
        asked = tuple(RequestedArm(arm, confirm=self.alarm is not None) for arm in runs)
        step = ProbationStep(asked, why) if asked else None
        return ProbationFinding(verdict, reasons, step, self.monitors, tuple(self.checks))


def judge_probation(
    evidence: Evidence, speedup: float | None, observer: Observer | None = None
) -> ProbationFinding:
    """Decide the probation; ``speedup`` is what the trial's short blocks proved, if known.

    ``observer`` follows the replay, for a chart; it changes nothing.
    """
    promoted = evidence.promoted_arm
    monitors = {
        "quality": quality_monitor(evidence, promoted),
        **{
            f"guardrail {one.metric}": guardrail_monitor(evidence, one)
            for one in evidence.quality.guardrails
        },
        "speed": speed_monitor(evidence, promoted, speedup),
    }
    watch, needed = _Watch(promoted, monitors), evidence.policy.probation_runs
    runs = [(BASELINE, run) for run in evidence.baseline.probation]
    runs += [(promoted.name, run) for run in promoted.probation]
    for name, run in sorted(runs, key=lambda item: item[1].order):
        if not watch.take(name, run):
            continue
        if observer is not None:
            observer(name, run, watch.monitors)
        if watch.reverted:
            return watch.finding(Verdict.REVERT, watch.reverted)
        if watch.alarm is None and watch.watched >= needed:
            # A probation does not end while a sum stands high.
            watch.alarm = next((key for key, m in monitors.items() if m.suspicious), None)
    return _standing(watch, evidence)


def _standing(watch: _Watch, evidence: Evidence) -> ProbationFinding:
    """The finding after the last run, where nothing was reverted."""
    name, needed, monitors = watch.promoted.name, evidence.policy.probation_runs, watch.monitors
    reasons = list(_remarks(watch))
    if watch.unapplied:
        text = f"{name}: {watch.unapplied} production runs ran without the change"
        reasons.insert(0, Reason("treatment_not_applied", text, name))
        if 2 * watch.unapplied > sum(run.finished for run in watch.promoted.probation):
            return watch.finding(Verdict.INVALID, *reasons)
    if watch.alarm:
        words = "a production run crashed or diverged"
        if watch.alarm != CRASH:
            on = monitors[watch.alarm]
            limit = "over" if on.total > on.limit else "close to its limit of"
            words = f"{on.noun} got worse (cumulative sum {on.total:.4g}, {limit} {on.limit:.4g})"
        alarm = Reason("alarm", f"{name}: {words}; runs of both arms check it", name)
        asked, why = _confirmation_runs(watch), "to check the alarm"
        return watch.finding(Verdict.CONTINUE, alarm, *reasons, runs=asked, why=why)
    if watch.watched >= needed:
        text = f"{name}: {watch.watched} production runs held quality and speed"
        return watch.finding(Verdict.PERMANENT, Reason("probation_passed", text, name), *reasons)
    missing = min(m.reference_runs for m in monitors.values()) < LEAST_REFERENCE
    # Jobs that do not record a figure do not record it however often they are asked.
    missing = missing and watch.baselines < LEAST_REFERENCE
    if missing and watch.failed_baselines >= LEAST_REFERENCE:
        text = "the baseline keeps failing: there is nothing to compare production with"
        failed = Reason("baseline_failed", text, BASELINE)
        return watch.finding(Verdict.INCONCLUSIVE, failed, *reasons)
    next_run = BASELINE if missing else name
    why = "a baseline run to compare with" if missing else "the next scheduled production run"
    text = f"{name}: {watch.watched} of {needed} production runs watched, no alarm"
    goes_on = Reason("probation_goes_on", text, name)
    return watch.finding(Verdict.CONTINUE, goes_on, *reasons, runs=[next_run], why=why)


def _remarks(watch: _Watch) -> Iterator[Reason]:
    """Why no alarm is no proof, alarms that were cleared, and runs that were not watched."""
    name = watch.promoted.name
    for monitor in watch.monitors.values():
        if monitor.spread > RELIABLE_SPREAD * monitor.shift:
            text = (
                f"{monitor.noun} varies by {monitor.spread:.4g} from run to run: {monitor.runs} "
                f"runs do not show a loss of {monitor.shift:.4g} reliably"
            )
            yield Reason("probation_weak", text)
    if watch.cleared:
        text = f"{watch.cleared} alarm{'s' * (watch.cleared > 1)} checked and not confirmed"
        yield Reason("alarm_cleared", text, name)
    for key, runs in watch.blind.items():
        code, why = BLIND[watch.monitors[key].code]
        yield Reason(code, f"{name}: {key} was not watched in {runs} production runs: {why}", name)


def _confirmation_runs(watch: _Watch) -> Iterator[str]:
    """The runs still missing, in turn: B C C B B C, so that a steady drift hits both alike."""
    promoted = watch.promoted.name
    missing = {name: watch.missing(name) for name in (BASELINE, promoted)}
    turns = [BASELINE, promoted, promoted, BASELINE] * watch.pairs
    for name in turns[2 * watch.pairs - sum(missing.values()) :]:
        if missing[name] > 0:
            missing[name] -= 1
            yield name


# The judge of a promotion: production's runs in, decision out (a trial's is in judge.py).
#
# Kept apart from the gates of a trial, so that what turns a regression off loads none of them.

Judge = Callable[[Evidence], Decision]


def judge_production(evidence: Evidence) -> Decision:
    """Decide on a promotion's evidence, which is of phase ``probation``.

    Raises InvalidEvidenceError for figures of a size that nothing can be computed from.
    """
    with computable():
        invalid = invalid_reasons(evidence)
        if invalid:
            controls = tuple(control_figures(one, evidence) for one in evidence.controls)
            return decision(evidence, PROBATION, Verdict.INVALID, invalid, controls=controls)
        promoted = evidence.promoted_arm
        speed, whole = judge_speed(promoted, evidence), estimate_whole_job(promoted, evidence)
        finding = judge_probation(evidence, speed.estimate)
        first, *guardrails = (
            production_quality_figures(one, one.promoted_arm)
            for one in (evidence, *map(evidence.by, evidence.quality.guardrails))
        )
        return decision(
            evidence,
            PROBATION,
            finding.verdict,
            [*finding.reasons, *_revoked(finding, evidence)],
            candidate=promoted.name,
            speedup=whole.figures(speed) if whole else None,
            quality=replace(first, guardrails=tuple(guardrails)),
            saving=saving_figures(promoted, evidence, whole),
            next=finding.next,
        )


def _revoked(finding: ProbationFinding, evidence: Evidence) -> Iterator[Reason]:
    """A confirmed loss of quality refutes the equivalence check that the arm had passed."""
    name, checked = evidence.promoted_arm.name, equivalence_of(evidence.promoted_arm, evidence)
    passed = checked.known if checked.state is State.PASSED else None
    lost = any(reason.code in QUALITY_LOST for reason in finding.reasons)
    if finding.verdict is Verdict.REVERT and lost and passed is not None:
        text = f"{name} had passed the equivalence check, which no longer counts in this deployment"
        yield Reason(REVOKED, f"{text} for {passed.words}", name)


def replay_probation(evidence: Evidence, observer: Observer) -> ProbationFinding:
    """What the judge goes through run by run on a probation's evidence; nothing is decided.

    Raises InvalidEvidenceError as ``judge_production`` does.
    """
    with computable():
        speed = judge_speed(evidence.promoted_arm, evidence)
        return judge_probation(evidence, speed.estimate, observer)


def decision(
    evidence: Evidence,
    stage: str,
    verdict: Verdict,
    reasons: Iterable[Reason],
    **figures: Any,
) -> Decision:
    """A decision with what every one has: its id, each reason once, each arm's figures."""
    return Decision.of_this_judge(
        evidence.workload,
        decision_id(evidence.content, JUDGE_VERSION),
        stage,
        verdict,
        reasons,
        arms=tuple(arm_figures(arm, evidence) for arm in evidence.arms),
        **figures,
    )


@contextmanager
def computable() -> Iterator[None]:
    """Refuse finite figures of absurd size, which overflow somewhere: no verdict can rest on them.

    Raises InvalidEvidenceError.
    """
    try:
        yield
    except (ArithmeticError, ValueError) as error:
        raise InvalidEvidenceError(f"a figure is beyond what can be computed: {error}") from error
