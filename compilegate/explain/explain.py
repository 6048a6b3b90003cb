"""Assembles the explanation, from the same evidence and functions as the judge."""

from __future__ import annotations

from collections.abc import Iterator

from compilegate.domain.decision import EXIT_CODES, Decision, FlagAction, ProbationStep, SpeedStep
from compilegate.domain.formats import percent
from compilegate.domain.judging.evaluation import evaluation_of
from compilegate.domain.judging.evidence import PROBATION, Arm, Evidence
from compilegate.domain.judging.evidence_file import read_evidence
from compilegate.domain.judging.judge import judge_trial
from compilegate.domain.judging.quality import design_of
from compilegate.domain.judging.speed import Segments, analyse_segments, judge_speed
from compilegate.domain.judging.validity import EXPLAINED, SAME_WORK, invalid_reasons
from compilegate.domain.judging.whole_job import estimate_whole_job
from compilegate.domain.reasons import Reason
from compilegate.explain.item import Item, Reporter, Section, sentence
from compilegate.explain.money import money_items
from compilegate.explain.probation import probation_items
from compilegate.explain.quality import evaluation_items, quality_items
from compilegate.explain.speed import speed_items
from compilegate.explain.value_of_information import step_value_items, value_items
from compilegate.explain.whole_job import full_run_items, whole_job_items

FAIR = "the runs recorded no difference between the arms but the change"
UNFAIR = "no verdict can be based on this"
SAME_CHANGE = "every run of the candidate had its change"
# The reason of a document that the judge could not read.
UNREADABLE = "evidence_invalid"
FLAG_WORDS = {
    FlagAction.ENABLE: "the flag is on: production's runs use the candidate",
    FlagAction.DISABLE: "the flag is off: production's runs use the baseline",
    FlagAction.KEEP: "the flag is left as it was: nothing proves a change",
}


def explain(document: object, decision: Decision) -> list[Item]:
    """Every number of the judge's ``decision`` on ``document``."""
    return [*_sections(document, decision), *_next_items(decision)]


def _sections(document: object, decision: Decision) -> Iterator[Item]:
    if any(reason.code == UNREADABLE for reason in decision.reasons):
        yield from _broken_contract(decision.reasons)
        return
    evidence = read_evidence(document)
    segments = analyse_segments(evidence)
    yield from _fairness_items(evidence)
    if invalid_reasons(evidence):
        return
    if evidence.phase == PROBATION:
        yield from _probation(decision, evidence, segments)
    else:
        yield from _trial(decision, evidence, segments)


def _trial(decision: Decision, evidence: Evidence, segments: Segments) -> Iterator[Item]:
    judged = judge_trial(evidence, segments)
    yield from value_items(evidence)
    for finding in judged.findings:
        yield from speed_items(finding, evidence, segments)
        if finding.quality is None and finding.whole is not None:
            yield from whole_job_items(Reporter(Section.SPEED, finding.arm.name), finding.whole)
    for finding in judged.findings:
        design = design_of(evidence, finding.arm)
        if finding.quality is not None and design is not None:
            yield from full_run_items(finding.arm, evidence, finding.whole)
            yield from quality_items(finding.arm.name, finding.quality, evidence, design)
            evaluation = evaluation_of(finding.quality, finding.arm, evidence, segments)
            metric = evidence.quality.metric
            yield from evaluation_items(finding.arm.name, evaluation, metric)
            yield from step_value_items(finding, evidence, design)
    if judged.lead is not None:
        yield from money_items(decision, judged.lead.arm, judged.lead.whole, evidence, segments)


def _probation(decision: Decision, evidence: Evidence, segments: Segments) -> Iterator[Item]:
    promoted = evidence.promoted_arm
    speed = judge_speed(promoted, evidence, segments, candidates=1)
    whole = estimate_whole_job(promoted, evidence, segments, candidates=1)
    yield from probation_items(decision, promoted, speed.estimate, evidence)
    if whole is not None:
        yield from whole_job_items(Reporter(Section.PROBATION, promoted.name), whole)
    yield from money_items(decision, promoted, whole, evidence, segments)


