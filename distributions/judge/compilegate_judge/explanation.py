"""Explains a decision, from the same evidence and functions as the judge.

Each file in ``sections`` answers one question of the judge: a template in which every ``item`` is
a number with its formula, inputs and source, and the text below it is what it means. The modules
of ``domain/judging`` are there by their names, so that a template computes by the judge's code.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from compilegate.domain import arithmetic, economics, formats, judging
from compilegate.domain.claims import NO_AMOUNT, claims_of
from compilegate.domain.decision import EXIT_CODES, Decision, Verdict
from compilegate.domain.judging.comparison import Samples, samples_of
from compilegate.domain.judging.design import Design
from compilegate.domain.judging.equivalence import equivalence_of
from compilegate.domain.judging.evaluation import evaluation_of
from compilegate.domain.judging.evidence import PROBATION, Arm, Evidence, FullRun
from compilegate.domain.judging.evidence_file import read_evidence
from compilegate.domain.judging.judge import CandidateFinding, judge_trial
from compilegate.domain.judging.monitor import Monitor
from compilegate.domain.judging.next_step import is_shadow, value_of_a_trial, value_of_shadow_runs
from compilegate.domain.judging.probation import ProbationFinding, judge_probation
from compilegate.domain.judging.quality import QualityOutcome, design_of, refuse_before_spending
from compilegate.domain.judging.speed import block_log_speedups, judge_speed, log_price_ratio
from compilegate.domain.judging.validity import EXPLAINED, invalid_reasons
from compilegate.domain.judging.whole_job import WholeJob, confirm, estimate_whole_job
from compilegate.domain.workload.model import BASELINE
from compilegate.report.statements import ASSUMED
from compilegate_judge.item import ANSWER, Item, Section

SECTIONS = Path(__file__).parent / "sections"
UNFAIR = "no verdict can be based on this"
# The reason of a document that the judge could not read.
UNREADABLE = "evidence_invalid"
LINE_BREAK = re.compile(r"\s*\n\s*")


def explain(document: object, decision: Decision) -> list[Item]:
    """Every number of the judge's ``decision`` on ``document``."""
    exit_code = EXIT_CODES[decision.verdict]
    return [
        *_sections(document, decision),
        *_items("next", Section.NEXT, decision=decision, exit_code=exit_code),
    ]


def _sections(document: object, decision: Decision) -> Iterator[Item]:
    if UNREADABLE in decision.codes:
        yield from _items("unreadable", Section.FAIRNESS, decision=decision)
        return
    evidence = read_evidence(document)
    objections = invalid_reasons(evidence)
    yield from _items("fairness", Section.FAIRNESS, evidence=evidence, objections=objections)
    if not objections and evidence.phase == PROBATION:
        yield from _probation(decision, evidence)
    elif not objections:
        yield from _trial(decision, evidence)


def _trial(decision: Decision, evidence: Evidence) -> Iterator[Item]:
    judged = judge_trial(evidence)
    yield from _worth(evidence)
    for finding in judged.findings:
        yield from _speed(finding, evidence)
        if finding.quality is None and finding.whole is not None:
            name = finding.arm.name
            yield from _items("whole_job", Section.SPEED, name, whole=finding.whole)
    for finding in judged.findings:
        design = design_of(evidence, finding.arm)
        if evidence.equivalence is not None:
            yield from _items(
                "equivalence", Section.EQUIVALENCE, finding.arm.name, design=design,
                finding=equivalence_of(finding.arm, evidence), assumed=ASSUMED,
            )  # fmt: skip
        if finding.quality is not None and design is not None:
            yield from _full_runs(finding, evidence, design)
    if judged.lead is not None:
        yield from _money(decision, judged.lead.arm, judged.lead.whole, evidence)


def _worth(evidence: Evidence) -> Iterator[Item]:
    """The price of a trial against what it may save."""
    design = design_of(evidence)
    variance = Samples((), (), evidence.oriented(evidence.quality.history)).pooled_variance
    return _items(
        "worth", Section.WORTH, evidence=evidence, design=design, value=value_of_a_trial(evidence),
        refused=None if design is None else refuse_before_spending(evidence, design),
        spread=math.sqrt(variance or 0.0),
    )  # fmt: skip


def _speed(finding: CandidateFinding, evidence: Evidence) -> Iterator[Item]:
    cost = log_price_ratio(finding.arm, evidence)
    calm = block_log_speedups(finding.arm, evidence, calm=True)
    return _items(
        "speed", Section.SPEED, finding.arm.name, finding=finding, evidence=evidence,
        cost=cost, calm=calm, net=[log - cost for log in finding.speed.logs],
        calm_net=[log - cost for log in calm],
    )  # fmt: skip


def _full_runs(finding: CandidateFinding, evidence: Evidence, design: Design) -> Iterator[Item]:
    """Whole jobs, quality, and whether further runs pay, of one candidate."""
    arm, quality, whole = finding.arm, finding.quality, finding.whole
    seen = confirm(arm, evidence, whole)
    yield from _items(
        "full_runs", Section.FULL_RUNS, arm.name, candidate=arm, evidence=evidence, whole=whole,
        seen=seen,
    )  # fmt: skip
    yield from _items(
        "quality", Section.QUALITY, arm.name, finding=quality, evidence=evidence, design=design,
        samples=samples_of(arm, evidence),
    )  # fmt: skip
    for one in (*finding.guardrails, *finding.signals):
        yield from _items(
            "quality", Section.QUALITY, f"{arm.name}, {one.evidence.quality.metric}",
            finding=one.finding, evidence=one.evidence, design=design_of(one.evidence, one.arm),
            samples=samples_of(one.arm, one.evidence),
        )  # fmt: skip
    evaluation = None if quality is None else evaluation_of(quality, arm, evidence)
    if evaluation is not None:
        yield from _items(
            "evaluation", Section.QUALITY, arm.name, evaluation=evaluation,
            metric=evidence.quality.metric,
        )  # fmt: skip
    open_still = quality is not None and quality.outcome is QualityOutcome.MORE_RUNS
    if open_still and whole is not None and is_shadow(evidence, arm) and not seen.disproved:
        value = value_of_shadow_runs(arm, evidence, design, whole.speedup)
        if value is not None:
            yield from _items(
                "going_on", Section.QUALITY, arm.name, finding=finding, evidence=evidence,
                value=value,
            )  # fmt: skip


