"""From the whole to the part: stage of the compiler, graph, operators; then what helps."""

import contextlib
from collections import namedtuple
from pathlib import Path

from compilegate_runtime.diagnosis import graphs, operators, remedies, reproducer
from compilegate_runtime.diagnosis.probe import Probe, finite
from compilegate_runtime.equivalence import conditions, large
from compilegate_runtime.equivalence.outputs import Outputs
from compilegate_runtime.equivalence.sides import Case
from compilegate_runtime.equivalence.unseen import Clock, Unseen, reason_of
from compilegate_runtime.equivalence.weights import Weights

SCHEMA = 1
REPRODUCER = "reproducer.py"
# Without a table of bounds: above every sound compilation that was seen (28), below the smallest
# fault of a structure (400), both in single precision.
BOUND = 64.0
GROUPED = ("gradients", "buffers")
# What the steps of one model do not show again.
ONCE = ("optimizer", "randomness", "reduction")
SHARE = 0.5  # of the time that is left, for the operators
# Where a reproducer is written, and the seconds that are left to try it.
Place = namedtuple("Place", "folder left")


class Diagnosis:
    """Fills one document, from the whole to the part, until the time is over."""

    def __init__(self, case, bounds, place, say, made):
        self._case, self._torch, self._subject = case, case.torch, case.subject
        self._bounds, self._place, self._say, self._made = bounds, place, say, made
        self._paths, self._probes = graphs.paths(case.subject.model), {}

    def _bound(self, part):
        """The largest ratio of a part that is rounding."""
        return self._bounds.get("{}.{}".format(part["part"], part["arithmetic"]), BOUND)

    def run(self, figures):
        """Look into the worst part of the check, if it is over its bound."""
        if large.is_large(self._subject.model):
            raise Unseen("too_large", "the check compares it block by block")
        shown = [part for part in figures["parts"] if part["part"] in GROUPED]
        self._probes = {id(part): self._group(part) for part in shown}
        failing = max(figures["parts"], key=self._closeness, default=None)
        if failing is not None and self._closeness(failing) > 1:
            self._locate(failing)

    def _closeness(self, part):
        return float("inf") if part["ratio"] is None else part["ratio"] / self._bound(part)

    def _group(self, part):
        self._say(looks_at="groups", part=part["part"], arithmetic=part["arithmetic"])
        named = {"part": part["part"], "arithmetic": part["arithmetic"], "bound": self._bound(part)}
        probe = Probe(self._case, part["part"], part["arithmetic"])
        self._made["groups"] += [{**named, **row} for row in probe.groups()]
        return probe

    def _locate(self, part):
        bound = self._bound(part)
        shown = {key: part.get(key) for key in ("part", "arithmetic", "where", "step", "ratio")}
        self._made["failing"] = {**shown, "bound": bound}
        if part["part"] in ONCE:
            raise Unseen("not_bisected", part["part"])
        probe = self._probes.get(id(part)) or self._group(part)
        self._stages(probe, bound)
        if self._made["stage"] is None:
            raise Unseen("not_again", "the model compiled anew shows no error")
        if self._made["stage"] != graphs.STAGES[0]:
            self._graph(probe, bound)
        self._remedies(probe, bound)

    def _stages(self, probe, bound):
        def ratio_of(stage):
            ratio = probe.ratio(stage=stage)
            self._say(looks_at="stage", stage=stage, ratio=ratio)
            self._made["stages"][stage] = finite(ratio)
            return ratio

        self._made["stage"] = graphs.first_wrong(ratio_of, bound)
        self._made["graphs"] = len(probe.switch.graphs)

    def _graph(self, probe, bound):
        stage, count = self._made["stage"], self._made["graphs"]

        def ratio_of(only):
            ratio = probe.ratio(stage=stage, only=only)
            self._say(looks_at="graphs", first=only[0], last=only[-1], of=count, ratio=ratio)
            return ratio

        whole = self._made["stages"][stage]
        whole = float("inf") if whole is None else whole
        worst = graphs.worst_graph(ratio_of, count, whole, bound)
        if worst is None:
            return
        number, ratio = worst
        graph, inputs = probe.switch.graphs[number], probe.switch.inputs[number]
        self._made["graph"] = {
            "number": number + 1, "ratio": finite(ratio), **graphs.described(graph, self._paths),
        }  # fmt: skip
        with probe.around():
            self._operators(probe, graph, inputs, bound)

    def _operators(self, probe, graph, inputs, bound):
        stage, backend_of = self._made["stage"], probe.switch.backend
        clock = Clock(self._place.left() * SHARE)  # the rest is for what helps
        terms = operators.Terms(probe.autocast, probe.epsilon, bound, clock)
        alone = operators.Alone(self._torch, backend_of(stage), terms)
        part = operators.smallest(alone, graph, inputs, self._say)
        if part is None:
            return
        self._made["operators"] = operators.named(part[0], self._paths)
        if probe.switch.how(stage) is None:  # no backend of PyTorch's
            return
        for step in (self._reproduce, self._blame):
            with contextlib.suppress(Exception):  # what PyTorch's tools cannot do is left out
                step(part, alone, terms, probe.switch)

    def _reproduce(self, part, _alone, terms, switch):
        self._say(looks_at="reproducer")
        path = self._place.folder / REPRODUCER
        shows = reproducer.write(
            self._torch, path, *part, how=switch.how(self._made["stage"]), terms=terms,
            limit_seconds=self._place.left(),
        )  # fmt: skip
        self._made["reproducer"] = {"file": path.name, "shows": shows}

    def _blame(self, part, alone, _terms, switch):
        self._say(looks_at="subsystem")
        self._made["subsystem"] = operators.subsystem(alone, switch.backend, *part)

    def _remedies(self, probe, bound):
        low = probe.epsilon > self._torch.finfo(self._torch.float32).eps
        if low and self._made["stage"] == graphs.OWN and probe.switch.is_inductor:
            from torch._inductor import config  # noqa: PLC0415 - loads slowly

            if hasattr(config, "emulate_precision_casts"):
                with config.patch(emulate_precision_casts=True):
                    self._tried(remedies.STRICT, [], probe.ratio(), bound)
        modules = [one["module"] for one in self._made["operators"] if one["module"]]
        if modules:
            self._helps(probe, remedies.alike(self._subject.model, modules[0]), bound)
        elif not self._made["operators"]:
            remedies.region(
                self._torch, self._subject.model,
                lambda names: self._helps(probe, names, bound),
            )  # fmt: skip

    def _helps(self, probe, names, bound):
        with remedies.left_out(self._torch, self._subject, names):
            try:
                ratio = probe.ratio(stage=self._made["stage"])
            except Unseen as reason:
                if reason.code != "not_compiled":
                    raise
                ratio = float("inf")  # a region without which nothing is compiled
        return self._tried(remedies.EXCLUDE, names, ratio, bound)

    def _tried(self, remedy, names, ratio, bound):
        self._say(looks_at=remedy, modules=",".join(names) or None, ratio=ratio)
        self._made["remedies"].append(
            {"remedy": remedy, "modules": names, "ratio": finite(ratio), "helps": ratio <= bound}
        )
        return ratio <= bound


