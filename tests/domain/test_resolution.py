"""What a plan says of the gains that could be proven is what the judge would say."""

from __future__ import annotations

from dataclasses import replace

import pytest

from compilegate.domain.judging import resolution as resolution_module
from compilegate.domain.judging.resolution import GAINS, resolution
from compilegate.domain.spreads import Spread, Spreads
from compilegate.domain.workload.model import Policy


def test_gains_of_half_a_percent_to_a_tenth_are_asked_about():
    assert (1.005, 1.02, 1.05, 1.1) == GAINS


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


def test_no_block_after_the_first_look_is_counted_on(monkeypatch: pytest.MonkeyPatch):
    first = resolution(Policy(), candidates=3, n_max=36)
    monkeypatch.setattr(resolution_module, "SPEED_LOOKS", (4, 4, 4))
    four = resolution(Policy(), candidates=3, n_max=36)

    assert (first[1.1] or 37) > (four[1.1] or 37)


def test_steady_machines_prove_smaller_gains():
    steady = Spread(0.002, "workload", "bert", 20, 1)
    learned = Spreads(whole_job=steady, block=steady, unseen=steady)
    assumed = resolution(Policy(), candidates=1, n_max=36)
    known = resolution(Policy(), candidates=1, n_max=36, spreads=learned)

    assert assumed[1.005] is None
    assert (known[1.02] or 97) < (assumed[1.02] or 0)
