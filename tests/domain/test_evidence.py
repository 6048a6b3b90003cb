"""What the evidence says of its runs and arms."""

from __future__ import annotations

from statistics import median
from typing import Any

import pytest

from compilegate.domain.fields import LARGEST
from compilegate.domain.judging.evidence import (
    FullRun,
    LossPoint,
    finished,
    mean_or_none,
    metrics,
    reported,
    runs_apart,
    walls,
)
from compilegate.domain.judging.evidence_file import read_evidence, read_full_run
from compilegate.domain.judging.steady_state import analyse
from compilegate.domain.workload.quality import Metric
from tests.domain.evidence_builder import (
    GOOD,
    add_candidate,
    arm,
    document,
    probation_document,
    runs,
    speed_run,
    watch,
)

FULL_RUN = {"stage": "quality", "order": 3, "metric": 0.5, "finished": True}


def full_run(**record: Any) -> FullRun:
    return read_full_run({**FULL_RUN, **record})


@pytest.mark.parametrize(
    ("name", "record", "value"),
    [
        ("job", {}, ""), ("job", {"job": "a"}, "a"), ("job", {"job": 5}, "5"),
        ("usd", {}, None), ("usd", {"usd": 1.5}, 1.5), ("usd", {"usd": "1.5"}, None),
        ("reason", {}, ""), ("reason", {"reason": "out of memory"}, "out of memory"),
        ("fingerprint", {}, {}), ("fingerprint", {"fingerprint": {"gpu": "A"}}, {"gpu": "A"}),
        ("fingerprint", {"fingerprint": "A"}, {}),
        ("data", {}, None), ("data", {"fingerprint": {"data_sha256": "d"}}, "d"),
        ("data", {"fingerprint": {"data_sha256": ""}}, None),
        ("initial_loss", {}, None), ("initial_loss", {"initial_loss": 2}, 2),
        ("initial_loss", {"initial_loss": 2.5}, 2.5), ("initial_loss", {"initial_loss": "2"}, None),
        ("initial_weights", {"initial_weights_sha256": "i"}, "i"),
        ("final_weights", {"final_weights_sha256": "f"}, "f"),
        ("final_weights", {"final_weights_sha256": 5}, None),
        ("trained_weights", {"final_start_sha256": "e", "initial_weights_sha256": "i"}, "e"),
        ("trained_weights", {"final_start_sha256": "i", "initial_weights_sha256": "i"}, None),
        ("trained_weights", {"final_start_sha256": "e"}, "e"),
        ("may_check", {}, False), ("may_check", {"launched_by": "schedule"}, False),
        ("may_check", {"launched_by": "team"}, True), ("may_check", {"confirm": True}, True),
        ("may_check", {"confirm": True, "launched_by": "team"}, True),
        ("loss_curve", {}, []), ("loss_curve", {"loss_curve": 5}, []),
        (
            "loss_curve",
            {"loss_curve": [[9, 1.5], [2], 7, "no", ["a", 1.0], [4, 2.5, 8.0], [5, "x", "y", 6],
                            [9, 1.25, 3.0]]},
            [LossPoint(4, 2.5, 8.0), LossPoint(5, None, None), LossPoint(9, 1.25, 3.0)],
        ),
        ("loss_curve", {"loss_curve": [[9, 1.5]]}, [LossPoint(9, 1.5, None)]),
        (
            "evaluations",
            {"evaluations": [[1, -0.5, 20.0], [2, 0.5, 10.0], [3, 0.7, 0.0], [4, 0.7],
                             [5, None, 5.0], [6, 0.9, -1.0]]},
            [(10.0, 0.5), (20.0, -0.5)],
        ),
    ],
)  # fmt: skip
def test_a_record_says_of_its_run(name, record, value):
    assert value == getattr(full_run(**record), name)


