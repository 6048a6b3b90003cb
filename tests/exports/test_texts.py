"""A decision as JUnit XML and as OpenMetrics text."""

from __future__ import annotations

from typing import Any
from xml.etree import ElementTree

import pytest

from compilegate.domain.codec import write
from compilegate.usecases.reports import read_trial_report
from compilegate_exports.arm_runs import arm_runs
from compilegate_exports.junit import junit
from compilegate_exports.openmetrics import openmetrics
from tests.decision_builder import arm_figures
from tests.exports.example import AT, TRIAL, report
from tests.report import samples

ARMS = [write(arm_figures(name=name)) for name in ("baseline", "compile", "compile-b48")]
REASON = {"code": "too_slow", "arm": "compile", "message": "compile: 0.9x"}


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


def test_a_failure_says_why_and_another_candidates_does_not() -> None:
    parsed = suite(verdict="stay_off", candidate=None, arms=ARMS, reasons=[REASON])

    first, second = (case.find("failure") for case in parsed.findall("testcase"))
    assert first is not None
    assert second is not None
    assert "compile: 0.9x" in str(first.text)
    assert "compile: 0.9x" not in str(second.text)
    assert "stay_off" == first.attrib["type"]


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


def test_text_that_xml_cannot_hold_is_replaced() -> None:
    parsed = suite(verdict="stay_off", reasons=[{**REASON, "message": "<b> & \x00\ud800 \x1b"}])

    assert "<b> &" in str(parsed.findtext("system-out"))


def test_openmetrics_has_every_figure_of_the_decision_and_ends() -> None:
    text = openmetrics(report(), trial=TRIAL, at=AT)

    assert text.endswith("\n# EOF\n")
    for line in (
        'compilegate_verdict{workload="bert-docs",compilegate_verdict="promote"} 1.0',
        'compilegate_verdict{workload="bert-docs",compilegate_verdict="stay_off"} 0.0',
        'compilegate_quality_margin{workload="bert-docs",arm="compile",bound="estimate"} 0.005',
        'compilegate_decision_timestamp_seconds{workload="bert-docs"} 1790000000.0',
    ):
        assert line in text.splitlines()


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
    baseline, candidate = arm_runs(report(), trial=TRIAL, at=AT)

    assert ("baseline", "compile") == (baseline.arm, candidate.arm)
    assert {"compiler": "torch_compile"} == candidate.params
    assert ("promote", "candidate") == (
        candidate.tags["compilegate.verdict"], candidate.tags["compilegate.role"],
    )  # fmt: skip
    assert [(0, 0.9131), (2, 0.9124), (4, 0.9138)] == candidate.series["full_runs/eval_accuracy"]
    assert {"speedup", "speedup_low", "speedup_high"} <= candidate.figures.keys()
    assert not {"speedup", "saving_usd_per_year"} & baseline.figures.keys()


def test_a_full_runs_loss_is_a_series_by_step() -> None:
    trial = read_trial_report(samples.promote())
    (run, *_) = [run for run in arm_runs(trial, trial=TRIAL, at=AT) if run.arm == "baseline"]
    order = trial.evidence.baseline.full_runs[0].order if trial.evidence else None
    recorded = trial.evidence.baseline.full_runs[0].record["loss_curve"] if trial.evidence else []

    assert [(step, loss) for step, loss, _ in recorded] == run.series[f"loss/run_{order}"]
