"""What is it worth in dollars?"""

from __future__ import annotations

from collections.abc import Iterator

from compilegate.domain.claims import NO_AMOUNT, MoneyClaim, claims_of
from compilegate.domain.decision import Decision, SavingFigures
from compilegate.domain.economics import WEEKS_PER_YEAR, saved_share, saving_from_speedup
from compilegate.domain.formats import money, percent
from compilegate.domain.judging.evidence import Arm, Evidence
from compilegate.domain.judging.figures import break_even_run_minutes, saving_figures
from compilegate.domain.judging.speed import Segments
from compilegate.domain.judging.whole_job import (
    WholeJob,
    full_run_hours,
    same_quality_figures,
    trial_usd,
    usd_per_run,
)
from compilegate.explain.item import Item, Reporter, Section

item = Reporter(Section.MONEY)
YEAR = "per run x runs per week x 52"


def money_items(
    decision: Decision,
    candidate: Arm,
    whole: WholeJob | None,
    evidence: Evidence,
    segments: Segments,
) -> Iterator[Item]:
    """The saving, from hours and prices to dollars a year."""
    saving = decision.saving
    if saving is None or whole is None:
        text = "unknown: price per hour, runs per week or the time of a run is missing"
        yield item.answer(None, text, of=saving_figures)
        return
    yield _answer(claims_of(decision).money, saving)
    yield from _runs(candidate, whole, evidence, segments, saving)
    yield from _year(whole, evidence, saving)
    yield from _trial(saving)
    yield from _break_even(saving)
    yield from _same_quality(saving)


def _answer(claim: MoneyClaim, saving: SavingFigures) -> Item:
    per_year = saving.usd_per_year
    if not claim.has_amount:
        text = f"not stated: {NO_AMOUNT[claim]}; below is what the estimate would come to"
        return item.answer(per_year, text, of=saving_figures)
    does = {
        MoneyClaim.SAVES: "saves",
        MoneyClaim.IF_ON: "if on, would save",
        MoneyClaim.COSTS: "if on, would cost",
    }[claim]
    text = f"it {does} {money(abs(per_year))} a year at this schedule"
    return item.answer(per_year, text, of=saving_figures)


def _runs(
    candidate: Arm, whole: WholeJob, evidence: Evidence, segments: Segments, saving: SavingFigures,
) -> Iterator[Item]:  # fmt: skip
    base = evidence.baseline
    yield item(
        "price of a run today", saving.usd_per_run_baseline,
        "A run of the baseline on the whole cluster, at list prices.",
        unit="USD", formula="hours x USD per hour",
        inputs={"hours": full_run_hours(base, evidence, segments),
                "USD per hour": base.usd_per_hour},
        of=usd_per_run,
    )  # fmt: skip
    ratio = evidence.price_ratio(candidate)
    part = saved_share(whole.speedup, ratio)
    yield item(
        "share of it that is saved", part,
        f"The candidate's run costs {percent(1 - part)} of today's.",
        formula="1 - price ratio / S", inputs={"price ratio": ratio, "S": whole.speedup},
        of=saved_share,
    )  # fmt: skip
    ends = saving.interval_usd_per_run
    between = f"Between {money(ends[0])} and {money(ends[1])} by the interval of S." if ends else ""
    yield item(
        "saving per run", saving.usd_per_run, between,
        unit="USD", formula="price of a run x share saved",
        inputs={"price": saving.usd_per_run_baseline, "share": part}, of=saving_from_speedup,
    )  # fmt: skip


def _year(whole: WholeJob, evidence: Evidence, saving: SavingFigures) -> Iterator[Item]:
    rate = evidence.runs_per_week
    yield item(
        "saving per year", saving.usd_per_year, "At the current schedule.", unit="USD",
        formula=YEAR, inputs={"per run": saving.usd_per_run, "runs per week": rate,
                              "weeks": WEEKS_PER_YEAR},
        of=saving_from_speedup,
    )  # fmt: skip
    if saving.interval_usd_per_year:
        yield item(
            "its interval", list(saving.interval_usd_per_year),
            "The same formula, applied to the interval of the speed-up.",
            unit="USD", formula=YEAR,
            inputs={"S": list(whole.interval)}, of=saving_from_speedup,
        )  # fmt: skip


def _trial(saving: SavingFigures) -> Iterator[Item]:
    yield item(
        "cost of the trial so far", saving.trial_usd,
        "Short blocks and extra full runs; runs that production made anyway cost it nothing."
        if saving.trial_usd is not None
        else "Unknown: a price or the time of an extra run is missing.",
        unit="USD", formula="hours x USD per hour", of=trial_usd,
    )  # fmt: skip
    if saving.payback_runs is not None:
        yield item(
            "payback", saving.payback_runs,
            "Production runs until the trial has paid for itself.",
            unit="runs", formula="cost of the trial / saving per run",
            inputs={"trial": saving.trial_usd, "per run": saving.usd_per_run},
            of=saving_from_speedup,
        )  # fmt: skip


def _break_even(saving: SavingFigures) -> Iterator[Item]:
    minutes = saving.break_even_run_minutes
    yield item(
        "shortest run that pays", minutes,
        "A shorter run loses more to compilation than it gains."
        if minutes is not None
        else "No run is long enough: the steady steps are not faster, or were not measured.",
        unit="minutes", formula="O S / (S - 1), O the extra overhead, S of steady steps",
        of=break_even_run_minutes,
    )  # fmt: skip


def _same_quality(saving: SavingFigures) -> Iterator[Item]:
    same = saving.same_quality
    if not same:
        return
    for arm in ("baseline", "candidate"):
        usd, steps = getattr(same, f"usd_{arm}"), getattr(same, f"steps_{arm}")
        yield item(
            "price of the same quality", usd,
            arm if steps is not None else f"{arm}: not reached",
            symbol=arm, unit="USD", formula="price of a run x steps to the loss / steps of a run",
            inputs={"steps": steps, "loss": same.loss, "final loss of": same.loss_of},
            of=same_quality_figures,
        )  # fmt: skip
