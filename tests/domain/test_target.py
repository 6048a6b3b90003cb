"""Time to a target decides for arms whose steps are other ones, and only what evaluations show."""

from __future__ import annotations

import math
from dataclasses import replace
from statistics import stdev
from typing import Any

import pytest

from compilegate.domain.decision import Verdict
from compilegate.domain.judging.evidence_file import read_evidence
from compilegate.domain.judging.monitor import speed_monitor
from compilegate.domain.judging.target import TimesToTarget, target_problem, timed_to_target
from compilegate.domain.judging.whole_job import Agreement, confirm
from tests.domain.evidence_builder import arm, codes, document, judge, runs, sample, watch, words
from tests.domain.whole_job_builder import confirmation, whole_jobs
from tests.report.samples import as_input, rendered

Seconds = float | None
WALL, TARGET = 1000.0, 0.9
RECIPE = {"learning_rate": 1e-3}
LATER, SOONER = (790.0, 800.0, 805.0, 810.0, 820.0), (495.0, 500.0, 505.0, 510.0, 515.0)


def evaluations(reach: Seconds, each: float) -> list[list[float]]:
    """Those of a run that is at the target from second ``reach`` on, None for never."""
    moments = [each * n for n in range(1, int(WALL / each) + 1)]
    return [
        [n, TARGET if reach is not None and at >= reach else 0.7, at]
        for n, at in enumerate(moments, 1)
    ]


def trial(
    theirs: tuple[Seconds, ...] = LATER,
    ours: tuple[Seconds, ...] = SOONER,
    *,
    each: float = 5.0,
    overrides: dict[str, Any] | None = None,
    target: float | None = TARGET,
) -> dict[str, Any]:
    """Runs of equal walls, blocks and final metrics that reach the target after these seconds."""
    values = {name: sample(len(made), 0.95, 0.001)
              for name, made in (("baseline", theirs), ("compile", ours))}  # fmt: skip
    doc = document(speedup=1.0, metrics=values, goal="maximize", margin=0.01)
    doc["quality"] |= {"target": target, "history": sample(8, 0.95, 0.001)}
    doc["quality"]["history_wall_seconds"] = [WALL] * 8
    arm(doc)["overrides"] = RECIPE if overrides is None else overrides
    for name, made in (("baseline", theirs), ("compile", ours)):
        for run, reach in zip(runs(doc, name), made, strict=True):
            run |= {"wall_seconds": WALL, "evaluations": evaluations(reach, each)}
    return doc


def test_an_arm_that_reaches_the_target_sooner_is_promoted_though_its_steps_are_as_long():
    decision = judge(trial())
    speed = decision.speedup

    assert Verdict.PROMOTE == decision.verdict, words(decision)
    assert "steps_differ" in codes(decision)
    assert speed.predicted is None
    assert 5 == speed.measured.runs.baseline, "walls of past runs are no times to the target"
    # The baseline's last evaluation short of it, 5 seconds before; the candidate's first there.
    assert pytest.approx(800 / 505, rel=2e-3) == speed.estimate
    assert TARGET == speed.target
    assert 1.1 < speed.interval[0] < speed.estimate
    assert decision.saving is None, "what a run saves that goes on, the script decides"


@pytest.mark.parametrize(
    ("doc", "code"),
    [
        (trial((None,) * 5, (None,) * 5), "target_unreached"),
        (trial((*LATER[:4], None), (*SOONER[:4], None)), "target_missed"),
        (trial((1.0, *LATER[1:])), "target_unmeasured"),
        (trial(LATER, LATER), "full_run_disagrees"),
        # Both are there between the same evaluations, and may have got there together.
        (trial(each=425.0), "full_run_disagrees"),
        (trial(target=None), "speedup_too_small"),
        (trial(overrides={"compiler": "torch_compile"}), "speedup_too_small"),
    ],
    ids=["never", "missed once", "at once", "as late", "coarse", "no target", "same steps"],
)
def test_what_does_not_prove_an_earlier_target_promotes_nothing(doc, code):
    decision = judge(doc)

    assert decision.verdict is not Verdict.PROMOTE
    assert code == decision.reasons[0].code, words(decision)
    assert decision.verdict is Verdict.INCONCLUSIVE or not code.startswith("target")


