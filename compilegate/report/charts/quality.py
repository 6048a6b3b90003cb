"""Quality: every run's final metric, the difference against the margin, and the runs' losses."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence

from compilegate.domain.decision import EvaluationFinding, EvaluationSplit, QualityFigures
from compilegate.domain.formats import UNKNOWN, count, duration, percent, significant
from compilegate.domain.judging.evidence import FullRun
from compilegate.domain.judging.measured import Measured, Reference
from compilegate.report import statements
from compilegate.report.charts.figure import (
    DASHED,
    DOTTED,
    NAME_ABOVE,
    ROW_PIXELS,
    Axis,
    Band,
    Bar,
    Chart,
    Figure,
    Interval,
    Label,
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
    smooth,
)
from compilegate.report.charts.speed import spread
from compilegate.report.statements import confidence_words
from compilegate.report.trial_report import TrialReport

TITLE = "Quality"


def quality_chart(trial: TrialReport, measured: Measured) -> Chart:
    """Each full run's final metric with the margin, and the difference with its interval."""
    if not any(_finished(arm.compared) for arm in measured.arms):
        missing = "Full training runs were not needed: the speed gate had ended the trial before."
        if any(arm.arm.quality for arm in measured.arms):
            missing = "No full run finished, so there is no final metric to compare."
        return Chart("quality", TITLE, "", missing=missing)
    metric, judged = measured.evidence.quality.metric, trial.judged.quality
    reference = measured.reference
    views = [View("Runs", _runs_figure(measured, reference))]
    if judged and judged.delta is not None:
        views.append(View("Difference", _difference_figure(measured, judged, judged.delta)))
    evaluation = judged.evaluation if judged else None
    views += evaluation_views(evaluation)
    better = "higher" if measured.evidence.quality.goal == "maximize" else "lower"
    return Chart(
        "quality",
        f"{TITLE}: {metric} ({better} is better)",
        _finding(trial, reference, metric),
        note="A point is a full training run; bars are means. The difference is measured from the "
        "dashed reference; beyond the dotted limit the loss exceeds the margin. "
        f"{statements.evaluation_words(evaluation)}".rstrip(),
        views=views,
        choice="What to show",
    )


def _finding(trial: TrialReport, reference: Reference | None, metric: str) -> str:
    judged = trial.judged.quality
    if judged is None or judged.estimate is None:
        return f"No difference in {metric} could be computed."
    words = statements.quality(judged, trial.claims)
    parts = [
        f"{words[0].upper()}{words[1:]}",
        f"against {reference.words}" if reference else "",
        confidence_words(judged),
    ]
    return f"{'; '.join(part for part in parts if part)}."


def _finished(runs: Sequence[FullRun]) -> list[tuple[FullRun, float]]:
    return [(run, run.metric) for run in runs if run.metric is not None]


def _runs_figure(measured: Measured, reference: Reference | None) -> Figure:
    history = measured.evidence.quality.history
    names, marks = ["past runs"] if history else [], _history_marks(history)
    for index, arm in enumerate(measured.arms):
        runs = _finished(arm.compared)
        if runs:
            marks += _arm_marks(len(names), index, runs)
            names.append(arm.name)
    rules = [] if reference is None else _reference_rules(measured, reference)
    values = [x for mark in marks for x in mark.x]
    values += [rule.x for rule in rules if rule.x is not None]
    # A tick has as many digits as it needs.
    scale = axis(measured.evidence.quality.metric, values, show=lambda x: significant(x, 12))
    drawn = [*rules, *marks, *row_names(names, scale.low)]
    return Figure(scale, rows_axis(len(names)), drawn, height=ROW_PIXELS * len(names))


def _reference_rules(measured: Measured, reference: Reference) -> list[Rule]:
    goal, margin = measured.evidence.quality.goal, measured.evidence.quality.margin
    limit = reference.value + (-margin if goal == "maximize" else margin)
    return [
        Rule("limit", x=limit, dash=DOTTED, name=f"limit {significant(limit, 4)}"),
        Rule("muted", x=reference.value, dash=DASHED, name=f"reference, {reference.words}"),
    ]


