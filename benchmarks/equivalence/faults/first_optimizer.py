"""First half: faults in the compiled step of an optimizer, Adam's."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.fx import Graph

from benchmarks.equivalence.faults import Place, after, fault, given, named


@fault(
    "step-size-of-an-earlier-step", families=("recommender", "recurrent"), kind="stale buffer",
    stage="optimizer", issue=185382,
    title="addcdiv_ and addcmul_ in a loop behind a graph break use an earlier number",
    defect="from the third iteration on, an optimizer's update was computed from a stale scalar",
    same="from the third step on, corrections are those of the second step",
)  # fmt: skip
def step_size_of_an_earlier_step(graph: Graph, _place: Place) -> int:
    """Powers of the decay rates stop there."""

    def stale(step: Tensor) -> Tensor:
        return step.clamp(max=2)

    return sum(given(node, 1, stale) for node in named(graph, "pow"))


@fault(
    "second-moment-not-corrected", families=("recommender", "recurrent"), kind="operator",
    stage="optimizer",
    defect="the correction of Adam's second moment is left out",
)  # fmt: skip
def second_moment_not_corrected(graph: Graph, _place: Place) -> int:
    """Every second power, that of the second decay rate."""
    return sum(after(node, torch.zeros_like) for node in named(graph, "pow")[1::2])


@fault(
    "optimizer-epsilon", families=("recurrent",), kind="epsilon", stage="optimizer",
    defect="Adam's epsilon is 1e-5 instead of 1e-8",
)  # fmt: skip
def optimizer_epsilon(graph: Graph, _place: Place) -> int:
    """What is added to the root of the second moment, over the step size."""
    nodes = [node for node in named(graph, "truediv") if node.args[0] == 1e-8]
    for node in nodes:
        node.update_arg(0, 1e-5)
    return len(nodes)
