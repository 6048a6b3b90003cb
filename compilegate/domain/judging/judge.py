"""The judge: a pure function from evidence to a decision.

A trial ends with ``promote`` only where speed and quality are both proven; a probation ends
with ``permanent`` or ``revert`` (probation.py). Whatever is still open is ``continue`` with the
cheapest step that would decide it; whatever cannot be proven is ``inconclusive``.

The order of questions in a trial is the order of cost: would an answer be worth its price, is the
candidate fast enough (minutes), is its quality held (full runs, one candidate at a time,
greatest saving first), do the full runs agree with the gate. With K candidates each gate
works at alpha/K; a promotion needs both gates, so a bad one is promoted with a chance of at
most alpha/K (intersection-union test, Berger 1982), and any of K with at most alpha.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from dataclasses import dataclass, replace

from compilegate.domain.arithmetic import ratio
from compilegate.domain.decision import Decision, NextStep, Verdict
from compilegate.domain.judging.evaluation import evaluation_of
from compilegate.domain.judging.evaluation_sets import other_history
from compilegate.domain.judging.evidence import PROBATION, Arm, Evidence, finished
from compilegate.domain.judging.figures import (
    control_figures,
    quality_figures,
    saving_figures,
    speedup_of,
)
from compilegate.domain.judging.next_step import (
    is_shadow,
    next_quality,
    next_speed,
    value_of_a_trial,
    value_of_shadow_runs,
)
from compilegate.domain.judging.numerics import numerics_of, numerics_reason
from compilegate.domain.judging.probation import computable, decision, judge_production
from compilegate.domain.judging.quality import (
    QualityFinding,
    QualityOutcome,
    design_of,
    judge_quality_of,
    refuse_before_spending,
)
from compilegate.domain.judging.speed import (
    Segments,
    SpeedFinding,
    SpeedOutcome,
    analyse_segments,
    judge_speed,
)
from compilegate.domain.judging.statistics import SPEED_LOOKS, Design, next_look
from compilegate.domain.judging.validity import invalid_reasons, unknown_start
from compilegate.domain.judging.whole_job import (
    Agreement,
    Confirmation,
    WholeJob,
    confirm,
    estimate_whole_job,
)
from compilegate.domain.reasons import Reason
from compilegate.domain.workload.model import BASELINE

SPEED_VERDICTS = {
    SpeedOutcome.PASSED: (Verdict.PROMOTE, "speedup_proven"),
    SpeedOutcome.TOO_SLOW: (Verdict.STAY_OFF, "speedup_too_small"),
    SpeedOutcome.BELOW_PROMOTE: (Verdict.STAY_OFF, "speedup_below_promote"),
    SpeedOutcome.CRASHED: (Verdict.STAY_OFF, "candidate_crashed"),
    SpeedOutcome.MORE_BLOCKS: (Verdict.CONTINUE, "speed_unsettled"),
    SpeedOutcome.INCONCLUSIVE: (Verdict.INCONCLUSIVE, "speed_inconclusive"),
}
QUALITY_VERDICTS = {
    QualityOutcome.HELD: (Verdict.PROMOTE, "quality_held"),
    QualityOutcome.WORSE: (Verdict.STAY_OFF, "quality_worse"),
    QualityOutcome.CRASHED: (Verdict.STAY_OFF, "candidate_crashed"),
    QualityOutcome.MORE_RUNS: (Verdict.CONTINUE, "quality_unsettled"),
    QualityOutcome.UNDERPOWERED: (Verdict.INCONCLUSIVE, "underpowered"),
    QualityOutcome.INCONCLUSIVE: (Verdict.INCONCLUSIVE, "quality_inconclusive"),
    QualityOutcome.SEEDS_REPEATED: (Verdict.INCONCLUSIVE, "seeds_repeated"),
}


@dataclass(frozen=True)
class CandidateFinding:
    """What both gates say of one candidate, and what follows for it."""

    arm: Arm
    verdict: Verdict
    stage: str
    reasons: tuple[Reason, ...]
    speed: SpeedFinding
    quality: QualityFinding | None = None
    whole: WholeJob | None = None


@dataclass(frozen=True)
class TrialFinding:
    """The verdict on the workload: the finding that decides and all others."""

    verdict: Verdict
    stage: str
    reasons: tuple[Reason, ...]
    lead: CandidateFinding | None = None
    findings: tuple[CandidateFinding, ...] = ()
    next: NextStep | None = None


def judge(evidence: Evidence) -> Decision:
    """Decide on one workload's evidence.

    Raises InvalidEvidenceError for figures of a size that nothing can be computed from.
    """
    if evidence.phase == PROBATION:
        return judge_production(evidence)
    with computable():
        segments = analyse_segments(evidence)
        invalid = invalid_reasons(evidence)
        if invalid:
            finding = TrialFinding(Verdict.INVALID, "speed", invalid)
        else:
            finding = judge_trial(evidence, segments)
        lead = finding.lead
        tested = lead.quality if lead else None
        evaluation = evaluation_of(tested, lead.arm, evidence, segments) if lead else None
        return decision(
            evidence,
            segments,
            finding.stage,
            finding.verdict,
            (
                *finding.reasons,
                *(evaluation.reasons if evaluation else ()),
                *other_history(evidence),
            ),
            candidate=lead.arm.name if lead else None,
            speedup=speedup_of(lead.speed, lead.whole) if lead else None,
            quality=quality_figures(tested, evidence, lead.arm, evaluation)
            if lead and tested
            else None,
            saving=saving_figures(lead.arm, evidence, segments, lead.whole) if lead else None,
            next=finding.next,
            controls=tuple(control_figures(one, evidence, segments) for one in evidence.controls),
        )


def judge_trial(evidence: Evidence, segments: Segments) -> TrialFinding:
    """Decide the trial as far as the evidence goes."""
    refused = _refused(evidence)
    if refused:
        return TrialFinding(Verdict.INCONCLUSIVE, "speed", tuple(refused))
    if any(not run.finished for run in evidence.baseline.speed):
        text = "the baseline failed in a speed block: nothing to compare with"
        reason = Reason("baseline_failed", text, BASELINE)
        return TrialFinding(Verdict.INCONCLUSIVE, "speed", (reason,))
    findings = sorted(
        (_speed_finding(arm, evidence, segments) for arm in evidence.candidates),
        key=lambda finding: (-_saved_share(finding, evidence), finding.arm.name),
    )
    return _in_order(evidence, findings, segments)


def _refused(evidence: Evidence) -> list[Reason]:
    """Why the trial should not begin; what has begun is judged on what it has cost."""
    if any(arm.quality for arm in evidence.arms):
        return []
    design = design_of(evidence)
    if design is None:
        return [_too_few_runs(evidence)]
    if any(arm.runs for arm in evidence.arms):
        return []
    underpowered = refuse_before_spending(evidence, design)
    return [underpowered] if underpowered else list(_not_paying(evidence))


def _too_few_runs(evidence: Evidence) -> Reason:
    text = f"{evidence.runs_left():g} production runs remain: too few to prove quality on"
    return Reason("saving_below_trial_cost", text)


def _not_paying(evidence: Evidence) -> Iterator[Reason]:
    steps, remaining = evidence.baseline.full_run_steps, evidence.runs_left()
    if steps is None or remaining is None:
        return
    value = value_of_a_trial(
        remaining,
        full_run_steps=steps,
        segment_steps=evidence.plan.speed_steps,
        arms=len(evidence.arms),
        blocks=SPEED_LOOKS[0],
    )
    if not value.pays:
        yield Reason(
            "saving_below_trial_cost",
            f"measuring the speed takes {value.cost:.2f} runs' worth of time and is expected to "
            f"save {value.gain:.2f} over the {remaining:g} runs that remain",
        )


def _speed_finding(candidate: Arm, evidence: Evidence, segments: Segments) -> CandidateFinding:
    speed = judge_speed(candidate, evidence, segments, candidates=len(evidence.candidates))
    verdict, code = SPEED_VERDICTS[speed.outcome]
    whole = estimate_whole_job(candidate, evidence, segments, candidates=len(evidence.candidates))
    words = f"{candidate.name}: {_speedup_words(whole)}{speed.reason}"
    reason = Reason(code, words, candidate.name)
    numerics, seen = numerics_reason(candidate), numerics_of(candidate)
    reasons = (reason,) if numerics is None else (reason, numerics)
    if seen is not None and seen.wrong and verdict is not Verdict.STAY_OFF:
        verdict, reasons = Verdict.STAY_OFF, reasons[::-1]  # what decides comes first
    return CandidateFinding(candidate, verdict, "speed", reasons, speed, whole=whole)


def _speedup_words(whole: WholeJob | None) -> str:
    if whole is None:
        return ""
    low, high = whole.interval
    return f"{ratio(whole.speedup)} ({low:.2f} to {high:.2f}), "


def _saved_share(finding: CandidateFinding, evidence: Evidence) -> float:
    """Share of a run's price that is saved, as far as is known."""
    return 1 - evidence.price_ratio(finding.arm) / (finding.speed.estimate or 1e-9)


