"""What a plan says of the gains that could be proven is what the judge would say."""

from __future__ import annotations

from compilegate.domain.judging.resolution import resolution
from compilegate.domain.spreads import Spread, Spreads
from compilegate.domain.workload.model import Policy


def test_steady_machines_prove_smaller_gains():
    steady = Spread(0.002, "workload", "bert", 20, 1)
    learned = Spreads(whole_job=steady, block=steady, unseen=steady)
    assumed = resolution(Policy(), candidates=1, n_max=36)
    known = resolution(Policy(), candidates=1, n_max=36, spreads=learned)

    assert assumed[1.005] is None
    assert (known[1.02] or 97) < (assumed[1.02] or 0)
