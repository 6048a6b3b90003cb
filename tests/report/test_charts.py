"""Figures, with plotly's own validation as the outside oracle."""

from __future__ import annotations

import copy
import statistics

import plotly.graph_objects
import pytest

from compilegate.report.charts import charts
from compilegate.report.charts.base import DARK, DARK_OF_LIGHT, LIGHT, arm_style, smooth, thin
from compilegate.report.trial_report import read_trial_report
from tests.report import samples

MEASURED = set(samples.SAMPLES) - {"ineligible"}


def _charts(source):
    return {chart.id: chart for chart in charts(read_trial_report(source))}


def _figure(source, chart, view=0):
    return _charts(source)[chart].views[view].figure


@pytest.mark.parametrize("name", sorted(MEASURED))
def test_every_figure_is_one_that_plotly_accepts(name):
    for chart in _charts(samples.SAMPLES[name]()).values():
        for view in chart.views:
            plotly.graph_objects.Figure(copy.deepcopy(view.figure))


def test_the_oracle_refuses_what_plotly_does_not_know():
    figure = copy.deepcopy(_figure(samples.promote(), "cost"))
    figure["data"][0]["colour"] = "red"

    with pytest.raises(ValueError, match="colour"):
        plotly.graph_objects.Figure(figure)


@pytest.mark.parametrize(
    ("sample", "missing"),
    [("promote", []), ("stay_off", ["loss", "quality"])],
)
def test_a_chart_without_data_says_why(sample, missing):
    charts_of = _charts(samples.SAMPLES[sample]())

    assert list(charts_of) == ["throughput", "speedup", "loss", "quality", "trace", "cost"]
    assert [name for name, chart in charts_of.items() if not chart.views] == missing
    assert all(bool(chart.missing) != bool(chart.views) for chart in charts_of.values())


def test_an_ineligible_job_has_no_charts():
    assert _charts(samples.ineligible()) == {}


def test_throughput_bars_are_the_decisions_figures_and_points_are_blocks():
    source = samples.promote()
    bars = [t for t in _figure(source, "throughput")["data"] if t["type"] == "bar"]
    points = [t for t in _figure(source, "throughput")["data"] if t["type"] == "scatter"]

    assert [a["samples_per_second"] for a in source["decision"]["arms"]] == [
        b["x"][0] for b in bars
    ]
    assert [3, 3, 1] == [len(p["x"]) for p in points]


def test_speedups_per_block_agree_with_the_judges_estimate():
    source = samples.promote()
    points = _figure(source, "speedup")["data"][0]

    assert statistics.geometric_mean(points["y"]) == pytest.approx(
        source["decision"]["speedup"]["predicted"]["estimate"]
    )


@pytest.mark.parametrize(
    ("sample", "margin"),
    [("promote", 0.05), ("inconclusive", -0.005)],
    ids=["minimize", "maximize"],
)
def test_the_quality_limit_lies_one_margin_beyond_the_reference(sample, margin):
    source = samples.SAMPLES[sample]()
    baseline = _metrics(source["evidence"]["arms"][0])
    limit = _figure(source, "quality")["layout"]["shapes"][0]["y0"]

    assert limit == pytest.approx(statistics.fmean(baseline) + margin)


def test_with_history_the_difference_is_counted_from_the_reference_that_is_drawn():
    source = samples.with_history()
    limit, reference = (s["y0"] for s in _figure(source, "quality")["layout"]["shapes"])
    candidate = statistics.fmean(_metrics(source["evidence"]["arms"][1]))

    assert limit - reference == pytest.approx(0.02)
    assert reference - candidate == pytest.approx(source["decision"]["quality"]["estimate"])


def test_past_runs_are_a_pale_column_of_their_own_before_the_arms():
    source = samples.with_history()
    drawn = _figure(source, "quality")
    past = drawn["data"][0]

    assert ["past runs", "baseline", "compile"] == drawn["layout"]["xaxis"]["ticktext"]
    assert source["evidence"]["quality"]["history"] == past["y"]
    assert past["opacity"] < 1
    assert "dashed: reference, 3 baseline runs" in [
        note["text"] for note in drawn["layout"]["annotations"]
    ]


def test_a_probation_draws_the_production_runs_that_were_compared():
    source = samples.passed_probation()
    drawn = _figure(source, "quality")["data"]
    watched = [r["metric"] for r in source["evidence"]["arms"][1]["runs"]
               if r["stage"] == "probation"]  # fmt: skip

    assert watched in [trace["y"] for trace in drawn]


@pytest.mark.parametrize(
    ("sample", "chart", "words"),
    [
        ("promote", "speedup", "over 3 blocks and 3 full runs."),
        ("passed_probation", "speedup", "over 3 blocks and 15 full runs."),
        ("with_history", "quality", "98.5% interval, holds at every look); margin 0.02."),
    ],
)
def test_a_chart_says_what_its_figure_rests_on(sample, chart, words):
    assert _charts(samples.SAMPLES[sample]())[chart].finding.endswith(words)


