"""What a plan says of the gains that could be proven is what the judge would say."""

from __future__ import annotations

from dataclasses import replace

import pytest

from compilegate.domain.judging.resolution import GAINS, resolution
from compilegate.domain.spreads import Spread, Spreads
from compilegate.domain.workload.model import Policy
from tests.domain.evidence_builder import arm, document, judge


def test_a_smaller_gain_and_another_candidate_take_more_runs_until_none_suffice():
    alone, among_three = (
        [runs or 97 for runs in resolution(Policy(), candidates=many, n_max=96).values()]
        for many in (1, 3)
    )
    few = resolution(Policy(), candidates=3, n_max=12)

    assert sorted(alone, reverse=True) == alone
    assert all(mine <= other for mine, other in zip(alone, among_three, strict=True))
    assert {
        gain: runs if runs <= 12 else None for gain, runs in zip(GAINS, among_three, strict=True)
    } == few


def test_the_bars_of_the_policy_do_not_matter_and_its_error_does():
    strict = Policy(min_mean_speedup=1.5, min_proven_speedup=1.4)
    usual = resolution(Policy(), candidates=1, n_max=96)

    assert usual == resolution(strict, candidates=1, n_max=96)
    assert 2 * (usual[1.05] or 0) <= (
        resolution(replace(Policy(), alpha=1e-4), candidates=1, n_max=96)[1.05] or 97
    )


@pytest.mark.parametrize("gain", [1.05, 1.1])
def test_with_so_many_runs_that_do_not_differ_the_judge_promotes(gain):
    runs = resolution(Policy(), candidates=1, n_max=12)[gain]
    assert runs is not None
    values = [2.5 + number / 1000 for number in range(runs)]
    policy = {"min_mean_speedup": 1.0, "min_proven_speedup": 1.0}
    doc = document(speedup=gain, metrics={"baseline": values, "compile": values}, policy=policy)
    for one in doc["arms"]:
        for run in arm(doc, one["name"])["runs"]:
            steady = 0.1 if one["name"] == "baseline" else 0.1 / gain
            if run["stage"] == "speed":
                factor = 1 + run["block"] * (0.001 if one["name"] == "compile" else 0.0)
                run |= {"step_seconds": [steady * factor] * 160, "compile_seconds": 0.0}
            else:
                run["wall_seconds"] = 36000 * steady

    assert "promote" == judge(doc).verdict


def test_steady_machines_prove_smaller_gains():
    steady = Spread(0.002, "workload", "bert", 20, 1)
    learned = Spreads(whole_job=steady, block=steady, unseen=steady)
    assumed = resolution(Policy(), candidates=1, n_max=36)
    known = resolution(Policy(), candidates=1, n_max=36, spreads=learned)

    assert assumed[1.005] is None
    assert (known[1.02] or 97) < (assumed[1.02] or 0)
