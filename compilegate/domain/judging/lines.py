"""Whether one arm's run goes on from what another arm has trained.

A run whose initial weights are the final ones of an earlier run (``initial_weights_sha256`` and
``final_start_sha256``, which are taken alike) starts from that run's model. Where a run of the
baseline starts from a candidate's model, or a candidate's from another candidate's, the arms are
no longer what they are compared as: a loss is carried from one into the other. A candidate that
starts from the baseline's model only begins its line there.

Only what is recorded can be seen: a model that was saved in another precision has other weights.
"""

from __future__ import annotations

from collections.abc import Iterator

from compilegate.domain.judging.evidence import Arm, Evidence
from compilegate.domain.reasons import Reason
from compilegate.domain.workload.model import BASELINE


def mixed_lines(evidence: Evidence) -> Iterator[Reason]:
    """Where a run starts from a model of another arm that is not the baseline; once per arm."""
    ends = {arm.name: _ends(arm) for arm in evidence.arms}
    for arm in evidence.arms:
        for run in arm.full_runs:
            owners = [name for name, own in ends.items() if run.initial_weights in own]
            # What the baseline or the arm itself has trained too is not another's.
            if not owners or BASELINE in owners or arm.name in owners:
                continue
            yield Reason(
                "arms_continue_each_other",
                f"{arm.name}: run {run.job or run.order} starts from the model that {owners[0]} "
                "has trained, so the arms are not compared independently",
                None if arm.name == BASELINE else arm.name,
            )
            break


def _ends(arm: Arm) -> frozenset[str]:
    return frozenset(end for run in arm.full_runs if (end := run.trained_weights) is not None)
