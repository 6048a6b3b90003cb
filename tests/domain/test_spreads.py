"""Spreads that are learned: from where, what they prove, and that a past that misleads does not."""

from __future__ import annotations

import math
from statistics import mean, variance
from typing import Any

import pytest

from compilegate.domain.decision import Decision, Verdict
from compilegate.domain.errors import InvalidEvidenceError
from compilegate.domain.judging.evidence_file import read_evidence
from compilegate.domain.judging.whole_job import measured_spreads
from compilegate.domain.spreads import (
    COPIES,
    FAMILY,
    INSTANCE,
    MIDDLE,
    MINUTES,
    WALL_SD,
    WORKLOAD,
    Measured,
    Sample,
    learn,
)
from tests.domain.evidence_builder import codes, document, full_runs, judge, runs, sample, words
from tests.domain.whole_job_builder import whole_jobs

G5 = "ml.g5.xlarge"
CALM = {"sd": 0.001, "source": WORKLOAD, "name": "lm", "runs": 14, "workloads": 1}
STEADY = [2.500, 2.504, 2.498, 2.502, 2.496]
# Walls of small gains, of whole jobs that hardly vary.
BAR = {"min_proven_speedup": 1.0, "min_mean_speedup": 1.0}


def alternating(sd: float, count: int) -> list[float]:
    """Walls whose neighbours are so far apart."""
    return [3601.5 * math.exp(sd * MIDDLE * (run % 2)) for run in range(count)]


def shown(kind: str, sd: float, df: float, name: str = G5) -> Measured:
    return Measured(name, **{kind: Sample(df * sd**2, df, 7)})


def trial(
    speedup: float = 1.02, sd: float = 0.001, count: int = 5, learned: Any = CALM, **more: Any
) -> dict[str, Any]:
    """Whole jobs that are so much faster, as blocks are, and what was learned before."""
    metrics = dict.fromkeys(("baseline", "compile"), STEADY[:count])
    metrics["compile"] = [value + 0.0005 for value in metrics["compile"]]
    doc = document(
        speedup=speedup, blocks=6, compile_seconds=0.0, metrics=metrics, policy={**BAR, **more}
    )
    for name, centre in (("baseline", 3600.5), ("compile", 3600.5 / speedup)):
        for run, log in zip(runs(doc, name), sample(count, 0.0, sd), strict=True):
            run["wall_seconds"] = centre * math.exp(log)
    doc["plan"] = {"spreads": {"whole_job": learned}} if learned else {}
    return doc


def measured(doc: dict[str, Any]) -> Any:
    return whole_jobs(doc).measured


def test_the_nearest_source_that_has_runs_is_named_and_drawn_to_those_behind_it():
    others = [
        ("a", shown("whole_job", 0.004, 6)),
        ("b", shown("whole_job", 0.004, 6)),
        ("c", shown("whole_job", 0.02, 9, "ml.g5.12xlarge")),
        ("d", shown("whole_job", 0.5, 99, "ml.p5.48xlarge")),
    ]
    family = math.exp((9 * math.log(0.02) + 3 * math.log(WALL_SD)) / 12)
    instance = math.exp((12 * math.log(0.004) + 3 * math.log(family)) / 15)
    own = math.exp((5 * math.log(0.001) + 3 * math.log(instance)) / 8)
    walls = alternating(0.001, 11)

    assert learn("w", "ml.c5.xlarge", [], others).whole_job is None
    for seconds, known, sd, where in (
        ([], others[2:], family, (FAMILY, "ml.g5", 7, 1)),
        ([], others, instance, (INSTANCE, G5, 14, 2)),
        (walls, others, own, (WORKLOAD, "w", 11, 1)),
    ):
        found = learn("w", G5, seconds, known).whole_job
        assert pytest.approx(sd) == found.sd
        assert where == (found.source, found.name, found.runs, found.workloads)


def test_steps_between_campaigns_are_not_how_much_runs_vary():
    walls = [wall * level for level in (1, 1.05, 0.97) for wall in alternating(0.001, 5)]
    found = learn("w", G5, walls, []).whole_job
    calm = learn("w", G5, alternating(0.001, 15), []).whole_job

    assert pytest.approx(calm.sd) == found.sd


@pytest.mark.parametrize(
    ("walls", "why"),
    [([3600, 3660, 3600, 3720], MINUTES), ([3601.5] * 9, COPIES), ([3600.0], None), ([], None)],
)
def test_walls_that_hide_how_much_they_vary_are_left_out(walls, why):
    learned = learn("w", G5, walls, [])

    assert (why, None) == (learned.left_out, learned.whole_job)


def test_blocks_alone_never_say_how_much_whole_jobs_vary():
    learned = learn("w", G5, [], [("w", shown("block", 0.001, 20))])

    assert learned.whole_job is None
    assert learned.block is not None and learned.block.sd < 0.002


def verdict(doc: dict[str, Any]) -> tuple[Decision, str]:
    decision = judge(doc)
    return decision, decision.reasons[0].code