def _probation(decision: Decision, evidence: Evidence) -> Iterator[Item]:
    promoted = evidence.promoted_arm
    speed = judge_speed(promoted, evidence)
    whole = estimate_whole_job(promoted, evidence)
    moments = _replay(evidence, promoted, speed.estimate)
    start, last = moments[0][2], moments[-1][2]
    yield from _items(
        "probation", Section.PROBATION, decision=decision, evidence=evidence,
        start=start.monitors, monitors=last.monitors, checks=last.checks,
        sums={key: list(_sums(key, promoted, moments)) for key in start.monitors},
    )  # fmt: skip
    if whole is not None:
        yield from _items("whole_job", Section.PROBATION, promoted.name, whole=whole)
    yield from _money(decision, promoted, whole, evidence)


Moment = tuple[str, FullRun | None, ProbationFinding]


def _replay(evidence: Evidence, promoted: Arm, speedup: float | None) -> list[Moment]:
    """The probation before its first run, and just after each: a later run changes nothing."""
    runs = [(BASELINE, run) for run in evidence.baseline.probation]
    runs += [(promoted.name, run) for run in promoted.probation]
    runs.sort(key=lambda pair: pair[1].order)
    moments: list[Moment] = []
    for count in range(len(runs) + 1):
        until = [run for _, run in runs[:count]]
        arms = [
            replace(arm, probation=tuple(run for run in arm.probation if run in until))
            for arm in evidence.arms
        ]
        finding = judge_probation(replace(evidence, arms=tuple(arms)), speedup)
        moments.append((*(runs[count - 1] if count else ("", None)), finding))
        if finding.verdict is Verdict.REVERT:
            break
    return moments


def _sums(key: str, promoted: Arm, moments: list[Moment]) -> Iterator[tuple[FullRun, Monitor]]:
    """Each run of the candidate that a sum watched, with the monitor after it."""
    alarmed = False
    for arm, run, finding in moments:
        monitor, checks = finding.monitors[key], alarmed and run is not None and run.may_check
        alarmed = any(reason.code == "alarm" for reason in finding.reasons)
        if run is None or arm != promoted.name or not run.finished or checks:
            continue
        if monitor.figure(run) is not None and monitor.reference_runs:
            yield run, monitor


def _money(
    decision: Decision, candidate: Arm, whole: WholeJob | None, evidence: Evidence
) -> Iterator[Item]:
    claim = claims_of(decision).money
    return _items(
        "money", Section.MONEY, decision=decision, candidate=candidate, whole=whole,
        evidence=evidence, claim=claim, why_no_amount=NO_AMOUNT.get(claim),
    )  # fmt: skip


def _free_keys(candidate: Arm) -> list[str]:
    """What may differ in a fingerprint because of the candidate's own change."""
    return sorted({name for key in candidate.overrides for name in EXPLAINED.get(key, ())})


def _whole_run_samples(arm: Arm) -> float | None:
    """The samples that a whole run trains on, None where unknown."""
    size = next((run.samples_per_step for run in arm.speed if run.samples_per_step), None)
    return size * arm.full_run_steps if size and arm.full_run_steps else None


def sentence(text: str) -> str:
    """The text as a sentence of its own; a metric's name keeps its case."""
    name = "_" in text.partition(" ")[0]
    return f"{text[:1] if name else text[:1].upper()}{text[1:].rstrip('.')}." if text else ""


@cache
def _environment() -> Environment:
    environment = Environment(  # noqa: S701 - text for a terminal
        loader=FileSystemLoader(SECTIONS), undefined=StrictUndefined, line_statement_prefix="%"
    )
    environment.filters |= {
        "money": formats.money, "percent": formats.percent, "ratio": arithmetic.ratio,
        "significant": formats.significant,
    }  # fmt: skip
    environment.globals |= {
        "judging": judging, "economics": economics, "mean": arithmetic.mean,
        "deviation": arithmetic.deviation, "squares": arithmetic.squares, "sqrt": math.sqrt,
        "exp": math.exp, "log": math.log, "isfinite": math.isfinite, "sentence": sentence,
        "free_keys": _free_keys, "whole_run_samples": _whole_run_samples, "unfair": UNFAIR,
    }  # fmt: skip
    return environment


def _items(
    template: str, section: Section, arm: str | None = None, **values: Any
) -> Iterator[Item]:
    """The items of a template, in its order."""
    items: list[Item] = []

    def item(
        name: str,
        value: Any,
        words: str = "",
        *,
        symbol: str | None = None,
        unit: str | None = None,
        formula: str | None = None,
        inputs: Mapping[str, Any] | None = None,
        arm: str | None = arm,
        of: str | None = None,
        caller: Callable[[], str] | None = None,
    ) -> str:
        below = LINE_BREAK.sub(" ", caller()).strip() if caller else words
        items.append(
            Item(section, arm, name, symbol, value, unit, formula, inputs or {}, of, below)
        )
        return ""

    def answer(value: Any, words: str, *, of: str | None = None) -> str:
        return item(ANSWER, value, sentence(words), of=of)

    _environment().get_template(f"{template}.j2").render(values, item=item, answer=answer)
    return iter(items)
