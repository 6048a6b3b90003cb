"""Graph compilers behind one small interface; each proves that it was applied."""

import os
import time

from compilegate_runtime.errors import (
    CompilerUnavailableError,
    HyperparameterError,
    NotAppliedError,
)

REASONS_KEPT = 8


class NoCompiler:
    """Trains as written; a compiler that was ``requested`` all the same counts as not applied."""

    def __init__(self, requested="none"):
        self.requested = requested

    def apply(self, module):
        """Return ``module`` as it is."""
        return module

    def compile_seconds(self):
        """Seconds spent compiling so far."""
        return 0.0

    def compilations(self):
        """A number that changes whenever something was compiled; asked in every step."""
        return 0

    def verify(self):
        """Nothing was asked for, so nothing has to be proven."""

    def evidence(self):
        """The ``compiler`` part of a run's summary."""
        nothing_asked = self.requested == "none"
        return {
            "requested": self.requested,
            "applied": None if nothing_asked else False,
            "proof": "no compiler was asked for" if nothing_asked else "none was applied",
            "compile_seconds": 0.0,
            "graphs": 0,
            "recompiles": 0,
            "graph_breaks": 0,
        }


class TorchCompile:
    """``torch.compile`` with the inductor backend, told by TorchDynamo's own counters.

    Dynamo counts a graph when it hands one to the backend, also when the backend then finds
    the compiled code in its cache: the counters prove the treatment, cold and warm.
    """

    requested = "torch_compile"

    def __init__(self, mode="default"):
        self._mode = mode
        try:
            import torch  # noqa: PLC0415 — only compiled jobs pay for it
            from torch._dynamo import utils  # noqa: PLC0415 — as above
        except ImportError as error:
            raise CompilerUnavailableError(
                f"compiler torch_compile needs PyTorch 2.1 or later: {error}"
            ) from error
        self._torch, self._utils = torch, utils
        self._preparing = 0.0
        # Dynamo keeps the last 64 compilations; a run that recompiles more must not be
        # reported as one that recompiled less.
        if hasattr(utils, "set_compilation_metrics_limit"):
            utils.set_compilation_metrics_limit(4096)

    def apply(self, module):
        """Return the compiled module; its parameters stay those of ``module``."""
        begin = time.perf_counter()
        compiled = self._torch.compile(module, mode=self._mode)
        self._preparing += time.perf_counter() - begin
        return compiled

    def compile_seconds(self):
        """Seconds in forward and backward compilation so far, recompilations included."""
        return self._preparing + self._utils.calculate_time_spent().get("total_wall_time", 0.0)

    def compilations(self):
        """A number that changes whenever something was compiled; asked in every step."""
        return sum(map(len, self._utils.compilation_time_metrics.values()))

    def verify(self):
        """Raise NotAppliedError unless at least one graph of the model was compiled."""
        if not self._graphs() or not self._frames()[0]:
            raise NotAppliedError(
                "compiler torch_compile was asked for and not applied: "
                f"{self._proof()}. Is TORCHDYNAMO_DISABLE set, or the model never called?"
            )

    def evidence(self):
        """The ``compiler`` part of a run's summary."""
        counters = self._utils.counters
        compiled = self._compiled_frames()
        recompiled = len(compiled) - len({identity for identity, _ in compiled})
        breaks = counters.get("graph_break", {})
        inductor = counters.get("inductor", {})
        reasons = [reason for _, reason in compiled if reason]
        return {
            "requested": self.requested,
            "applied": bool(self._graphs() and self._frames()[0]),
            "proof": self._proof(),
            "compile_seconds": round(self.compile_seconds(), 3),
            "graphs": self._graphs(),
            "recompiles": recompiled,
            "graph_breaks": sum(breaks.values()),
            "recompile_reasons": [reason[:300] for reason in reasons[:REASONS_KEPT]],
            "graph_break_reasons": [str(reason)[:300] for reason in list(breaks)[:REASONS_KEPT]],
            "cache_hits": inductor.get("fxgraph_cache_hit", 0)
            + counters.get("aot_autograd", {}).get("autograd_cache_hit", 0),
            "cache_misses": inductor.get("fxgraph_cache_miss", 0),
        }

    def _graphs(self):
        return self._utils.counters.get("stats", {}).get("unique_graphs", 0)

    def _frames(self):
        frames = self._utils.counters.get("frames", {})
        return frames.get("ok", 0), frames.get("total", 0)

    def _proof(self):
        done, total = self._frames()
        calls = self._utils.counters.get("stats", {}).get("calls_captured", 0)
        return (
            f"inductor, mode {self._mode}, torch {self._torch.__version__}: {done} of {total} "
            f"frames compiled to {self._graphs()} graphs of {calls} operations"
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


def compiler_for(name, mode="default"):
    """The backend of one hyperparameter value; ``mode`` is torch.compile's.

    Raises CompilerUnavailableError when this environment lacks it, HyperparameterError for a mode
    without its compiler.
    """
    if mode != "default" and name != "torch_compile":
        raise HyperparameterError(
            f"compile_mode {mode} belongs to compiler torch_compile and would not be applied to "
            f"compiler {name}"
        )
    if name == "torch_compile":
        os.environ.setdefault("TORCHINDUCTOR_FX_GRAPH_CACHE", "1")
        os.environ.setdefault("TORCHINDUCTOR_AUTOGRAD_CACHE", "1")
        return TorchCompile(mode)
    if name == "sagemaker_training_compiler":
        raise CompilerUnavailableError(
            "compiler sagemaker_training_compiler was asked for and not applied: it exists only "
            "inside its AWS training images (PyTorch/XLA); use such an image and a script ported "
            "to it, or torch_compile"
        )
    return NoCompiler()
