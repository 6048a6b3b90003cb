"""Throughput of each arm, the speed-up in each block with its step times, and what that pays."""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import accumulate

from compilegate.domain.arithmetic import ratio
from compilegate.domain.claims import NO_AMOUNT
from compilegate.domain.decision import ArmFigures, SavingFigures, Speedup
from compilegate.domain.decision import Interval as Ends
from compilegate.domain.economics import WEEKS_PER_YEAR
from compilegate.domain.formats import (
    count,
    duration,
    money,
    money_tick,
    plural,
    shown,
    significant,
)
from compilegate.domain.judging.measured import Block, Measured, MeasuredArm
from compilegate.domain.judging.steady_state import Segment
from compilegate.domain.optional import without_none
from compilegate.report import statements
from compilegate.report.charts.figure import (
    DASHED,
    DOTTED,
    ROW_PIXELS,
    Area,
    Axis,
    Band,
    Bar,
    Chart,
    Figure,
    Interval,
    Line,
    Mark,
    Points,
    Rule,
    View,
    arm_style,
    axis,
    points_each,
    row_names,
    rows_axis,
    seconds_axis,
    thin,
)
from compilegate.report.trial_report import TrialReport

THROUGHPUT, SPEEDUP = "Throughput in short blocks", "Speed-up that each short block predicts"
BLOCK_PIXELS, FEWEST_PIXELS = 28, 200


def throughput_chart(trial: TrialReport, measured: Measured) -> Chart:
    """Samples per second of each arm with its interval, and every block as a point."""
    figures = {arm.name: arm for arm in trial.judged.arms}
    rows = [(arm, *_rate(figures.get(arm.name), arm)) for arm in measured.arms]
    if not any(rate for _, rate, _ in rows):
        why = "No block has a steady state with a recorded number of samples per step."
        return Chart("throughput", THROUGHPUT, "", missing=why)
    marks: list[Mark] = []
    for index, row in enumerate(rows):
        marks += _arm_marks(index, *row)
    marks += row_names([arm.name for arm, *_ in rows], 0.0)
    seen = [end for mark in marks for end in _ends(mark)]
    drawn = Figure(
        axis("samples per second, steady state", seen, from_zero=True, grid=True),
        rows_axis(len(rows)),
        marks,
        height=ROW_PIXELS * len(rows),
    )
    rates = (f"{arm.name} {shown(rate, significant)}" for arm, rate, _ in rows)
    return Chart(
        "throughput",
        THROUGHPUT,
        f"{'; '.join(rates)} samples/s.",
        note="Bar: mean over blocks with its 95% interval. Points: each block.",
        views=[View("", drawn)],
    )


def _rate(figures: ArmFigures | None, arm: MeasuredArm) -> tuple[float | None, Ends | None]:
    """The decision's rate with its interval; where it has none, the mean over blocks alone."""
    if figures and figures.samples_per_second is not None:
        return figures.samples_per_second, figures.samples_per_second_interval
    rates = [rate for block in arm.blocks.values() if (rate := block.samples_per_second)]
    return statistics.fmean(rates) if rates else None, None


def _arm_marks(index: int, arm: MeasuredArm, value: float | None, ends: Ends | None) -> list[Mark]:
    style = arm_style(index)
    marks: list[Mark] = []
    if value is not None:
        words = f"{arm.name}: {significant(value)} samples/s"
        marks.append(Bar(0.0, value, index, 0.3, style.role, words))
    if ends is not None:
        marks.append(Interval(*ends, index, style.role))
    rates = {n: b.samples_per_second for n, b in arm.blocks.items() if b.samples_per_second}
    words_of = [f"block {n}: {significant(rate)} samples/s" for n, rate in rates.items()]
    y = spread(index, len(rates), 0.06)
    marks.append(Points(list(rates.values()), y, style.role, style.symbol, words_of))
    return marks


def _ends(mark: Mark) -> Sequence[float]:
    match mark:
        case Bar() | Interval():
            return (mark.high,)  # the axis begins at zero
        case Points():
            return mark.x
        case _:
            return ()