def test_another_metric_of_a_run_is_one_that_it_recorded():
    recorded = full_run(metrics={"loss": 0.25, "other": 0.75})

    assert (0.25, None) == (recorded.by("loss").metric, recorded.by("none").metric)
    assert full_run(metrics=[["loss", 0.25]]).by("loss").metric is None
    assert [LARGEST, -LARGEST, 2.0, None, None, None, None] == [
        reported(value) for value in (LARGEST, -LARGEST, 2, 2 * LARGEST, True, "2", None)
    ]


def test_a_run_that_is_recorded_otherwise_has_it_in_its_record_as_well():
    own = full_run().recorded_as(job_seconds=9.0)

    assert (9.0, {**FULL_RUN, "job_seconds": 9.0}) == (own.job_seconds, own.record)


def test_runs_of_an_arm_are_in_the_order_of_time_the_trials_first():
    doc = watch(document(metrics={"baseline": [1.0], "compile": [2.0, 3.0, 4.0]}), metric=5.0)
    first, second, _ = runs(doc)
    first["order"], second["finished"], second["metric"] = 50, False, None
    _, ours = read_evidence(doc).arms

    assert [2, 3, 50, 4] == [run.order for run in ours.full_runs]
    assert (*ours.speed, *ours.full_runs) == ours.runs
    assert ([4.0, 2.0], [4.0, 2.0]) == (
        metrics(ours.quality), [run.metric for run in finished(ours.quality)],
    )  # fmt: skip


def test_wall_clocks_and_means_of_nothing_are_none():
    made = [full_run(order=order, wall_seconds=seconds) for order, seconds in ((2, 5.0), (1, 0))]

    assert [5.0] == walls(made)
    assert (None, 2.5) == (mean_or_none([]), mean_or_none([1.0, 4.0]))


def layers() -> dict[str, Any]:
    doc = document(speedup=1.2, metrics=GOOD)
    add_candidate(doc, "one", speedup=1.4)
    add_candidate(doc, "other", speedup=1.5)
    doc["quality"]["history_wall_seconds"] = [70.0]
    return {**doc, "on_top_of": "compile"}


def test_candidates_on_top_of_an_arm_are_compared_with_it_as_well():
    plain, evidence = read_evidence({**layers(), "on_top_of": None}), read_evidence(layers())
    first, (words, layered) = evidence.comparisons

    assert [("", plain)] == list(plain.comparisons)
    assert (("", evidence), " on top of compile") == (first, words)
    assert ["one", "other"] == [one.name for one in evidence.candidates]
    assert ["baseline", "one", "other"] == [one.name for one in layered.arms]
    assert evidence.arms[1].runs == layered.baseline.runs
    assert ("", ()) == (layered.on_top_of, layered.history_wall_seconds)
    assert (3, 2) == (plain.sharing, evidence.sharing)


def test_a_probation_is_of_the_arm_that_is_on():
    doc = probation_document()
    add_candidate(doc, "other", speedup=1.3)
    evidence, trial = read_evidence(doc), read_evidence(document())

    assert (1, evidence.arms[1]) == (evidence.sharing, evidence.promoted_arm)
    assert (1, trial.baseline) == (trial.sharing, trial.promoted_arm)
    assert evidence.arm("unknown") is None


def test_a_segment_has_a_steady_state_where_its_block_has_a_baseline():
    doc = document(blocks=5)
    theirs, ours = (runs(doc, name, "speed") for name in ("baseline", "compile"))
    theirs[1]["finished"], theirs[2]["step_seconds"], ours[3]["finished"] = False, [], False
    doc["controls"] = [{"name": "control", "runs": [speed_run(n, 0.02) for n in (9, 4)]}]
    evidence = read_evidence(doc)
    pairs, apart = evidence.steady_pairs(evidence.arms[1]), evidence.segments
    expected = analyse(
        tuple(ours[0]["step_seconds"]), compile_seconds=3.0, full_run_steps=2000,
        baseline_median=median(theirs[0]["step_seconds"]),
    )  # fmt: skip

    assert {"baseline": [0, 3, 4], "compile": [0, 4], "control": [4]} == {
        name: [block for block, one in own.items() if one] for name, own in apart.items()
    }
    assert [(apart["baseline"][n], apart["compile"][n]) for n in (0, 4)] == pairs
    assert [(apart["control"][4], apart["compile"][4])] == evidence.steady_pairs(
        evidence.arms[1], evidence.controls[0]
    )
    assert expected == pairs[0][1]


