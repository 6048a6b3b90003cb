"""What modules hold beside weights: plain containers and tensors, put back where they lie.

A forward pass may count, cool down or remember in them. What lies in objects of other classes, or
outside of the model, is not put back.
"""

from collections import defaultdict, deque

# Not OrderedDict: modules hold their hooks in it, which a check adds and removes itself.
PLAIN = (dict, defaultdict, list, deque, set)


class Contents:
    """What can be reached from some values through plain containers, as it is now."""

    def __init__(self, torch, values, weights):
        """``weights`` are tensors that somebody else puts back."""
        self._torch, self._containers, self._tensors = torch, [], []
        self._seen = {id(one) for one in weights}
        self._keep(values)

    def restore(self):
        """Put back what has changed, and touch nothing else."""
        for container, content in self._containers:
            if _identities(container) != _identities(content):
                container.clear()
                put = container.extend if isinstance(content, (list, deque)) else container.update
                put(content)
        with self._torch.no_grad():
            for tensor, value in self._tensors:
                if not is_equal(self._torch, tensor, value):
                    tensor.copy_(value)

    def _keep(self, values):
        tensor = self._torch.Tensor
        for value in values:
            if id(value) in self._seen or type(value) not in (*PLAIN, tuple, tensor):
                continue
            self._seen.add(id(value))
            if type(value) is tensor:
                if value.layout is self._torch.strided and not value.is_meta:
                    self._tensors.append((value, value.detach().clone()))
                continue
            if type(value) is not tuple:
                self._containers.append((value, value.copy()))
            self._keep(value.values() if isinstance(value, dict) else value)


def is_equal(torch, now, start):
    """Whether both are the same to the bit, what is not a number included."""
    bits = (one.detach().reshape(-1).view(torch.uint8) for one in (now, start.to(now.dtype)))
    return now.shape == start.shape and torch.equal(*bits)


def _identities(container):
    inner = container.values() if isinstance(container, dict) else ()
    return [*map(id, container), *map(id, inner)]
