"""Is quality held? The comparison and the test, number by number."""

from __future__ import annotations

import math
from collections.abc import Iterator

from compilegate.domain.arithmetic import mean, squares
from compilegate.domain.judging.evidence import Evidence
from compilegate.domain.judging.full_runs import judge_full_runs, samples_of
from compilegate.domain.judging.looks import CALIBRATED, look_at, spent
from compilegate.domain.judging.noninferiority import (
    KAPPA,
    Comparison,
    Samples,
    compare,
    history_weight,
)
from compilegate.domain.judging.power import Design
from compilegate.domain.judging.quality import (
    BEYOND_DOUBT,
    DOUBT_DF,
    FUTILE,
    QualityFinding,
    QualityOutcome,
    chance_of_passing,
)
from compilegate.domain.judging.student_t import quantile
from compilegate.explain.item import Item, Section, Teller, share, short

UNSETTLED = (QualityOutcome.MORE_RUNS, QualityOutcome.INCONCLUSIVE)


def quality_items(
    name: str, finding: QualityFinding, evidence: Evidence, design: Design
) -> Iterator[Item]:
    """From the final metrics to the test, for one candidate."""
    tell = Teller(Section.QUALITY, name)
    words = f"{finding.reason} ({evidence.quality.metric})"
    yield tell.answer(str(finding.outcome), words, of=judge_full_runs)
    candidate = evidence.arm(name)
    shown = finding.comparison
    if candidate is None or shown is None:
        return
    samples = samples_of(candidate, evidence)
    yield from _counts(tell, seen := samples.first(shown.runs))
    yield from _reference(tell, seen, shown, evidence.quality.metric)
    yield from _spread(tell, seen, shown, evidence.quality.metric)
    look = look_at(len(samples.candidate), design.n_max)
    looked = compare(samples.first(look)) if look and len(samples.candidate) > 1 else None
    if shown.spread > 0 and looked is not None and look is not None:
        yield from _test(tell, looked, look, evidence, design)
    if shown.spread > 0:
        yield from _loss(tell, looked or shown, shown, evidence, design)
    if finding.look is not None:
        yield from _outlook(tell, finding, samples, evidence, design)


def _counts(tell: Teller, samples: Samples) -> Iterator[Item]:
    for symbol, values, words in (
        ("n", samples.candidate, "of the candidate"),
        ("n_b", samples.baseline, "of the baseline in the same weeks"),
        ("n_0", samples.history, "of the baseline before (quality.history)"),
    ):
        yield tell(
            "full runs that count", len(values), words, symbol=symbol, unit="runs", of=samples_of
        )


def _reference(tell: Teller, samples: Samples, found: Comparison, unit: str) -> Iterator[Item]:
    drifted = found.kappa > KAPPA
    yield tell(
        "drift allowed for history", found.kappa,
        "How far, in spreads, past runs may be off from today's"
        + (": more than usual, because today's baseline differs from them." if drifted else "."),
        symbol="kappa", unit="spreads",
        formula=f"{KAPPA:g}, or |mean(B) - mean(H)| / s where that is far more",
        inputs={"runs B": len(samples.baseline), "runs H": len(samples.history)}, of=compare,
    )  # fmt: skip
    yield tell(
        "weight of history", found.history_weight,
        "Past runs count as so many runs of today, so that an old history cannot outvote them.",
        symbol="w_H", unit="runs", formula="1 / (1/n_0 + kappa^2)",
        inputs={"n_0": len(samples.history), "kappa": found.kappa}, of=history_weight,
    )  # fmt: skip
    means = {
        key: mean(values)
        for key, values in (("mean(H)", samples.history), ("mean(B)", samples.baseline))
        if values
    }
    centre = mean(samples.candidate)
    yield tell(
        "where the baseline stands", centre - found.difference,
        "Metrics are turned so that higher is better.",
        symbol="mu", unit=unit, formula="(w_H mean(H) + n_b mean(B)) / (w_H + n_b)",
        inputs={**means, "w_H": found.history_weight, "n_b": len(samples.baseline)}, of=compare,
    )  # fmt: skip
    side = "better" if found.difference > 0 else "worse" if found.difference < 0 else "level"
    yield tell(
        "difference", found.difference,
        f"The candidate is {side}" + (f" by {short(abs(found.difference))} on average."
                                       if found.difference else "."),
        symbol="D", unit=unit, formula="mean(x) - mu",
        inputs={"mean(x)": centre, "mu": centre - found.difference}, of=compare,
    )  # fmt: skip


def _spread(tell: Teller, samples: Samples, found: Comparison, unit: str) -> Iterator[Item]:
    pooled, own = samples.pooled_variance, None
    if len(samples.candidate) > 1:
        own = squares(samples.candidate) / (len(samples.candidate) - 1)
    larger = "the candidate's own" if own is not None and own > (pooled or 0.0) else "all runs'"
    yield tell(
        "spread from run to run", found.spread,
        f"What two runs that differ only in their seed differ by: {larger} spread. A candidate "
        "that trains less steadily cannot hide behind a calm baseline.",
        symbol="s", unit=unit, formula="sqrt(max(pooled, own))",
        inputs={"pooled": pooled, "own": own}, of=compare,
    )  # fmt: skip
    yield tell(
        "degrees of freedom", found.df, "How many runs this spread rests on.", symbol="df",
        formula="(n_0 - 1) + (n_b - 1) + (n - 1), each at least 0",
        inputs={"n_0": len(samples.history), "n_b": len(samples.baseline), "n": found.runs},
        of="judging.noninferiority.Samples.degrees_of_freedom",
    )  # fmt: skip
    yield tell(
        "standard error", found.standard_error,
        "How far the difference may be off by chance.",
        symbol="se", unit=unit, formula="s sqrt(v), v = 1/n + 1/(w_H + n_b)",
        inputs={"s": found.spread, "n": found.runs, "w_H + n_b": found.reference_runs},
        of="judging.noninferiority.Comparison.standard_error",
    )  # fmt: skip