def _history_marks(history: Sequence[float]) -> list[Points | Line]:
    """A pale first row: these runs count for less than those of today."""
    if not history:
        return []
    words = [f"past run: {significant(value, 5)}" for value in history]
    y = spread(0, len(history), 0.06)
    points = Points(list(history), y, "baseline", "circle", words, open=True, pale=True)
    return [points, _mean_line(0, history, "baseline", pale=True)]


def _arm_marks(row: int, index: int, runs: Sequence[tuple[FullRun, float]]) -> list[Points | Line]:
    style, values = arm_style(index), [metric for _, metric in runs]
    words = [
        f"seed {UNKNOWN if run.seed is None else run.seed}: {significant(metric, 5)}"
        for run, metric in runs
    ]
    y = spread(row, len(runs), 0.06)
    points = Points(values, y, style.role, style.symbol, words)
    return [points, _mean_line(row, values, style.role)]


def _mean_line(row: int, values: Sequence[float], role: str, *, pale: bool = False) -> Line:
    mean = statistics.fmean(values)
    return Line([mean, mean], [row - 0.2, row + 0.3], role, pale=pale)


def _difference_figure(measured: Measured, quality: QualityFigures, estimate: float) -> Figure:
    ends, style = quality.delta_interval, arm_style(1)
    maximize, margin = quality.goal == "maximize", measured.evidence.quality.margin
    limit = -margin if maximize else margin
    scale = axis(
        f"Δ from the reference, {statements.BETTER[quality.goal]}",
        [estimate, 0.0, limit, *(ends or ())], room=0.12,
    )  # fmt: skip
    marks: list[Mark] = [
        Band(*((scale.low, limit) if maximize else (limit, scale.high)), "limit"),
        Rule("limit", x=limit, dash=DOTTED, name=f"margin {statements.with_sign(limit)}"),
        Rule("muted", x=0.0, name="equal"),
    ]
    if ends is not None:
        marks.append(Interval(*ends, 0.0, style.role))
    words = [statements.with_sign(estimate)]
    marks.append(Points([estimate], [0.0], style.role, style.symbol, words, 14))
    return Figure(scale, Axis(confidence_words(quality), -1.0, 1.0), marks, height=90)


# The loss, step by step.

LOSS = "Training loss"
Curve = dict[int, tuple[float | None, float | None]]  # step -> (loss, seconds)


def loss_chart(measured: Measured) -> Chart:
    """Every full run's loss thin, each arm's mean over runs bold; over steps and over time."""
    points = points_each(2 * sum(len(arm.arm.quality) for arm in measured.arms))  # in two views
    curves = {arm.name: [_curve(run, points) for run in arm.arm.quality] for arm in measured.arms}
    every = [curve for runs in curves.values() for curve in runs]
    if not any(every):
        why = (
            "No full training run recorded its loss: the trial ended before, or the runs did not "
            "write it."
        )
        return Chart("loss", LOSS, "", missing=why)
    views = [View("Over steps", _loss_figure(curves, over_time=False))]
    if all(seconds is not None for curve in every for _, seconds in curve.values()):
        views.append(View("Over time", _loss_figure(curves, over_time=True)))
    return Chart(
        "loss",
        LOSS,
        _loss_finding(curves),
        note="Thin: each run. Bold: mean over an arm's runs, smoothed by a short running mean.",
        views=views,
        choice="Horizontal axis",
    )


