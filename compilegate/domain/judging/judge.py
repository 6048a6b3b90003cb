"""The judge: a pure function from evidence to a decision.

A trial ends with ``promote`` only where speed and quality are both proven; a probation ends
with ``permanent`` or ``revert`` (probation.py). Whatever is still open is ``continue`` with the
cheapest step that would decide it; whatever cannot be proven is ``inconclusive``.

The order of questions in a trial is the order of cost: would an answer be worth its price, is the
candidate fast enough and the same training up to rounding (minutes), is its quality held (full
runs, one candidate at a time, greatest saving first), do the full runs agree with the gate. Of K
candidates each passes the speed gate (speed.py) with at most alpha/K if it is slow, and the
equivalence check and the quality gate (equivalence.py, quality.py) together with at most alpha/K if
it is harmful. A promotion needs all, so a bad one is promoted with at most alpha/K
(intersection-union test, Berger 1982), and any of K with at most alpha.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass, replace
from typing import Any

from compilegate.domain.arithmetic import ratio, ratio_figure
from compilegate.domain.decision import SIGNAL, Decision, LayerGain, NextStep, Verdict
from compilegate.domain.judging.design import Design, next_look
from compilegate.domain.judging.equivalence import State, equivalence_of, numerics_of
from compilegate.domain.judging.evaluation import evaluation_of
from compilegate.domain.judging.evidence import PROBATION, Arm, Evidence, finished
from compilegate.domain.judging.figures import at_scheduled_length, control_figures, saving_figures
from compilegate.domain.judging.next_step import (
    is_shadow,
    next_quality,
    next_speed,
    value_of_a_trial,
    value_of_shadow_runs,
)
from compilegate.domain.judging.probation import computable, decision, judge_production
from compilegate.domain.judging.quality import (
    MetricFinding,
    QualityFinding,
    QualityOutcome,
    design_of,
    judge_metric,
    judge_quality_of,
    quality_figures,
    refuse_before_spending,
)
from compilegate.domain.judging.speed import SpeedFinding, SpeedOutcome, judge_speed
from compilegate.domain.judging.target import (
    TOO_FEW,
    target_problem,
    timed_to_target,
    to_target,
)
from compilegate.domain.judging.validity import invalid_reasons, unknown_start
from compilegate.domain.judging.whole_job import (
    Agreement,
    Confirmation,
    WholeJob,
    confirm,
    estimate_whole_job,
    spread_reasons,
)
from compilegate.domain.reasons import Reason
from compilegate.domain.workload.model import BASELINE

SPEED_VERDICTS = {
    SpeedOutcome.PASSED: (Verdict.PROMOTE, "speedup_proven"),
    SpeedOutcome.TOO_SLOW: (Verdict.STAY_OFF, "speedup_too_small"),
    SpeedOutcome.BELOW_PROMOTE: (Verdict.STAY_OFF, "speedup_below_promote"),
    SpeedOutcome.CRASHED: (Verdict.STAY_OFF, "candidate_crashed"),
    SpeedOutcome.OTHER_STEPS: (Verdict.PROMOTE, "steps_differ"),
    SpeedOutcome.MORE_BLOCKS: (Verdict.CONTINUE, "speed_needs_blocks"),
    SpeedOutcome.INCONCLUSIVE: (Verdict.INCONCLUSIVE, "speed_inconclusive"),
}
QUALITY_VERDICTS = {
    QualityOutcome.HELD: (Verdict.PROMOTE, "quality_held"),
    QualityOutcome.WORSE: (Verdict.STAY_OFF, "quality_worse"),
    QualityOutcome.CRASHED: (Verdict.STAY_OFF, "candidate_crashed"),
    QualityOutcome.MORE_RUNS: (Verdict.CONTINUE, "quality_needs_runs"),
    QualityOutcome.UNDERPOWERED: (Verdict.INCONCLUSIVE, "underpowered"),
    QualityOutcome.INCONCLUSIVE: (Verdict.INCONCLUSIVE, "quality_inconclusive"),
    QualityOutcome.SEEDS_REPEATED: (Verdict.INCONCLUSIVE, "seeds_repeated"),
    QualityOutcome.UNREPORTED: (Verdict.INCONCLUSIVE, "guardrail_unreported"),
}
GUARDRAIL_CODES = {
    QualityOutcome.HELD: "guardrail_held",
    QualityOutcome.WORSE: "guardrail_worse",
    QualityOutcome.MORE_RUNS: "guardrail_needs_runs",
    QualityOutcome.UNREPORTED: "guardrail_unreported",
}
HELD = QualityOutcome.HELD
# Of several metrics, the verdict that decides on the candidate.
GRAVEST = (Verdict.STAY_OFF, Verdict.INCONCLUSIVE, Verdict.CONTINUE, Verdict.PROMOTE)


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
    guardrails: tuple[MetricFinding, ...] = ()
    signals: tuple[MetricFinding, ...] = ()


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
        invalid = invalid_reasons(evidence)
        if invalid:
            finding = TrialFinding(Verdict.INVALID, "speed", invalid)
        else:
            finding = judge_trial(evidence)
        reasons, lead = [*finding.reasons], finding.lead
        figures: dict[str, Any] = {}
        if lead:
            figures = {
                "candidate": lead.arm.name,
                "speedup": lead.whole.figures(lead.speed) if lead.whole else None,
                "saving": saving_figures(lead.arm, evidence, lead.whole),
                "scheduled": at_scheduled_length(lead.arm, evidence),
            }
            for _, layered in evidence.comparisons[1:]:
                gain = estimate_whole_job(lead.arm, layered)
                figures["layer"] = gain and LayerGain(
                    evidence.on_top_of, gain.speedup, gain.interval
                )
        if lead and lead.quality:
            evaluation = evaluation_of(lead.quality, lead.arm, evidence)
            reasons += evaluation.reasons if evaluation else ()
            first = quality_figures(
                lead.quality, evidence, lead.arm, evaluation.figures if evaluation else None
            )
            guardrails, signals = (
                tuple(one.figures for one in seen) for seen in (lead.guardrails, lead.signals)
            )
            figures["quality"] = replace(first, guardrails=guardrails, signals=signals)
        if evidence.history_left_out:
            text = (
                f"{evidence.history_left_out} past runs were scored on other evaluation examples "
                "than this trial's and do not count"
            )
            reasons.append(Reason("history_other_set", text))
        reasons += spread_reasons(lead.arm, evidence, lead.whole) if lead else ()
        controls = tuple(control_figures(one, evidence) for one in evidence.controls)
        return decision(
            evidence, finding.stage, finding.verdict, reasons, next=finding.next,
            controls=controls, **figures,
        )  # fmt: skip


def judge_trial(evidence: Evidence) -> TrialFinding:
    """Decide the trial as far as the evidence goes."""
    refused = _refused(evidence)
    for on_top, compared in evidence.comparisons:
        if refused is None and any(not run.finished for run in compared.baseline.speed):
            what = evidence.on_top_of if on_top else "the baseline"
            text = f"{what} failed in a speed block: nothing to compare with"
            refused = Reason("baseline_failed", text, BASELINE)
    if refused:
        return TrialFinding(Verdict.INCONCLUSIVE, "speed", (refused,))

    def order(finding: CandidateFinding) -> tuple[float, str]:
        """By the share of a run's price that is saved, as far as is known."""
        cost = evidence.price_ratio(finding.arm) / (finding.speed.estimate or 1e-9)
        return -(1 - cost), finding.arm.name

    findings = sorted((_speed_finding(arm, evidence) for arm in evidence.candidates), key=order)
    return _in_order(evidence, findings)