def _test(
    tell: Teller, looked: Comparison, look: int, evidence: Evidence, design: Design
) -> Iterator[Item]:
    margin, unit = evidence.quality.margin, evidence.quality.metric
    level = spent(look, design.n_max, design.level)
    p, low = looked.p_inferior(margin), looked.interval(level)[0]
    seen = {"D": looked.difference, "se": looked.standard_error}
    yield tell(
        "error of this look", level,
        f"The look at {look} runs may be wrong with this chance; all looks up to {design.n_max} "
        "runs share the candidate's error.",
        symbol="a(n)", formula="c x alpha/K x sqrt(n / n_max)",
        inputs={"c": CALIBRATED[design.n_max], "alpha/K": design.level, "n": look,
                "n_max": design.n_max},
        of=spent,
    )  # fmt: skip
    yield tell(
        "chance of this at a loss of the margin", p,
        f"If the candidate lost {margin:g}, runs as good as these would come up in {share(p)} of "
        f"trials. At most {share(level)} proves that it does not: "
        f"{'proven' if p <= level else 'not proven'}.",
        symbol="p", formula="P(T_df > (D + margin) / se)",
        inputs={**seen, "margin": margin, "df": looked.df,
                "t": (looked.difference + margin) / looked.standard_error},
        of=Comparison.p_inferior,
    )  # fmt: skip
    yield tell(
        "worst difference that is left", low,
        f"The same in the metric's unit: it has to lie above -{margin:g} and does"
        f"{'' if low > -margin else ' not'}.",
        unit=unit, formula="D - t(1 - a(n)) se",
        inputs={**seen, "t": quantile(1 - level, looked.df), "-margin": -margin},
        of=Comparison.interval,
    )  # fmt: skip


def _loss(
    tell: Teller, looked: Comparison, shown: Comparison, evidence: Evidence, design: Design
) -> Iterator[Item]:
    margin = evidence.quality.margin
    level = spent(look, design.n_max, design.level) if (look := _look(looked, design)) else None
    at_look = f"{share(level)} at a look proves a loss, " if level else ""
    yield tell(
        "chance of this were nothing lost", shown.p_worse,
        f"Runs as bad as these would come up in {share(shown.p_worse)} of trials of an equal "
        f"candidate. At most {at_look}{share(BEYOND_DOUBT)} at any time (df from {DOUBT_DF} on), "
        f"if the loss is half a margin ({margin / 2:g}) or more.",
        symbol="p_worse", formula="P(T_df > -D / se)",
        inputs={"D": shown.difference, "se": shown.standard_error, "df": shown.df},
        of="judging.noninferiority.Comparison.p_worse",
    )  # fmt: skip


def _look(looked: Comparison, design: Design) -> int | None:
    return look_at(looked.runs, design.n_max) if looked.runs > 1 else None


def _outlook(
    tell: Teller, finding: QualityFinding, samples: Samples, evidence: Evidence, design: Design
) -> Iterator[Item]:
    found, margin, unit = compare(samples), evidence.quality.margin, evidence.quality.metric
    if found is not None and finding.outcome in UNSETTLED and finding.look != design.n_max:
        chance = chance_of_passing(found, margin, design)
        yield tell(
            "chance that the last look passes", chance,
            f"As things stand, with {design.n_max} runs. Below {share(FUTILE)} it is given up: "
            f"{'it is' if chance < FUTILE else 'it is not'}.",
            formula="Phi((D n/n_max + margin) / (s sqrt(v_max)) - t(1 - a(n_max)))",
            inputs={"D": found.difference, "n": found.runs, "n_max": design.n_max,
                    "margin": margin, "s": found.spread},
            of=chance_of_passing,
        )  # fmt: skip
    if finding.provable_margin is not None and math.isfinite(finding.provable_margin):
        yield tell(
            "margin that so many runs could prove", finding.provable_margin,
            f"With a chance of 80 %, for a candidate that loses nothing. Asked is {margin:g}.",
            unit=unit, formula="s sqrt(v_n) (t(1 - a(n)) + t(0.8))",
            inputs={"s": (finding.comparison or found).spread if found else None},
            of=Design.provable_margin,
        )  # fmt: skip
    yield tell(
        "runs for a single test", finding.runs_needed,
        "Without looks in between, with a chance of 80 %" + ("." if finding.runs_needed
        else "; more than 500."),
        unit="runs", formula="first n with margin / (s sqrt(v_n)) >= t(1 - alpha/K) + t(0.8)",
        inputs={"margin": margin, "n_0": design.history}, of="judging.power.runs_for_one_look",
    )  # fmt: skip
