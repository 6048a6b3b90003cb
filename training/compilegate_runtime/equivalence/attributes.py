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
        for tensor, value in self._tensors:
            if not is_equal(self._torch, tensor, value):
                self._put_back(tensor, value)

    def _put_back(self, tensor, value):
        # No mode but inference itself may write to a tensor that was made in it.
        with self._torch.no_grad(), self._torch.inference_mode(tensor.is_inference()):
            if tensor.shape != value.shape:
                tensor.resize_(value.shape)
            tensor.copy_(value)

    def _keep(self, values):
        tensor = self._torch.Tensor
        for value in values:
            if id(value) in self._seen or type(value) not in (*PLAIN, tuple, tensor):
                continue
            self._seen.add(id(value))
            if type(value) is tensor:
                if value.layout is self._torch.strided and not value.is_meta:
                    own = unexpanded(value)
                    self._tensors.append((own, own.detach().clone()))
                continue
            if type(value) is not tuple:
                self._containers.append((value, value.copy()))
            self._keep(value.values() if isinstance(value, dict) else value)


def is_equal(torch, now, start):
    """Whether both are the same to the bit, what is not a number included."""
    return now.shape == start.shape and torch.equal(
        *(_bits(torch, one) for one in (now, start.to(now.dtype)))
    )


def unexpanded(tensor):
    """The values of a tensor once each: an expanded one cannot be written to."""
    for place, (size, stride) in enumerate(zip(tensor.shape, tensor.stride())):  # noqa: B905 - Python 3.8
        if size > 1 and stride == 0:
            tensor = tensor.narrow(place, 0, 1)
    return tensor


def _bits(torch, tensor):
    plain = tensor.detach().resolve_conj().resolve_neg()
    return plain.clone(memory_format=torch.contiguous_format).reshape(-1).view(torch.uint8)


def _identities(container):
    inner = container.values() if isinstance(container, dict) else ()
    return [*map(id, container), *map(id, inner)]
