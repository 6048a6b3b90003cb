"""What would change the verdict, computed from the same figures as the verdict."""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterator

from compilegate.domain.decision import Verdict
from compilegate.domain.formats import (
    count,
    duration,
    money,
    number,
    pair,
    plural,
    ratio,
    significant,
)
from compilegate.domain.reasons import in_one_line
from compilegate.domain.reasons.registry import advice, advice_for
from compilegate.report.measured import Measured
from compilegate.report.proof_options import cheaper_proof, proof_options
from compilegate.report.trial_report import TrialReport

FAILED = "Fix this and rerun the trial; the flag has not changed."
REVERTED = (
    "Remove the cause above and rerun the trial: a candidate that was turned off must prove its "
    "speed and quality again."
)
QUALITY_OPEN = {"quality_inconclusive", "quality_unsettled", "underpowered"}
FULL_JOBS = {"full_run_disagrees", "full_run_unmeasured"}
LIMITS = ("trial_over_budget", "price_unknown", "trial_over_time", "too_many_rounds")
OUT_OF_TIME = {"trial_over_time", "too_many_rounds"}
OBJECTIONS = (
    "treatment_not_applied", "arms_differ", "runs_repeated", "unequal_initial_loss",
    "unequal_initial_weights", "evidence_invalid",
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
        case _:
            sentences = iter((FAILED,))
    return list(dict.fromkeys(sentences))


def _what_would_undo(trial: TrialReport) -> Iterator[str]:
    reject, ends = trial.bar("reject_speedup"), trial.speedup_interval
    lower = number(trial.speed.get("lower_bound"))
    low = lower if lower is not None else ends and ends[0]
    if reject is not None and low is not None:
        yield (
            f"A smaller speed-up: the proven lower bound is {ratio(low)}. At {ratio(reject)} or "
            f"less, {trial.candidate or 'the candidate'} would stay off."
        )
    interval, margin = pair(trial.quality.get("interval")), number(trial.quality.get("margin"))
    if interval and margin and interval[0] < 0:
        yield (
            f"A margin below {significant(-interval[0])}: these runs rule out larger losses in "
            f"{trial.metric}, not smaller ones (the margin was {significant(margin)})."
        )
    payback = number(trial.saving.get("payback_runs"))
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
    promote, reject = trial.bar("promote_speedup"), trial.bar("reject_speedup")
    if promote is not None and reject is not None:
        yield (
            f"A larger gain: proven above {ratio(reject)} and estimated at {ratio(promote)} or "
            f"more. {advice('speedup_too_small')}"
        )


def _run_length(trial: TrialReport) -> Iterator[str]:
    """How long a run must be until the compile time is earned back with the required gain."""
    goal = trial.bar("promote_speedup")
    if isinstance(trial.measured, str) or goal is None or trial.candidate is None:
        return
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
    step = trial.decision.get("next")
    if step:
        why = step.get("why") or "more evidence"
        yield f"Next: {why}{_price(number(step.get('usd')))}."
    yield from advice_for(code for code in LIMITS if code in codes)
    if "saving_below_trial_cost" in codes:
        yield from cheaper_proof(trial)
    elif codes & QUALITY_OPEN and not codes & FULL_JOBS:
        more = not codes & OUT_OF_TIME
        if more:
            yield from _runs_needed(trial)
        yield from proof_options(trial, with_runs=more)
    if codes & {"speed_inconclusive", "speed_unsettled"}:
        yield from _steadier_blocks(trial.measured)
    if "baseline_failed" in codes:
        yield advice("baseline_failed")
    if codes & FULL_JOBS:
        yield advice("full_run_disagrees")


def _runs_needed(trial: TrialReport) -> Iterator[str]:
    needed = number(trial.quality.get("runs_needed"))
    provable = number(trial.quality.get("provable_margin"))
    runs = trial.quality.get("runs") or {}
    have = min((number(runs.get(arm)) or 0 for arm in ("baseline", "candidate")), default=0)
    per_run = number((trial.evidence.get("plan") or {}).get("usd_per_quality_run"))
    if needed is not None and needed > have:
        more = needed - have
        cost = None if per_run is None else 2 * more * per_run
        yield (
            f"More runs: {count(needed)} per arm would prove a margin of {_margin(trial)} with an "
            f"80% chance if nothing is lost, {count(more)} more than available{_price(cost)}."
        )
    elif needed is None and provable is not None:
        yield (
            f"More runs would not help: {trial.metric} varies so much from seed to seed that a "
            f"margin of {_margin(trial)} would take over 500 runs per arm."
        )


def _steadier_blocks(measured: Measured | str) -> Iterator[str]:
    if isinstance(measured, str):
        return
    values = list(measured.speedups(measured.lead).values())
    spread = f" (from {ratio(min(values))} to {ratio(max(values))})" if len(values) > 1 else ""
    yield f"Steadier or more blocks: the speed-up differs from block to block{spread}."


def _what_would_be_valid(trial: TrialReport) -> Iterator[str]:
    yield from advice_for(code for code in OBJECTIONS if code in trial.own_codes)
    yield FAILED


def _fixes(trial: TrialReport) -> Iterator[str]:
    """The fixes of every reason that stands in the way."""
    for source in (trial.eligibility, *(trial.eligibility.get("candidates") or ())):
        for reason in source.get("reasons") or ():
            if reason.get("severity") == "block" and reason.get("fix"):
                yield in_one_line(str(reason["fix"]))


def _margin(trial: TrialReport) -> str:
    margin = number(trial.quality.get("margin"))
    return "unknown size" if margin is None else significant(margin)


def _price(usd: float | None) -> str:
    return "" if usd is None else f" (about {money(usd)})"