def _refused(evidence: Evidence) -> Reason | None:
    """Why the trial should not begin; what has begun is judged on what it has cost."""
    if any(arm.quality for arm in evidence.arms):
        return None
    design = design_of(evidence)
    if design is None:
        return _too_few_runs(evidence)
    if any(arm.runs for arm in evidence.arms):
        return None
    for seen in (evidence, *map(evidence.by, evidence.quality.guardrails)):
        own = replace(design, history=len(seen.quality.history))
        underpowered = refuse_before_spending(seen, own)
        if underpowered is not None:
            return underpowered
    value, remaining = value_of_a_trial(evidence), evidence.runs_left()
    if value is None or value.pays:
        return None
    return Reason(
        "saving_below_trial_cost",
        f"measuring the speed takes {value.cost:.2f} runs' worth of time and is expected to "
        f"save {value.gain:.2f} over the {remaining:g} runs that remain",
    )


def _too_few_runs(evidence: Evidence, arm: str | None = None) -> Reason:
    text = f"{evidence.runs_left():g} production runs remain: too few to prove quality on"
    return Reason("saving_below_trial_cost", text, arm)


def _speed_finding(candidate: Arm, evidence: Evidence) -> CandidateFinding:
    """Of a layer both speeds decide, against nothing and against what is on."""
    name, verdict, reasons = candidate.name, Verdict.PROMOTE, list[Reason]()
    found = []
    for on_top, compared in evidence.comparisons:
        speed, whole = judge_speed(candidate, compared), estimate_whole_job(candidate, compared)
        found.append((speed, whole))
        own, code = SPEED_VERDICTS[speed.outcome]
        between = f"{_between(whole)}, " if whole else ""
        reason = Reason(code, f"{name}{on_top}: {between}{speed.reason}", name)
        is_graver = GRAVEST.index(own) < GRAVEST.index(verdict)
        reasons.insert(0 if is_graver else len(reasons), reason)  # what decides comes first
        verdict = own if is_graver else verdict
    doubt = _doubt(candidate, evidence)
    if doubt:
        reasons.append(doubt)
        if doubt.code != "numerics_differ" and verdict is not Verdict.STAY_OFF:
            verdict = Verdict.STAY_OFF
            reasons.reverse()  # what decides comes first
    speed, whole = found[0]
    return CandidateFinding(candidate, verdict, "speed", tuple(reasons), speed, whole=whole)


