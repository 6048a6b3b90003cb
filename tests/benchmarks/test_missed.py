"""Where good candidates are missed, and where an oracle's saving goes."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.decision.cells import Cell
from benchmarks.decision.missed import knowing, missed_by_runs, pairs, saving_lost
from benchmarks.decision.played import played
from benchmarks.decision.targets import RULE


def test_what_is_saved_and_what_is_lost_is_what_the_oracle_saves(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(played, "__defaults__", (tmp_path,))
    of = pairs(Cell("mixed", workloads=3, seed=3, rules=(RULE,)))
    oracle = sum(outcome.oracle_usd for _, outcome in of)
    saved = 100 * sum(outcome.saved_usd for _, outcome in of) / oracle

    assert pytest.approx(100 - saved) == sum(saving_lost(of).values())
    assert 0 <= knowing(of)["good arms only"] <= 100
    rows = list(missed_by_runs(of))
    assert sum(outcome.has_good for _, outcome in of) == sum(good for _, good, _, _ in rows)
