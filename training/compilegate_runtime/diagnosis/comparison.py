"""How far a compiled function is from its code in double precision, by PyTorch alone.

    error = |x - x64| / max(|x64|, FLOOR * size of a typical number)

Every reproducer has this file's code in it (reproducer.py).
"""

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_flatten, tree_map

FLOOR = 0.01  # below, a value is rounding itself and has no relative error
LOW = (torch.float32, torch.bfloat16, torch.float16)


class InDouble(TorchDispatchMode):
    """Leaves out what a function casts to a lower precision."""

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):  # noqa: D105 - torch's
        args, kwargs = tree_map(self._wide, (args, kwargs or {}))
        return function(*args, **kwargs)

    @staticmethod
    def _wide(value):
        return torch.float64 if isinstance(value, torch.dtype) and value in LOW else value


def is_real(value):
    """Whether it is a tensor whose numbers are rounded."""
    return isinstance(value, torch.Tensor) and value.is_floating_point()


def copied(value):
    """A tensor of its own with the same numbers."""
    if not isinstance(value, torch.Tensor):
        return value
    return value.detach().clone().requires_grad_(value.requires_grad)


def doubled(value):
    """The same numbers in double precision."""
    if not is_real(value):
        return value
    return value.detach().double().requires_grad_(value.requires_grad)


def results(function, inputs, context):
    """Outputs, and gradients of the inputs under a random weight of each output's numbers."""
    torch.manual_seed(0)
    inputs = [copied(one) for one in inputs]
    with context:
        outputs = [one for one in tree_flatten(function(*inputs))[0] if is_real(one)]
    trained = [one for one in outputs if one.requires_grad]
    weights = torch.Generator().manual_seed(0)
    drawn = [torch.randn(one.shape, generator=weights).to(one) for one in trained]
    if trained:
        torch.autograd.backward(trained, drawn)
    leaves = [one.grad for one in inputs if is_real(one) and one.requires_grad]
    return [None if one is None else one.detach().double() for one in [*outputs, *leaves]]


def errors(truth, made):
    """The error of every result; infinite where a number is missing."""
    flat = [one.reshape(-1) for one in truth if one is not None and one.numel()]
    typical = float(torch.cat(flat).square().mean().sqrt()) if flat else 0.0
    each = []
    for true, other in zip(truth, made):  # noqa: B905 - Python 3.8 has no strict
        if true is None or other is None:
            each.append(0.0 if true is other else float("inf"))
            continue
        length = max(float(true.norm()), FLOOR * typical * true.numel() ** 0.5) or 1.0
        difference = (other - true).masked_fill(other == true, 0.0)  # equal infinities
        error = float(difference.norm()) / length
        each.append(error if error < float("inf") else float("inf"))
    return each


def ratios(truth, made, eager, epsilon):
    """The errors of compiled code in those of eager code, at least ``epsilon``."""
    pairs = zip(errors(truth, made), errors(truth, eager))  # noqa: B905 - as above
    return [error / max(epsilon, plain) for error, plain in pairs]
