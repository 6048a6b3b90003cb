"""A decision as JUnit XML and as OpenMetrics text."""

from __future__ import annotations

from dataclasses import replace
from typing import Any
from xml.etree import ElementTree

import pytest

from compilegate.domain.codec import write
from compilegate.domain.decision import Verdict
from compilegate.report.trial_report import ReportInput
from compilegate.usecases.reports import read_trial_report
from compilegate_exports.arm_runs import arm_runs
from compilegate_exports.junit import junit
from compilegate_exports.openmetrics import openmetrics
from tests.decision_builder import arm_figures, saving, speedup
from tests.exports.example import AT, TRIAL, report
from tests.report import samples

ARMS = [write(arm_figures(name=name)) for name in ("baseline", "compile", "compile-b48")]
REASON = {"code": "too_slow", "arm": "compile", "message": "compile: 0.9x"}
QUALITY = report().source["decision"]["quality"]
# Twice as fast, better by a quarter, a dollar a run: unlike the example's own figures.
COMPARED = {
    "speedup": speedup(2.0),
    "quality": {**QUALITY, "estimate": 0.25, "interval": [0.125, 0.5]},
    "saving": {**saving(1.0), "interval_usd_per_year": [26.0, 104.0]},
}  # fmt: skip


def suite(**changes: Any) -> ElementTree.Element:
    return ElementTree.fromstring(junit(report(**changes), trial=TRIAL, at=AT).encode())


def outcomes(parsed: ElementTree.Element) -> dict[str, str]:
    return {
        case.attrib["name"]: case[0].tag if len(case) else "passed"
        for case in parsed.findall("testcase")
    }


@pytest.mark.parametrize(
    ("verdict", "outcome"),
    [
        ("promote", "passed"), ("permanent", "passed"), ("stay_off", "failure"),
        ("revert", "failure"), ("invalid", "error"), ("ineligible", "skipped"),
        ("inconclusive", "skipped"), ("continue", "skipped"),
    ],
)  # fmt: skip
def test_a_verdict_is_the_outcome_of_its_test_case(verdict: str, outcome: str) -> None:
    parsed = suite(verdict=verdict)

    assert {"compile": outcome} == outcomes(parsed)
    counted = {"failures": "failure", "errors": "error", "skipped": "skipped"}
    assert {name: str(int(of == outcome)) for name, of in counted.items()} == {
        name: parsed.attrib[name] for name in counted
    }


@pytest.mark.parametrize(
    ("verdict", "candidate", "expected"),
    [
        ("promote", "compile", {"compile": "passed", "compile-b48": "skipped"}),
        ("stay_off", None, {"compile": "failure", "compile-b48": "failure"}),
        ("stay_off", "compile", {"compile": "failure", "compile-b48": "skipped"}),
        ("invalid", "compile", {"compile": "error", "compile-b48": "error"}),
    ],
)
def test_of_several_candidates_each_is_a_test_case(
    verdict: str, candidate: str | None, expected: dict[str, str]
) -> None:
    parsed = suite(verdict=verdict, candidate=candidate, arms=ARMS, reasons=[REASON])

    assert expected == outcomes(parsed)
    times = [case.attrib["time"] for case in parsed.findall("testcase")]
    assert ["48045.000", "0.000"] == times  # the second one has no full run


@pytest.mark.parametrize(
    ("trial", "outcome"),
    [
        (samples.ineligible(), "skipped"), (samples.failed(), "error"),
        (report(arms=[]).source, "passed"),
    ],
)  # fmt: skip
def test_without_figures_a_trials_candidates_are_those_of_its_other_records(
    trial: ReportInput, outcome: str
) -> None:
    read = read_trial_report(trial)
    parsed = ElementTree.fromstring(junit(read, trial=TRIAL, at=AT).encode())

    assert {"compile": outcome} == outcomes(parsed)
    named = {one.attrib["name"]: one.attrib["value"] for one in parsed.iter("property")}
    assert ("compile" if outcome == "passed" else "", TRIAL, str(read.verdict)) == (
        named["candidate"], named["trial"], named["verdict"],
    )  # fmt: skip


def test_a_failure_says_why_and_another_candidates_does_not() -> None:
    reasons = [REASON, {**REASON, "arm": None, "message": "of the trial"}]
    parsed = suite(verdict="stay_off", candidate=None, arms=ARMS, reasons=reasons)

    first, second = (case.find("failure") for case in parsed.findall("testcase"))
    assert first is not None
    assert second is not None
    verdict, *why = str(first.text).splitlines()
    assert ("stay_off", verdict) == (first.attrib["type"], first.attrib["message"])
    assert ["compile: 0.9x", "of the trial"] == why
    assert [verdict, "of the trial"] == str(second.text).splitlines()


