"""What would change the verdict, computed with the judge's own functions."""

from __future__ import annotations

import math
import statistics
from bisect import bisect_left
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial

from compilegate.domain.arithmetic import ratio
from compilegate.domain.decision import Verdict
from compilegate.domain.formats import count, duration, money, number, plural, significant
from compilegate.domain.judging.concurrent import samples_of
from compilegate.domain.judging.evidence import Evidence
from compilegate.domain.judging.looks import SCHEDULE, SPEED_LOOKS
from compilegate.domain.judging.power import (
    DEFAULTS,
    LIKELY,
    LONGEST_SHADOW,
    Design,
    runs_left_for,
)
from compilegate.domain.judging.quality import design_of
from compilegate.domain.judging.value_of_information import value_of_a_trial, value_of_shadow_runs
from compilegate.domain.reasons import Severity, advice, advice_for, in_one_line
from compilegate.report.measured import Measured
from compilegate.report.statements import DELTA_DIGITS
from compilegate.report.trial_report import TrialReport

FAILED = "Fix this and rerun the trial; the flag has not changed."
REVERTED = (
    "Remove the cause above and rerun the trial: a candidate that was turned off must prove its "
    "speed and quality again."
)
# Longer histories and more production runs than these are not realistic advice.
LONGEST_HISTORY, MOST_RUNS = 60, 100_000
QUALITY_OPEN = {"quality_inconclusive", "quality_unsettled", "underpowered"}
FULL_JOBS = {"full_run_disagrees", "full_run_unmeasured"}
UNPROVEN = ("saving_unproven", "full_run_unproven", "full_run_implausible")
LIMITS = (
    "evidence_missing", "trial_over_budget", "price_unknown", "trial_over_time", "too_many_rounds",
)  # fmt: skip
OUT_OF_TIME = {"trial_over_time", "too_many_rounds"}
OBJECTIONS = (
    "treatment_not_applied", "arms_differ", "runs_repeated", "unequal_initial_loss",
    "unequal_initial_weights", "unequal_work", "evaluation_sets_differ", "evidence_invalid",
    "clock_implausible", "evidence_overwritten",
)  # fmt: skip


def recommendations(trial: TrialReport) -> list[str]:
    """Sentences, most useful first."""
    match trial.verdict:
        case Verdict.PROMOTE | Verdict.PERMANENT:
            sentences = _what_would_undo(trial)
        case Verdict.STAY_OFF:
            sentences = _what_would_promote(trial)
        case Verdict.INCONCLUSIVE | Verdict.CONTINUE:
            sentences = _what_would_conclude(trial)
        case Verdict.INVALID:
            sentences = _what_would_be_valid(trial)
        case Verdict.INELIGIBLE:
            sentences = _fixes(trial)
        case Verdict.REVERT:
            sentences = iter((REVERTED,))
        case None:
            sentences = iter((FAILED,))
    return list(dict.fromkeys(sentences))


def _what_would_undo(trial: TrialReport) -> Iterator[str]:
    speed, quality = trial.speed, trial.quality
    if trial.thresholds is not None and speed.interval is not None:
        reject, _ = trial.thresholds
        yield (
            f"A smaller speed-up: a whole job's is {ratio(speed.interval[0])} or more by its "
            f"interval. At {ratio(reject)} or less, {trial.candidate or 'the candidate'} would "
            "stay off."
        )
    if quality.interval and quality.margin and quality.interval[0] < 0:
        yield (
            f"A margin below {significant(-quality.interval[0], DELTA_DIGITS)}: these runs rule "
            f"out larger losses in {trial.metric}, not smaller ones (the margin was "
            f"{significant(quality.margin)})."
        )
    payback = trial.saving.payback_runs
    if payback is not None:
        yield f"Fewer than {plural(math.ceil(payback), 'further run')}: the trial would not pay."
    yield (
        "A new image, driver, GPU, data set or code version: the verdict applies to the "
        "fingerprint below only."
    )


def _what_would_promote(trial: TrialReport) -> Iterator[str]:
    if "candidate_crashed" in trial.own_codes:
        yield "A candidate that trains to the end: see the reason of the failed run below."
        return
    if "quality_worse" in trial.own_codes:
        yield (
            "The same quality as the baseline: for instance, a learning rate that suits the "
            f"candidate, or a wider margin than {_margin(trial)} for {trial.metric} if the team "
            "accepts the loss."
        )
        return
    yield from _run_length(trial)
    if trial.thresholds is not None:
        reject, promote = trial.thresholds
        yield (
            f"A larger gain: proven above {ratio(reject)}, and {ratio(promote)} or more on average "
            f"of the short blocks. {advice('speedup_too_small')}"
        )