def _fairness_items(evidence: Evidence) -> Iterator[Item]:
    """What was compared, and every objection."""
    objections = invalid_reasons(evidence)
    item = Reporter(Section.FAIRNESS)
    fair = SAME_CHANGE if evidence.phase == PROBATION else FAIR
    text = f"no: {UNFAIR}" if objections else f"yes: {fair}"
    yield item.answer("unfair" if objections else "fair", text, of=invalid_reasons)
    for objection in objections:
        yield item("objection", objection.code, objection.message, of=invalid_reasons)
    for candidate in evidence.candidates:
        yield _applied(candidate)
        if evidence.phase != PROBATION:
            yield from _same_runs(candidate, evidence.baseline)


def _broken_contract(reasons: tuple[Reason, ...]) -> Iterator[Item]:
    """A document that could not be read at all."""
    item = Reporter(Section.FAIRNESS)
    yield item.answer("unreadable", f"unknown: the document breaks its contract, so {UNFAIR}")
    for reason in reasons:
        yield item(
            "objection", reason.code, reason.message, of="judging.evidence_file.read_evidence"
        )


def _applied(candidate: Arm) -> Item:
    done = [run for run in candidate.runs if run.finished]
    proven = sum(run.applied is True for run in done)
    return Reporter(Section.FAIRNESS, candidate.name)(
        "runs that prove the change",
        proven,
        "A run counts only if its compiler reports that it compiled. A full run must prove it, a "
        "short block must not contradict it.",
        unit="runs",
        inputs={
            "finished": len(done),
            "denied": sum(run.applied is False for run in done),
            "silent": sum(run.applied is None for run in done),
        },
        of="judging.validity.invalid_reasons",
    )


def _same_runs(candidate: Arm, baseline: Arm) -> Iterator[Item]:
    item = Reporter(Section.FAIRNESS, candidate.name)
    runs = [*baseline.runs, *candidate.runs]
    fingerprints = [run.fingerprint for run in runs if run.fingerprint]
    keys = sorted({str(key) for one in fingerprints for key in one})
    free = sorted({name for key in candidate.overrides for name in EXPLAINED.get(key, ())})
    but = f", except for what the change explains ({', '.join(free)})" if free else ""
    yield item(
        "runs with a fingerprint", len(fingerprints),
        f"Equal in both arms{but}: {', '.join(keys)}." if keys else "No run recorded one, so "
        "it is unknown whether GPU, code and data were the same.",
        unit="runs", inputs={"all runs": len(runs)}, of="judging.validity.invalid_reasons",
    )  # fmt: skip
    work = _work(candidate), _work(baseline)
    if work[0] and work[1]:
        yield item(
            "work of a whole run",
            work[0] / work[1],
            f"Samples that it trains on; more than {percent(SAME_WORK)} apart would be another "
            "job.",
            unit="times the baseline's",
            formula="samples a step x steps, candidate / baseline",
            inputs={"candidate": work[0], "baseline": work[1]},
            of="judging.validity.SAME_WORK",
        )


def _work(arm: Arm) -> float | None:
    size = next((run.samples_per_step for run in arm.speed if run.samples_per_step), None)
    return size * arm.full_run_steps if size and arm.full_run_steps else None


def _next_items(decision: Decision) -> Iterator[Item]:
    """The flag, the next step and the exit code."""
    item, action = Reporter(Section.NEXT), decision.flag_action
    yield item.answer(str(decision.verdict), FLAG_WORDS[action], of="decision.FLAG_ACTIONS")
    step = decision.next
    if step is not None:
        if isinstance(step, SpeedStep):
            size, unit = step.blocks, "blocks"
        else:
            size, unit = len(step.arms), "runs"
        yield item(
            "next step", size, sentence(step.why), unit=unit,
            inputs={"stage": step.stage, "arms": ", ".join(step.arms)}, of=_place(step.stage),
        )  # fmt: skip
        if not isinstance(step, ProbationStep):
            usd = step.usd
            yield item(
                "its cost", usd,
                "Unknown: a price or a run's time is missing." if usd is None
                else "Nothing: production makes these runs anyway." if not usd
                else "What it may cost at most, by plan or by the runs seen so far.",
                unit="USD", of=_place(step.stage),
            )  # fmt: skip
    yield item(
        "exit code", EXIT_CODES[decision.verdict], f"The exit code for {decision.verdict}.",
        of="decision.EXIT_CODES",
    )  # fmt: skip


def _place(stage: str) -> str:
    return (
        "judging.probation.judge_probation"
        if stage == "probation"
        else f"judging.next_step.next_{stage}"
    )
