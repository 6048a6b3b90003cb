"""Puts the explanation together, from the same evidence by the same functions as the judge."""

from __future__ import annotations

from collections.abc import Iterator

from compilegate.domain.decision import Decision
from compilegate.domain.judging.evidence import PROBATION, Evidence
from compilegate.domain.judging.evidence_file import parse_evidence
from compilegate.domain.judging.full_runs import design_of
from compilegate.domain.judging.speed import Segments, analyse_segments, judge_speed
from compilegate.domain.judging.trial import CandidateFinding, judge_trial
from compilegate.domain.judging.validity import invalid_reasons
from compilegate.explain.fairness import broken_contract, fairness_items
from compilegate.explain.full_runs import full_run_items
from compilegate.explain.item import Item
from compilegate.explain.money import money_items
from compilegate.explain.next_step import next_items
from compilegate.explain.probation import probation_items
from compilegate.explain.quality import quality_items
from compilegate.explain.speed import speed_items
from compilegate.explain.worth import step_worth_items, worth_items

# The reason that a document gets which the judge could not read.
UNREADABLE = "evidence_invalid"


def explain(document: object, decision: Decision) -> list[Item]:
    """Every number of ``decision``, which the judge made of ``document``."""
    return [*_sections(document, decision), *next_items(decision)]


def _sections(document: object, decision: Decision) -> Iterator[Item]:
    if any(reason.code == UNREADABLE for reason in decision.reasons):
        yield from broken_contract(decision.reasons)
        return
    evidence = parse_evidence(document)
    segments = analyse_segments(evidence)
    yield from fairness_items(evidence)
    if invalid_reasons(evidence):
        return
    if evidence.phase == PROBATION:
        yield from _probation(decision, evidence, segments)
    else:
        yield from _trial(decision, evidence, segments)


def _trial(decision: Decision, evidence: Evidence, segments: Segments) -> Iterator[Item]:
    found = judge_trial(evidence, segments)
    yield from worth_items(evidence)
    for finding in found.findings:
        yield from speed_items(finding, evidence, segments)
    for finding in found.findings:
        yield from _second_gate(finding, evidence)
    if found.lead is not None:
        lead = found.lead
        yield from money_items(decision, lead.arm, lead.speed, evidence, segments)


def _second_gate(finding: CandidateFinding, evidence: Evidence) -> Iterator[Item]:
    design = design_of(evidence)
    if finding.quality is None or design is None:
        return
    yield from full_run_items(finding.arm, evidence)
    yield from quality_items(finding.arm.name, finding.quality, evidence, design)
    yield from step_worth_items(finding, evidence, design)


def _probation(decision: Decision, evidence: Evidence, segments: Segments) -> Iterator[Item]:
    promoted = evidence.arm(evidence.promoted or "") or evidence.baseline
    speed = judge_speed(promoted, evidence, segments, candidates=1)
    yield from probation_items(decision, promoted, speed.estimate, evidence)
    yield from money_items(decision, promoted, speed, evidence, segments)
