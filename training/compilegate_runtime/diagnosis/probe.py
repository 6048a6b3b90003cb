"""One part of the equivalence check, measured again for every way in which it is compiled."""

import contextlib

from compilegate_runtime.diagnosis.graphs import Switch
from compilegate_runtime.equivalence import conditions
from compilegate_runtime.equivalence.arithmetic import OWN, Arithmetic
from compilegate_runtime.equivalence.compare import errors, of_tensor
from compilegate_runtime.equivalence.parts import HELD_OUT, STEPS, names_of_outputs
from compilegate_runtime.equivalence.weights import names_of


class Probe:
    """The tensors of a part, compiled and eager, against double precision."""

    def __init__(self, case, part, arithmetic):
        self._case, self._subject, self.part = case, case.subject, part
        self._is_own = arithmetic == OWN
        self._made = Arithmetic(case, arithmetic, {})
        self.epsilon, self.switch = self._made.epsilon, Switch(case.torch)
        self._truth = self._eagers = None

    @property
    def autocast(self):
        """The context of the part's forward passes."""
        return self._subject.autocast if self._is_own else contextlib.nullcontext

    def around(self):
        """The number formats of the arithmetic."""
        return contextlib.nullcontext() if self._is_own else conditions.precise(self._case.torch)

    def groups(self):
        """Figures of each group of tensors in the run's own code, the worst first."""
        with self.around():
            if self._evaluates:
                truth, compiled, eagers = self._made.computed(self._held_out)
            else:
                truth, compiled, eagers = self._made.trained(self.part, self._steps())
                truth, compiled = getattr(truth, self._field), getattr(compiled, self._field)
                eagers = [getattr(one, self._field) for one in eagers]
        self._truth = truth
        self._eagers = self._errors(eagers)
        return grouped(self._by_name(compiled))

    def ratio(self, **how):
        """The worst ratio where the model is compiled as ``how`` says (Switch.restart)."""
        self._case.clock.check()
        self.switch.restart(**how)
        with self.around(), self.switch.between():
            anew = self._made.anew()
            if self._evaluates:
                made = anew.compute(self._held_out)
            else:
                made = getattr(anew.train(self._steps()), self._field)
        return max(one["ratio"] for one in self._by_name(made))

    @property
    def _evaluates(self):
        return self.part == "evaluation"

    @property
    def _field(self):
        return "buffers" if self.part == "buffers" else "gradients"

    @property
    def _held_out(self):
        return self._subject.evaluation[:HELD_OUT]

    def _steps(self):
        """The batches of each step, as the part has them."""
        subject = self._subject
        if self.part == "last_batch":
            return [[subject.last_batch]] * STEPS
        if self.part == "recompiled":
            return [[batch] for batch in subject.recompiled]
        if self.part == "accumulation":
            return [subject.batches[: subject.accumulation]] * STEPS
        return [[batch] for batch in subject.batches[:STEPS]]

    def _names(self):
        if self._evaluates:
            return names_of_outputs(self._truth)
        return names_of(self._subject.model, self._field)

    def _errors(self, ways):
        return [
            [errors(true, own) for true, own in zip(self._truth, made)]  # noqa: B905 - Python 3.8
            for made in ways
        ]

    def _by_name(self, compiled):
        (made,) = self._errors([compiled])
        for place, name in enumerate(self._names()):
            ratio, error, eager, _ = of_tensor(made, self._eagers, self.epsilon, place)
            yield {"name": name, "error": error, "eager_error": eager, "ratio": ratio}


def of_layers(path):
    """A path with every number of a layer as ``*``."""
    return ".".join("*" if part.isdigit() else part for part in path.split("."))


def grouped(tensors):
    """Figures by the path of the module, layers of one kind together; the worst first."""
    groups = {}
    for tensor in tensors:
        module = tensor["name"].rpartition(".")[0] or tensor["name"]
        groups.setdefault(of_layers(module), []).append(tensor)
    rows = []
    for group, members in groups.items():
        worst = max(members, key=lambda one: one["ratio"])
        rows.append({
            "group": group, "tensors": len(members), "where": worst["name"],
            **{key: finite(worst[key]) for key in ("error", "eager_error", "ratio")},
        })  # fmt: skip
    return sorted(rows, key=lambda row: float("-inf") if row["ratio"] is None else -row["ratio"])


def finite(value):
    """As JSON has it: None where it is not a number."""
    return value if value < float("inf") else None
