"""Is quality within the margin?"""

from __future__ import annotations

import math
from collections.abc import Iterator

from compilegate.domain.arithmetic import mean, squares
from compilegate.domain.formats import percent, significant
from compilegate.domain.judging.evaluation import Evaluation, Split, evaluation_of
from compilegate.domain.judging.evidence import Evidence
from compilegate.domain.judging.quality import (
    BEYOND_DOUBT,
    DOUBT_DF,
    FUTILE,
    IDENTICAL_PAIRS,
    QualityFinding,
    QualityOutcome,
    chance_of_passing,
    identity_of,
    judge_full_runs,
    look_reached,
    samples_of,
)
from compilegate.domain.judging.statistics import (
    CALIBRATED,
    Comparison,
    Design,
    Samples,
    compare,
    look_at,
    quantile,
    spent,
)
from compilegate.explain.item import Item, Reporter, Section

OPEN_OUTCOMES = (QualityOutcome.MORE_RUNS, QualityOutcome.INCONCLUSIVE)


def quality_items(
    name: str, finding: QualityFinding, evidence: Evidence, design: Design
) -> Iterator[Item]:
    """From the final metrics to the test, for one candidate."""
    item = Reporter(Section.QUALITY, name)
    words = f"{finding.reason} ({evidence.quality.metric})"
    yield item.answer(str(finding.outcome), words, of=judge_full_runs)
    candidate = evidence.arm(name)
    shown = finding.comparison
    if finding.identity is not None:
        yield item(
            "models that both arms trained", finding.identity.models,
            "Final weights equal to the baseline's of the same seed, data and start, value by "
            f"value. {IDENTICAL_PAIRS} prove quality, unless other pairs are unequal.",
            unit="models", inputs={"unequal pairs": finding.identity.unequal}, of=identity_of,
        )  # fmt: skip
        if finding.identity.proven and finding.level is None:
            return  # no look was asked
    if candidate is None or shown is None:
        return
    samples = samples_of(candidate, evidence)
    yield from _counts(item, seen := samples.first(shown.runs))
    yield from _reference(item, seen, shown, evidence.quality.metric)
    yield from _spread(item, seen, shown, evidence.quality.metric)
    look = look_reached(samples, design)
    looked = compare(samples.first(look)) if look else None
    if shown.spread > 0 and looked is not None and look is not None:
        yield from _test(item, looked, look, evidence, design)
    if shown.spread > 0:
        yield from _loss(item, looked or shown, shown, evidence, design)
    if finding.look is not None:
        yield from _outlook(item, finding, samples, evidence, design)


def _counts(item: Reporter, samples: Samples) -> Iterator[Item]:
    for symbol, values, words in (
        ("n", samples.candidate, "of the candidate"),
        (
            "n_b",
            samples.baseline,
            "of the baseline from the candidate's first run on, and one before",
        ),
        ("n_0", samples.history, "of the baseline before: quality.history and the trial's own"),
    ):
        yield item(
            "full runs that count", len(values), words, symbol=symbol, unit="runs", of=samples_of
        )


def _reference(
    item: Reporter, samples: Samples, comparison: Comparison, unit: str
) -> Iterator[Item]:
    centre = mean(samples.candidate)
    yield item(
        "where the baseline stands", centre - comparison.difference,
        "Metrics are turned so that higher is better. Past runs tell how much the metric varies, "
        "not where it stands today.",
        symbol="mu", unit=unit, formula="mean(B)",
        inputs={"mean(B)": mean(samples.baseline), "n_b": len(samples.baseline)}, of=compare,
    )  # fmt: skip
    side = (
        "better" if comparison.difference > 0 else "worse" if comparison.difference < 0 else "level"
    )
    yield item(
        "difference", comparison.difference,
        f"The candidate is {side}" + (f" by {significant(abs(comparison.difference))} on average."
                                       if comparison.difference else "."),
        symbol="D", unit=unit, formula="mean(x) - mu",
        inputs={"mean(x)": centre, "mu": centre - comparison.difference}, of=compare,
    )  # fmt: skip


