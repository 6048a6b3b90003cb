"""How much less time does a whole job take? Prediction and measurement in one estimate."""

from __future__ import annotations

import math
from collections.abc import Iterator

from compilegate.domain.arithmetic import ratio
from compilegate.domain.formats import percent
from compilegate.domain.judging import statistics
from compilegate.domain.judging.evidence import Arm, Evidence
from compilegate.domain.judging.whole_job import (
    CONFIDENCE,
    PRIOR_DF,
    UNSEEN_SD,
    WALL_SD,
    Agreement,
    Confirmation,
    Source,
    WholeJob,
    confirm,
    estimate_whole_job,
)
from compilegate.explain.item import Item, Reporter, Section

LOG = "log ratio"
ANSWERS = {
    Agreement.CONFIRMED: "yes: whole jobs are {speedup}",
    Agreement.UNMEASURED: "unknown: the wall clock of full runs is missing",
    Agreement.IMPLAUSIBLE: "no: whole jobs are faster than the short blocks leave possible",
    Agreement.BELOW: "not so far: whole jobs do not confirm the short blocks",
    Agreement.UNPROVEN: "not so far: whole jobs are not proven above {bar}",
    Agreement.MAY_LOSE: "not so far: by the interval a whole job may cost more than today",
}


def full_run_items(candidate: Arm, evidence: Evidence, whole: WholeJob | None) -> Iterator[Item]:
    """Whether whole jobs confirm the gate of short blocks."""
    item, seen = Reporter(Section.FULL_RUNS, candidate.name), confirm(candidate, evidence, whole)
    yield item.answer(*_answer(seen, whole), of=confirm)
    if whole is None:
        return
    yield from whole_job_items(item, whole)
    if seen.agreement is Agreement.UNMEASURED:
        return
    bar, price = evidence.policy.reject_speedup, evidence.price_ratio(candidate)
    yield item(
        "bar for whole jobs", seen.bar,
        "The estimate and its bound must exceed it, or nothing is promoted.",
        unit="x", formula="reject_speedup x price ratio",
        inputs={"reject_speedup": bar, "price ratio": price},
        of="judging.speed.log_price_ratio",
    )  # fmt: skip
    yield item(
        "proven for whole jobs", seen.bound,
        "One-sided, at the error that a candidate may spend.",
        unit="x", formula="e^(theta - t se)",
        inputs={"alpha/K": evidence.policy.alpha / len(evidence.candidates), "df": whole.df,
                "se": whole.standard_error},
        of=confirm,
    )  # fmt: skip
    yield item(
        "too slow beyond doubt", seen.disproved,
        "Whether no more runs would lift it over the bar.",
        formula="theta + t se < ln(bar), t at three standard errors' chance", of=confirm,
    )  # fmt: skip


def whole_job_items(item: Reporter, whole: WholeJob) -> Iterator[Item]:
    """The estimate and where it comes from."""
    if whole.predicted:
        words = "What the short blocks predict for a whole job, start-up added where known."
        yield _source(item, "predicted by blocks", "P", words, whole.predicted)
    if whole.measured:
        words = (
            "What whole jobs took, at equal steps; their spread is measured, with a prior of "
            f"{percent(WALL_SD)} worth {PRIOR_DF:g} degrees of freedom."
        )
        yield _source(item, "measured on full runs", "D", words, whole.measured)
    yield item(
        "disagreement of both", whole.disagreement,
        f"How far blocks may be off a whole job; at least {UNSEEN_SD:g}, more where both differ.",
        symbol="tau", unit=LOG, formula="sqrt(max(tau_0^2, (P - D)^2 - v_P - v_D))",
        inputs={"tau_0": UNSEEN_SD}, of=estimate_whole_job,
    )  # fmt: skip
    yield item(
        "share of the full runs", whole.weight,
        "Each side counts by its precision.",
        formula="(1 / v_D) / (1 / v_D + 1 / (v_P + tau^2))", of=estimate_whole_job,
    )  # fmt: skip
    yield item(
        "speed-up of whole jobs", whole.speedup,
        f"A whole job takes {percent(1 / whole.speedup)} of the baseline's time, start-up and "
        "compilation included. Time and money are computed from it.",
        symbol="S", unit="x", formula="e^theta",
        inputs={"theta": whole.log, "se": whole.standard_error}, of=estimate_whole_job,
    )  # fmt: skip
    yield item(
        "its interval", list(whole.interval),
        "One of the candidates is chosen, so they share its error; "
        f"{percent(CONFIDENCE)} confidence.",
        unit="x", formula="e^(theta -+ t se)",
        inputs={"df": whole.df, "t": statistics.quantile(1 - whole.level / 2, whole.df),
                "se": whole.standard_error},
        of=estimate_whole_job,
    )  # fmt: skip


def _source(item: Reporter, name: str, symbol: str, words: str, source: Source) -> Item:
    return item(
        name, math.exp(source.log), words, symbol=f"e^{symbol}", unit="x",
        inputs={f"v_{symbol}": source.variance, "df": source.df,
                "runs of the baseline": source.baseline_runs,
                "runs of the candidate": source.candidate_runs},
        of=estimate_whole_job,
    )  # fmt: skip


def _answer(seen: Confirmation, whole: WholeJob | None) -> tuple[str, str]:
    if seen.disproved:
        return "disproved", "no: whole jobs are too slow by more than chance"
    speedup = ratio(whole.speedup) if whole else ""
    return str(seen.agreement), ANSWERS[seen.agreement].format(speedup=speedup, bar=ratio(seen.bar))
