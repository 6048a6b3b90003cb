"""Proof that what an arm compiles was compiled, and where its graphs broke.

TorchDynamo's counters are the whole process's: a library's own compiled function moves them too.
So each kind of model or function that the arm compiles has a backend of its own, which counts the
graphs that are handed to it.
"""

import functools
import logging
import re

LOGGERS = tuple(
    f"torch._dynamo.{module}.__graph_breaks" for module in ("symbolic_convert", "convert_frame")
)
PLACE = re.compile(r"in user code at (.+?:\d+)")
REASON_LENGTH = 200


class Region:
    """One function, or the models of one class, which share what is compiled of them.

    ``graphs``: how many were compiled; ``trains``: whether it was called with gradients;
    ``proven``: whether one of its graphs was compiled for such a call, not for an evaluation;
    ``symbolic``: how many graphs have a size that may change. ``before()`` is called before every
    call that may compile.
    """

    def __init__(
        self, torch, compile_, name, *, before, mode="default", dynamic=None, options=None
    ):
        self._torch, self._compile, self.name = torch, compile_, name
        self._before = before
        self._dynamic = dynamic
        self._backend = _CountingBackend(torch, mode, options, dynamic, self._compiled)
        self._called = None  # the model, at each call until it is proven
        self.graphs, self.trains, self.proven, self.symbolic = 0, False, False, 0

    def compile(self, what, module=None):
        """``what`` compiled: a model, or a function of the model ``module``."""
        made = self._compile(what, backend=self._backend, dynamic=self._dynamic)
        if not isinstance(made, self._torch.nn.Module):
            return self._noting(made, module)
        # Not through setattr, which may reach the model inside.
        made.__dict__["forward"] = self._noting(made.forward, module)
        return made

    def _noting(self, call, module):
        compiling = self._torch.compiler.is_compiling

        @functools.wraps(call)
        def noted(*args, **kwargs):
            # Inside of something larger that is being compiled, that one has the graph.
            if not compiling() and not self.proven:
                self._before()
                self._called = module
                self.trains = self.trains or self._in_training()
            return call(*args, **kwargs)

        return noted

    def _compiled(self, inputs):
        self.graphs += 1
        sizes = [size for value in inputs for size in (value, *getattr(value, "shape", ()))]
        self.symbolic += any(isinstance(size, self._torch.SymInt) for size in sizes)
        self.proven = self.proven or self._in_training()

    def _in_training(self):
        """Whether gradients flow, through a model that is in training mode or has weights to train.

        Some train in evaluation mode, to keep the statistics of batch normalisation as they are.
        """
        if not self._torch.is_grad_enabled():
            return False
        weights = getattr(self._called, "parameters", list)
        return getattr(self._called, "training", True) or any(w.requires_grad for w in weights())


class _CountingBackend:
    """TorchInductor in the arm's mode, as a backend that reports every graph.

    What torch.compile itself makes of a mode has no public name, the same one since PyTorch 2.0;
    it is used so that a model is compiled exactly as ``torch.compile(mode=…)`` would. A model that
    is saved whole is saved with that, and loads where this runtime is not.
    """

    __name__ = compiler_name = "inductor"

    def __init__(self, torch, mode, options, dynamic, report):
        self._report = report
        self._made_with = (None if options else mode, options, dynamic)
        self._inductor = torch._TorchCompileInductorWrapper(*self._made_with)
        for name in ("reset", "get_compiler_config"):  # TorchDynamo asks where there are any
            if hasattr(self._inductor, name):
                setattr(self, name, getattr(self._inductor, name))

    def __call__(self, graph, inputs, **kwargs):
        compiled = self._inductor(graph, inputs, **kwargs)
        self._report(inputs)
        return compiled

    def __deepcopy__(self, _memo):
        return self  # the graphs of a model's copy count too

    def __reduce__(self):
        return type(self._inductor), self._made_with


class GraphBreaks(logging.Filter):
    """Counts graph breaks by place and keeps them off the log unless it was enabled."""

    def __init__(self):
        super().__init__()
        self._breaks = {}
        self._shown = {}
        for name in LOGGERS:
            log = logging.getLogger(name)
            self._shown[name] = log.isEnabledFor(logging.DEBUG)
            log.setLevel(logging.DEBUG)
            log.addFilter(self)

    def filter(self, record):
        """Count a break; called by ``logging`` with every record."""
        text = record.getMessage()
        place = PLACE.search(text)
        if place:
            entry = self._breaks.setdefault(place[1], {"place": place[1], "count": 0, "reason": ""})
            entry["count"] += 1
            entry["reason"] = entry["reason"] or _reason(text)
        return self._shown.get(record.name, True)

    def places(self, limit):
        """The ``limit`` places with most breaks."""
        return sorted(self._breaks.values(), key=lambda entry: -entry["count"])[:limit]


def _reason(text):
    """The sentence of a break's explanation that names it."""
    lines = [line.strip() for line in text.splitlines()[1:] if line.strip()]
    named = [line for line in lines if not line.startswith("Graph Break Reason")]
    return (named or lines or [text])[0][:REASON_LENGTH]
