"""Compiled arithmetic against eager's, both measured by a reference in double precision.

Some steps of training from the same weights on the same batches, three times: compiled, eager,
and eager in float64. Each time the weights move by that arithmetic's own gradients, so that what
shows only after a step (a stale buffer, an error that grows) is seen. Of every step:

    gradient_error = |g - g64| / |g64|        loss_error = |l - l64| / |l64|

A step moves the weights by RATE of their length along the gradient. Unlike Adam's, whose first
steps are the gradient's signs, it is a smooth function of the gradient: rounding stays rounding.
What the figures mean is the judge's to say (compilegate/domain/judging/equivalence.py); the check
itself fails no run, and happens where no time is measured: while a speed job fills its cache.
"""

import contextlib
import os

from compilegate_runtime import environment

STEPS = 4
RATE = 1e-3
VARIABLE = "COMPILEGATE_NUMERICS"
# Values of a weight's gradient that are compared; a smaller one counts whole.
SAMPLED = 2**16
LARGEST = 5 * 10**8  # weights; the reference takes 16 bytes for each
# Keeps fp16's small gradients above zero, as a gradient scaler does.
FP16_SCALE = 2.0**12


def requested():
    """Whether this process is a segment that fills the cache, of an arm that compiles."""
    return os.environ.get(VARIABLE) == "1"


def examine(model, call, batches, precision="fp32", autocast=contextlib.nullcontext):
    """The figures of a check, or why there are none.

    ``call(batch)`` gives the loss of the ``model``, compiled unless eager is forced; ``autocast()``
    is the context in which it is called. The model is left with other weights.
    """
    try:
        return _examine(model, call, batches[:STEPS], precision, autocast)
    except Exception as error:  # noqa: BLE001 - no check may fail a run
        return {"checked": False, "reason": f"{type(error).__name__}: {error}"[:300]}


def _examine(model, call, batches, precision, autocast):
    import torch  # noqa: PLC0415 - the segments of other arms do without

    if environment.world_size() > 1:
        return _unchecked("several processes share the gradients")
    if not hasattr(torch.compiler, "set_stance"):
        return _unchecked("PyTorch before 2.6 cannot be told to run eagerly")
    if len(batches) < STEPS:
        return _unchecked("too few steps were made")
    if sum(weight.numel() for weight in model.parameters()) > LARGEST:
        return _unchecked("the model is too large for a reference in double precision")
    check = _Check(torch, model, call, FP16_SCALE if precision == "fp16" else 1.0, autocast)
    if check.is_random(batches[0]):
        model.eval()  # without dropout, which draws other numbers when compiled
        if check.is_random(batches[0]):
            return _unchecked("the model draws random numbers")
    compiled = check.steps(batches)
    with torch.compiler.set_stance("force_eager"):
        eager = check.steps(batches)
        model.double()
        reference = check.steps([_map(torch, _double, batch) for batch in batches])
    kind = {"fp16": torch.float16, "bf16": torch.bfloat16}.get(precision, torch.float32)
    figures = {"compiled": compiled, "eager": eager}
    return {
        "checked": True,
        "steps": len(batches),
        "as": "training" if model.training else "evaluation",
        "epsilon": torch.finfo(kind).eps,
        "loss_error": {k: _errors(v, reference, 0) for k, v in figures.items()},
        "gradient_error": {k: _errors(v, reference, 1) for k, v in figures.items()},
    }


def _unchecked(reason):
    return {"checked": False, "reason": reason}


class _Check:
    """Steps of one model from the weights that it has now."""

    def __init__(self, torch, model, call, scale, autocast):
        self._torch, self._model, self._call = torch, model, call
        self._scale, self._autocast = scale, autocast
        self._start = [value.detach().clone() for value in self._state()]

    def _state(self):
        return [*self._model.parameters(), *self._model.buffers()]

    def is_random(self, batch):
        """Whether an eager call draws random numbers."""
        torch = self._torch
        states = [torch.get_rng_state]
        if torch.cuda.is_available() and torch.cuda.is_initialized():
            states.append(torch.cuda.get_rng_state)
        before = [state().clone() for state in states]
        with torch.no_grad(), torch.compiler.set_stance("force_eager"), self._autocast():
            self._call(batch)
        return any(not torch.equal(old, state()) for old, state in zip(before, states))  # noqa: B905

    def steps(self, batches):
        """(loss, sampled gradient) of each step."""
        with self._torch.no_grad():
            for value, start in zip(self._state(), self._start):  # noqa: B905 — Python 3.8 has no strict
                value.copy_(start)  # where it lies, which a captured graph knows
        return [self._step(batch) for batch in batches]

    def _step(self, batch):
        torch = self._torch
        self._model.zero_grad(set_to_none=True)
        with self._autocast():
            loss = self._call(batch)
        (loss * self._scale).backward()
        trained = [one for one in self._model.parameters() if one.grad is not None]
        gradients = [one.grad.detach() / self._scale for one in trained]
        with torch.no_grad():
            length = _norm(gradients)
            rate = RATE * _norm(trained) / length if length > 0 else 0.0
            for weight, gradient in zip(trained, gradients):  # noqa: B905 — Python 3.8 has no strict
                weight.sub_(gradient.to(weight.dtype), alpha=rate)
        sampled = torch.cat([_sample(one) for one in gradients])
        return float(loss.detach().double()), sampled


def _sample(tensor):
    flat = tensor.reshape(-1)
    return flat[:: -(-flat.numel() // SAMPLED) | 1].double().cpu()


def _norm(tensors):
    return sum(float(one.detach().double().square().sum()) for one in tensors) ** 0.5


def _errors(made, reference, part):
    """Relative errors step by step; None where either is not a finite number."""
    errors = []
    for own, true in zip(made, reference):  # noqa: B905 — Python 3.8 has no strict
        if part == 0:
            error, size = abs(own[0] - true[0]), abs(true[0])
        else:
            error, size = float((own[1] - true[1]).norm()), float(true[1].norm())
        finite = size > 0 and error < float("inf")  # not of nan
        errors.append(error / size if finite else None)
    return errors


def kept(torch, values):
    """A batch as it is now, for later."""
    return _map(torch, lambda tensor: tensor.detach().clone(), values)


def _double(tensor):
    return tensor.double() if tensor.is_floating_point() else tensor


def _map(torch, change, values):
    if isinstance(values, torch.Tensor):
        return change(values)
    if isinstance(values, dict):
        return {key: _map(torch, change, value) for key, value in values.items()}
    if type(values) in (list, tuple):
        return type(values)(_map(torch, change, value) for value in values)
    return values