def _spread(item: Reporter, samples: Samples, comparison: Comparison, unit: str) -> Iterator[Item]:
    pooled, own = samples.pooled_variance, None
    if len(samples.candidate) > 1:
        own = squares(samples.candidate) / (len(samples.candidate) - 1)
    larger = "the candidate's own" if own is not None and own > (pooled or 0.0) else "all runs'"
    yield item(
        "spread from run to run", comparison.spread,
        f"How much runs differ that have different seeds only: {larger} spread. It is never below "
        "the candidate's own, so that a stable baseline does not hide an unstable candidate.",
        symbol="s", unit=unit, formula="sqrt(max(pooled, own))",
        inputs={"pooled": pooled, "own": own}, of=compare,
    )  # fmt: skip
    yield item(
        "degrees of freedom", comparison.df, "How many runs this spread rests on.", symbol="df",
        formula="(n_0 - 1) + (n_b - 1) + (n - 1), each at least 0; Satterthwaite's where the "
        "candidate's own spread is the larger",
        inputs={"n_0": len(samples.history), "n_b": len(samples.baseline), "n": comparison.runs},
        of=compare,
    )  # fmt: skip
    yield item(
        "standard error", comparison.standard_error,
        "How far the difference may be from the true one by chance.",
        symbol="se", unit=unit, formula="s sqrt(v), v = 1/n + 1/n_b",
        inputs={"s": comparison.spread, "n": comparison.runs,
                "n_b": comparison.reference_runs},
        of="judging.statistics.Comparison.standard_error",
    )  # fmt: skip


def _test(
    item: Reporter, looked: Comparison, look: int, evidence: Evidence, design: Design
) -> Iterator[Item]:
    margin, unit = evidence.quality.margin, evidence.quality.metric
    level = spent(look, design.n_max, design.level)
    p, low = looked.p_inferior(margin), looked.interval(level)[0]
    seen = {"D": looked.difference, "se": looked.standard_error}
    yield item(
        "error of this look", level,
        f"The look at {look} runs may be wrong with this chance; all looks up to {design.n_max} "
        "runs share the candidate's error.",
        symbol="a(n)", formula="c x alpha/K x n / n_max",
        inputs={"c": CALIBRATED[design.n_max], "alpha/K": design.level, "n": look,
                "n_max": design.n_max},
        of=spent,
    )  # fmt: skip
    yield item(
        "chance of this at a loss of the margin", p,
        f"If the candidate lost {margin:g}, runs as good as these would occur in {percent(p)} of "
        f"trials. At most {percent(level)} proves that it does not: "
        f"{'proven' if p <= level else 'not proven'}.",
        symbol="p", formula="P(T_df > (D + margin) / se)",
        inputs={**seen, "margin": margin, "df": looked.df,
                "t": (looked.difference + margin) / looked.standard_error},
        of=Comparison.p_inferior,
    )  # fmt: skip
    yield item(
        "worst difference that is left", low,
        f"The same in the metric's unit: it must be above -{margin:g}, and is"
        f"{'' if low > -margin else ' not'}.",
        unit=unit, formula="D - t(1 - a(n)) se",
        inputs={**seen, "t": quantile(1 - level, looked.df), "-margin": -margin},
        of=Comparison.interval,
    )  # fmt: skip


def _loss(
    item: Reporter, looked: Comparison, shown: Comparison, evidence: Evidence, design: Design
) -> Iterator[Item]:
    margin = evidence.quality.margin
    look, at_look = look_at(looked.runs, design.n_max) if looked.runs > 1 else None, ""
    if look:
        level = spent(look, design.n_max, design.level)
        at_look = f"{percent(level)} at a look proves a loss, "
    yield item(
        "chance of this were nothing lost", shown.p_worse,
        f"Runs as bad as these would occur in {percent(shown.p_worse)} of trials of an equal "
        f"candidate. At most {at_look}{percent(BEYOND_DOUBT)} at any time (df from {DOUBT_DF} on), "
        f"if the loss is half a margin ({margin / 2:g}) or more.",
        symbol="p_worse", formula="P(T_df > -D / se)",
        inputs={"D": shown.difference, "se": shown.standard_error, "df": shown.df},
        of="judging.statistics.Comparison.p_worse",
    )  # fmt: skip