def spread(row: float, count: int, step: float) -> list[float]:
    """Places around a row's middle, so that equal values stay countable."""
    step = min(step, 0.3 / count) if count else step
    return [row + step * (i - (count - 1) / 2) for i in range(count)]


def speedup_chart(trial: TrialReport, measured: Measured) -> Chart:
    """Every block's full-run speed-up, and the estimate with its interval, with the thresholds."""
    speedups = [(arm, arm.speedups) for arm in measured.candidates]
    numbers = sorted({n for _, blocks in speedups for n in blocks})
    if not numbers:
        why = "No block has a steady state in both arms of a pair."
        return Chart("speedup", SPEEDUP, "", missing=why)
    rows = {n: row for row, n in enumerate(numbers)}
    speed = trial.judged.speedup
    marks = _limits(speed, measured)
    for index, (arm, blocks) in enumerate(speedups, 1):
        style, shift = arm_style(index), 0.16 * (index - (len(speedups) + 1) / 2)
        words = [f"{arm.name}, block {n}: {ratio(x)}" for n, x in blocks.items()]
        y, x = [rows[n] + shift for n in blocks], list(blocks.values())
        if blocks:
            name = arm.name if len(speedups) > 1 else ""
            marks.append(Points(x, y, style.role, style.symbol, words, 9, name=name))
    ticks = [(float(rows[n]), f"block {n}") for n in reversed(numbers)]
    marks += (estimate := _estimate(speed, len(numbers)))
    last = len(numbers) if estimate else len(numbers) - 1
    ticks = [(float(last), "whole job"), *ticks] if estimate else ticks
    where = "each arm on its own" if measured.apart else "both arms back to back on one machine"
    drawn = Figure(
        _speed_axis(speed, measured, [x for _, blocks in speedups for x in blocks.values()]),
        Axis(where, last + 0.5, -0.5, ticks),
        marks,
        height=max(FEWEST_PIXELS, BLOCK_PIXELS * (last + 1)),
    )
    return Chart(
        "speedup",
        SPEEDUP,
        f"{statements.speed_name(speed, 'Whole job')}: {statements.speedup(speed)}."
        if speed
        else f"{plural(len(numbers), 'short block')}; the judge gave no estimate.",
        note=_note(speed, measured),
        views=[View("", drawn)],
    )


def _note(speed: Speedup | None, measured: Measured) -> str:
    text = "A block is the unit of replication: fresh processes, compile time included."
    if speed and speed.full_runs:
        text += " The estimate also counts the wall clock of full runs."
    if measured.price_ratio != 1:
        price = f"{measured.price_ratio:.2f} times as much per hour"
        text += f" {measured.lead.name} costs {price}: both minima are set for its dollars."
    return text


def _limits(speed: Speedup | None, measured: Measured) -> list[Mark]:
    proven, average = measured.thresholds
    marks: list[Mark] = [
        Rule("muted", x=1.0, name="no change"),
        Rule("limit", x=proven, dash=DOTTED, name=f"min. proven {ratio(proven)}"),
        Rule("goal", x=average, dash=DASHED, name=f"min. mean {ratio(average)}"),
    ]
    if speed:
        marks.insert(0, Band(*speed.interval, arm_style(1).role))
    return marks


def _estimate(speed: Speedup | None, row: int) -> list[Mark]:
    """The judge's figure as a row of its own below those of the blocks."""
    if speed is None:
        return []
    style = arm_style(1)
    words = f"whole job: {ratio(speed.estimate)}"
    point = Points([speed.estimate], [row], style.role, style.symbol, [words], 13)
    return [Interval(*speed.interval, row, style.role), point]


def _speed_axis(speed: Speedup | None, measured: Measured, values: list[float]) -> Axis:
    marks = [1.0, *measured.thresholds, *values]
    if speed:
        ends = speed.interval
        # A hopelessly wide interval must not squeeze the points into a line.
        reach = max(max(marks) - min(marks), 0.1)
        marks += [max(ends[0], min(marks) - reach), min(ends[1], max(marks) + reach)]
    title = "time of a whole job, baseline ÷ candidate"
    return axis(title, marks, show=lambda x: f"{significant(x)}x", room=0.08)