def _run_length(trial: TrialReport) -> Iterator[str]:
    """How long a run must be until the compile time is earned back with the required gain."""
    if isinstance(trial.measured, str) or trial.candidate is None:
        return
    _, goal = trial.measured.thresholds
    base, ours = trial.measured.baseline.steady, trial.measured.lead.steady
    steps = trial.measured.lead.arm.full_run_steps
    if not base or not ours or not steps or steps != trial.measured.baseline.arm.full_run_steps:
        return
    m_b, m_c = (statistics.fmean(s.steady_step_seconds for s in arm) for arm in (base, ours))
    o_b, o_c = (statistics.fmean(s.overhead_seconds for s in arm) for arm in (base, ours))
    if m_b <= goal * m_c:
        yield (
            f"Not a longer run: even without compile time a step is only {ratio(m_b / m_c)} "
            f"({duration(m_b)} against {duration(m_c)}), below the required {ratio(goal)}."
        )
        return
    needed = math.ceil((goal * o_c - o_b) / (m_b - goal * m_c))
    if needed > steps:
        yield (
            f"A longer run: steady steps are {ratio(m_b / m_c)}, and compiling costs "
            f"{duration(o_c)} per run. From {count(needed)} steps on (now {count(steps)}) a run "
            f"would gain {ratio(goal)}."
        )


def _what_would_conclude(trial: TrialReport) -> Iterator[str]:
    """The step that comes next, then what ended the trial."""
    codes = trial.own_codes
    step = trial.next_step
    if step:
        why = step.get("why") or "more evidence"
        yield f"Next: {why}{_price(number(step.get('usd')))}."
    yield from advice_for(code for code in LIMITS if code in codes)
    if "saving_below_trial_cost" in codes:
        yield from _cheaper_proof(trial)
    elif codes & QUALITY_OPEN and not codes & FULL_JOBS:
        more = not codes & OUT_OF_TIME
        if more:
            yield from _runs_needed(trial)
        yield from _more_examples(trial)
        yield from _proof_options(trial, with_runs=more)
    if codes & {"speed_inconclusive", "speed_unsettled"}:
        yield from _steadier_blocks(trial.measured)
    if "baseline_failed" in codes:
        yield advice("baseline_failed")
    if codes & FULL_JOBS:
        yield advice("full_run_disagrees")
    yield from advice_for(code for code in UNPROVEN if code in codes)


def _runs_needed(trial: TrialReport) -> Iterator[str]:
    needed, evidence = trial.quality.runs_needed, trial.evidence
    runs = trial.judged_quality.get("runs") or {}
    available = min(number(runs.get(arm)) or 0 for arm in ("baseline", "candidate"))
    if needed is not None and needed > available:
        more = needed - available
        per_run = evidence.plan.usd_per_quality_run if evidence else None
        cost = None if per_run is None else 2 * more * per_run
        yield (
            f"More runs: {count(needed)} per arm would prove a margin of {_margin(trial)} with an "
            f"80% chance if nothing is lost, {count(more)} more than available{_price(cost)}."
        )
    elif needed is None and trial.quality.provable_margin is not None:
        yield (
            f"More runs would not help: {trial.metric} varies so much from seed to seed that a "
            f"margin of {_margin(trial)} would take over 500 runs per arm."
        )


def _more_examples(trial: TrialReport) -> Iterator[str]:
    """An evaluation takes minutes, a run hours."""
    evaluation = trial.judged_quality.get("evaluation") or {}
    best = number(evaluation.get("best_examples"))
    if best is None:
        return
    runs = next(one["runs"] for one in evaluation["larger"] if one["examples"] == best)
    saved = number(evaluation.get("usd_saved"))
    worth = f" That is worth {money(saved)}." if saved else ""
    yield (
        f"More evaluation examples: with {count(best)} instead of "
        f"{count(evaluation['examples'])}, about {count(runs)} runs per arm would do.{worth} Score "
        "the baseline's next runs on them too; past runs do not count for another set."
    )


def _steadier_blocks(measured: Measured | str) -> Iterator[str]:
    if isinstance(measured, str):
        return
    values = list(measured.speedups(measured.lead).values())
    spread = f" (from {ratio(min(values))} to {ratio(max(values))})" if len(values) > 1 else ""
    yield f"Steadier or more short blocks: they differ in the speed-up that they predict{spread}."


def _what_would_be_valid(trial: TrialReport) -> Iterator[str]:
    yield from advice_for(code for code in OBJECTIONS if code in trial.own_codes)
    yield FAILED


def _fixes(trial: TrialReport) -> Iterator[str]:
    """The fixes of every reason that blocks the trial."""
    for source in (trial.eligibility, *(trial.eligibility.get("candidates") or ())):
        for reason in source.get("reasons") or ():
            if reason.get("severity") == Severity.BLOCK and reason.get("fix"):
                yield in_one_line(str(reason["fix"]))


def _margin(trial: TrialReport) -> str:
    margin = trial.quality.margin
    return "unknown size" if margin is None else significant(margin)


def _price(usd: float | None) -> str:
    return "" if usd is None else f" (about {money(usd)})"