def _curve(run: FullRun, most: int) -> Curve:
    """At most so many of its points, the last one always: where it ended is a figure."""
    curve = run.loss_curve
    stride = -(-len(curve) // most) or 1
    kept = [*curve[::stride][:-1], *curve[-1:]]
    return {point.step: (point.loss, point.seconds) for point in kept}


def _loss_figure(curves: Mapping[str, Sequence[Curve]], *, over_time: bool) -> Figure:
    thin_lines: list[Line] = []
    bold_lines: list[Line] = []
    for index, (name, runs) in enumerate(curves.items()):
        style, recorded = arm_style(index), [run for run in runs if run]
        thin_lines += [
            Line(*_coordinates(run, over_time=over_time), style.role, width=1, pale=True)
            for run in recorded
        ]
        mean = _mean_curve(recorded)
        if mean:
            bold_lines.append(Line(
                *_coordinates(mean, over_time=over_time), style.role, dash=style.dash, name=name,
            ))  # fmt: skip
    lines = [*thin_lines, *reversed(bold_lines)]
    title = "seconds of training" if over_time else "optimizer step"
    return Figure(
        axis(title, [x for line in lines for x in line.x], room=0.02),
        axis("loss", [y for line in lines for y in line.y if y is not None], grid=True),
        lines,
    )


def _coordinates(curve: Curve, *, over_time: bool) -> tuple[list[float], list[float | None]]:
    x = [(seconds if over_time else step, loss) for step, (loss, seconds) in curve.items()]
    placed = [(at, loss) for at, loss in x if at is not None]
    return [at for at, _ in placed], [loss for _, loss in placed]


def _mean_curve(runs: Sequence[Curve]) -> Curve:
    """Mean loss and time at the steps that every run of the arm reached."""
    if not runs:
        return {}
    reached = {step: [run[step] for run in runs if step in run] for step in runs[0]}
    losses = {step: [loss for loss, _ in at if loss is not None] for step, at in reached.items()}
    steps = [step for step in reached if len(losses[step]) == len(runs)]
    smoothed = smooth([statistics.fmean(losses[step]) for step in steps])
    times = ([time for _, time in reached[step] if time is not None] for step in steps)
    means = [statistics.fmean(at) if at else None for at in times]
    return dict(zip(steps, zip(smoothed, means, strict=True), strict=True))


def _loss_finding(curves: Mapping[str, Sequence[Curve]]) -> str:
    ends = []
    for name, runs in curves.items():
        last = [list(run.values())[-1][1] for run in runs if run]
        times = [seconds for seconds in last if seconds is not None]
        if times:
            ends.append(f"{name} {duration(statistics.fmean(times))}")
    if not ends:
        return "Same steps, same seeds: the curves should coincide."
    return f"Time in training steps: {', '.join(ends)}."


# The metric's spread in two parts: what the evaluation examples add, and what training does.

# Of the sizes in the decision, today's first: more bars would say nothing new.
BARS = 5


def evaluation_views(split: EvaluationFinding | None) -> list[View]:
    """The picture, none where the decision has no split."""
    if not isinstance(split, EvaluationSplit) or not split.spread_of_evaluation:
        return []
    own, training = split.spread_of_evaluation, split.spread_of_training_expected
    today = (split.examples, split.runs_needed)
    larger = ((one.examples, one.runs) for one in split.larger[: BARS - 1])
    return [View("Spread", _figure([today, *larger], own**2, training**2))]


def _figure(sizes: Sequence[tuple[int, int | None]], evaluation: float, training: float) -> Figure:
    """Of so many examples and runs; ``evaluation`` and ``training`` are today's variances."""
    whole, (first, _) = evaluation + training, sizes[0]
    marks: list[Mark] = []
    for row, (examples, needed) in enumerate(sizes):
        own, added = training / whole, evaluation * first / examples / whole
        words, named = f"{count(examples)} examples", row == 0
        runs = "over 500 runs" if needed is None else f"{count(needed)} runs"
        marks += [
            Bar(0.0, own, row, 0.3, "baseline", f"{words}: training {percent(own, 2)}", full=True,
                name="training itself" if named else ""),
            Bar(own, own + added, row, 0.3, arm_style(1).role,
                f"{words}: choice of examples {percent(added, 2)}", full=True,
                name="choice of examples" if named else ""),
            Label(f"{words}: {runs}", 0.0, row, above=NAME_ABOVE),
        ]  # fmt: skip
    shares = axis("share of today's variance", [1.0], show=percent, from_zero=True, room=0.02)
    return Figure(shares, rows_axis(len(sizes)), marks, height=ROW_PIXELS * len(sizes))
