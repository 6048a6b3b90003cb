"""One model trained for some steps in several ways: compiled, eager, in double precision.

Each way sees the same batches. Between steps the weights move, so that what shows only then (a
stale buffer, a weight that was compiled in) is seen: every way by the same noise, not by its own
gradient, whose error would grow from step to step.
"""

import contextlib
import math
from collections import namedtuple

from compilegate_runtime.equivalence import batches as of_batches
from compilegate_runtime.equivalence import conditions
from compilegate_runtime.equivalence.compare import sampled
from compilegate_runtime.equivalence.outputs import tensors_of
from compilegate_runtime.equivalence.unseen import Unseen

SHIFT = 2e-4  # of the weights' length, to each side of them
# Keeps fp16's small gradients above zero, as a gradient scaler does.
FP16_SCALE = 2.0**12

# What steps left: sampled gradients and buffers of each step with outputs that no gradient reaches,
# integers that were returned, and torch's random state after it.
Trained = namedtuple("Trained", "gradients buffers integers random")
# What every side of a check shares.
Case = namedtuple("Case", "torch subject weights clock outputs")


class Side:
    """One way to compute.

    ``loss_of(batch)`` gives what the model returns, ``callable`` is called like the model where it
    is evaluated. ``around(tape)`` is a context for a step, its backward pass included, in which
    random numbers are recorded on a list or read from it.
    """

    def __init__(self, case, loss_of, function, *, dtype=None, around=None, forward=None):
        self._torch, self._subject, self._clock = case.torch, case.subject, case.clock
        self._weights, self._outputs, self._dtype = case.weights, case.outputs, dtype
        self._loss_of, self.callable = loss_of, function
        self._around = around or (lambda _: contextlib.nullcontext())
        self._forward = forward or contextlib.nullcontext
        self._scale = FP16_SCALE if case.subject.precision == "fp16" else 1.0

    @contextlib.contextmanager
    def placed(self):
        """The starting weights in this side's type of number."""
        with self._weights.placed(self._dtype):
            yield

    def train(self, steps, tapes=None, first=0, variation=0, *, dropout=True):
        """``Trained`` by steps of one or several batches each, with a tape each.

        ``first`` is the number of the first one. With a ``variation`` weights are rounded another
        way, by its number. Without ``dropout`` the model is in evaluation mode.
        """
        made = Trained([], [], [], [])
        self._balance(steps[0][0])
        with self.placed():
            if not dropout:
                self._subject.model.eval()
            for number, batches in enumerate(steps, first):
                self._clock.check()
                self._weights.move(number, variation)
                conditions.seed(self._torch, number)
                self._subject.model.zero_grad(set_to_none=True)
                with self._around(tapes[number - first] if tapes else []):
                    for batch in batches:
                        output = self._backward(batch, len(batches))
                made.random.append(conditions.random_state(self._torch))
                self._take(made, output)
        return made

    def gradients(self, batch):
        """A gradient by weight, at the weights that are placed now: the starting ones."""
        self._balance(batch)
        with self._around([]):
            self._backward(batch, 1)
        return {
            one: one.grad.detach() / self._scale
            for one in self._subject.model.parameters()
            if one.grad is not None
        }

    def losses(self, batch, count, after=lambda: None, seed=0):
        """Losses of so many calls, with random numbers that go on from call to call."""
        made = []
        with self.placed():
            conditions.seed(self._torch, seed)
            for _ in range(count):
                made.append(self._loss(batch))
                after()
        return made

    def slopes(self, batch, seeds):
        """|slope of the loss along the gradient, as a share of what the gradient says, - 1|."""
        with self.placed():
            return [self._slope(batch, one) for one in range(seeds)]

    def _slope(self, batch, seed):
        torch, losses = self._torch, []
        self._subject.model.zero_grad(set_to_none=True)
        conditions.seed(torch, seed)
        gradients = self.gradients(batch)
        length = _norm(torch, gradients.values())
        if not length:
            return math.inf
        shift = SHIFT * _norm(torch, gradients) / length
        for share in (1.0, -2.0, 1.0):  # there, to the other side, and back
            with torch.no_grad():
                for weight, gradient in gradients.items():
                    weight.add_(gradient, alpha=share * shift)
            conditions.seed(torch, seed)
            losses.append(self._loss(batch))
        return abs((losses[0] - losses[1]) / (2 * shift * length**2) - 1)

    def _loss(self, batch):
        self._clock.check()
        with self._around([]), self._forward():
            return float(self._outputs.number(self._loss_of(self._copy(batch))).detach())

    def compute(self, batches, variation=0):
        """What the evaluation computes of each batch, without gradients, in evaluation mode."""
        made = []
        with self.placed(), self._torch.no_grad():
            self._weights.move(0, variation)
            self._subject.model.eval()
            for batch in batches:
                self._clock.check()
                with self._around([]), self._forward():
                    output = self._subject.evaluate(self.callable, self._copy(batch))
                tensors = tensors_of(self._torch, output)
                made.append([sampled(self._torch, one) for one in tensors])
        return made

    def _balance(self, batch):
        """Find what outputs beside the loss weigh; the first side, which is eager, does for all."""
        if self._outputs.balanced:
            return
        with self.placed(), self._around([]):
            with self._forward():
                parts = self._outputs.parts_of(self._loss_of(self._copy(batch)))
            count = sum(one is not None and one.requires_grad for one in parts)
            self._outputs.balance(*map(self._length, parts) if count == len(parts) else ())

    def _length(self, number):
        """That of a number's gradient; the graph stays."""
        model = self._subject.model
        model.zero_grad(set_to_none=True)
        (number * self._scale).backward(retain_graph=True)
        return _norm(self._torch, [one.grad for one in model.parameters() if one.grad is not None])

    def _copy(self, batch):
        """A batch of its own for a call, which may change it."""
        copy = of_batches.kept(self._torch, batch)
        return copy if self._dtype is None else of_batches.in_type(self._torch, copy, self._dtype)

    def _backward(self, batch, parts):
        with self._forward():
            output = self._loss_of(self._copy(batch))
            loss = self._outputs.number(output) / parts
        if not loss.requires_grad:
            raise Unseen("no_gradient", "the loss depends on no weight that trains")
        (loss * self._scale).backward()
        return output

    def _take(self, made, output):
        """Keep gradients, what has changed beside them, and outputs that no gradient reaches."""
        torch, trained = self._torch, self._weights.trained()
        with torch.no_grad():
            for one in trained:
                if one.grad is not None and self._scale != 1:
                    one.grad.div_(self._scale)
            made.gradients.append([sampled(torch, one.grad, len(trained)) for one in trained])
            returned = tensors_of(torch, output, floating=None)
            state = [*self._weights.moved(), *(
                one for one in returned if one.is_floating_point() and not one.requires_grad
            )]  # fmt: skip
            made.buffers.append([sampled(torch, one, len(state)) for one in state])
            made.integers.append([
                sampled(torch, one).tolist()
                for one in returned if not one.is_floating_point() and not one.is_complex()
            ])  # fmt: skip


def _norm(torch, tensors):
    """The length of all tensors together, of their values where they are sparse."""
    total = 0.0
    for one in tensors:
        values = one.detach() if one.layout is torch.strided else one.detach().coalesce().values()
        total += float(values.abs().double().square().sum())
    return total**0.5