def _in_order(
    evidence: Evidence, findings: list[CandidateFinding], segments: Segments
) -> TrialFinding:
    """One candidate at a time, greatest saving first, so that only undecided ones cost anything.

    Candidates that save less than one whose speed is proven wait for its full runs.
    """
    judged = list(findings)
    for index, finding in enumerate(findings):
        if finding.verdict is Verdict.CONTINUE:
            step: NextStep = next_speed(evidence, _open_ahead(findings[index:]))
            return _finding(finding, judged[: index + 1], step)
        if finding.verdict is not Verdict.PROMOTE:
            continue
        design = design_of(evidence, finding.arm)
        if design is None:
            judged[index] = _unprovable(finding, evidence)
            continue
        tested = _quality_finding(finding, evidence, design)
        judged[index] = tested
        if tested.verdict is Verdict.CONTINUE:
            lacking = tested.quality is not None and tested.quality.lacks_baseline_only
            step = next_quality(evidence, tested.arm, design, segments, lacks_baseline_only=lacking)
            return _finding(tested, judged[: index + 1], step)
        if tested.verdict is Verdict.PROMOTE:
            return _finding(tested, judged)
    for verdict in (Verdict.INCONCLUSIVE, Verdict.STAY_OFF):
        chosen = [finding for finding in judged if finding.verdict is verdict]
        if chosen:
            return _finding(chosen[0], judged)
    raise AssertionError("every finding has one of the verdicts above")


