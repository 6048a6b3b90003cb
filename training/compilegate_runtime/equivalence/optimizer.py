"""A compiled optimizer's step beside its own eager one, both against double precision.

Every side makes the same steps from the same weights, state and gradients. What is compared is how
far each weight moved, and what the optimizer keeps of each (moments), kind by kind: they differ by
orders of magnitude, and one floor for all would hide the smaller.

Compiled code may compute with settings of 32 bits, where eager code takes Python's 64: 1 - 0.999 is
then off by 1e-5. Eager code with such settings is as good.
"""

import copy
import inspect

from compilegate_runtime.equivalence.compare import compared, sampled, worst
from compilegate_runtime.equivalence.unseen import Unseen

STEPS = 2
FAR = 0.1
HOOKS = ("_optimizer_step_pre_hooks", "_optimizer_step_post_hooks")


def figures_of(torch, subject, weights, gradients_of):
    """The worst of all kinds. ``gradients_of()`` gives a gradient by weight, of a first batch."""
    optimizer = subject.optimizer
    _require_no_closure(optimizer)
    with weights.placed():
        gradients = gradients_of()
        names = {one: name for name, one in subject.model.named_parameters()}
        trained = [one for one in _parameters(optimizer) if one in gradients and one in names]
        if not trained:
            raise Unseen("no_gradient", "the optimizer moves no weight of the model")
        kept = _Kept(torch, optimizer)
        try:
            twin = _in_double(torch, optimizer)
            there = dict(zip(_parameters(optimizer), _parameters(twin)))  # noqa: B905 - Python 3.8
            of_twin = {there[one]: gradients[one].double() for one in trained}
            of_own = {one: gradients[one] for one in trained}
            compiled = _steps(torch, optimizer, of_own, subject.compiled_step)
            kept.restore()
            with torch.compiler.set_stance("force_eager"):
                plain = lambda: type(optimizer).step(optimizer)  # noqa: E731 - a name for two uses
                eager = _steps(torch, optimizer, of_own, plain)
                kept.restore()
                for group in optimizer.param_groups:
                    group.update({name: _of_32_bits(torch, one) for name, one in group.items()})
                rounded = _steps(torch, optimizer, of_own, plain)
                truth = _steps(torch, twin, of_twin, lambda: type(twin).step(twin))
        finally:
            kept.release()
    of = [names[one] for one in trained]
    epsilon = max(torch.finfo(one.dtype).eps for one in trained)
    made = [
        compared(of, truth[kind], compiled[kind], [eager[kind], rounded[kind]], epsilon)
        for kind in truth
    ]
    far = max(one["eager_error"] for one in made)
    if far > FAR:  # by settings that depend on the type of number, as Adafactor's
        raise Unseen("no_reference", f"the eager step itself is {far:.2g} from double precision")
    return worst(made)


def _require_no_closure(optimizer):
    closure = inspect.signature(type(optimizer).step).parameters.get("closure")
    if closure is not None and closure.default is inspect.Parameter.empty:
        raise Unseen("needs_closure", f"{type(optimizer).__name__} computes the loss in its step")


def _parameters(optimizer):
    return [one for group in optimizer.param_groups for one in group["params"]]


def _in_double(torch, optimizer):
    """An optimizer of its own weights, in double precision, that goes on as this one would."""
    twin = copy.deepcopy(optimizer)
    for weight in _parameters(twin):
        weight.data = weight.data.double()
        state = twin.state.get(weight, {})
        for name, value in state.items():
            if isinstance(value, torch.Tensor) and value.is_floating_point() and value.dim():
                state[name] = value.double()
    return twin


def _of_32_bits(torch, value):
    if isinstance(value, tuple):
        return tuple(_of_32_bits(torch, one) for one in value)
    return float(torch.tensor(value, dtype=torch.float32)) if isinstance(value, float) else value


def _steps(torch, optimizer, gradients, step):
    """By kind and step: what became of each weight."""
    made = {}
    for _ in range(STEPS):
        before = {one: one.detach().clone() for one in gradients}
        for weight, gradient in gradients.items():
            weight.grad = gradient.clone()
        step()
        kinds = {"moved": [sampled(torch, one.detach() - before[one]) for one in gradients]}
        for name in sorted({name for one in gradients for name in optimizer.state.get(one, {})}):
            values = [optimizer.state.get(one, {}).get(name) for one in gradients]
            if all(isinstance(one, torch.Tensor) and one.dim() for one in values):
                kinds[name] = [sampled(torch, one) for one in values]
        for kind, values in kinds.items():
            made.setdefault(kind, []).append(values)
    return made


class _Kept:
    """Weights, state and settings of an optimizer, put back where they lie."""

    def __init__(self, torch, optimizer):
        self._torch, self._optimizer = torch, optimizer
        self._tensors = [(one, one.detach().clone()) for one in _parameters(optimizer)]
        self._state = [(key, self._copied(one)) for key, one in optimizer.state.items()]
        self._groups = [(one, self._copied(one)) for one in optimizer.param_groups]
        self._hooks = [(one, dict(one)) for one in map(vars(optimizer).get, HOOKS) if one]
        for hooks, _ in self._hooks:
            hooks.clear()

    def _copied(self, values):
        tensors = [one for one in values.values() if isinstance(one, self._torch.Tensor)]
        self._tensors += [(one, one.detach().clone()) for one in tensors]
        return dict(values)

    def release(self):
        """Put everything back, the hooks that no step of the check may call included."""
        self.restore()
        for hooks, called in self._hooks:
            hooks.update(called)

    def restore(self):
        self._optimizer.state.clear()
        self._optimizer.state.update((key, dict(values)) for key, values in self._state)
        for group, values in self._groups:
            group.update(values)
        with self._torch.no_grad():
            for tensor, value in self._tensors:
                tensor.copy_(value)
