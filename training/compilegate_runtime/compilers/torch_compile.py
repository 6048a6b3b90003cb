"""``torch.compile`` with the inductor backend, proven by TorchDynamo's own counters."""

import os
import time

from compilegate_runtime.compilers.graph_breaks import GraphBreaks
from compilegate_runtime.compilers.none import NoCompiler
from compilegate_runtime.compilers.regions import repeated_blocks
from compilegate_runtime.errors import CompilerUnavailableError, NotAppliedError

REASONS_KEPT = 8
REASON_LENGTH = 300
DYNAMIC = {"auto": None, "false": False, "true": True}
CACHES = ("TORCHINDUCTOR_FX_GRAPH_CACHE", "TORCHINDUCTOR_AUTOGRAD_CACHE")


class TorchCompile(NoCompiler):
    """Compiles a whole module, or only its repeated blocks, and the optimizer's step if asked.

    Dynamo counts a graph when it hands one to the backend, also when the backend then finds
    the compiled code in its cache: the counters prove the treatment, cold and warm.
    """

    def __init__(self, mode="default", dynamic="auto", optimizer=False, regions=""):
        super().__init__("torch_compile")
        for name in CACHES:  # before torch reads them; on from the start in newer releases
            os.environ.setdefault(name, "1")
        try:
            import torch  # noqa: PLC0415 — only compiled jobs pay for it
            from torch._dynamo import utils  # noqa: PLC0415 — as above
        except ImportError as error:
            raise CompilerUnavailableError(
                f"compiler torch_compile needs PyTorch 2.1 or later: {error}"
            ) from error
        self._torch, self._utils = torch, utils
        self._compile = torch.compile  # a script's own calls of it are led elsewhere
        self._spent = getattr(utils, "cumulative_time_spent_ns", None)
        self.how = {"mode": mode, "dynamic": DYNAMIC[dynamic]}
        self._regions, self._blocks = regions, 0
        self._compiles_optimizer, self._optimizer_steps, self._optimizer_graphs = optimizer, {}, 0
        self._preparing = 0.0
        self._breaks = GraphBreaks()
        # Dynamo keeps the last 64 compilations; a run that recompiles more must not be
        # reported as one that recompiled less.
        if hasattr(utils, "set_compilation_metrics_limit"):
            utils.set_compilation_metrics_limit(4096)

    def apply(self, module):
        """Return the compiled module, or ``module`` with its repeated blocks compiled in place.

        Raises NotAppliedError when there are no repeated blocks to compile.
        """
        begin = time.perf_counter()
        if self._regions:
            blocks = repeated_blocks(module, self._regions)
            for block in blocks:
                block.forward = self.compiled(block.forward)
            self._blocks += len(blocks)
            result = module
        else:
            result = self.compiled(module)
        self._preparing += time.perf_counter() - begin
        return result

    @property
    def compiles_regions(self):
        """Whether only repeated blocks of a model are compiled."""
        return bool(self._regions)

    def compiled(self, what):
        """``what``, a module or function, compiled as the arm says."""
        return self._compile(what, **self.how)

    def step(self, optimizer):
        """Let the optimizer take its step, compiled if the arm says so."""
        if not self._compiles_optimizer:
            optimizer.step()
            return
        known = self._optimizer_steps.get(id(optimizer))
        if known is None:
            before = self.graphs()
            self._compile_step(optimizer)()
            self._optimizer_graphs += self.graphs() - before
            return
        known()

    def _compile_step(self, optimizer):
        # A learning rate that is a number would be compiled in, and again whenever it changes.
        for group in optimizer.param_groups:
            if not isinstance(group["lr"], self._torch.Tensor):
                group["lr"] = self._torch.tensor(group["lr"])
            if "fused" in group:  # a kernel of its own, closed to the compiler
                group["fused"] = None
        compiled = self._compile(optimizer.step)
        self._optimizer_steps[id(optimizer)] = compiled
        return compiled

    def compilations(self):
        """A number that changes whenever something was compiled; asked in every step."""
        spent = self._spent
        if spent is None:  # before PyTorch 2.6
            return sum(map(len, self._utils.compilation_time_metrics.values()))
        return spent.get("entire_frame_compile", 0) + spent.get("entire_backward_compile", 0)

    def compile_seconds(self):
        """Seconds in forward and backward compilation so far, recompilations included."""
        return self._preparing + self._utils.calculate_time_spent().get("total_wall_time", 0.0)

    def verify(self):
        """Raise NotAppliedError unless graphs of the model, and of the optimizer if asked for,
        were compiled.
        """
        if not self.applied():
            raise NotAppliedError(
                "compiler torch_compile was asked for and not applied: "
                f"{self._proof()}. Is TORCHDYNAMO_DISABLE set, or the model never called?"
            )
        if self._compiles_optimizer and not self._optimizer_graphs:
            raise NotAppliedError(
                "compile_optimizer was asked for and not applied: the optimizer's step left no "
                "graph; let it take its steps through the compiler (compiler.step(optimizer))"
            )

    def applied(self):
        """Whether at least one graph was compiled."""
        return bool(self.graphs() and self._frames()[0])

    def evidence(self):
        """The ``compiler`` part of a run's summary."""
        counters = self._utils.counters
        compiled = self._compiled_frames()
        recompiled = len(compiled) - len({identity for identity, _ in compiled})
        breaks = counters.get("graph_break", {})
        inductor = counters.get("inductor", {})
        reasons = [f"{_place(at)}: {reason}" for at, reason in compiled if reason]
        return {
            "requested": self.requested,
            "applied": self.applied(),
            "proof": self._proof(),
            "compile_seconds": round(self.compile_seconds(), 3),
            "graphs": self.graphs(),
            "recompiles": recompiled,
            "graph_breaks": sum(breaks.values()),
            "recompile_reasons": [reason[:REASON_LENGTH] for reason in reasons[:REASONS_KEPT]],
            "graph_break_reasons": [str(r)[:REASON_LENGTH] for r in list(breaks)[:REASONS_KEPT]],
            "graph_break_places": self._breaks.found(REASONS_KEPT),
            "cache_hits": inductor.get("fxgraph_cache_hit", 0)
            + counters.get("aot_autograd", {}).get("autograd_cache_hit", 0),
            "cache_misses": inductor.get("fxgraph_cache_miss", 0),
        }

    def graphs(self):
        """Graphs handed to the backend so far."""
        return self._utils.counters.get("stats", {}).get("unique_graphs", 0)

    def _frames(self):
        frames = self._utils.counters.get("frames", {})
        return frames.get("ok", 0), frames.get("total", 0)

    def _proof(self):
        done, total = self._frames()
        calls = self._utils.counters.get("stats", {}).get("calls_captured", 0)
        dynamic = self.how["dynamic"]
        said = "" if dynamic is None else f", dynamic {str(dynamic).lower()}"
        said += f", {self._blocks} repeated blocks" if self._regions else ""
        said += f", {self._optimizer_graphs} optimizer graphs" if self._compiles_optimizer else ""
        return (
            f"inductor, mode {self.how['mode']}{said}, torch {self._torch.__version__}: "
            f"{done} of {total} frames compiled to {self.graphs()} graphs of {calls} operations"
        )

    def _compiled_frames(self):
        """(code object, reason of recompilation) of every compiled forward frame."""
        return [
            (
                (entry.co_filename, entry.co_firstlineno, entry.co_name),
                getattr(entry, "recompile_reason", None),
            )
            for entry in self._utils.get_compilation_metrics()
            if entry.co_name and not entry.fail_type
        ]


def _place(code):
    return f"{os.path.basename(code[0])}:{code[1]}"  # noqa: PTH119 — not always a real path