def _open_ahead(findings: list[CandidateFinding]) -> list[str]:
    """Candidates whose speed is open, down to the first whose speed is proven."""
    ahead = itertools.takewhile(lambda finding: finding.verdict is not Verdict.PROMOTE, findings)
    return [finding.arm.name for finding in ahead if finding.verdict is Verdict.CONTINUE]


def _unprovable(passed: CandidateFinding, evidence: Evidence) -> CandidateFinding:
    """A fast candidate for whose proof other candidates left too few production runs."""
    reason = replace(_too_few_runs(evidence), arm=passed.arm.name)
    return replace(passed, verdict=Verdict.INCONCLUSIVE, reasons=(reason, *passed.reasons))


def _quality_finding(
    passed: CandidateFinding, evidence: Evidence, design: Design
) -> CandidateFinding:
    quality = judge_quality_of(passed.arm, evidence, design)
    verdict, code = QUALITY_VERDICTS[quality.outcome]
    words = f"{passed.arm.name}: {evidence.quality.metric}: {quality.reason}"
    tested, objection = Reason(code, words, passed.arm.name), None
    if verdict is Verdict.PROMOTE:
        verdict, objection = _agreed(passed, evidence, design)
    elif verdict is Verdict.CONTINUE:
        verdict, objection = _pays_to_go_on(passed, evidence, design)
    reasons = [*passed.reasons, tested, *([objection] if objection else [])]
    if quality.identity and quality.identity.proven:
        words = f"{passed.arm.name}: {quality.identity.words}"
        reasons.append(Reason("weights_identical", words, passed.arm.name))
    if verdict is not Verdict.PROMOTE:  # what decides comes first
        reasons.reverse()
    if evidence.plan.asked_quality_runs not in (None, evidence.policy.quality_runs):
        reasons.append(Reason("runs_as_shadow", _mode_words(evidence)))
    unproven = unknown_start(passed.arm, evidence.baseline)
    if unproven:
        reasons.append(unproven)
    return replace(
        passed, verdict=verdict, stage="quality", reasons=tuple(reasons), quality=quality
    )


