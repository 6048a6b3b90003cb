"""Which operators of a graph an error comes from: the smallest part of it that shows the error.

PyTorch's own minifier makes the graph smaller for as long as a part shows the error, its bisector
(torch._inductor.compiler_bisector) names the pass or the lowering to blame in what is left.
"""

import contextlib
import copy
import io
from collections import namedtuple

from compilegate_runtime.diagnosis.comparison import copied, doubled, ratios, results
from compilegate_runtime.diagnosis.graphs import OWN, is_operator, path_of, place_of
from compilegate_runtime.equivalence import reference
from compilegate_runtime.equivalence.unseen import Unseen

MOST = 8  # operators that are an answer
# How results are compared: ``autocast()`` is the context of a forward pass, ``epsilon`` the step
# between the numbers of the arithmetic, ``bound`` the largest ratio that is rounding.
Terms = namedtuple("Terms", "autocast epsilon bound clock")


class Alone:
    """A graph by itself: compiled by a backend, as captured, and in double precision."""

    def __init__(self, torch, backend, terms):
        self._torch, self._backend, self._terms = torch, backend, terms
        self._verdicts = {}

    def with_backend(self, backend):
        """The same comparison of what another backend compiles."""
        return Alone(self._torch, backend, self._terms)

    def wrong(self, graph, inputs):
        """Whether compiled code is further off than rounding; not where the graph cannot run."""
        self._terms.clock.check()
        key = graph.code, tuple(getattr(one, "shape", one) for one in inputs)
        if key not in self._verdicts:
            try:
                self._verdicts[key] = self.ratio(graph, inputs) > self._terms.bound
            except Unseen:
                raise
            except Exception:  # noqa: BLE001 - not every part of a graph is one
                self._verdicts[key] = False
        return self._verdicts[key]

    def ratio(self, graph, inputs):
        """The worst error of compiled code in that of eager code."""
        torch, autocast, tape = self._torch, self._terms.autocast, []
        recording, in_double = reference.modes(torch, self._terms.clock, torch.float64)
        with recording(tape):
            eager = results(graph, inputs, autocast())
        replay = reference.computing(torch, in_double(tape), torch.float64)
        truth = results(graph, [doubled(one) for one in inputs], replay)
        with autocast():
            compiled = self._backend(copy.deepcopy(graph), [copied(one) for one in inputs])
        made = results(compiled, inputs, autocast())
        return max(ratios(truth, made, eager, self._terms.epsilon), default=0.0)


def smallest(alone, graph, inputs, say):
    """The smallest part of the graph that was found to show the error, with its inputs.

    None where the graph by itself shows none. When the time is over, it is the smallest until then.
    """
    from torch._functorch.fx_minifier import minifier  # noqa: PLC0415 - loads slowly

    parts = []

    def fails(part, its_inputs):
        if not alone.wrong(part, its_inputs):
            return False
        left = len(operators_of(part))
        if not parts or left < len(operators_of(parts[-1][0])):
            parts.append((copy.deepcopy(part), list(its_inputs)))
            say(looks_at="operators", left=left)
        return True

    # The minifier raises where the whole graph does not fail, and what a part of it raises.
    with contextlib.suppress(Exception), quietly():
        minifier(graph, list(inputs), fails, dump_state=lambda *_: None)
    return parts[-1] if parts else None


def operators_of(graph):
    """The nodes of a graph that compute."""
    return [node for node in graph.graph.nodes if is_operator(node)]


def named(graph, modules):
    """The operators of a graph by their qualified names, with place and module of each.

    None of a graph of many: the search ended before it had an answer.
    """
    nodes = operators_of(graph)
    return [
        {
            "operator": node._pretty_print_target(node.target),
            "at": place_of(node),
            "module": path_of(node, modules),
        }
        for node in (nodes if len(nodes) <= MOST else ())
    ]


def subsystem(alone, backend_of, graph, inputs):
    """What PyTorch's bisector blames: a pass, a setting or a lowering, with its detail.

    None where this PyTorch has no bisector, it finds nothing or the time is over.
    ``backend_of(stage)`` is the backend that ends with a stage.
    """
    try:
        from torch._inductor import config  # noqa: PLC0415 - loads slowly
        from torch._inductor.compiler_bisector import CompilerBisector  # noqa: PLC0415
    except ImportError:
        return None

    over = []

    def sound():
        # An exception would leave the bisector at work.
        try:
            return compiles_well()
        except Unseen as reason:
            over.append(reason)
            return True

    def compiles_well():
        stage, changes = CompilerBisector.get_backend(), {}
        if stage == "inductor":
            stage, changes = OWN, CompilerBisector.get_config_change(stage) or {}
        with config.patch(changes):
            return not alone.with_backend(backend_of(stage)).wrong(graph, inputs)

    with quietly():
        blamed = CompilerBisector.do_bisect(sound)
    if over or blamed is None or blamed.subsystem is None:
        return None
    return {"name": blamed.subsystem, "detail": blamed.debug_info}


@contextlib.contextmanager
def quietly():
    """Without what PyTorch's tools print."""
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
        yield
