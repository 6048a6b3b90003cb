"""Whole runs of both arms in one job: what they measure, and what misleads them."""

from __future__ import annotations

import math
import random
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from compilegate.domain.judging.design import spent
from compilegate.domain.judging.evidence_file import read_evidence
from compilegate.domain.judging.whole_job import measured_spreads, spread_reasons
from tests.domain.evidence_builder import document, judge, quality_run, requested
from tests.domain.whole_job_builder import confirmation, whole_jobs

STEADY = {"sd": 0.002, "source": "workload", "name": "lm", "runs": 20, "workloads": 1}
LEARNED = {"whole_job": {**STEADY, "sd": 0.03}, "block": STEADY, "unseen": STEADY}
ORDERS = ("baseline", "compile", "compile", "baseline"), (
    "compile", "baseline", "baseline", "compile",
)  # fmt: skip


def paired(
    jobs: list[list[float]], gain: float = 1.05, *, spreads: Any = LEARNED, **policy: Any
) -> dict[str, Any]:
    """A trial whose jobs' runs take so much longer, in logarithms, by their place in the job."""
    policy = {"min_mean_speedup": 1.0, "min_proven_speedup": 1.0, "max_quality_runs": 36, **policy}
    doc = document(speedup=gain, compile_seconds=0.0, policy=policy)
    doc["plan"] = {"pairs": True, "spreads": spreads}
    seeds = {"baseline": 17, "compile": 17}
    for number, logs in enumerate(jobs):
        for place, (name, log) in enumerate(zip(ORDERS[number % 2], logs, strict=True)):
            wall = 61.5 / (gain if name == "compile" else 1.0) * math.exp(log)
            run = quality_run(4 * number + place, seeds[name], 2.5 + seeds[name] / 1e4, wall)
            seeds[name] += 1
            arm = next(one for one in doc["arms"] if one["name"] == name)
            arm["runs"].append({**run, "job": f"job{number}"})
    return doc


def measured(doc: dict[str, Any]) -> Any:
    return whole_jobs(doc).measured


@given(
    st.lists(st.tuples(*[st.floats(-0.5, 0.5)] * 2), min_size=1, max_size=4),
    st.floats(0.8, 1.5),
)  # fmt: skip
def test_a_node_its_day_and_a_drift_that_is_even_change_nothing(jobs, gain):
    moved = [[node + drift * place for place in range(4)] for node, drift in jobs]
    source = measured(paired(moved, gain))

    assert pytest.approx(math.log(gain), abs=1e-9) == source.log
    assert 2 * len(jobs) == source.candidate_runs == source.baseline_runs


def test_by_hand():
    logs = [[0.00, 0.01, 0.02, 0.05], [0.10, 0.12, 0.11, 0.13]]
    first, second = [(0.00 - 0.01), (0.05 - 0.02)], [(0.12 - 0.10), (0.11 - 0.13)]
    jobs = [sum(pair) / 2 for pair in (first, second)]
    between = (jobs[0] - jobs[1]) ** 2 / 2
    within = [(a - b) ** 2 / 4 for a, b in (first, second)]
    prior = 3 * 0.002**2
    variances = [  # where the runs vary more than was learned, they count alone
        (between / 1, 1), ((between + sum(within)) / 3, 3),
    ]  # fmt: skip
    assert all(own > prior / 3 for own, _ in variances)
    variance, df = max(variances)
    source = measured(paired(logs))

    assert 0.002 == whole_jobs(paired(logs)).wall_prior
    assert pytest.approx(math.log(1.05) + sum(jobs) / 2) == source.log
    assert pytest.approx((variance / 2, df)) == (source.variance, source.df)


def test_a_node_that_favours_an_arm_is_seen_between_jobs_however_alike_pairs_of_a_job_are():
    favoured = [[0.0, 0.02, 0.02, 0.0], [-0.02, 0.0, 0.0, -0.02], [0.0, 0.0, 0.0, 0.0]]
    source = measured(paired(favoured))

    assert pytest.approx(0.02**2) == source.variance * 3 and source.df == 2


@pytest.mark.parametrize("where", [1, 2, 3])
def test_a_node_that_slows_down_within_a_job_promotes_nothing_that_is_no_faster(where):
    """A candidate may seem 2.5 % faster, with a spread of 0.2 % known."""
    slower = [[0.05 * (place >= where) for place in range(4)]]
    doc = paired([[-log for log in slower[0]]], 1.0)
    whole, evidence = whole_jobs(doc), read_evidence(doc)

    assert "confirmed" != confirmation(doc).agreement
    (why,) = [one for one in spread_reasons(evidence.candidates[0], evidence, whole)
              if one.code == "paired_runs"]  # fmt: skip
    assert f"speed-up varies by {100 * whole.measured.spread:.2g} %" in why.message
    assert ("job0" in why.message) == (where != 2), "a step half-way cancels"
    assert where == 2 or whole.measured.spread > 0.01