def _mode_words(evidence: Evidence) -> str:
    why = evidence.plan.runs_as_shadow_because
    asked = f"policy.quality_runs is {evidence.plan.asked_quality_runs}"
    return f"{asked}, but the trial ran its own full runs{': ' + why if why else ''}"


def _agreed(
    passed: CandidateFinding, evidence: Evidence, design: Design
) -> tuple[Verdict, Reason | None]:
    """A gate that whole jobs do not confirm proves nothing."""
    arm, seen = passed.arm, confirm(passed.arm, evidence, passed.whole)
    if seen.agreement is Agreement.CONFIRMED:
        return Verdict.PROMOTE, None
    more = next_look(len(finished(arm.quality)), design.n_max)
    timed = all(run.wall_seconds for run in finished(arm.quality))
    may_agree = more and timed and not seen.disproved
    verdict = Verdict.CONTINUE if may_agree else Verdict.INCONCLUSIVE
    return verdict, _objection(arm, evidence, passed.whole, seen)


def _objection(arm: Arm, evidence: Evidence, whole: WholeJob | None, seen: Confirmation) -> Reason:
    if whole is None or seen.agreement is Agreement.UNMEASURED:
        text = f"{arm.name}: the wall clock of full runs is missing"
        return Reason("full_run_unmeasured", text, arm.name)
    low, high = whole.interval
    jobs = f"{arm.name}: full jobs, start-up and evaluation included, are"
    between = f"{ratio(whole.speedup)} ({low:.2f} to {high:.2f})"
    if seen.agreement is Agreement.IMPLAUSIBLE and whole.measured and whole.predicted:
        text = (
            f"{jobs} {ratio(math.exp(whole.measured.log))}, and the short blocks leave about "
            f"{ratio(math.exp(whole.predicted.log))} possible: they left something out"
        )
        return Reason("full_run_implausible", text, arm.name)
    if seen.agreement is Agreement.BELOW:
        measured = math.exp(whole.measured.log) if whole.measured else whole.speedup
        text = (
            f"{jobs} {between}, below {ratio(seen.bar)}: they were {ratio(measured)}, although the "
            "short blocks were faster"
        )
        return Reason("full_run_disagrees", text, arm.name)
    if seen.agreement is Agreement.UNPROVEN:
        text = f"{jobs} {between}, not proven above {ratio(seen.bar)}"
        return Reason("full_run_unproven", text, arm.name)
    price = evidence.price_ratio(arm)
    loss = f"a run may cost up to {price / low - 1:.0%} more than today's"
    return Reason("saving_unproven", f"{jobs} {between}: {loss}", arm.name)


def _pays_to_go_on(
    passed: CandidateFinding, evidence: Evidence, design: Design
) -> tuple[Verdict, Reason | None]:
    """More full runs have to be worth their price, and their wall clock still open."""
    whole = passed.whole
    if whole is not None and confirm(passed.arm, evidence, whole).disproved:
        text = f"{passed.arm.name}: full jobs are {ratio(whole.speedup)}, conclusively too slow"
        return Verdict.INCONCLUSIVE, Reason("full_run_disagrees", text, passed.arm.name)
    if not is_shadow(evidence, passed.arm) or whole is None:
        return Verdict.CONTINUE, None
    valued = value_of_shadow_runs(passed.arm, evidence, design, whole.speedup)
    if valued is None or valued[0].pays:
        return Verdict.CONTINUE, None
    value, runs = valued
    text = (
        f"{passed.arm.name}: proving its quality would take about {runs} more runs, worth "
        f"{value.cost:.1f} baseline runs, to save an expected {value.gain:.1f}"
    )
    return Verdict.INCONCLUSIVE, Reason("saving_below_trial_cost", text, passed.arm.name)


def _finding(
    lead: CandidateFinding,
    findings: list[CandidateFinding],
    step: NextStep | None = None,
) -> TrialFinding:
    others = [finding for finding in findings if finding is not lead]
    reasons = tuple(reason for f in [lead, *others] for reason in f.reasons)
    return TrialFinding(lead.verdict, lead.stage, reasons, lead, tuple(findings), step)