@pytest.mark.parametrize(
    ("remaining", "at_start", "now", "before"),
    [(10, None, 7.0, 9.0), (10, 5, 2.0, 4.0), (2, None, 0.0, 1.0), (None, None, None, None)],
)
def test_runs_that_production_makes_for_a_trial_are_taken_off_those_that_remain(
    remaining, at_start, now, before
):
    """Production makes the first three of four runs, the arms in turns."""
    doc = {**document(metrics={name: GOOD[name][:2] for name in GOOD}), "runs_remaining": remaining}
    doc["plan"] = {"runs_at_start": at_start}
    modes = {"baseline": ["production", "production"], "compile": ["canary", "shadow"]}
    for name, own in modes.items():
        for run, mode in zip(runs(doc, name), own, strict=True):
            run["mode"] = mode
    evidence = read_evidence(doc)

    assert now == evidence.runs_left()
    assert before == evidence.runs_left(evidence.arms[1])
    assert 4.0 == evidence.with_runs_left(4.0).runs_left()


def test_evidence_by_another_metric_has_its_figures_in_place_of_the_first_ones():
    doc = watch(document(metrics=GOOD), metric=1.0, metrics={"accuracy": 0.75})
    for number, run in enumerate(runs(doc)):
        run["metrics"] = {"accuracy": 0.5 + number / 8}
    other = Metric("accuracy", "maximize", 0.01, (0.5, 0.6))
    by_loss = read_evidence(doc)
    seen = by_loss.by(other)

    assert ("accuracy", "maximize", 0.01, (0.5, 0.6)) == (
        seen.quality.metric, seen.quality.goal, seen.quality.margin, seen.quality.history,
    )  # fmt: skip
    assert [0.5, 0.625, 0.75, 0.75] == [run.metric for run in seen.arms[1].full_runs]
    assert ([0.5, -2.0], [-0.5, 2.0]) == (seen.oriented([0.5, -2.0]), by_loss.oriented([0.5, -2.0]))


@pytest.mark.parametrize(
    ("mine", "base", "ratio"), [(3.0, 2.0, 1.5), (None, 2.0, 1.0), (3.0, None, 1.0)]
)
def test_a_price_is_compared_where_both_are_known(mine, base, ratio):
    doc = {**document(), "usd_per_hour": None}
    arm(doc)["usd_per_hour"], arm(doc, "baseline")["usd_per_hour"] = mine, base
    evidence = read_evidence(doc)

    assert ratio == evidence.price_ratio(evidence.arms[1])


SAME, OTHER, UNKNOWN = ["a", "b"], ["a", "c"], [None, None]


@pytest.mark.parametrize(
    ("mine", "base", "change", "apart"),
    [
        (SAME, SAME, {"devices": 2}, False), (OTHER, SAME, {}, True), (UNKNOWN, SAME, {}, False),
        ([*SAME, "c"], SAME, {}, False), (SAME, UNKNOWN, {"devices": 2}, True),
        (SAME, UNKNOWN, {"usd_per_hour": 9.0}, True),
        (SAME, UNKNOWN, {"overrides": {"entry_point": "other.py"}}, True),
    ],
)  # fmt: skip
def test_arms_ran_apart_as_their_nodes_say_else_as_the_change_does(mine, base, change, apart):
    doc = document()
    arm(doc).update(change)
    for name, nodes in (("compile", mine), ("baseline", base)):
        arm(doc, name)["runs"] = [
            {**speed_run(block, 0.03), "node": node} for block, node in enumerate(nodes)
        ]
    evidence = read_evidence(doc)

    assert apart is runs_apart(evidence.arms[1], evidence.baseline)