def _proof_options(trial: TrialReport, *, with_runs: bool = True) -> Iterator[str]:
    """The margin, the runs, the history and the spread with which a proof would be likely."""
    if isinstance(trial.measured, str):
        return
    evidence = trial.measured.evidence
    design, spread = design_of(evidence, trial.measured.lead.arm), _spread(trial, trial.measured)
    if design is None or not spread:
        return
    margin = evidence.quality.margin
    provable = design.best_margin(LIKELY) * spread
    if provable > margin:
        yield (
            f"A wider margin: {significant(provable)} could be proven with up to {design.n_max} "
            "runs (80% chance if nothing is lost), if the team accepts such a loss (now "
            f"{significant(margin)})."
        )
    if design.runs_needed(spread / margin, design.least_chance) is None:
        if with_runs:
            yield from _more_runs(evidence, design, spread / margin)
        yield from _more_history(evidence, design, spread / margin)
    bearable = margin / design.best_margin(LIKELY)
    if bearable < spread:
        yield (
            f"A metric that varies less: {significant(bearable)} from run to run or less (now "
            f"{significant(spread)}), for instance on a larger validation set."
        )


def _spread(trial: TrialReport, measured: Measured) -> float | None:
    """The metric's spread from run to run: the decision's, else that of all recorded runs."""
    if trial.quality.spread is not None:
        return trial.quality.spread
    variance = samples_of(measured.lead.arm, measured.evidence).pooled_variance
    return math.sqrt(variance) if variance else None


def _more_runs(evidence: Evidence, design: Design, relative: float) -> Iterator[str]:
    """The smallest number of runs with which the judge would not refuse to begin."""
    for n in SCHEDULE:
        extra = evidence.policy.quality_runs == "shadow"
        if n <= design.n_max or (extra and n > LONGEST_SHADOW):
            continue
        if replace(design, n_max=n).runs_needed(relative, design.least_chance) is None:
            continue
        remaining, enough = evidence.runs_left(), runs_left_for(n)
        if remaining is not None and remaining < enough:
            yield (
                f"More production runs to come: {enough} or more (now {count(remaining)}), of "
                f"which {n} could go into a proof."
            )
        # Extra runs are fewer by default, so that a default itself cannot be requested.
        yield (
            f"More runs: policy.max_quality_runs of {n + (extra and n in DEFAULTS)} or more "
            f"(now up to {design.n_max} runs)."
        )
        return


def _more_history(evidence: Evidence, design: Design, relative: float) -> Iterator[str]:
    past = len(evidence.quality.history)
    for longer in range(past + 1, LONGEST_HISTORY + 1):
        if replace(design, history=longer).runs_needed(relative, design.least_chance):
            yield f"More history: {longer} past runs in quality.history (now {past})."
            return


def _cheaper_proof(trial: TrialReport) -> Iterator[str]:
    """With how many runs to come the measurement or the proof would pay, and what shortens it."""
    if isinstance(trial.measured, str):
        return
    evidence, candidate = trial.measured.evidence, trial.measured.lead.arm
    now, speedup = evidence.runs_left(), trial.speed.estimate

    def proof_pays(remaining: float) -> bool:
        changed = evidence.with_runs_left(remaining)
        design = design_of(changed, candidate)
        if design is None or speedup is None:
            return False
        value = value_of_shadow_runs(candidate, changed, design, speedup)
        return value is None or value[0].pays

    pays = partial(_trial_pays, evidence) if speedup is None else proof_pays
    needed = None if now is None else _least(now, pays)
    if needed is not None and now is not None:
        yield f"More runs to come: from {count(needed)} on it would pay (now {count(now)})."
    if speedup is not None:
        yield from _proof_options(trial, with_runs=False)
        if evidence.policy.quality_runs == "shadow":
            yield (
                "A cheaper mode: full runs that production makes anyway instead of extra ones "
                "(policy.quality_runs: hybrid or canary, for a workload that is registered)."
            )
        yield (
            "A shorter proof: a wider margin, a metric that varies less or more past runs in "
            "quality.history."
        )
    else:
        yield "Fewer candidates, or longer runs: measuring costs a smaller share of a long run."


def _trial_pays(evidence: Evidence, remaining: float) -> bool:
    if design_of(evidence.with_runs_left(remaining)) is None:
        return False
    steps = evidence.baseline.full_run_steps
    if steps is None:
        return True
    return value_of_a_trial(
        remaining, full_run_steps=steps, segment_steps=evidence.plan.speed_steps,
        arms=len(evidence.arms), blocks=SPEED_LOOKS[0],
    ).pays  # fmt: skip


def _least(now: float, pays: Callable[[float], bool]) -> int | None:
    """The least number of runs to come that pays, None if it pays now or hardly ever."""
    first = math.floor(now) + 1
    if first > MOST_RUNS or pays(now) or not pays(MOST_RUNS):
        return None
    return first + bisect_left(range(first, MOST_RUNS), True, key=pays)
