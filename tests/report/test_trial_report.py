"""What one trial's records say together, where each of them may be missing."""

from dataclasses import replace
from types import SimpleNamespace as Made

import pytest

from compilegate.domain.claims import Claims
from compilegate.domain.decision import Decision, Verdict
from compilegate.domain.judging.measured import Measured
from compilegate.domain.reasons import Reason
from compilegate.report.trial_report import UNDECIDED, TrialReport
from compilegate.usecases.reports import read_trial_report
from tests.decision_builder import arm_figures
from tests.domain.test_where_time_goes import COMPILED, EAGER
from tests.report import samples
from tests.report.test_tables import arm, of, speed

LATER = Verdict.STAY_OFF


def report(**more):
    values = {"judged": UNDECIDED, "eligibility": {}, "reasons": (),
              "source": {"context": {}, "evidence": None}}  # fmt: skip
    return of(TrialReport, **{**values, **more})


def decided(**more):
    values = {"workload": "", "verdict": LATER, "arms": (), "reasons": (), "stage": "quality"}
    return of(Decision, **{**values, **more})


def of_evidence(**more):
    return Made(evidence=Made(**more))


def test_without_records_nothing_is_said_of_a_trial():
    none = report()
    missing = (none.simulated, none.evidence, none.thresholds, none.quality, none.times, none.fall,
               none.trial_usd)  # fmt: skip

    assert [None] * 7 == list(missing)
    assert (1.0, {}, [], (), (), set(), frozenset(), Claims()) == (
        none.price_ratio, none.usd_by_job, none.arms, none.planned_arms, none.notes, none.codes,
        none.own_codes, none.claims,
    )  # fmt: skip


def test_the_workloads_name_is_that_of_the_first_record_that_has_one():
    names = {
        "judged": decided(workload="decision"),
        "source": {"context": {"workload": "context"}, "evidence": None},
        "eligibility": {"workload": "eligibility"}, "measured": of_evidence(workload="evidence"),
    }  # fmt: skip
    left = [dict(list(names.items())[place:]) for place in range(5)]

    assert ["decision", "context", "eligibility", "evidence", "workload"] == [
        report(**records).workload for records in left
    ]


@pytest.mark.parametrize(
    ("verdict", "stage", "said"),
    [(LATER, "quality", "laptop"), (LATER, "plan", None), (Verdict.INELIGIBLE, "quality", None)],
)
def test_a_stand_in_is_named_only_where_something_was_trained(verdict, stage, said):
    source = {"context": {"simulated": "laptop"}}

    assert said == report(verdict=verdict, judged=decided(stage=stage), source=source).simulated


@pytest.mark.parametrize(
    ("evidence", "prices"),
    [({"plan": None}, {}), ({"plan": {"usd_by_job": None}}, {}),
     ({"plan": {"usd_by_job": {"a": 1.5, "b": "x"}}}, {"a": 1.5, "b": None})],
)  # fmt: skip
def test_a_price_that_evidence_does_not_say_is_unknown(evidence, prices):
    assert prices == report(source={"context": {}, "evidence": evidence}).usd_by_job


def test_figures_are_the_decisions_or_else_the_evidences():
    seen = Made(
        evidence=Made(quality=Made(metric="loss"), plan=Made(spent_usd=2.0)), price_ratio=0.5,
        thresholds=(0.55, 0.6), arms=(),
    )  # fmt: skip
    alone = report(measured=seen)
    judged = decided(quality=Made(metric="accuracy"), saving=Made(trial_usd=1.0),
                     stage="probation")  # fmt: skip
    both = report(measured=seen, judged=judged, reasons=(Reason("a", ""), Reason("b", "")))
    free = report(measured=seen, judged=decided(saving=Made(trial_usd=0.0)))

    assert [("loss", 2.0, False), ("accuracy", 1.0, True)] == [
        (one.metric, one.trial_usd, one.on_probation) for one in (alone, both)
    ]
    assert ("the quality metric", 0.0) == (report().metric, free.trial_usd)
    assert (0.5, (0.55, 0.6), {"a", "b"}) == (both.price_ratio, both.thresholds, both.codes)
    plan = Made(arms=("arm",), notes=("note",))
    assert (("arm",), ("note",)) == (report(plan=plan).planned_arms, report(plan=plan).notes)


def test_an_arms_step_is_the_measured_one_and_the_candidates_run_costs_what_its_saving_says():
    figures = [arm_figures(name=name, usd_per_run=9.0, step_seconds_median=1.0) for name in "abc"]
    seen = Made(arms=[Made(name=name, steady_step_seconds=step) for name, step in
                      (("a", 0.06), ("b", 0.042))])  # fmt: skip
    saving = Made(usd_per_run=3.0, usd_per_run_baseline=8.0)

    def shown(**more):
        return [(one.step_seconds_median, one.usd_per_run) for one in report(**more).arms]

    judged = decided(arms=figures, saving=saving)
    assert [(0.06, 9.0), (0.042, 5.0), (None, 9.0)] == shown(
        judged=judged, measured=seen, candidate="b"
    )
    assert [(None, 9.0)] * 3 == shown(judged=decided(arms=figures), candidate="b")


def test_where_the_time_goes_is_what_the_segments_profiled():
    pair = [arm(name, speed(record={"profile": profile})) for name, profile in
            (("baseline", EAGER), ("compile", COMPILED))]  # fmt: skip

    assert "compile" == report(measured=Measured(Made(), pair, None)).times.candidate


def test_the_fall_that_turned_a_candidate_off_is_this_judges():
    source = samples.reverted()
    trial = read_trial_report(source)
    other = read_trial_report(samples.with_decision(source, judge_version="1.2.0"))

    assert trial.fall.delta > 0
    assert [None, None] == [other.fall, replace(trial, verdict=LATER).fall]
