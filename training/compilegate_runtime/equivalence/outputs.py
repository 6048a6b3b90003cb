"""What a model returned as one number, whose gradient is compared.

A script may train on more than the model's own loss: it adds losses that lie beside it, or compares
outputs with something. So every output counts through which gradients flow: the loss as it is, each
other number as it is, and of tensors the mean of

    v (v / sqrt(1 + (v / BEND)^2) + w)        w = eighths from -7/16 to 7/16, by the value's place

which every value moves differently. Large values count linearly, and those of a mask not at all.
The others together weigh as much as the loss: both gradients are equally long in eager code on the
first batch. Every way to compute has the same weight, so that a fault cannot change it.
"""

import math

from compilegate_runtime.equivalence.batches import leaves
from compilegate_runtime.equivalence.compare import spread
from compilegate_runtime.equivalence.unseen import Unseen

LEVELS = 8  # of w, which are exact in every type of number
BEND = 16.0
MASKED = -3e4  # above -65504, which masks of 16 bits have, and below the values of sound logits
MOST = 2**22  # values of one output that count, evenly spread


class Outputs:
    """The loss and the other outputs, in the proportion that ``balance`` found."""

    def __init__(self, torch):
        self._torch, self._weight = torch, 1.0
        self.balanced = False
        self.unseen = None  # why other outputs do not count, an Unseen

    def number(self, output):
        """The number to be minimised. Raises Unseen where there is none."""
        loss, others = self.parts_of(output)
        if loss is None and others is None:
            raise Unseen("no_loss", f"the loss is a {type(output).__name__}")
        if others is None or (loss is not None and self.unseen):
            return loss
        if loss is None or not loss.requires_grad:
            return others
        return loss + self._weight * others

    def parts_of(self, output):
        """(the loss, one number of the other outputs), each None where there is none."""
        torch, loss = self._torch, loss_in(output)
        is_one = isinstance(loss, torch.Tensor) and loss.is_floating_point()
        others = [
            self._weighed(one)
            for one in tensors_of(torch, output)
            if one is not loss and one.requires_grad and one.numel()
        ]
        return loss.mean() if is_one else None, sum(others) if others else None

    def balance(self, of_loss=0.0, of_others=0.0):
        """Let others weigh as much as the loss, by the lengths of both gradients."""
        self.balanced = True
        if not math.isfinite(of_others):
            self.unseen = Unseen("eager_not_finite", "outputs beside the loss", 0.5)
        elif of_others and not of_loss:
            self.unseen = Unseen("no_gradient", "of the loss, to weigh the outputs beside it", 0.5)
        elif of_others and math.isfinite(of_loss):
            self._weight = of_loss / of_others

    def _weighed(self, values):
        if values.numel() == 1:
            return values.sum()
        values = spread(values, MOST)
        wide = values if values.element_size() > 2 else values.float()
        wide = self._torch.where((wide > MASKED) & wide.isfinite(), wide, 0.0)
        places = self._torch.arange(wide.numel(), device=wide.device) % LEVELS
        bent = wide / (1 + (wide / BEND).square()).sqrt()
        return (wide * (bent + (places.to(wide.dtype) - (LEVELS - 1) / 2) / LEVELS)).mean()


def tensors_of(torch, output, *, floating=True):
    """A model's outputs, in containers or in an object of its own; all, or ``floating`` ones."""
    structures = (torch.Tensor, dict, list, tuple)
    held = output if isinstance(output, structures) else getattr(output, "__dict__", None)
    tensors = (one for one in leaves(held) if isinstance(one, torch.Tensor))
    return [one for one in tensors if one.is_floating_point() or not floating]


def loss_in(output):
    """The loss among a model's outputs, None when there is no single one."""
    if hasattr(output, "loss"):
        return output.loss
    if isinstance(output, dict):
        return output.get("loss")
    parts = output if isinstance(output, (tuple, list)) else [output]
    scalars = [part for part in parts if hasattr(part, "dim") and part.dim() == 0]
    return scalars[0] if len(scalars) == 1 else None
