"""Whether an arm's blocks ran on nodes of its own, and whether its change explains that."""

from __future__ import annotations

from compilegate.domain.compilers import has_own_image
from compilegate.domain.judging.evidence import Arm

# Another machine, image, launcher or script: no job can hold such an arm and the baseline.
OWN_NODES = frozenset(
    {"instance_type", "instance_count", "distribution", "framework", "entry_point"}
)


def may_run_apart(candidate: Arm, baseline: Arm) -> bool:
    """Whether the candidate's own change explains other nodes than the baseline's."""
    return (
        bool(OWN_NODES & candidate.overrides.keys())
        or has_own_image(candidate.overrides.get("compiler"))
        or candidate.devices != baseline.devices
        or candidate.usd_per_hour != baseline.usd_per_hour
    )


def runs_apart(candidate: Arm, baseline: Arm) -> bool:
    """Whether the arms' blocks ran on different nodes: as recorded, else by the change."""
    nodes = {run.block: run.node for run in baseline.speed if run.node}
    pairs = [
        (run.node, nodes[run.block]) for run in candidate.speed if run.node and run.block in nodes
    ]
    if pairs:
        return any(ours != theirs for ours, theirs in pairs)
    return may_run_apart(candidate, baseline)
