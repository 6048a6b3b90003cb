"""Is it worth measuring, and could the allowed runs prove the margin at all?"""

from __future__ import annotations

import math
from collections.abc import Iterator

from compilegate.domain.formats import percent, significant
from compilegate.domain.judging.evidence import Evidence
from compilegate.domain.judging.judge import CandidateFinding
from compilegate.domain.judging.next_step import (
    CHANCE_OF_A_WIN,
    CHANCE_QUALITY_HOLDS,
    FULL_RUNS_EXPECTED,
    RUNS_DURING_TRIAL,
    TYPICAL_WIN,
    InformationValue,
    is_shadow,
    value_of_a_trial,
    value_of_shadow_runs,
)
from compilegate.domain.judging.quality import QualityOutcome, design_of, refuse_before_spending
from compilegate.domain.judging.statistics import (
    LIKELY,
    SPEED_LOOKS,
    VERY_LIKELY,
    Design,
    Samples,
    allowed_runs,
    design_for,
)
from compilegate.domain.judging.whole_job import confirm
from compilegate.explain.item import Item, Reporter, Section

item = Reporter(Section.WORTH)


def value_items(evidence: Evidence) -> Iterator[Item]:
    """The price of a trial against what it may save."""
    design, value = design_of(evidence), _trial_value(evidence)
    yield _answer(evidence, design, value)
    if value is not None:
        yield from _trial_figures(evidence, value)
    if design is not None:
        yield from _design_items(evidence, design)
        yield from _power_items(evidence, design)


def _trial_value(evidence: Evidence) -> InformationValue | None:
    steps, remaining = evidence.baseline.full_run_steps, evidence.runs_left()
    if steps is None or remaining is None:
        return None
    return value_of_a_trial(
        remaining, full_run_steps=steps, segment_steps=evidence.plan.speed_steps,
        arms=len(evidence.arms), blocks=SPEED_LOOKS[0],
    )  # fmt: skip


def _answer(evidence: Evidence, design: Design | None, value: InformationValue | None) -> Item:
    if design is None:
        text = "no: too few production runs remain to prove quality on"
        return item.answer("too_few_runs", text, of=design_for)
    if any(arm.runs for arm in evidence.arms):
        text = (
            "decided before the first run; completed runs are paid for, so only the next step "
            "must be worth its price"
        )
        return item.answer("begun", text)
    refused = refuse_before_spending(evidence, design)
    if refused:
        return item.answer("underpowered", f"no: {refused.message}", of=refuse_before_spending)
    if value is None:
        text = "yes, presumably: the remaining runs or the steps of a run are unknown"
        return item.answer("unknown", text)
    if value.pays:
        return item.answer("pays", "yes: it may save more than it costs", of=value_of_a_trial)
    return item.answer("does_not_pay", "no: it would cost more than it saves", of=value_of_a_trial)


def _trial_figures(evidence: Evidence, value: InformationValue) -> Iterator[Item]:
    win, saved = percent(CHANCE_OF_A_WIN), f"1 - 1/{TYPICAL_WIN:g}"
    yield item(
        "expected gain of measuring",
        value.gain,
        f"Before any measurement: {win} of candidates win, by {TYPICAL_WIN:g}x when they do, "
        "and save that on every run that remains.",
        unit="baseline runs",
        formula=f"{CHANCE_OF_A_WIN:g} max(0, (L - {RUNS_DURING_TRIAL})({saved}) "
        f"- {FULL_RUNS_EXPECTED:g}/{TYPICAL_WIN:g})",
        inputs={"L (runs that remain)": evidence.runs_left()},
        of=value_of_a_trial,
    )
    yield item(
        "cost of measuring",
        value.cost,
        f"The first {SPEED_LOOKS[0]} short blocks, as a share of one whole run. A gain below it "
        "would have ended the trial before it began.",
        unit="baseline runs",
        formula="blocks x arms x steps of a segment / steps of a run",
        inputs={
            "blocks": SPEED_LOOKS[0],
            "arms": len(evidence.arms),
            "segment": evidence.plan.speed_steps,
            "run": evidence.baseline.full_run_steps,
        },
        of=value_of_a_trial,
    )