# Step-time trace of a block.

STEP_TIMES = "Step times"
SLOW = 2.0  # an early step slower than this many steady steps counts as compiling


def trace_chart(measured: Measured) -> Chart:
    """Every step of each block over time, compile phase shaded and the warm-up cut marked."""
    lengths = {
        number: len(block.run.step_seconds)
        for arm in measured.arms
        for number, block in arm.blocks.items()
        if _is_timed(block)
    }
    if not lengths:
        return Chart("trace", STEP_TIMES, "", missing="No block left step times.")
    points = points_each(len(lengths) * len(measured.arms))
    views = [
        View(f"Block {n}" if len(lengths) <= 4 else str(n), _trace_figure(measured, n, points))
        for n in sorted(lengths)
    ]
    note = (
        "A plateau is one step. Shaded: the candidate's early steps, in which it compiles. "
        "Dotted line: its warm-up cut."
    )
    if max(lengths.values()) > points:
        note += (
            f" Of {max(lengths.values()):,} steps at most {points} are drawn per arm: "
            "the fastest and slowest of each stretch."
        )
    return Chart(
        "trace",
        STEP_TIMES,
        _trace_finding(measured),
        note=note,
        views=views,
        choice="Block to show",
    )


def _is_timed(block: Block) -> bool:
    return bool(block.run.step_seconds) and min(block.run.step_seconds) > 0


def _trace_finding(measured: Measured) -> str:
    parts = []
    for arm in measured.arms:
        if arm.steady_step_seconds is not None:
            parts.append(f"{arm.name} {duration(arm.steady_step_seconds)}")
    return f"Steady step: {', '.join(parts)}." if parts else "No arm reached a steady state."


def _trace_figure(measured: Measured, block_number: int, points: int) -> Figure:
    marks: list[Mark] = []
    ends: list[float] = []
    values: list[float] = []
    for index, arm in enumerate(measured.arms):
        block = arm.blocks.get(block_number)
        if block and _is_timed(block):
            marks.append(_line(index, arm.name, block, points))
            ends.append(sum(block.run.step_seconds))
            values += block.run.step_seconds
    lead = measured.lead.blocks.get(block_number)
    if lead and lead.segment:
        marks = [*_compiling(lead, lead.segment), *marks]
    return Figure(
        axis("seconds of training", ends, from_zero=True, room=0.02),
        seconds_axis("time per step (logarithmic)", values),
        marks,
    )


def _line(index: int, name: str, block: Block, most: int) -> Line:
    style, seconds = arm_style(index), block.run.step_seconds
    begins, points = [0.0, *accumulate(seconds)], thin(seconds, points=most)
    last_step, last_value = points[-1]
    return Line(
        [*(begins[step] for step, _ in points), begins[last_step + 1]],
        [*(value for _, value in points), last_value],
        style.role, width=1.4, stepped=True, name=name,
    )  # fmt: skip


def _compiling(block: Block, segment: Segment) -> list[Mark]:
    """The compile phase and the warm-up cut of the candidate's segment."""
    role, begins = arm_style(1).role, [0.0, *accumulate(block.run.step_seconds)]
    cut, early = begins[segment.warm_up_steps], block.run.step_seconds[: segment.warm_up_steps]
    slow = [index for index, s in enumerate(early, 1) if s > SLOW * segment.steady_step_seconds]
    recorded, name = block.run.compile_seconds, "warm-up cut"
    if recorded > 0:
        name += f" ({duration(recorded)} compiling)"
    marks: list[Mark] = [Rule(role, x=cut, dash=DOTTED, name=name)]
    return [Band(0, begins[slow[-1]], "shade"), *marks] if slow else marks


# Cost over production runs, and where the trial has paid for itself.

COST = "Cost and break-even"


