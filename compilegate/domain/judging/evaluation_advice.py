"""Whether more evaluation examples would save full runs, for one candidate's open proof.

The spread that the quality gate has to overcome is split (evaluation_noise.py). An evaluation
takes minutes and a run hours, so examples are the cheaper way to a smaller spread, where they are
a way at all. This module only advises: no gate reads it.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import repeat

from compilegate.domain.decision import EvaluationFinding, EvaluationSplit, LargerEvaluation
from compilegate.domain.judging.evaluation_noise import Split
from compilegate.domain.judging.evaluation_split import Finding, split_of
from compilegate.domain.judging.evidence import Arm, Evidence
from compilegate.domain.judging.power import LIKELY, MOST_RUNS, Design, runs_for_one_look
from compilegate.domain.judging.pricing import usd_per_run
from compilegate.domain.judging.quality import QualityFinding, QualityOutcome, design_of
from compilegate.domain.judging.speed import Segments
from compilegate.domain.reasons import Reason

# Sizes of a larger set that are considered, in today's; the first that is worth it is named.
FACTORS = (2, 4, 8, 16, 32, 64)
# Examples help where they spare this share of the candidate's runs: less is within the error of
# the split.
WORTH = 0.5

# Outcomes of the gate in which a smaller spread would help.
OPEN_PROOF = (
    QualityOutcome.MORE_RUNS, QualityOutcome.UNDERPOWERED, QualityOutcome.INCONCLUSIVE,
)  # fmt: skip


@dataclass(frozen=True)
class Purchase:
    """A set of ``examples`` outcomes: the spread on it and the runs of each arm it would take."""

    examples: int
    sd: float
    runs: int | None


@dataclass(frozen=True)
class Evaluation:
    """The split, today's runs, what larger sets would bring, and the one that is worth it."""

    finding: Finding
    split: Split | None = None
    today: Purchase | None = None
    larger: tuple[Purchase, ...] = ()
    best: Purchase | None = None
    wanted: int | None = None
    usd_saved: float | None = None
    reasons: tuple[Reason, ...] = ()

    @property
    def figures(self) -> EvaluationFinding:
        """As the decision has it."""
        split = self.split
        if split is None or self.today is None:
            return EvaluationFinding(self.finding)
        best, (low, high) = self.best, split.training_range
        return EvaluationSplit(
            finding=self.finding,
            examples=split.examples * split.per_outcome,
            spread=split.sd,
            spread_of_evaluation=split.evaluation_sd,
            spread_of_training=split.training_sd,
            spread_of_training_interval=(finite_or_none(low), finite_or_none(high)),
            spread_of_training_expected=split.expected_training_sd,
            runs_needed=self.today.runs,
            wanted_examples=self.wanted and self.wanted * split.per_outcome,
            best_examples=best.examples * split.per_outcome if best else None,
            runs_saved=_fewer(self),
            usd_saved=self.usd_saved,
            larger=tuple(
                LargerEvaluation(one.examples * split.per_outcome, one.sd, one.runs)
                for one in self.larger
            ),
        )


def finite_or_none(value: float) -> float | None:
    """None where there is no upper limit."""
    return value if math.isfinite(value) else None


def evaluation_of(
    quality: QualityFinding | None, candidate: Arm, evidence: Evidence, segments: Segments
) -> Evaluation | None:
    """What the evaluation adds to the spread; None where no run recorded outcomes."""
    design = design_of(evidence, candidate)
    split = split_of(candidate, evidence) if quality and design else None
    if quality is None or design is None or split is None:
        return None
    if isinstance(split, Finding):
        return Evaluation(split)
    # Past runs were scored on today's set: they are no reference for metrics on another.
    evaluation = weighed(split, design, replace(design, history=0), evidence.quality.margin)
    saved = _usd_saved(_fewer(evaluation), candidate, evidence, segments)
    evaluation = replace(evaluation, usd_saved=saved)
    if quality.outcome not in OPEN_PROOF:
        return evaluation
    reason = _reason(evaluation, split, candidate.name)
    return evaluation if reason is None else replace(evaluation, reasons=(reason,))


