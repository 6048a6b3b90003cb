"""Which jobs measure a step's speed blocks.

Arms that can share nodes run back to back in one job, which carries all blocks of the step.
Where one of them needs nodes of its own (another image, instance, launcher or entry point),
every block is one job per group of arms that share nodes, all at the same time: each block
then draws fresh nodes, and the block stays the unit of replication.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from compilegate.domain import naming
from compilegate.domain.planning.arm_plan import CONTROL, ArmPlan
from compilegate.domain.workload.model import controlled_by

# A control separates two effects and decides nothing: as many blocks as the first look takes.
CONTROL_BLOCKS = 3


@dataclass(frozen=True)
class SpeedJob:
    """One job of a step; ``apart`` where it measures one group's part of one block."""

    arms: tuple[ArmPlan, ...]
    group: int
    first_block: int
    blocks: int
    apart: bool

    def run(self, round_number: int) -> str:
        """Its run id."""
        block = self.first_block if self.apart else None
        return naming.speed_run(round_number, self.group, block)

    @property
    def usd_per_hour(self) -> float:
        """Price of its cluster, which all of its arms share."""
        return self.arms[0].usd_per_hour

    @property
    def decides(self) -> bool:
        """Whether it measures what is judged; a control's job does not."""
        return self.arms[0].role != CONTROL


def node_groups(arms: Sequence[ArmPlan]) -> list[tuple[ArmPlan, ...]]:
    """The plan's arms by the nodes that they can share, the baseline's group first.

    Controls have jobs of their own, so that a broken control does not fail a candidate.
    """
    groups: dict[object, list[ArmPlan]] = {}
    for arm in arms:
        groups.setdefault((arm.shares_nodes, arm.role == CONTROL), []).append(arm)
    return [tuple(group) for group in groups.values()]


def speed_jobs(
    arms: Sequence[ArmPlan],
    measured: Collection[str],
    *,
    first_block: int,
    blocks: int,
    control_blocks: Mapping[str, int],
) -> list[SpeedJob]:
    """The jobs of one step that measures the arms named ``measured``, and their controls.

    ``control_blocks`` counts the blocks that each control has had.
    """
    groups = _groups(arms, measured, control_blocks)
    if len(groups) == 1:
        return [
            SpeedJob(group, index, first_block, blocks, False) for index, group in groups.items()
        ]
    return [
        SpeedJob(group, index, first_block + turn, 1, True)
        for turn in range(blocks)
        for index, group in _groups(arms, measured, control_blocks, turn).items()
    ]


def arm_of(run: naming.RunId, arms: Sequence[ArmPlan]) -> ArmPlan:
    """The run's arm, which has the job's cluster and price; ``arms`` are the plan's.

    Of a speed job the first of its group, which shares its nodes.
    """
    return node_groups(arms)[run.group][0] if run.arm_index is None else arms[run.arm_index]


def measured_by(run: naming.RunId, arms: Sequence[ArmPlan]) -> tuple[str, ...] | None:
    """Names of the arms that a speed job may measure, None: any; ``arms`` are the plan's."""
    if run.block is None:
        return None
    return tuple(arm.name for arm in node_groups(arms)[run.group])


def controls_of(run: naming.RunId, arms: Sequence[ArmPlan]) -> tuple[str, ...]:
    """Names of the controls whose job this is, none for a job that decides; ``arms`` as above."""
    if run.block is None:
        return ()
    return tuple(arm.name for arm in node_groups(arms)[run.group] if arm.role == CONTROL)


def _groups(
    arms: Sequence[ArmPlan],
    measured: Collection[str],
    control_blocks: Mapping[str, int],
    turn: int = 0,
) -> dict[int, tuple[ArmPlan, ...]]:
    """The arms of the step's block number ``turn``, by the number of their group."""

    def takes_part(arm: ArmPlan) -> bool:
        if arm.role != CONTROL:
            return arm.name in measured
        done = control_blocks.get(arm.name, 0) + turn
        return controlled_by(arm.name) in measured and done < CONTROL_BLOCKS

    groups = {
        index: tuple(filter(takes_part, group)) for index, group in enumerate(node_groups(arms))
    }
    return {index: group for index, group in groups.items() if group}
