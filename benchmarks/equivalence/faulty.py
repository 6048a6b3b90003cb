"""A compiler with a fault: graphs are traced as by any backend, changed, and run eagerly.

What it leaves alone is computed by the very kernels of eager, so that a fault stands alone.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from functorch.compile import default_partition, make_boxed_func
from torch._dynamo.backends.common import aot_autograd
from torch._inductor import config
from torch.fx import GraphModule

from benchmarks.equivalence.faults import Fault, Place


class Faulty:
    """A backend of torch.compile that has one fault, or none."""

    def __init__(self, fault: Fault | None, *, optimizer: bool = False) -> None:
        self.fault = fault
        self.first = "optimizer" if optimizer else "traced"
        self.applied = 0
        self.graphs = {True: 0, False: 0}
        self.memory: dict[str, Any] = {}

    def __call__(self, module: GraphModule, inputs: Sequence[Any]) -> Callable[..., Any]:
        """Compile one graph of torch's functions."""
        training = torch.is_grad_enabled()
        number, self.graphs[training] = self.graphs[training], self.graphs[training] + 1
        self._change(module, self.first, number, training, inputs)

        def compiled(stage: str) -> Callable[..., Any]:
            def compile_graph(graph: GraphModule, examples: Sequence[Any]) -> Callable[..., Any]:
                self._change(graph, stage, number, training, examples)
                run = make_boxed_func(graph.forward)
                if self.fault and self.fault.stage == f"ran {stage}":
                    place = Place(self.fault.stage, number, training, list(examples), self.memory)
                    self.applied += 1
                    changed = self.fault.change(run, place)
                    changed._boxed_call = True
                    return changed
                return run

            return compile_graph

        return aot_autograd(
            fw_compiler=compiled("forward"),
            bw_compiler=compiled("backward"),
            inference_compiler=compiled("evaluation"),
            partition_fn=_split,
        )(module, inputs)

    def _change(
        self, module: GraphModule, stage: str, number: int, training: bool, inputs: Sequence[Any]
    ) -> None:
        if self.fault is None or self.fault.stage != stage or self.fault.change is None:
            return
        place = Place(stage, number, training, list(inputs), self.memory)
        self.applied += self.fault.change(module.graph, place)
        module.graph.lint()
        module.recompile()


def _split(*arguments: Any, **settings: Any) -> tuple[GraphModule, GraphModule]:
    """Forward and backward, without draws in backward that nothing there uses.

    With fallback_random they would count as effects and stay.
    """
    with config.patch(fallback_random=False):
        return default_partition(*arguments, **settings)


def compiler(
    fault: Fault | None, *, optimizer: bool = False
) -> tuple[Callable[[Any], Any], Faulty]:
    """What compiles a model or a step with the fault, and the backend that counts where."""
    backend = Faulty(fault, optimizer=optimizer)
    return lambda model: torch.compile(model, backend=backend), backend
