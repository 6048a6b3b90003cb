"""What would change the verdict, computed from the same figures."""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterator

from compilegate.domain.decision import Verdict
from compilegate.domain.eligibility import in_one_line
from compilegate.report.case import Case
from compilegate.report.formats import (
    count,
    duration,
    number,
    pair,
    plural,
    ratio,
    significant,
)  # fmt: skip
from compilegate.report.unsettled import would_settle


def what_would_change(case: Case) -> list[str]:
    """Sentences, most useful first."""
    match case.verdict:
        case Verdict.PROMOTE | Verdict.PERMANENT:
            found = _would_undo(case)
        case Verdict.STAY_OFF:
            found = _would_switch_on(case)
        case Verdict.INCONCLUSIVE | Verdict.CONTINUE:
            found = would_settle(case)
        case Verdict.INVALID:
            found = _would_make_valid(case)
        case Verdict.INELIGIBLE:
            found = _fixes(case)
        case Verdict.REVERT:
            found = iter(
                (
                    "Remove the cause above and run the trial again: a candidate that was "
                    "turned off has to prove speed and quality anew.",
                )
            )
        case _:
            found = iter(("Remove the cause above and run the trial again; nothing was switched.",))
    return list(dict.fromkeys(found))


def _would_undo(case: Case) -> Iterator[str]:
    reject, ends = case.bar("reject_speedup"), case.speedup_interval
    lower = number(case.speed.get("lower_bound"))
    low = lower if lower is not None else ends and ends[0]
    if reject is not None and low is not None:
        yield (
            f"Less speed: the judge can vouch for {ratio(low)}; were that {ratio(reject)} "
            f"or less, {case.candidate or 'it'} would stay off."
        )
    interval, margin = pair(case.quality.get("interval")), number(case.quality.get("margin"))
    if interval and margin:
        worst = -interval[0]
        if worst > 0:
            yield (
                f"A margin under {significant(worst)}: these runs rule out losses in "
                f"{case.metric} beyond that, not smaller ones (the margin was "
                f"{significant(margin)})."
            )
    yield from _runs_too_few_to_pay(case)
    yield (
        "A new image, driver, GPU, data set or version of the code: the verdict is about the "
        "fingerprint below and about nothing else."
    )


def _runs_too_few_to_pay(case: Case) -> Iterator[str]:
    payback = number(case.saving.get("payback_runs"))
    if payback is not None:
        yield f"Fewer than {plural(math.ceil(payback), 'further run')}: the trial would not pay."


def _would_switch_on(case: Case) -> Iterator[str]:
    if "candidate_crashed" in case.own_codes:
        yield "A candidate that trains to the end: the reason of the failed run stands below."
        return
    if "quality_worse" in case.own_codes:
        yield (
            f"The same quality as the baseline: for instance a learning rate that suits the "
            f"candidate, or a wider margin than {_margin(case)} for {case.metric}, if the team "
            "can really accept the loss."
        )
        return
    yield from _run_length(case)
    promote, reject = case.bar("promote_speedup"), case.bar("reject_speedup")
    if promote is not None and reject is not None:
        yield (
            f"A larger gain: proven above {ratio(reject)} and estimated at {ratio(promote)} or "
            "more. Larger models, fewer recompilations and less waiting for data raise it."
        )


def _run_length(case: Case) -> Iterator[str]:
    """How long a run must be until compile time is earned back with the gain asked for."""
    goal = case.bar("promote_speedup")
    if isinstance(case.measured, str) or goal is None or case.candidate is None:
        return
    base, ours = case.measured.baseline.steady, case.measured.lead.steady
    steps = case.measured.lead.arm.full_run_steps
    if not base or not ours or not steps or steps != case.measured.baseline.arm.full_run_steps:
        return
    m_b, m_c = (statistics.fmean(s.steady_step_seconds for s in arm) for arm in (base, ours))
    o_b, o_c = (statistics.fmean(s.overhead_seconds for s in arm) for arm in (base, ours))
    if m_b <= goal * m_c:
        yield (
            f"Not a longer run: even without any compile time a step is only {ratio(m_b / m_c)} "
            f"({duration(m_b)} against {duration(m_c)}), below the {ratio(goal)} asked for."
        )
        return
    needed = math.ceil((goal * o_c - o_b) / (m_b - goal * m_c))
    if needed > steps:
        yield (
            f"A longer run: steady steps are {ratio(m_b / m_c)}, compiling costs "
            f"{duration(o_c)} per run; from {count(needed)} steps on (now {count(steps)}) a run "
            f"would gain {ratio(goal)}."
        )


def _would_make_valid(case: Case) -> Iterator[str]:
    if "treatment_not_applied" in case.own_codes:
        yield (
            "A run that proves the change was applied: the training script must act on the "
            "compiler hyperparameter, and its summary must say applied."
        )
    if "arms_differ" in case.own_codes:
        yield (
            "Equal fingerprints: same image, driver, data and code in every arm; the table "
            "below marks what differs."
        )
    if "unequal_initial_loss" in case.own_codes:
        yield "Equal starts: with the same seed both arms must begin at the same loss."
    if "unequal_initial_weights" in case.own_codes:
        yield "Equal starts: with the same seed both arms must draw the same initial weights."
    yield "Mend that and run the trial again; until then the flag stays as it is."


def _fixes(case: Case) -> Iterator[str]:
    """The fixes of every reason that stands in the way."""
    for source in (case.eligibility, *(case.eligibility.get("candidates") or ())):
        for reason in source.get("reasons") or ():
            if reason.get("severity") == "block" and reason.get("fix"):
                yield in_one_line(str(reason["fix"]))


def _margin(case: Case) -> str:
    margin = number(case.quality.get("margin"))
    return "unknown size" if margin is None else significant(margin)
