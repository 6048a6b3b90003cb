"""What would change the verdict: what to ask for, from figures of the trial and of the judge."""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterator
from functools import partial

from compilegate.domain.decision import EvaluationSplit, ProbationStep, Verdict
from compilegate.domain.formats import significant
from compilegate.domain.judging.outlook import proof_outlook, runs_that_pay
from compilegate.domain.reasons import Severity, advice, advice_for, in_one_line
from compilegate.report import wording
from compilegate.report.measured import Measured
from compilegate.report.statements import DELTA_DIGITS
from compilegate.report.trial_report import TrialReport

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

say = partial(wording.say, "advice")


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
            sentences = iter([say("reverted")])
        case None:
            sentences = iter([say("failed")])
    return list(dict.fromkeys(sentences))


def _what_would_undo(trial: TrialReport) -> Iterator[str]:
    speed, quality, saving = trial.speed, trial.quality, trial.saving
    if trial.thresholds and speed:
        candidate = trial.candidate or "the candidate"
        yield say(
            "smaller_speedup",
            low=speed.interval[0], reject=trial.thresholds[0], candidate=candidate,
        )  # fmt: skip
    if quality and quality.interval and quality.interval[0] < 0:
        loss = significant(-quality.interval[0], DELTA_DIGITS)
        yield say("smaller_margin", loss=loss, metric=trial.metric, margin=quality.margin)
    if saving and saving.payback_runs is not None:
        yield say("fewer_runs", runs=math.ceil(saving.payback_runs))
    yield say("other_fingerprint")


def _what_would_promote(trial: TrialReport) -> Iterator[str]:
    if "candidate_crashed" in trial.own_codes:
        yield say("train_to_the_end")
    elif "quality_worse" in trial.own_codes:
        yield say("same_quality", margin=_margin(trial), metric=trial.metric)
    elif not isinstance(trial.measured, str):
        if trial.candidate:
            yield from _run_length(trial.measured)
        reject, promote = trial.measured.thresholds
        more = advice("speedup_too_small")
        yield say("larger_gain", reject=reject, promote=promote, advice=more)


def _run_length(measured: Measured) -> Iterator[str]:
    """How long a run must be until the compile time is earned back with the required gain."""
    _, goal = measured.thresholds
    base, ours = measured.baseline.steady, measured.lead.steady
    steps = measured.lead.arm.full_run_steps
    if not base or not ours or not steps or steps != measured.baseline.arm.full_run_steps:
        return
    m_b, m_c = (statistics.fmean(s.steady_step_seconds for s in arm) for arm in (base, ours))
    o_b, o_c = (statistics.fmean(s.overhead_seconds for s in arm) for arm in (base, ours))
    if m_b <= goal * m_c:
        yield say("no_longer_run", gain=m_b / m_c, ours=m_b, theirs=m_c, goal=goal)
        return
    needed = math.ceil((goal * o_c - o_b) / (m_b - goal * m_c))
    if needed > steps:
        yield say("longer_run", gain=m_b / m_c, overhead=o_c, needed=needed, steps=steps, goal=goal)


def _what_would_conclude(trial: TrialReport) -> Iterator[str]:
    """The step that comes next, then what ended the trial."""
    codes, step, measured = trial.own_codes, trial.next_step, trial.measured
    if step:
        usd = None if isinstance(step, ProbationStep) else step.usd
        yield say("next", why=step.why or "more evidence", usd=usd)
    yield from advice_for(code for code in LIMITS if code in codes)
    if "saving_below_trial_cost" in codes:
        if not isinstance(measured, str):
            yield from _cheaper_proof(trial, measured)
    elif codes & QUALITY_OPEN and not codes & FULL_JOBS:
        more = not codes & OUT_OF_TIME
        if more:
            yield from _runs_needed(trial)
        yield from _more_examples(trial)
        if not isinstance(measured, str):
            yield from _likelier_proof(trial, measured, with_runs=more)
    if codes & {"speed_inconclusive", "speed_unsettled"} and not isinstance(measured, str):
        values = measured.speedups(measured.lead).values()
        several = len(values) > 1
        yield say(
            "steadier_blocks",
            least=min(values) if several else None, most=max(values) if several else None,
        )  # fmt: skip
    if "baseline_failed" in codes:
        yield advice("baseline_failed")
    if codes & FULL_JOBS:
        yield advice("full_run_disagrees")
    yield from advice_for(code for code in UNPROVEN if code in codes)