def test_runs_that_vary_more_than_before_count_alone():
    noisy = trial(sd=0.05)
    calm = measured(trial(sd=0.0005, learned={**CALM, "sd": 0.002}))
    own = measured(noisy)

    assert pytest.approx((0.05, 8)) == (own.spread, own.df)
    assert pytest.approx((3 * 0.002**2 + 8 * 0.0005**2) / 11) == calm.spread**2
    assert pytest.approx(11) == calm.df
    assert "vary by 5 % and count alone" in words(judge(noisy))
    assert "count alone" not in words(judge(trial(count=0)))
    assert Verdict.PROMOTE != judge(noisy).verdict


def test_past_walls_say_nothing_of_where_walls_stand_beside_a_learned_spread():
    doc = trial()
    before = measured(doc)
    doc["quality"]["history_wall_seconds"] = [4000.5] * 30

    assert before == measured(doc)


def test_nothing_is_promoted_between_the_looks_by_a_learned_spread():
    doc = trial()
    doc["arms"][1]["runs"].append({**runs(doc)[-1], "order": 99, "seed": 99, "metric": 2.5})

    assert (Verdict.CONTINUE, "full_run_unproven") == (
        judge(doc).verdict, judge(doc).reasons[0].code,
    )  # fmt: skip


def test_a_trial_whose_walls_are_whole_minutes_goes_by_what_is_assumed():
    doc = trial()
    for run in full_runs(doc):
        run["wall_seconds"] = 60 * round(run["wall_seconds"] / 60)
    found = judge(doc)

    shown = measured_spreads((evidence := read_evidence(doc)).candidates[0], evidence, G5)

    assert measured(doc).spread > 0.01
    assert (0, 0) == (shown.whole_job.runs, shown.unseen.runs)
    assert "walls_left_out" in codes(found)
    assert Verdict.PROMOTE != found.verdict
    for other in (trial(), trial(learned=None)):
        assert not {"walls_left_out", "paired_runs"} & codes(judge(other))
    for left_out, said in ((COPIES, "walls are copies"), (MINUTES, "walls are whole minutes")):
        assert said in words(judge({**trial(), "plan": {"spreads": {"left_out": left_out}}}))


@pytest.mark.parametrize(
    ("change", "named"),
    [({"sd": 0}, "sd"), ({"source": "blocks"}, "source"), ({"runs": 0}, "runs")],
)
def test_a_spread_that_cannot_be_is_refused_by_its_field(change, named):
    with pytest.raises(InvalidEvidenceError, match=rf"plan\.spreads\.whole_job\.{named}"):
        read_evidence(trial(learned={**CALM, **change}))


@pytest.mark.parametrize("name", ["baseline", "compile"])
def test_an_arm_without_a_whole_job_shows_no_disagreement(name):
    doc = trial()
    for run in runs(doc, name):
        run.update(finished=False, metric=None)
    evidence = read_evidence(doc)
    found = measured_spreads(evidence.candidates[0], evidence, G5)

    assert (5, 0) == (found.whole_job.runs, found.unseen.runs)


def on_other_nodes(doc: dict[str, Any]) -> None:
    for run in runs(doc, stage="speed"):
        run["node"] = "elsewhere"


@pytest.mark.parametrize(("errors", "verdict"), [(2.8, "continue"), (3.3, "promote")])
def test_a_look_has_its_share_of_the_error_of_a_loss_of_money_too(errors, verdict):
    """At the third of five looks: t(1 - 0.0125) = 2.59, t(1 - 0.00625) = 2.98."""
    gain = math.exp(errors * 0.004 * math.sqrt(2 / 5))
    doc = trial(speedup=gain, sd=0.004, learned={**CALM, "sd": 0.004})

    assert verdict == judge(doc).verdict


def test_blocks_and_whole_jobs_disagree_by_what_chance_does_not_explain():
    doc = trial(speedup=1.1, sd=0.02)
    doc["arms"][0]["runs"].remove(runs(doc, "baseline")[0])
    walls = [[math.log(run["wall_seconds"]) for run in runs(doc, name)]
             for name in ("baseline", "compile")]  # fmt: skip
    for run in runs(doc, stage="speed"):
        run["step_seconds"] = [2 * seconds for seconds in run["step_seconds"]]
    evidence = read_evidence(doc)
    found = measured_spreads(evidence.candidates[0], evidence, G5)
    off = whole_jobs(doc).predicted.log - mean(walls[0]) + mean(walls[1])
    pooled = (3 * variance(walls[0]) + 4 * variance(walls[1])) / 7
    chance = pooled * (1 / 4 + 1 / 5) + found.block.sd**2 / 6

    assert (pytest.approx(pooled), 7, 9) == (
        found.whole_job.sd**2, found.whole_job.df, found.whole_job.runs,
    )  # fmt: skip
    assert (6, 1, pytest.approx(off**2 - chance)) == (
        found.block.runs, found.unseen.runs, found.unseen.squares,
    )  # fmt: skip


def test_blocks_that_agree_with_whole_jobs_show_no_disagreement_and_those_apart_nothing():
    doc = trial(speedup=1.02, sd=0.01)
    evidence = read_evidence(doc)
    agreeing = measured_spreads(evidence.candidates[0], evidence, G5)
    on_other_nodes(doc)
    evidence = read_evidence(doc)
    apart = measured_spreads(evidence.candidates[0], evidence, G5)

    assert (0.0, 1) == (agreeing.unseen.squares, agreeing.unseen.runs)
    assert (0, 0, 10) == (apart.block.runs, apart.unseen.runs, apart.whole_job.runs)