def _metrics(arm):
    return [run["metric"] for run in arm["runs"] if run["stage"] == "quality"]


def test_net_saving_starts_at_minus_the_trial_and_crosses_zero_at_break_even():
    source = samples.promote()
    saving = source["decision"]["saving"]
    line = _figure(source, "cost")["data"][-1]
    marked = _figure(source, "cost")["layout"]["shapes"][1]["x0"]

    assert line["y"][0] == -saving["trial_usd"]
    assert marked == pytest.approx(saving["payback_runs"])
    assert marked * saving["usd_per_run"] - saving["trial_usd"] == pytest.approx(0)


def test_loss_over_time_ends_at_the_runs_own_seconds():
    source = samples.promote()
    lines = _figure(source, "loss", view=1)["data"]
    curve = source["evidence"]["arms"][0]["runs"][-1]["loss_curve"]

    assert lines[-1]["name"] == "baseline"
    assert lines[-1]["x"][-1] == pytest.approx(curve[-1][2])


def test_loss_curves_without_times_are_drawn_over_steps_only():
    source = samples.promote()
    for arm in source["evidence"]["arms"]:
        for run in arm["runs"]:
            run["loss_curve"] = [point[:2] for point in run.get("loss_curve", [])]

    assert [view.label for view in _charts(source)["loss"].views] == ["Over steps"]


def test_a_diverged_run_leaves_a_gap_instead_of_breaking_the_chart():
    source = samples.promote()
    run = source["evidence"]["arms"][1]["runs"][-1]
    run["loss_curve"][50][1] = float("nan")

    thin_lines = [t for t in _figure(source, "loss")["data"] if "name" not in t]
    assert any(None in line["y"] for line in thin_lines)


def test_the_compile_phase_is_shaded_up_to_the_last_slow_early_step():
    source = samples.promote()
    seconds = source["evidence"]["arms"][1]["runs"][0]["step_seconds"]
    rectangle = _figure(source, "trace")["layout"]["shapes"][1]

    assert rectangle["type"] == "rect"
    assert sum(seconds[:1]) < rectangle["x1"] <= sum(seconds[:3]) + 1e-9


def test_long_traces_keep_their_spikes_and_say_that_they_are_thinned():
    values = [0.05] * 20_000
    values[12_345] = 3.0
    points = thin(values)
    source = samples.promote()
    for arm in source["evidence"]["arms"]:
        for run in arm["runs"]:
            if run["stage"] == "speed":
                run["step_seconds"] = run["step_seconds"] + run["step_seconds"][40:] * 10

    assert len(points) <= 400
    assert (12_345, 3.0) in points
    assert "at most 400 are drawn" in _charts(source)["trace"].note


def test_smoothing_keeps_level_and_length():
    assert smooth([2.0] * 100) == [2.0] * 100
    assert smooth([1.0, 2.0]) == [1.0, 2.0]


def test_each_colour_has_one_dark_counterpart():
    assert len(set(LIGHT.values())) == len(LIGHT) == len(DARK_OF_LIGHT)
    assert LIGHT.keys() == DARK.keys()


@pytest.mark.parametrize(("theme", "paper"), [(LIGHT, "#ffffff"), (DARK, "#151a21")])
def test_text_and_lines_stand_out_from_the_paper(theme, paper):
    """WCAG 2.2: 4.5 for text, 3 for graphics."""
    for role, colour in theme.items():
        if colour.startswith("#") and role not in ("paper", "grid", "axis"):
            assert _contrast(colour, paper) >= 4.5, role


def test_arms_differ_in_marker_and_dash_as_well_as_in_colour():
    styles = [arm_style(index) for index in range(5)]

    assert len({s.symbol for s in styles}) == len({s.dash for s in styles}) == 5
    assert arm_style(5) == arm_style(1)


def _contrast(one, other):
    light, dark = sorted((_luminance(one), _luminance(other)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


def _luminance(colour):
    parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def test_the_spread_is_shown_in_its_two_parts_where_runs_recorded_outcomes():
    source = samples.scored_per_example()
    chart = _charts(source)["quality"]
    training, examples = chart.views[-1].figure["data"]
    evaluation = source["decision"]["quality"]["evaluation"]

    assert ["Runs", "Difference", "Spread"] == [view.label for view in chart.views]
    assert "2,000" == examples["x"][0]
    assert 1 == pytest.approx(training["y"][0] + examples["y"][0])
    assert examples["y"][1] == pytest.approx(examples["y"][0] / 2)
    assert evaluation["larger"][0]["spread"] ** 2 == pytest.approx(
        (training["y"][1] + examples["y"][1])
        * (evaluation["spread_of_training_expected"] ** 2 + evaluation["spread_of_evaluation"] ** 2)
    )
    assert "comes from the choice of 2,000 evaluation examples" in chart.note
    assert ["Runs", "Difference"] == [v.label for v in _charts(samples.promote())["quality"].views]