def test_it_has_what_ants_schema_asks_for_in_its_order() -> None:
    parsed = suite()

    assert ["properties", "testcase", "system-out", "system-err"] == [one.tag for one in parsed]
    assert {
        "name", "timestamp", "hostname", "tests", "failures", "errors", "skipped", "time",
    } == parsed.attrib.keys()  # fmt: skip
    assert "2026-09-21T14:13:20" == parsed.attrib["timestamp"]
    assert {"classname", "name", "time"} == parsed.find("testcase").attrib.keys()  # type: ignore[union-attr]
    # The sum of the candidate's three full runs, in seconds.
    assert "48045.000" == parsed.attrib["time"]
    source = report().source
    source["evidence"]["arms"][1]["runs"][-1]["wall_seconds"] = None  # of 16,057 s
    text = junit(read_trial_report(source), trial=TRIAL, at=AT)
    case = '<testcase classname="compilegate.bert-docs" name="compile" time="31988.000" />'
    assert f"\n  {case}\n" in text


def test_text_that_xml_cannot_hold_is_replaced() -> None:
    parsed = suite(verdict="stay_off", reasons=[{**REASON, "message": "<b> & \x00\ud800 \x1b"}])

    assert "<b> &" in str(parsed.findtext("system-out"))


def bounds(**values: float) -> dict[str, float]:
    return {f'arm="b48",bound="{end}"': value for end, value in values.items()}


def test_openmetrics_has_every_figure_of_the_decision_and_ends() -> None:
    arms = [
        arm_figures(name="b48", samples_per_second=8.0, compile_seconds_warm=2.5, runs=3),
        arm_figures(name="b96", usd_per_run=7.0, metric_mean=0.5, runs=5, failed_runs=1),
    ]
    trial = report(candidate="b48", arms=[write(one) for one in arms], **COMPARED)
    families: dict[tuple[str, str], dict[str, float]] = {
        ("decision_timestamp_seconds", "seconds"): {"": 1.79e9},
        ("speedup_ratio", "ratio"): bounds(estimate=2.0, low=1.9, high=2.1),
        ("quality_difference", ""): bounds(estimate=0.25, low=0.125, high=0.5),
        ("quality_margin", ""): bounds(estimate=0.005),
        ("saving_usd_per_year", ""): bounds(estimate=52.0, low=26.0, high=104.0),
        ("arm_samples_per_second", ""): {'arm="b48"': 8.0},
        ("arm_compile_seconds", "seconds"): {'arm="b48"': 2.5},
        # Of the candidate the baseline's $100 less the saving of $1.
        ("arm_run_usd", "usd"): {'arm="b48"': 99.0, 'arm="b96"': 7.0},
        ("arm_metric", ""): {'arm="b96"': 0.5},
        ("arm_full_runs", ""): {'arm="b48"': 3.0, 'arm="b96"': 5.0},
        ("arm_failed_runs", ""): {'arm="b48"': 0.0, 'arm="b96"': 1.0},
    }
    expected = []
    for (name, unit), figures in families.items():
        expected.append(f"# TYPE compilegate_{name} gauge")
        expected += [f"# UNIT compilegate_{name} {unit}"] if unit else []
        for labels, value in figures.items():
            own = f'workload="bert-docs"{"," * bool(labels)}{labels}'
            expected.append(f"compilegate_{name}{{{own}}} {value}")

    lines = openmetrics(trial, trial=TRIAL, at=AT).split("\n")
    shown = [line for line in lines if "HELP" not in line and "verdict" not in line]
    assert ["# TYPE compilegate_decision info", *expected, "# EOF", ""] == shown
    (info,) = (line for line in lines if line.startswith("compilegate_decision_info{"))
    assert info.endswith(f'judge_version="{trial.judged.judge_version}"}} 1.0')
    state = 'compilegate_verdict{workload="bert-docs",compilegate_verdict="'
    assert {f'{state}{one}"}} {float(one == "promote")}' for one in Verdict} <= {*lines}


@pytest.mark.parametrize(
    ("changes", "left_out"), [({"candidate": None}, "bound"), ({"verdict": "stay_off"}, "year")]
)
def test_without_a_candidate_there_is_no_comparison_and_of_one_that_is_off_no_saving(
    changes: dict[str, Any], left_out: str
) -> None:
    assert left_out not in openmetrics(report(**changes), trial=TRIAL, at=AT)


def test_what_is_unknown_has_no_sample() -> None:
    text = openmetrics(
        report(speedup=None, quality=None, saving=None, arms=[], verdict="ineligible"),
        trial=TRIAL, at=AT,
    )  # fmt: skip

    assert "speedup" not in text
    assert "compilegate_arm" not in text
    assert 'compilegate_verdict="ineligible"} 1.0' in text


def test_labels_are_escaped() -> None:
    text = openmetrics(report(candidate='a"b\\c\nd'), trial=TRIAL, at=AT)

    assert 'candidate="a\\"b\\\\c\\nd"' in text