def _doubt(candidate: Arm, evidence: Evidence) -> Reason | None:
    """What the arithmetic of a few steps says against the candidate."""
    name, equivalence = candidate.name, equivalence_of(candidate, evidence)
    if equivalence.state is State.FAILED:
        return Reason("not_equivalent", f"{name}: {equivalence.reason}", name)
    numerics, worst = numerics_of(candidate), equivalence.worst
    if numerics is not None and numerics.code is not None:
        return Reason(numerics.code, f"{name}: {numerics.words}", name)
    if worst is not None and worst.share_of_bound > 1:  # where policy is strict
        return Reason("numerics_differ", f"{name}: {worst.words}", name)
    return None


def _between(whole: WholeJob) -> str:
    low, high = whole.interval
    return f"{ratio(whole.speedup)} ({ratio_figure(low)} to {ratio_figure(high)})"


def _in_order(evidence: Evidence, findings: list[CandidateFinding]) -> TrialFinding:
    """One candidate at a time, greatest saving first, so that only undecided ones cost anything.

    Candidates that save less than one whose speed is proven wait for its full runs.
    """
    judged = list(findings)
    for index, finding in enumerate(findings):
        if finding.verdict is Verdict.CONTINUE:
            ahead = itertools.takewhile(
                lambda one: one.verdict is not Verdict.PROMOTE, findings[index:]
            )
            names = [one.arm.name for one in ahead if one.verdict is Verdict.CONTINUE]
            return _finding(finding, judged[: index + 1], next_speed(evidence, names))
        if finding.verdict is not Verdict.PROMOTE:
            continue
        arm, design = finding.arm, design_of(evidence, finding.arm)
        if design is None:  # other candidates left too few production runs
            reasons = (_too_few_runs(evidence, arm.name), *finding.reasons)
            judged[index] = replace(finding, verdict=Verdict.INCONCLUSIVE, reasons=reasons)
            continue
        tested = judged[index] = _quality_finding(finding, evidence, design)
        if tested.verdict is Verdict.CONTINUE:
            every = (tested.quality, *(one.finding for one in tested.guardrails))
            lacking = any(one is not None and one.lacks_baseline_only for one in every)
            step = next_quality(evidence, arm, design, lacks_baseline_only=lacking)
            return _finding(tested, judged[: index + 1], step)
        if tested.verdict is Verdict.PROMOTE:
            return _finding(tested, judged)
    lead = min(judged, key=lambda one: one.verdict is not Verdict.INCONCLUSIVE)
    return _finding(lead, judged)


def _finding(
    lead: CandidateFinding, findings: list[CandidateFinding], step: NextStep | None = None
) -> TrialFinding:
    others = [finding for finding in findings if finding is not lead]
    reasons = tuple(reason for one in [lead, *others] for reason in one.reasons)
    return TrialFinding(lead.verdict, lead.stage, reasons, lead, tuple(findings), step)


def _quality_finding(
    passed: CandidateFinding, evidence: Evidence, design: Design
) -> CandidateFinding:
    quality = judge_quality_of(passed.arm, evidence, design)
    crashed = quality.outcome is QualityOutcome.CRASHED
    guardrails, signals = (
        () if crashed else tuple(judge_metric(passed.arm, evidence, one, design) for one in metrics)
        for metrics in (evidence.quality.guardrails, evidence.quality.signals)
    )
    verdict, code = QUALITY_VERDICTS[quality.outcome]
    name, plan = passed.arm.name, evidence.plan
    said = [(verdict, Reason(code, f"{name}: {evidence.quality.metric}: {quality.reason}", name))]
    for one in guardrails:
        code = GUARDRAIL_CODES.get(one.finding.outcome, "guardrail_inconclusive")
        said.append((QUALITY_VERDICTS[one.finding.outcome][0], one.reason(code)))
    gravest = min(said, key=lambda one: GRAVEST.index(one[0]))
    verdict, objection = gravest[0], None
    reasons = [reason for _, reason in [*(one for one in said if one is not gravest), gravest]]
    if verdict is Verdict.PROMOTE:
        verdict, objection = _agreed(passed, evidence, design)
    elif verdict is Verdict.CONTINUE:
        objection = _not_worth_going_on(passed, evidence, design)
        verdict = Verdict.INCONCLUSIVE if objection else verdict
    reasons = [*passed.reasons, *reasons, *([objection] if objection else [])]
    if verdict is not Verdict.PROMOTE:  # what decides comes first
        reasons.reverse()
    if quality.identity and quality.identity.proven:
        reasons.append(Reason("weights_identical", f"{name}: {quality.identity.words}", name))
    if plan.asked_quality_runs not in (None, evidence.policy.quality_runs):
        why = plan.runs_as_shadow_because
        text = (
            f"policy.quality_runs is {plan.asked_quality_runs}, but the trial ran its own full runs"
        )
        reasons.append(Reason("runs_as_shadow", f"{text}: {why}" if why else text))
    unproven = unknown_start(passed.arm, evidence.baseline)
    reasons += [unproven] if unproven else []
    if verdict is Verdict.PROMOTE:
        then = "; a person decides whether the flag is turned on"
        reasons += [one.reason(SIGNAL, then) for one in signals if one.finding.outcome is not HELD]
    return replace(
        passed, verdict=verdict, stage="quality", reasons=tuple(reasons), quality=quality,
        guardrails=guardrails, signals=signals,
    )  # fmt: skip