@pytest.mark.parametrize("share", [1.0, 0.6])
def test_an_arm_that_looks_more_often_may_see_the_target_by_chance(share):
    """Also where its runs end at the target, after fewer evaluations than the baseline's."""
    doc = trial()
    doc["quality"]["early_stopping"] = True
    for run in runs(doc, "baseline"):
        run["steps"] = 2000
    for run in runs(doc, "compile"):
        seen = evaluations(505.0, 3.0)
        run |= {"evaluations": seen[: int(share * len(seen))], "steps": share * 2000}
    evidence = read_evidence(doc)

    assert "target_unmeasured" == target_problem(evidence.candidates[0], evidence).code


@pytest.mark.parametrize(
    ("longer", "dearer", "costs_more"),
    [(1.1, 1.0, False), (1.11, 1.0, True), (1.0, 1.25, True), (1.375, 0.75, False)],
)
def test_whole_runs_that_go_on_at_the_target_may_not_cost_more(longer, dearer, costs_more):
    doc = trial()
    for run in runs(doc):
        run["wall_seconds"] = longer * WALL
    arm(doc)["usd_per_hour"] = dearer * doc["usd_per_hour"]
    evidence = read_evidence(doc)
    problem = target_problem(evidence.candidates[0], evidence)

    assert ("full_run_disagrees" if costs_more else None) == (problem and problem.code)


@pytest.mark.parametrize(
    ("theirs", "ours", "said"),
    [
        ((), SOONER, "no run of each arm"),
        (LATER[:3], (), "no run of each arm"),
        (LATER[:3], (*SOONER[:4], None), "4 of its 5 runs and 3 of the baseline's 3 reached"),
        ((*LATER[:2], None), SOONER, "5 of its 5 runs and 2 of the baseline's 3 reached"),
        (LATER[:3], SOONER, ""),
    ],
)
def test_the_problem_counts_the_runs_of_each_arm_that_reached_it(theirs, ours, said):
    evidence = read_evidence(trial(theirs, ours))
    problem = target_problem(evidence.candidates[0], evidence)

    assert said in problem.message if problem else not said


@pytest.mark.parametrize(("count", "as_often"), [(22, True), (23, False)])
def test_a_tenth_more_evaluations_of_a_plan_are_as_often(count, as_often):
    doc = trial(each=50.0)
    arm(doc)["full_run_steps"] = doc["full_run_steps"] // 2
    for run in runs(doc):
        run["evaluations"] = evaluations(500.0, WALL / (count + 0.5))
    evidence = read_evidence(doc)

    assert as_often is (target_problem(evidence.candidates[0], evidence) is None)


@pytest.mark.parametrize(
    ("overrides", "devices", "timed"),
    [
        *(({key: 1}, 1, True)
          for key in ("batch_size", "learning_rate", "hyperparameters", "entry_point")),
        ({"instance_type": "x"}, 2, True), ({"instance_type": "x"}, 1, False),
    ],
)  # fmt: skip
def test_times_to_the_target_decide_where_a_step_learns_otherwise(overrides, devices, timed):
    evidence = read_evidence(trial(overrides=overrides))
    mine = replace(evidence.candidates[0], devices=devices)
    other = replace(evidence, quality=replace(evidence.quality, target=None))

    assert timed is timed_to_target(mine, evidence)
    assert not timed_to_target(mine, other)


def test_only_a_run_that_was_timed_to_its_end_has_a_time_to_the_target():
    evidence = read_evidence(trial())
    mine, base = evidence.candidates[0], evidence.baseline
    run, beside = mine.quality[0], base.quality[0]

    assert [495.0, None, None, None] == [
        TimesToTarget(mine, evidence).seconds(replace(run, **keys))
        for keys in ({}, {"finished": False}, {"wall_seconds": None}, {"record": {}})
    ]
    assert 785.0 == TimesToTarget(base, evidence).seconds(beside)
    silent = replace(mine, quality=(replace(run, record={}), *mine.quality[1:]))
    assert "target_unmeasured" == target_problem(silent, evidence).code