def diagnose(subject, figures, folder, *, bounds=None, limit_seconds=600.0, say=None):
    """The document of a diagnosis of what a check found; no error and no change comes of it.

    ``bounds`` are the largest ratios that are rounding, by part and arithmetic; a reproducer is
    written to ``folder``. ``say(**what)`` is called before or after every compilation.
    """
    clock, weights = Clock(limit_seconds), None
    made = {
        "schema": SCHEMA, "groups": [], "failing": None, "stages": {}, "stage": None,
        "graphs": None, "graph": None, "operators": [], "subsystem": None, "remedies": [],
        "reproducer": None, "ended": None,
    }  # fmt: skip
    try:
        import torch  # noqa: PLC0415 - the segments of other arms do without

        with conditions.untouched(torch), _compiling_anew():
            subject = subject() if callable(subject) else subject
            weights = Weights(torch, subject.model)
            case = Case(torch, subject, weights, clock, Outputs(torch))
            place = Place(Path(folder), lambda: max(1.0, limit_seconds - clock.seconds()))
            Diagnosis(case, bounds or {}, place, say or _silent, made).run(figures)
    except Exception as error:  # noqa: BLE001 - what was found until then stays
        reason = reason_of(error)
        made["ended"] = {"code": reason.code, "detail": reason.detail}
    finally:
        if weights is not None:
            weights.restore()
            torch.compiler.reset()
    return {**made, "seconds": round(clock.seconds(), 2)}


@contextlib.contextmanager
def _compiling_anew():
    """Eager's random numbers, and no graph from a cache: each may be compiled in another way."""
    from torch._functorch import config as functorch  # noqa: PLC0415 - loads slowly
    from torch._inductor import config as inductor  # noqa: PLC0415 - as above

    settings = {
        "fallback_random": True,
        "fx_graph_cache": False,
        "cpp_cache_precompile_headers": True,
    }
    with _patched(inductor, settings), _patched(functorch, {"enable_autograd_cache": False}):
        yield


def _patched(config, settings):
    """What this PyTorch has of the settings."""
    return config.patch({key: value for key, value in settings.items() if hasattr(config, key)})


def _silent(**_):
    pass