def _design_items(evidence: Evidence, design: Design) -> Iterator[Item]:
    yield item(
        "full runs allowed per candidate",
        design.n_max,
        f"Policy allows {allowed_runs(evidence.policy)} in mode {evidence.policy.quality_runs}; "
        "the candidate's are at most half of the runs that remain, above 36 at most 40%.",
        symbol="n_max",
        unit="runs",
        formula="largest look up to min(policy, 36, L/2), or up to min(policy, 0.4 L)",
        inputs={"policy": allowed_runs(evidence.policy), "L": evidence.runs_left()},
        of=design_for,
    )
    yield item(
        "error of one candidate",
        design.level,
        f"Chance that a bad candidate is promoted: at most {percent(design.level)} each, and "
        f"{percent(evidence.policy.alpha)} for all candidates together.",
        formula="alpha / K",
        inputs={"alpha": evidence.policy.alpha, "K (candidates)": len(evidence.candidates)},
        of=design_for,
    )


def _power_items(evidence: Evidence, design: Design) -> Iterator[Item]:
    history = Samples((), (), evidence.oriented(evidence.quality.history))
    variance, margin = history.pooled_variance, evidence.quality.margin
    if not variance:
        return
    spread = math.sqrt(variance)
    relative = spread / margin
    yield item(
        "spread of past runs", spread,
        "Past runs of the baseline differ by this from seed to seed; that is "
        f"{significant(relative)} times the margin that must not be lost.",
        symbol="s", unit=evidence.quality.metric, formula="sd of quality.history",
        inputs={"runs": len(evidence.quality.history), "margin": margin},
        of="judging.statistics.Samples.pooled_variance",
    )  # fmt: skip
    for chance in (LIKELY, VERY_LIKELY):
        needed = design.runs_needed(relative, chance)
        yield item(
            "candidate runs that a proof takes", needed,
            f"for a chance of {percent(chance)}" + ("" if needed else ": more than are allowed"),
            symbol=f"n at {percent(chance)}", unit="runs",
            formula="first look n with margin / (s sqrt(v_n)) >= t(1 - a(n)) + t(chance)",
            of=Design.runs_needed,
        )  # fmt: skip
    yield item(
        "smallest margin that could be proven", design.best_margin() * spread,
        f"With all {design.n_max} runs and a chance of {percent(LIKELY)}, for a candidate that "
        f"loses nothing. Required is {margin:g}.",
        unit=evidence.quality.metric, formula="min over n of s sqrt(v_n) (t(1 - a(n)) + t(0.8))",
        inputs={"s": spread, "n_max": design.n_max}, of=Design.best_margin,
    )  # fmt: skip


def step_value_items(
    finding: CandidateFinding, evidence: Evidence, design: Design
) -> Iterator[Item]:
    """Whether further dedicated full runs pay; production's own cost nothing."""
    open_still = finding.quality is not None and finding.quality.outcome is QualityOutcome.MORE_RUNS
    whole = finding.whole
    if not open_still or whole is None or not is_shadow(evidence, finding.arm):
        return
    valued = value_of_shadow_runs(finding.arm, evidence, design, whole.speedup)
    if valued is None or confirm(finding.arm, evidence, whole).disproved:
        return
    item, (value, runs) = Reporter(Section.QUALITY, finding.arm.name), valued
    yield item(
        "expected gain of going on", value.gain,
        f"{percent(CHANCE_QUALITY_HOLDS)} of candidates this fast hold their quality and then save "
        f"on every run that remains: {'worth it' if value.pays else 'not worth it'}.",
        unit="baseline runs", formula=f"{CHANCE_QUALITY_HOLDS:g} (L - k)(1 - price ratio / S)",
        inputs={"L": evidence.runs_left(), "k (runs still needed)": runs, "S": whole.speedup,
                "price ratio": evidence.price_ratio(finding.arm)},
        of=value_of_shadow_runs,
    )  # fmt: skip
    yield item(
        "cost of going on", value.cost, "Extra runs, counted in runs of the baseline.",
        unit="baseline runs", formula="k price ratio / S + baseline runs to pay for",
        inputs={"k": runs},
        of=value_of_shadow_runs,
    )  # fmt: skip