@dataclass(frozen=True)
class Costs:
    """USD; ``trial`` None when unknown, ``spread`` the interval of the saving per run, if known.

    ``break_even`` is the runs after which the trial's cost is back, infinite when never or unknown;
    ``runs`` is how many production runs are drawn.
    """

    base_run: float
    saving: float
    trial: float | None
    spread: Sequence[float]
    break_even: float
    runs: int


def cost_chart(trial: TrialReport) -> Chart:
    """Net saving and total spend over the production runs that follow."""
    saving, claim = trial.judged.saving, trial.claims.money
    if saving is None:
        why = "Without a measured speed-up and a price per run there is no saving to draw."
        return Chart("cost", COST, "", missing=why)
    if not claim.has_amount:
        why = f"No saving is drawn: {NO_AMOUNT[claim]}."
        return Chart("cost", COST, "", missing=why)
    costs = _costs(saving, trial)
    return Chart(
        "cost",
        COST,
        _cost_finding(costs),
        note="Prices are list prices times billable time, an estimate. "
        + ("Band: the interval of the whole job's speed-up." if costs.spread else ""),
        views=[View("Net saving", _net(costs)), View("Total spend", _spend(costs))],
        choice="What to show",
    )


def _costs(saving: SavingFigures, trial: TrialReport) -> Costs:
    spent, per_run, base = trial.trial_usd, saving.usd_per_run, saving.usd_per_run_baseline
    year, ends = saving.usd_per_year, saving.interval_usd_per_year
    spread = [end * per_run / year for end in ends] if ends and year else []
    per_week = trial.evidence.runs_per_week if trial.evidence else None
    yearly = WEEKS_PER_YEAR * (per_week or 0)
    if spent is None or per_run <= 0:
        return Costs(base, per_run, spent, spread, math.inf, int(min(max(yearly, 10), 60)))
    # Enough to see the break-even, at most a year: plans reach no further.
    back = spent / per_run
    runs = max(10, math.ceil(min(3 * back, max(yearly, 1.3 * back))))
    return Costs(base, per_run, spent, spread, back, runs)


def _cost_finding(costs: Costs) -> str:
    if costs.saving <= 0:
        return f"Every run would cost {money(-costs.saving)} more: never paid back."
    if math.isinf(costs.break_even):
        return f"{money(costs.saving)} saved per run; the trial's cost is unknown."
    return (
        f"{money(costs.saving)} saved per run; the trial's {money(costs.trial or 0)} is back "
        f"after {plural(costs.break_even, 'run')}."
    )


def _net(costs: Costs) -> Figure:
    style, x, trial = arm_style(1), (0.0, float(costs.runs)), costs.trial or 0.0
    line = Line(x, [n * costs.saving - trial for n in x], style.role)
    if not costs.spread:
        return _cost_figure(costs, [line], line.y, "saved in total")
    low, high = ([n * end - trial for n in x] for end in costs.spread)
    area = Area(x, low, high, style.role)
    return _cost_figure(costs, [area, line], [*low, *high, *line.y], "saved in total")


def _spend(costs: Costs) -> Figure:
    x, trial = (0.0, float(costs.runs)), costs.trial or 0.0
    base = [n * costs.base_run for n in x]
    candidate = [trial + n * (costs.base_run - costs.saving) for n in x]
    marks = [
        Line(x, y, style.role, dash=style.dash, name=name)
        for style, name, y in (
            (arm_style(0), "stay on the baseline", base),
            (arm_style(1), "trial, then the candidate", candidate),
        )
    ]
    return _cost_figure(costs, marks, [*base, *candidate], "spent in total")


def _cost_figure(
    costs: Costs, marks: Sequence[Mark], values: Iterable[float | None], y_title: str
) -> Figure:
    rules: list[Mark] = [Rule("axis", y=0.0)]
    if math.isfinite(costs.break_even):
        paid = f"paid back after {plural(costs.break_even, 'run')}"
        rules.append(Rule("goal", x=costs.break_even, dash=DASHED, name=paid))
    heights = without_none(values)
    return Figure(
        axis("production runs after the trial", (0.0, float(costs.runs)), show=count, room=0),
        axis(y_title, [0.0, *heights], show=money_tick, grid=True),
        [*marks, *rules],
    )