def test_runs_have_parameters_figures_curves_and_the_verdict() -> None:
    arms = [
        arm_figures(name="baseline", samples_per_second=2.0,
                    samples_per_second_interval=(1.0, 4.0), runs=2),
        arm_figures(name="compile", metric_mean=0.5, runs=3, failed_runs=1),
    ]  # fmt: skip
    reasons = [{**REASON, "arm": arm, "message": f"of {arm}"} for arm in (None, "compile", "b48")]
    trial = report(arms=[write(one) for one in arms], reasons=reasons, **COMPARED)
    baseline, candidate = arm_runs(trial, trial=TRIAL, at=AT)

    assert (f"{TRIAL}-baseline", f"{TRIAL}-compile") == (baseline.name, candidate.name)
    assert {"compiler": "torch_compile"} == candidate.params
    tags = {
        "workload": "bert-docs", "trial": TRIAL, "arm": "compile", "role": "candidate",
        "verdict": "promote", "candidate": "compile", "reasons": "of None; of compile",
        "decision_id": trial.judged.decision_id, "judge_version": trial.judged.judge_version,
    }  # fmt: skip
    assert {f"compilegate.{name}": text for name, text in tags.items()} == candidate.tags
    assert ("baseline", "of None") == (
        baseline.tags["compilegate.role"], baseline.tags["compilegate.reasons"],
    )  # fmt: skip
    series = dict(candidate.series)
    # Steps of 256 samples, of 0.3 s in each block.
    speed = [(block, pytest.approx(256 / 0.3, rel=0.02)) for block in range(3)]
    assert speed == series.pop("speed/samples_per_second")
    assert {
        "full_runs/eval_accuracy": [(0, 0.9131), (2, 0.9124), (4, 0.9138)],
        "full_runs/wall_seconds": [(0, 15880.0), (2, 16108.0), (4, 16057.0)],
    } == series
    throughput = {f"samples_per_second{end}": n for end, n in (("", 2), ("_low", 1), ("_high", 4))}
    # A steady step of the blocks as the report has it, in seconds.
    steps = [dict(one.figures) for one in (baseline, candidate)]
    assert [0.41, 0.3] == [round(one.pop("step_seconds_median"), 2) for one in steps]
    assert [
        {**throughput, "runs": 2, "failed_runs": 0},
        {"metric_mean": 0.5, "runs": 3, "failed_runs": 1, "usd_per_run": 99, "speedup": 2,
         "speedup_low": 1.9, "speedup_high": 2.1, "quality_difference": 0.25,
         "quality_difference_low": 0.125, "quality_difference_high": 0.5,
         "saving_usd_per_year": 52},
    ] == steps  # fmt: skip


@pytest.mark.parametrize(
    ("changes", "left_out"),
    [
        ({"saving": None}, "saving"), ({"verdict": "stay_off"}, "saving"),
        ({"quality": None}, "quality"), ({"speedup": None}, "speedup"),
    ],
)  # fmt: skip
def test_what_was_not_compared_or_may_not_be_named_is_no_figure(
    changes: dict[str, Any], left_out: str
) -> None:
    _, candidate = arm_runs(report(**{**COMPARED, **changes}), trial=TRIAL, at=AT)

    compared = {name.partition("_")[0] for name in candidate.figures}
    assert {"speedup", "quality", "saving"} - compared == {left_out}


def test_nothing_measured_is_no_run_and_a_planned_arm_has_its_settings() -> None:
    assert [] == arm_runs(read_trial_report(samples.ineligible()), trial=TRIAL, at=AT)
    undecided, _ = arm_runs(report(arms=[], candidate=None), trial=TRIAL, at=AT)
    assert ({}, False) == (undecided.figures, "compilegate.candidate" in undecided.tags)
    trial = read_trial_report(samples.promote())
    assert trial.plan is not None
    settings = {
        "compiler": "torch_compile", "compile_mode": "default", "instance_type": "ml.g5.2xlarge",
        "instance_count": 2, "precision": "bf16", "batch_size": 8, "learning_rate": 0.25,
        "distribution": "ddp",
    }  # fmt: skip
    arms = tuple(replace(one, **settings) if one.name != "compile" else one
                 for one in trial.plan.arms)  # fmt: skip
    runs = arm_runs(replace(trial, plan=replace(trial.plan, arms=arms)), trial=TRIAL, at=AT)

    params = {run.arm: run.params for run in runs}
    planned = {name: str(value) for name, value in settings.items()}
    assert planned == params["baseline"]
    # The batch of its overrides wins.
    assert {**planned, "batch_size": "48"} == params["compile-b48"]
    assert ("16", None) == (params["compile"]["batch_size"], params["compile"].get("compile_mode"))


def test_a_full_runs_loss_is_a_series_by_step() -> None:
    trial = read_trial_report(samples.promote())
    (run, *_) = [run for run in arm_runs(trial, trial=TRIAL, at=AT) if run.arm == "baseline"]
    order = trial.evidence.baseline.full_runs[0].order if trial.evidence else None
    recorded = trial.evidence.baseline.full_runs[0].record["loss_curve"] if trial.evidence else []

    assert [(step, loss) for step, loss, _ in recorded] == run.series[f"loss/run_{order}"]