def test_between_looks_nothing_is_proven():
    """Blocks, which share the error of three looks elsewhere, prove nothing of a target."""
    seen = confirmation(trial(LATER[:4], SOONER[:4]))

    assert (0.0, Agreement.UNPROVEN) == (seen.share, seen.agreement)


def test_an_arm_that_varies_more_counts_by_its_own_spread_and_runs():
    wide = (250.0, 500.0, 950.0)
    whole = whole_jobs(doc := trial(theirs=wide))

    assert 2 == whole.df
    for n, run in enumerate([*runs(doc, "baseline")[:2], *runs(doc)[:2]]):
        run |= {"job": "one", "order": n}
    assert whole == whole_jobs({**doc, "plan": {"pairs": True}})
    spreads = [stdev(map(math.log, made)) for made in ([one - 5 for one in wide], SOONER)]
    assert pytest.approx(spreads[0] ** 2 / 3 + spreads[1] ** 2 / 5) == whole.measured.variance


def test_the_lower_end_of_the_interval_has_to_exceed_the_bar():
    evidence = read_evidence(trial())
    (arm_of,) = evidence.candidates
    whole = whole_jobs(trial())
    share = confirm(arm_of, evidence, whole).share
    bar = math.exp((whole.bound(share * 0.05) + whole.bound(share * whole.level / 2)) / 2)
    asked = replace(evidence, policy=replace(evidence.policy, min_proven_speedup=bar))

    assert Agreement.UNPROVEN is confirm(arm_of, asked, whole).agreement


def test_a_trial_that_cannot_reach_its_target_ends_before_its_quality_is_proven():
    doc = trial((None, None), (None, None))
    doc["quality"] |= {"margin": 0.0015, "history": []}
    decision = judge(doc)
    few = trial(LATER[:2], SOONER[:2])
    few["quality"] |= {"margin": 0.0015, "history": []}

    assert Verdict.INCONCLUSIVE == decision.verdict
    assert {"target_unreached", "quality_needs_runs"} <= codes(decision)
    assert (Verdict.CONTINUE, None) == (judge(few).verdict, whole_jobs(few))


def test_a_baseline_run_that_misses_counts_until_its_last_evaluation():
    decision = judge(trial((*LATER[:4], None)))
    logs = [math.log(one - 5) for one in (790.0, 800.0, 805.0, 810.0)]
    mine = [math.log(one) for one in SOONER]

    expected = (sum(logs) + math.log(WALL)) / 5 - sum(mine) / 5
    assert pytest.approx(math.exp(expected)) == decision.speedup.estimate


def test_page_comment_and_message_say_the_time_to_what():
    doc = trial()
    doc["plan"] = {"max_blocks": 6, "spent_usd": 1.0}
    for one in doc["arms"]:
        one |= {"usd_per_hour": 1.4, "devices": 1, "full_run_steps": 2000}
    report = rendered(as_input(doc))

    assert "1.58x faster to 0.9" in report.markdown
    assert "time to 0.9" in report.html
    assert "whole job" not in report.markdown


def test_a_probation_watches_the_time_to_the_target():
    doc = {**trial(), "phase": "probation", "promoted": "compile"}
    watch(doc, metric=0.95, wall_seconds=WALL, evaluations=evaluations(700.0, 5.0))
    watch(doc, metric=0.95, wall_seconds=WALL)
    watch(doc, metric=0.95, wall_seconds=WALL, evaluations=evaluations(None, 5.0))
    evidence = read_evidence(doc)
    monitor = speed_monitor(evidence, evidence.promoted_arm, None)
    late, silent, missed = evidence.promoted_arm.probation

    assert pytest.approx(-math.log(700.0)) == monitor.figure(late)
    assert monitor.figure(silent) is None
    assert pytest.approx(-math.log(WALL)) == monitor.figure(missed), "it took at least as long"
    assert pytest.approx(math.log(800 / 505), rel=5e-3) == monitor.level