def _runs_needed(trial: TrialReport) -> Iterator[str]:
    quality, evidence = trial.quality, trial.evidence
    if quality is None:
        return
    needed, available = quality.runs_needed, min(quality.runs.baseline, quality.runs.candidate)
    if needed is not None and needed > available:
        more = needed - available
        per_run = evidence.plan.usd_per_quality_run if evidence else None
        cost = None if per_run is None else 2 * more * per_run
        yield say("more_runs_needed", needed=needed, margin=_margin(trial), more=more, usd=cost)
    elif needed is None and quality.provable_margin is not None:
        yield say("runs_do_not_help", metric=trial.metric, margin=_margin(trial))


def _more_examples(trial: TrialReport) -> Iterator[str]:
    """An evaluation takes minutes, a run hours."""
    evaluation = trial.quality.evaluation if trial.quality else None
    if not isinstance(evaluation, EvaluationSplit) or evaluation.best_examples is None:
        return
    best, saved = evaluation.best_examples, evaluation.usd_saved or None
    runs = next(one.runs for one in evaluation.larger if one.examples == best)
    yield say("more_examples", best=best, now=evaluation.examples, runs=runs, usd=saved)


def _what_would_be_valid(trial: TrialReport) -> Iterator[str]:
    yield from advice_for(code for code in OBJECTIONS if code in trial.own_codes)
    yield say("failed")


def _fixes(trial: TrialReport) -> Iterator[str]:
    """The fixes of every reason that blocks the trial."""
    for source in (trial.eligibility, *(trial.eligibility.get("candidates") or ())):
        for reason in source.get("reasons") or ():
            if reason.get("severity") == Severity.BLOCK and reason.get("fix"):
                yield in_one_line(str(reason["fix"]))


def _margin(trial: TrialReport) -> str:
    return significant(trial.quality.margin) if trial.quality else "unknown size"


def _likelier_proof(
    trial: TrialReport, measured: Measured, *, with_runs: bool = True
) -> Iterator[str]:
    """The margin, the runs, the history and the spread with which a proof would be likely."""
    spread = trial.quality.spread if trial.quality else None
    now = proof_outlook(measured.evidence, measured.lead.arm, spread)
    if now is None:
        return
    if now.wider_margin:
        yield say("wider_margin", margin=now.wider_margin, runs=now.most_runs, now=now.margin)
    if now.runs and with_runs:
        if now.runs_to_come:
            yield say("more_production", needed=now.runs_to_come, now=now.runs_left,
                      runs=now.proof_runs)  # fmt: skip
        yield say("more_runs", runs=now.runs, now=now.most_runs)
    if now.history:
        yield say("more_history", runs=now.history, now=now.past_runs)
    if now.smaller_spread:
        yield say("steadier_metric", spread=now.smaller_spread, now=now.spread)


def _cheaper_proof(trial: TrialReport, measured: Measured) -> Iterator[str]:
    """With how many runs to come the measurement or the proof would pay, and what shortens it."""
    evidence, speedup = measured.evidence, trial.speed.estimate if trial.speed else None
    needed = runs_that_pay(evidence, measured.lead.arm, speedup)
    if needed:
        yield say("more_to_come", needed=needed, now=evidence.runs_left())
    if speedup is None:
        yield say("fewer_candidates")
        return
    yield from _likelier_proof(trial, measured, with_runs=False)
    if evidence.policy.quality_runs == "shadow":
        yield say("cheaper_mode")
    yield say("shorter_proof")
