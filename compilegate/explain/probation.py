"""Does production confirm the promotion? Both watches, run by run."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from compilegate.domain.decision import Decision, Interval, Verdict
from compilegate.domain.formats import percent, significant
from compilegate.domain.judging.evidence import Arm, Evidence, FullRun
from compilegate.domain.judging.figures import production_quality_figures
from compilegate.domain.judging.monitor import (
    CLEAR_AT,
    FALSE_ALARM,
    LAST,
    OVERSHOOT,
    REVERT_AT,
    SUSPICIOUS,
    Monitor,
    Outcome,
    cusum_step,
    cusum_threshold,
    look,
)
from compilegate.domain.judging.probation import ProbationFinding, judge_probation
from compilegate.domain.workload.model import BASELINE
from compilegate.explain.item import Item, Reporter, Section

item = Reporter(Section.PROBATION)
WORDS = {
    Outcome.REVERT: "confirmed",
    Outcome.CLEAR: "not confirmed",
    Outcome.OPEN: f"open: another pair decides, at most {LAST}",
}
WATCHES = {"quality": "quality watch", "speed": "speed watch"}


@dataclass(frozen=True)
class Moment:
    """The probation just after one run, judged on the runs until then."""

    arm: str
    run: FullRun
    finding: ProbationFinding

    @property
    def alarmed(self) -> bool:
        """Whether an alarm is open."""
        return any(reason.code == "alarm" for reason in self.finding.reasons)


def probation_items(
    decision: Decision, promoted: Arm, speedup: float | None, evidence: Evidence
) -> Iterator[Item]:
    """What is watched, the sums after each run, alarms and how they were checked."""
    words = decision.reasons[0].message
    yield item.answer(str(decision.verdict), words, of=judge_probation)
    start = judge_probation(_until(evidence, promoted, ()), speedup).monitors
    moments = list(replay(evidence, promoted, speedup))
    for key, monitor in start.items():
        yield from _watch(key, monitor, moments)
        yield from _sums(key, moments, promoted.name)
    yield from _checks(moments)
    yield from _production(decision, evidence)
    yield item(
        "production runs asked for", evidence.policy.probation_runs,
        "Without a confirmed fall the candidate stays on permanently.",
        unit="runs", of="workload.model.Policy.probation_runs",
    )  # fmt: skip


def _production(decision: Decision, evidence: Evidence) -> Iterator[Item]:
    quality = decision.quality
    if quality and quality.estimate is not None:
        interval = f", interval {_ends(quality.interval)}" if quality.interval else ""
        words = f"Above 0 is better{interval}. The margin is {evidence.quality.margin:g}."
        yield item(
            "quality of production's runs",
            quality.estimate,
            words,
            unit=evidence.quality.metric,
            formula="mean(x) - mu",
            inputs=vars(quality.runs),
            of=production_quality_figures,
        )


def _ends(interval: Interval) -> str:
    low, high = interval
    return f"{significant(low)} to {significant(high)}"


def replay(evidence: Evidence, promoted: Arm, speedup: float | None) -> Iterator[Moment]:
    """Judge again after each run; a later run never changes an earlier result."""
    runs = [(BASELINE, run) for run in evidence.baseline.probation]
    runs += [(promoted.name, run) for run in promoted.probation]
    ordered = sorted(runs, key=lambda pair: pair[1].order)
    for count, (name, run) in enumerate(ordered, start=1):
        so_far = _until(evidence, promoted, ordered[:count])
        moment = Moment(name, run, judge_probation(so_far, speedup))
        yield moment
        if moment.finding.verdict is Verdict.REVERT:
            return


def _until(evidence: Evidence, promoted: Arm, runs: Sequence[tuple[str, FullRun]]) -> Evidence:
    """The evidence with these production runs only."""

    def cut(arm: Arm) -> Arm:
        if arm.name not in (BASELINE, promoted.name):
            return arm
        return replace(arm, probation=tuple(run for name, run in runs if name == arm.name))

    return replace(evidence, arms=tuple(cut(arm) for arm in evidence.arms))


def _watch(key: str, monitor: Monitor, moments: Sequence[Moment]) -> Iterator[Item]:
    latest = moments[-1].finding.monitors[key] if moments else monitor
    name, unit = WATCHES[key], "log ratio" if key == "speed" else latest.noun
    if latest.reference_runs:
        gain = " + gain" * bool(latest.level)
        yield item(
            f"{name}: where it should stand", latest.reference,
            f"{latest.noun}, turned so that higher is better, as the baseline's runs have it"
            + (", plus the gain that was promoted." if gain else "."),
            symbol="mu", unit=unit, formula=f"mean(baseline runs){gain}",
            inputs={"baseline runs": latest.reference_runs, "gain": latest.level},
            of="judging.monitor.Monitor.reference",
        )  # fmt: skip
    fall = "the gain above reject_speedup" if key == "speed" else "one margin"
    yield item(
        f"{name}: fall to see", monitor.shift,
        f"A lasting fall of this size, {fall}, must be detected.",
        symbol="m", unit=unit, of=f"judging.monitor.{key}_monitor",
    )  # fmt: skip
    yield item(
        f"{name}: spread", monitor.spread, "How much one run differs from the next.",
        symbol="s", unit=unit, of=f"judging.monitor.{key}_monitor",
    )  # fmt: skip
    yield from _threshold(name, monitor, unit)


def _threshold(name: str, monitor: Monitor, unit: str) -> Iterator[Item]:
    k = monitor.shift / (2 * monitor.spread)
    h = cusum_threshold(monitor.shift, monitor.spread, runs=monitor.runs, error=FALSE_ALARM)
    yield item(
        f"{name}: allowance", k,
        "Half the fall, in spreads: only runs lower than that add to the sum.",
        symbol="k", unit="spreads", formula="m / (2 s)",
        inputs={"m": monitor.shift, "s": monitor.spread}, of=cusum_threshold,
    )  # fmt: skip
    yield item(
        f"{name}: threshold", h,
        f"So high that {monitor.runs} sound runs give a false alarm with a chance of "
        f"{percent(FALSE_ALARM)}.",
        symbol="h", unit="spreads",
        formula=f"(e^(2kb) - 2kb - 1) / (2 k^2) = runs / -ln(1 - {FALSE_ALARM:g}), "
        f"b = h + {OVERSHOOT:g}",
        inputs={"k": k, "runs": monitor.runs}, of=cusum_threshold,
    )  # fmt: skip
    yield item(
        f"{name}: limit", monitor.limit,
        f"A sum above it is an alarm; at the end of the watch, a sum above "
        f"{percent(SUSPICIOUS)} of it is checked as well.",
        symbol="h s", unit=unit, formula="h x s", inputs={"h": h, "s": monitor.spread},
        of="judging.monitor.Monitor.limit",
    )  # fmt: skip


def _sums(key: str, moments: Sequence[Moment], promoted: str) -> Iterator[Item]:
    """S_t after each of the candidate's watched runs."""
    alarmed = False
    for moment in moments:
        monitor, checking = moment.finding.monitors[key], alarmed and moment.run.may_check
        alarmed = moment.alarmed
        if moment.arm != promoted or not moment.run.finished or checking:
            continue
        value = monitor.figure(moment.run)
        if value is None or not monitor.reference_runs:
            continue
        yield item(
            f"{WATCHES[key]}: the sum after each run", monitor.total,
            "The sum grows with every run below mu - m/2 and shrinks with those above.",
            symbol=f"S_{moment.run.order}", formula="S_t = max(0, S_(t-1) + mu - m/2 - x_t)",
            inputs={"x_t": value, "mu": monitor.reference, "h s": monitor.limit,
                    "alarm": "alarm" if monitor.total > monitor.limit else ""},
            of=cusum_step,
        )  # fmt: skip


def _checks(moments: Sequence[Moment]) -> Iterator[Item]:
    """What each alarm's pairs of runs said, one after another."""
    if not moments:
        return
    finding = moments[-1].finding
    for one in finding.checks:
        monitor, pairs = finding.monitors[one.monitor], one.look
        yield item(
            "alarm checked, baseline against candidate", pairs.fall.size, WORDS[pairs.outcome],
            symbol=f"fall ({one.monitor})", unit=None,
            formula="mean(baseline) - mean(candidate); "
            "Lambda = shift (fall - tolerated) / (s^2 (1/n_B + 1/n_C))",
            inputs={"n_C": pairs.fall.ours, "n_B": pairs.fall.theirs,
                    "tolerated": monitor.tolerated, "shift": monitor.checked_shift,
                    "s": pairs.spread, "Lambda": pairs.ratio,
                    "off at": REVERT_AT, "cleared at": CLEAR_AT},
            of=look,
        )  # fmt: skip
