"""``torch.compile`` with the inductor backend, proven by the graphs of what the arm compiles."""

import os
import re
import time

from compilegate_runtime.compilers.none import NoCompiler
from compilegate_runtime.compilers.proof import GraphBreaks, Region
from compilegate_runtime.errors import CompilerUnavailableError, NotAppliedError

ALL_REGIONS = "auto"
REASONS_KEPT = 8
REASON_LENGTH = 300
DYNAMIC = {"auto": None, "false": False, "true": True}
LIMIT = re.compile("recompile limit|cache_size_limit", re.IGNORECASE)
SETTINGS = {
    "TORCHINDUCTOR_FX_GRAPH_CACHE": "1",
    "TORCHINDUCTOR_AUTOGRAD_CACHE": "1",
    # The precompiled header of kernels for processors, 150 MB, lies outside of the cache that jobs
    # keep: every job would spend seconds building it again, with nothing left to compile.
    "TORCHINDUCTOR_CPP_CACHE_PRECOMPILE_HEADERS": "0",
}


class TorchCompile(NoCompiler):
    """Compiles a whole module, or only its repeated blocks, and the optimizer's step if asked.

    Dynamo hands a graph to the backend also when the backend then finds the compiled code in its
    cache: the graphs counted there prove the treatment, cold and warm.
    """

    name = "torch_compile"
    # torch.compile's own names (https://pytorch.org/docs/stable/generated/torch.compile.html).
    modes = ("default", "reduce-overhead", "max-autotune")
    compiles_modules = True

    def __init__(
        self, mode="default", dynamic="auto", optimizer=False, regions="", *, options=None
    ):
        """With ``options``, TorchInductor's own by name, there is no mode."""
        super().__init__()
        for name, value in SETTINGS.items():  # before torch reads them
            os.environ.setdefault(name, value)
        try:
            import torch  # noqa: PLC0415 — only compiled jobs pay for it
            from torch._dynamo import utils  # noqa: PLC0415 — as above
        except ImportError as error:
            raise CompilerUnavailableError(
                f"compiler {self.name} needs PyTorch 2.1 or later: {error}"
            ) from error
        self._torch, self._utils = torch, utils
        self._spent = getattr(utils, "cumulative_time_spent_ns", None)
        self.how = {"mode": mode, "dynamic": DYNAMIC[dynamic], "options": options}
        self._regions, self._blocks = regions, 0
        self._compiles_optimizer, self._optimizer_steps = optimizer, {}
        self._compile = torch.compile  # before a script's own calls are redirected
        self._kinds = {}  # a region of each kind
        self._optimizer = self._region("the optimizer's step", options=options)
        self._preparing, self._begin = 0.0, None
        self._breaks = GraphBreaks()
        # Dynamo keeps the last 64 compilations; a run that recompiles more must not be
        # reported as one that recompiled less.
        if hasattr(utils, "set_compilation_metrics_limit"):
            utils.set_compilation_metrics_limit(4096)

    @classmethod
    def create(cls, settings):
        """The backend of a job's ``Settings``."""
        return cls(settings.mode, settings.dynamic, settings.optimizer, settings.regions)

    def apply(self, module):
        """Return the compiled module, or ``module`` with its repeated blocks compiled in place.

        Raises NotAppliedError when there are no repeated blocks to compile.
        """
        begin = time.perf_counter()
        if self._regions:
            blocks = repeated_blocks(module, self._regions)
            for block in blocks:
                compiled = self.compiled(block.forward)
                block.forward = _WhileTraining(self._torch, block, compiled)
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

    def compiled(self, what, module=None):
        """``what``, a module or a function (of ``module``), compiled as the arm says."""
        if module is None:
            own = isinstance(what, self._torch.nn.Module)
            module = what if own else getattr(what, "__self__", None)
        kind = what if module is None else type(module)
        region = self._kinds.get(kind)
        if region is None:
            name = getattr(kind, "__name__", "a function")
            region = self._region(name, **self.how)
            self._kinds[kind] = region
        return region.compile(what, module)

    def _region(self, name, **how):
        return Region(self._torch, self._compile, name, before=self._before_compiling, **how)

    def before_compiling(self, begin):
        """Let ``begin()`` be called once, by the first call of anything that is compiled.

        Its time belongs to compiling.
        """
        self._begin = begin

    def _before_compiling(self):
        begin, self._begin = self._begin, None
        if begin is not None:
            began = time.perf_counter()
            begin()
            self._preparing += time.perf_counter() - began

    def anew(self, what):
        """``what`` compiled once more as the arm compiles, and no proof that it was.

        A module or a function; of a module with compiled blocks the blocks, in place.
        """
        if not self._regions:
            return self._compile(what, **self.how)
        for block in repeated_blocks(what, self._regions):
            forward = self._compile(getattr(block.forward, "as_written", block.forward), **self.how)
            block.forward = _WhileTraining(self._torch, block, forward)
        return what

    def step(self, optimizer, scaler=None):
        """Let the optimizer take its step, compiled if the arm says so."""
        if not self._compiles_optimizer:
            super().step(optimizer, scaler)
            return
        compiled = self._optimizer_steps.get(id(optimizer))
        (compiled or self._compile_step(optimizer))()

    def _compile_step(self, optimizer):
        # A learning rate that is a number would be compiled in, and again whenever it changes.
        for group in optimizer.param_groups:
            if not isinstance(group["lr"], self._torch.Tensor):
                group["lr"] = self._torch.tensor(group["lr"])
            if "fused" in group:  # a kernel of its own, closed to the compiler
                group["fused"] = None
        compiled = self._optimizer.compile(optimizer.step)
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
        """Raise NotAppliedError unless everything that trains was compiled for that, and the
        optimizer's step if asked for.
        """
        if not self.applied():
            eager = [f"{one.name} trained uncompiled" for one in self._training if not one.proven]
            raise NotAppliedError(
                f"compiler {self.requested} was requested but not applied: "
                f"{'; '.join([*eager, self._proof()])}. {self._cure()}"
            )
        if self._compiles_optimizer and not self._optimizer.graphs:
            raise NotAppliedError(
                "compile_optimizer was requested but not applied: the optimizer's step left no "
                "graph; let it take its steps through the compiler (compiler.step(optimizer))"
            )

    def _cure(self):
        """What to do about a model that was not compiled."""
        eager = sorted({one.name for one in self._training if not one.proven})
        if not eager or len(eager) == len(self._training):
            return "Is TORCHDYNAMO_DISABLE set, or the model never called in training?"
        return (
            f"Only {', '.join(eager)} could not be compiled: call it inside of the model that is, "
            "whose graphs then prove both, or write it so that TorchDynamo can compile it (no "
            "torch._dynamo.disable; torch's own recurrent layers are left uncompiled)"
        )

    def applied(self):
        """Whether something trained, and a graph was compiled for each thing that did."""
        return bool(self._training) and all(one.proven for one in self._training)

    @property
    def _training(self):
        return [one for one in self._kinds.values() if one.trains or one.proven]

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
            "given_up": self._given_up(),
            "recompile_reasons": [reason[:REASON_LENGTH] for reason in reasons[:REASONS_KEPT]],
            "graph_break_reasons": [str(r)[:REASON_LENGTH] for r in list(breaks)[:REASONS_KEPT]],
            "graph_break_places": self._breaks.places(REASONS_KEPT),
            "cache_hits": inductor.get("fxgraph_cache_hit", 0)
            + counters.get("aot_autograd", {}).get("autograd_cache_hit", 0),
            "cache_misses": inductor.get("fxgraph_cache_miss", 0),
        }

    def graphs(self):
        """Graphs handed to the arm's own backends so far."""
        return sum(one.graphs for one in [*self._kinds.values(), self._optimizer])

    def symbolic_graphs(self):
        """Those among them with a size that may change."""
        return sum(one.symbolic for one in self._kinds.values())

    def _proof(self):
        frames = self._utils.counters.get("frames", {})
        dynamic = self.how["dynamic"]
        how = "".join(f", {name} {value}" for name, value in (self.how["options"] or {}).items())
        how += "" if dynamic is None else f", dynamic {str(dynamic).lower()}"
        how += f" ({self.symbolic_graphs()} graphs of any size)" if dynamic else ""
        how += f", {self._blocks} repeated blocks" if self._regions else ""
        how += f", {self._optimizer.graphs} optimizer graphs" if self._compiles_optimizer else ""
        kinds = ", ".join(f"{one.graphs} of {one.name}" for one in self._kinds.values())
        given_up = self._given_up()
        if given_up:
            kinds += f"; {given_up} times over the recompile limit, eager from there on"
        return (
            f"inductor, mode {self.how['mode']}{how}, torch {self._torch.__version__}: "
            f"{frames.get('ok', 0)} of {frames.get('total', 0)} frames compiled; "
            f"graphs: {kinds or 'none'}"
        )

    def _given_up(self):
        """How often TorchDynamo ran eager code because of its recompile limit."""
        reasons = self._utils.counters.get("unimplemented", {})
        return sum(count for reason, count in reasons.items() if LIMIT.search(str(reason)))

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