def _outlook(
    item: Reporter, finding: QualityFinding, samples: Samples, evidence: Evidence, design: Design
) -> Iterator[Item]:
    comparison, margin, unit = compare(samples), evidence.quality.margin, evidence.quality.metric
    if comparison is not None and finding.outcome in OPEN_OUTCOMES and finding.look != design.n_max:
        chance = chance_of_passing(comparison, margin, design)
        yield item(
            "chance that the last look passes", chance,
            f"On these runs, {design.n_max} in all. Below {percent(FUTILE)} the candidate "
            f"is dropped: {'it is' if chance < FUTILE else 'it is not'}.",
            formula="Phi((D n/n_max + margin) / (s sqrt(v_max)) - t(1 - a(n_max)))",
            inputs={"D": comparison.difference, "n": comparison.runs, "n_max": design.n_max,
                    "margin": margin, "s": comparison.spread},
            of=chance_of_passing,
        )  # fmt: skip
    if finding.provable_margin is not None and math.isfinite(finding.provable_margin):
        yield item(
            "margin that so many runs could prove", finding.provable_margin,
            f"With a chance of 80%, for a candidate that loses nothing. Required is {margin:g}.",
            unit=unit, formula="s sqrt(v_n) (t(1 - a(n)) + t(0.8))",
            inputs={"s": (finding.comparison or comparison).spread if comparison else None},
            of=Design.provable_margin,
        )  # fmt: skip
    yield item(
        "runs for a single test", finding.runs_needed,
        "Without looks in between, with a chance of 80%" + ("." if finding.runs_needed
        else "; more than 500."),
        unit="runs", formula="first n with margin / (s sqrt(v_n)) >= t(1 - alpha/K) + t(0.8)",
        inputs={"margin": margin, "n_0": design.history}, of="judging.statistics.runs_for_one_look",
    )  # fmt: skip


WHY_NOT = {
    "too_few_runs": "Too few runs recorded their outcomes, or too few runs show the spread.",
    "sets_vary": "The examples change from run to run, so their part of the spread is unknown.",
    "other_metric": "The metric is not the mean of the recorded outcomes.",
}


def evaluation_items(name: str, evaluation: Evaluation | None, unit: str) -> Iterator[Item]:
    """The split of one candidate's spread; nothing where no run recorded outcomes."""
    item = Reporter(Section.QUALITY, name)
    if evaluation is None:
        return
    split, today = evaluation.split, evaluation.today
    if split is None or today is None:
        finding = str(evaluation.finding)
        yield item("spread of the evaluation", None, WHY_NOT[finding], of=evaluation_of)
        return
    seen = {"s": split.sd, "tau^2": split.tau_squared, "N": split.examples}
    yield item(
        "spread of the evaluation", split.evaluation_sd,
        "What the choice of the evaluation examples adds to the spread from run to run.",
        unit=unit, formula="tau / sqrt(N)",
        inputs={"tau^2": split.tau_squared, "N": split.examples},
        of="judging.evaluation.Split.evaluation_sd",
    )  # fmt: skip
    yield item(
        "spread of training", split.training_sd,
        "What is left on an endless set of examples.",
        symbol="sigma_D", unit=unit, formula="sqrt(max(0, N/(N-1) (s^2 - tau^2/N)))", inputs=seen,
        of="judging.evaluation.Split.training_sd",
    )  # fmt: skip
    yield item(
        "spread of training to reckon with", split.expected_training_sd,
        "Few runs measure s; half of the spreads that would explain them are larger than this.",
        unit=unit, formula="the same at the median of the true s^2 >= tau^2/N",
        inputs={**seen, "df": split.df},
        of="judging.evaluation.Split.expected_training_sd",
    )  # fmt: skip
    yield item(
        "runs on today's examples", today.runs,
        "Of each arm, with a chance of 80%" + ("." if today.runs else "; more than 500."),
        unit="runs", inputs={"spread": today.sd, "examples": split.examples},
        of="judging.statistics.runs_for_one_look",
    )  # fmt: skip
    for larger in evaluation.larger:
        yield item(
            "runs on more examples", larger.runs,
            "The same on a larger set, without past runs, which were scored on today's.",
            unit="runs", formula="with sqrt(sigma_D^2 + tau^2/N')",
            inputs={"examples": larger.examples, "spread": larger.sd}, of=Split.at,
        )  # fmt: skip