def _agreed(
    passed: CandidateFinding, evidence: Evidence, design: Design
) -> tuple[Verdict, Reason | None]:
    """A gate that whole jobs do not confirm, also against what is on, proves nothing."""
    for on_top, compared in evidence.comparisons:
        arm, whole = passed.arm, estimate_whole_job(passed.arm, compared)
        seen = confirm(arm, compared, whole)
        if seen.agreement is Agreement.CONFIRMED:
            continue
        done = finished(arm.quality)
        more, timed = next_look(len(done), design.n_max), all(run.wall_seconds for run in done)
        short = target_problem(arm, compared)
        may_reach = not short or short.code == TOO_FEW
        may_agree = more is not None and timed and not seen.disproved and may_reach
        verdict = Verdict.CONTINUE if may_agree else Verdict.INCONCLUSIVE
        return verdict, short or _objection(f"{arm.name}{on_top}", arm, compared, whole, seen)
    return Verdict.PROMOTE, None


def _objection(
    name: str, arm: Arm, evidence: Evidence, whole: WholeJob | None, seen: Confirmation
) -> Reason:
    if not (whole and whole.measured) or seen.agreement is Agreement.UNMEASURED:
        text = f"{name}: the wall clock of full runs is missing"
        return Reason("full_run_unmeasured", text, arm.name)
    measured, between = ratio(math.exp(whole.measured.log)), _between(whole)
    predicted, although = "", ""
    if whole.predicted:
        predicted = ratio(math.exp(whole.predicted.log))
        although = f": they were {measured}, although the short blocks were faster"
    bar = ratio(seen.bar)
    dearer = evidence.price_ratio(arm) / whole.interval[0] - 1
    code, text = {
        Agreement.IMPLAUSIBLE: (
            "full_run_implausible",
            f"{measured}, and the short blocks leave about {predicted} possible: they left "
            "something out",
        ),
        Agreement.BELOW: (
            "full_run_disagrees",
            f"{between}, below {bar}{although}",
        ),
        Agreement.UNPROVEN: ("full_run_unproven", f"{between}, not proven above {bar}"),
        Agreement.MAY_LOSE: (
            "saving_unproven", f"{between}: a run may cost up to {dearer:.0%} more than today's",
        ),
    }[seen.agreement]  # fmt: skip
    jobs = "full jobs, start-up and evaluation included, are"
    if timed_to_target(arm, evidence):
        jobs = f"times to {to_target(evidence)} are"
    return Reason(code, f"{name}: {jobs} {text}", arm.name)


def _not_worth_going_on(
    passed: CandidateFinding, evidence: Evidence, design: Design
) -> Reason | None:
    """More full runs have to be worth their price, and their wall clock still open."""
    arm = passed.arm
    for on_top, compared in evidence.comparisons:
        whole, name = estimate_whole_job(arm, compared), f"{arm.name}{on_top}"
        short = target_problem(arm, compared)
        if short and short.code != TOO_FEW:
            return short
        if whole is None:
            return None
        if confirm(arm, compared, whole).disproved:
            text = f"{name}: full jobs are {ratio(whole.speedup)}, conclusively too slow"
            return Reason("full_run_disagrees", text, arm.name)
        value = value_of_shadow_runs(arm, compared, design, whole.speedup)
        if is_shadow(evidence, arm) and value is not None and not value.pays:
            text = (
                f"{name}: proving its quality would take about {value.runs} more runs, worth "
                f"{value.cost:.1f} baseline runs, to save an expected {value.gain:.1f}"
            )
            return Reason("saving_below_trial_cost", text, arm.name)
    return None