def weighed(split: Split, design: Design, anew: Design, margin: float) -> Evaluation:
    """Today's runs against those that larger sets would take, by their own design."""
    sizes = [factor * split.examples for factor in (1, *FACTORS)]
    today, larger, best = _offers(sizes, map(split.at, sizes), design, anew, margin)
    finding = Finding.MORE_EXAMPLES if best else Finding.NOT_EXAMPLES
    if best is None:
        favourable = _offers(sizes, map(split.at_most_favourable, sizes), design, anew, margin)
        finding = Finding.UNCLEAR if favourable[-1] else finding
    wanted = split.wanted(margin / anew.best_margin(LIKELY))
    return Evaluation(finding, split, today, larger, best, wanted)


def _offers(
    sizes: Sequence[int], sds: Iterable[float], design: Design, anew: Design, margin: float
) -> tuple[Purchase, tuple[Purchase, ...], Purchase | None]:
    """Today's set, the larger ones, and the smallest of them that is worth it."""
    designs = (design, *repeat(anew, len(sizes) - 1))
    today, *larger = (
        _purchase(size, sd, by, margin) for size, sd, by in zip(sizes, sds, designs, strict=True)
    )
    best = next((one for one in larger if _worth_it(one, today, anew, margin)), None)
    return today, tuple(larger), best


def _purchase(examples: int, sd: float, design: Design, margin: float) -> Purchase:
    runs = runs_for_one_look(sd / margin, history=design.history, level=design.level)
    return Purchase(examples, sd, runs)


def _worth_it(larger: Purchase, today: Purchase, design: Design, margin: float) -> bool:
    """Whether it can prove the margin, with at most half of the runs that today's set takes."""
    if larger.runs is None or design.runs_needed(larger.sd / margin) is None:
        return False
    return today.runs is None or larger.runs <= WORTH * today.runs


def _fewer(evaluation: Evaluation) -> int | None:
    today, best = evaluation.today, evaluation.best
    if best is None or best.runs is None or today is None or today.runs is None:
        return None
    return today.runs - best.runs


def _usd_saved(
    fewer: int | None, candidate: Arm, evidence: Evidence, segments: Segments
) -> float | None:
    """Price of the runs spared; of those that production makes, what the candidate saves on them.

    An extra run of the candidate has one of the baseline beside it. Production promotes earlier by
    as many runs of the baseline. None where a price is unknown.
    """
    ours = usd_per_run(candidate, evidence, segments)
    theirs = usd_per_run(evidence.baseline, evidence, segments)
    if fewer is None or ours is None or theirs is None:
        return None
    each = theirs + ours if evidence.policy.quality_runs == "shadow" else theirs - ours
    return max(0.0, fewer * each)


def _reason(evaluation: Evaluation, split: Split, candidate: str) -> Reason | None:
    """What to say of an open proof; the spread is the one that larger sets are reckoned with."""
    best, today, training = evaluation.best, evaluation.today, split.expected_training_sd
    count, sd = split.examples * split.per_outcome, f"{split.at(split.examples):.2g}"
    few_runs_anyway = best is None and split.evaluation_sd > training
    if evaluation.finding is Finding.UNCLEAR or few_runs_anyway:
        return None
    if best is None or today is None:
        text = (
            f"{candidate}: more evaluation examples would not help much: {training:.2g} of the "
            f"spread {sd} is training itself, your {count:,} examples add {split.evaluation_sd:.2g}"
        )
        return Reason("evaluation_sufficient", text, candidate)
    instead = f"more than {MOST_RUNS}" if today.runs is None else str(today.runs)
    usd = evaluation.usd_saved
    text = (
        f"{candidate}: {split.evaluation_sd:.2g} of the spread {sd} comes from your {count:,} "
        f"evaluation examples; {best.examples * split.per_outcome:,} would need about {best.runs} "
        f"runs instead of {instead}" + (f", worth ${usd:,.2f}" if usd else "")
    )
    return Reason("evaluation_limited", text, candidate)
