"""Which stage of the compiler, and which graph, an error comes from.

torch.compile works in stages, and PyTorch has a backend that ends after each
(https://docs.pytorch.org/docs/stable/torch.compiler_troubleshooting.html):

    eager                        TorchDynamo's graphs as captured
    aot_eager                    with the backward pass derived from them
    aot_eager_decomp_partition   with operators decomposed, forward and backward pass parted
    own                          the arm's backend: passes over the graphs, generated kernels
"""

import contextlib
import copy
import re

from compilegate_runtime.diagnosis.comparison import copied

OWN = "own"
STAGES = ("eager", "aot_eager", "aot_eager_decomp_partition", OWN)
FRAME = re.compile(r'File "([^"]+)", line (\d+), in (\S+)')


class Switch:
    """Stands between TorchDynamo and the arm's backend, and chooses the backend of every graph.

    ``graphs`` are those of the last run, in the order of their compilation. Those whose number is
    in ``only`` (None: all) are compiled up to ``stage``, the others run as captured. ``inputs`` are
    what graphs were first called with, by number: of the first one, and of each that was the only.
    """

    def __init__(self, torch):
        self._torch, self._own = torch, None
        self._stage, self._only = OWN, None
        self.graphs, self.inputs = [], {}

    @contextlib.contextmanager
    def between(self):
        """Stand before the backend of all that torch.compile makes in this context."""
        dynamo = self._torch._dynamo
        original = dynamo.optimize

        def optimize(*args, backend="inductor", **kwargs):
            return original(*args, backend=self._before(backend), **kwargs)

        dynamo.optimize = optimize
        try:
            yield
        finally:
            dynamo.optimize = original

    def restart(self, stage=OWN, only=None):
        """Forget what was compiled, so that the next call compiles in this way."""
        self._torch.compiler.reset()
        self._stage, self._only, self.graphs = stage, only, []

    def backend(self, stage):
        """The backend of a stage; that of ``own`` is known once a graph was compiled."""
        from torch._dynamo.backends.registry import lookup_backend  # noqa: PLC0415 - loads slowly

        return lookup_backend(self._own if stage == OWN else stage)

    @property
    def is_inductor(self):
        """Whether the arm's backend is PyTorch's own compiler."""
        return getattr(self._own, "compiler_name", None) == "inductor"

    def how(self, stage):
        """The arguments of torch.compile that compile as in a stage; None where none do."""
        if stage != OWN:
            return {"backend": stage}
        if not self.is_inductor:
            return None
        return {"options": dict(getattr(self._own, "_inductor", self._own).config)}

    def _before(self, own):
        def chosen(graph, inputs, **kwargs):
            number, self._own = len(self.graphs), own
            self.graphs.append(copy.deepcopy(graph))  # passes may change the one that is compiled
            call = graph.forward
            if self._only is None or number in self._only:
                call = self.backend(self._stage)(graph, inputs, **kwargs)
            alone = self._only is not None and list(self._only) == [number]
            return self._keeping(number, call) if alone or number == 0 else call

        return chosen

    def _keeping(self, number, call):
        def kept(*args):
            if number not in self.inputs:
                self.inputs[number] = [copied(one) for one in args]
            return call(*args)

        return kept


def first_wrong(ratio_of, bound):
    """The first stage whose ratio is over the bound; None where that of none is."""
    return next((stage for stage in STAGES if ratio_of(stage) > bound), None)


def worst_graph(ratio_of, count, ratio, bound):
    """(number, ratio) of the graph that is worst where it alone is compiled.

    ``ratio`` is that of all ``count`` together. The half is gone on with that is worse without the
    other; None where the error needs graphs of both.
    """
    first, last = 0, count
    while last - first > 1:
        middle = (first + last) // 2
        halves = [(first, middle), (middle, last)]
        ratio, first, last = max((ratio_of(range(*half)), *half) for half in halves)
        if ratio <= bound:
            return None
    return first, ratio


def described(graph, modules):
    """Where a graph comes from: the place in the code, the modules by path, the operators.

    ``modules`` are the model's paths by the identity that TorchDynamo notes.
    """
    nodes = [node for node in graph.graph.nodes if is_operator(node)]
    paths = [path_of(node, modules) for node in nodes]
    return {
        "at": next((place for place in map(place_of, nodes) if place), None),
        "modules": sorted({path for path in paths if path}),
        "operators": len(nodes),
    }


def is_operator(node):
    """Whether a node computes; others hand on, or take something out of a tensor of sizes."""
    return node.op in ("call_function", "call_method", "call_module")


def place_of(node):
    """The innermost line of code that a node comes from, as ``file:line in function``."""
    frames = FRAME.findall(node.meta.get("stack_trace") or "")
    if not frames:
        return None
    file, line, function = frames[-1]
    return "{}:{} in {}".format(file.rpartition("/")[2], line, function)


def path_of(node, modules):
    """The path of the innermost module that a node belongs to; None at the top."""
    stack = node.meta.get("nn_module_stack") or {}
    paths_inside = [modules.get(str(key).partition("@")[0]) for key in stack]
    return next((path for path in reversed(paths_inside) if path), None)


def paths(model):
    """The paths of a model's modules by the identity that TorchDynamo notes."""
    return {str(id(module)): name for name, module in model.named_modules()}