class _WhileTraining:
    """The block's forward: compiled in training, as written in evaluation.

    Not by gradients alone: activation checkpointing switches them off in training too. A copy of
    the block, or one that was saved whole, has its own forward as it is written.
    """

    def __init__(self, torch, block, compiled):
        self._torch, self._block, self._compiled = torch, block, compiled
        self.as_written = block.forward

    def __call__(self, *args, **kwargs):
        trains = self._block.training or self._torch.is_grad_enabled()
        return (self._compiled if trains else self.as_written)(*args, **kwargs)

    def __reduce__(self):
        if getattr(self.as_written, "__self__", None) is self._block:
            return getattr, (self._block, "forward")
        return _itself, (self.as_written,)  # other code had replaced the class's own


def _itself(value):
    return value


def _place(code):
    return f"{os.path.basename(code[0])}:{code[1]}"  # noqa: PTH119 — not always a real path


def repeated_blocks(module, where=ALL_REGIONS):
    """Blocks that ``module`` holds in lists of equals; ``where`` names one list, or is ``auto``.

    Lists inside of a block belong to it. Raises NotAppliedError when there is none.
    """
    lists = [
        (name, blocks)
        for name, blocks in _lists(module)
        if where in (ALL_REGIONS, name) and len(blocks) > 1 and len(set(map(type, blocks))) == 1
    ]
    outer = [
        blocks
        for name, blocks in lists
        if not any(name.startswith(other + ".") for other, _ in lists if other != name)
    ]
    if not outer:
        raise NotAppliedError(
            f"compile_regions {where} was requested but not applied: the model has no such list "
            "of equal blocks; name the attribute that holds them, or compile it whole"
        )
    return [block for blocks in outer for block in blocks]


def _lists(module):
    import torch  # noqa: PLC0415 — only compiled jobs pay for it

    kinds = (torch.nn.ModuleList, torch.nn.Sequential)
    for name, child in module.named_modules():
        if isinstance(child, kinds):
            yield name, list(child)


COMPILER = TorchCompile