def test_a_job_that_lacks_a_run_counts_for_nothing():
    whole = paired([[0.0] * 4, [0.3] * 4, [0.0] * 4])
    lacking = paired([[0.0] * 4, [0.3] * 4, [0.0] * 4])
    (run,) = [
        run for run in lacking["arms"][1]["runs"] if run.get("job") == "job1" and run["order"] == 4
    ]
    run |= {"finished": False, "metric": None, "wall_seconds": None, "reason": "out of memory"}

    assert (6, 4) == (measured(whole).candidate_runs, measured(lacking).candidate_runs)


def test_without_the_plans_word_runs_of_one_job_are_judged_as_they_always_were():
    doc = paired([[0.0] * 4, [0.3] * 4])
    del doc["plan"]["pairs"]
    named = measured(doc)
    for arm in doc["arms"]:
        for run in arm["runs"]:
            del run["job"]

    assert named == measured(doc) and named.df > 3


def test_later_trials_learn_how_far_blocks_were_off_although_nodes_differ():
    """Blocks show 1.05x, the pairs of jobs 1.01x, and walls differ by 30 % between nodes."""
    behind = [[node + 0.04 * (name == "compile") for name in ORDERS[number % 2]]
              for number, node in enumerate((-0.3, 0.3, 0.0, 0.2))]  # fmt: skip
    evidence = read_evidence(paired(behind))
    shown = measured_spreads(evidence.candidates[0], evidence, "ml.g5.xlarge")

    assert pytest.approx(0.04, abs=0.01) == shown.unseen.sd
    assert shown.whole_job.sd > 0.2


def test_one_job_proves_nothing_and_later_ones_spend_the_share_of_the_look_they_reach():
    trials = (paired([[0.0] * 4] * jobs, max_quality_runs=12) for jobs in (1, 2, 3, 4, 5))
    seen = [confirmation(doc) for doc in trials]

    assert [0.0, *(spent(look, 12, 1.0) for look in (3, 5, 8)), 0.0] == [one.share for one in seen]
    assert ["unproven", "confirmed", "confirmed", "confirmed", "unproven"] == [
        one.agreement for one in seen
    ]


def test_the_judge_asks_for_jobs_of_both_arms_that_turn_their_order():
    first = requested(judge(paired([])))
    later = requested(judge(paired([[0.0] * 4], spreads={})))

    assert [list(_asked(0)), list(_asked(1))] == [first, later[:4]]


def _asked(job: int) -> Iterator[tuple[str, int]]:
    seeds = dict.fromkeys(ORDERS[0], 17 + 2 * job)
    for name in ORDERS[job % 2]:
        yield name, seeds[name]
        seeds[name] += 1


# Of a node, within it, of a node's favour for an arm, of a step somewhere within half of the jobs.
WORLDS = {
    "as learned": (0.03, 0.002, 0.0, 0.0),
    "history misleads": (0.03, 0.02, 0.0, 0.0),
    "nodes favour an arm": (0.03, 0.002, 0.01, 0.0),
    "nodes slow down half-way": (0.03, 0.002, 0.0, 0.05),
}


@pytest.mark.parametrize("world", WORLDS.values(), ids=WORLDS)
def test_at_the_bar_looks_together_promote_at_most_five_of_a_hundred(
    world,
):
    """Whole jobs alone, to which blocks add nothing that these worlds could break."""
    node, within, favour, step = world
    rng, promoted, trials = random.Random(7), 0, 200
    for _ in range(trials):
        jobs: list[list[float]] = []
        for number in range(6):
            own, likes = rng.gauss(0, node), rng.gauss(0, favour)
            at = rng.choice((1, 2, 3)) if rng.random() < 0.5 else 4
            jobs.append([
                own + rng.gauss(0, within) + step * (place >= at)
                + likes * (name == "compile")
                for place, name in enumerate(ORDERS[number % 2])
            ])  # fmt: skip
        doc = paired(jobs, 1.0, max_quality_runs=12)
        for one in doc["arms"]:
            one["runs"] = [run for run in one["runs"] if run["stage"] != "speed"]
        promoted += any(
            "confirmed" == confirmation(_first(doc, jobs)).agreement for jobs in (1, 2, 3, 4, 6)
        )
    assert promoted <= 0.05 * trials + 2 * math.sqrt(trials * 0.05 * 0.95)


def _first(doc: dict[str, Any], jobs: int) -> dict[str, Any]:
    arms = [{**one, "runs": [run for run in one["runs"] if run["order"] < 4 * jobs]}
            for one in doc["arms"]]  # fmt: skip
    return {**doc, "arms": arms}
