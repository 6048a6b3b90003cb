"""What modules hold beside weights: plain containers, tensors and generators, put back in place.

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
        self._torch, self._containers, self._tensors, self._generators = torch, [], [], []
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
        for generator, state in self._generators:
            generator.set_state(state)

    def _put_back(self, tensor, value):
        with writing(self._torch, tensor):
            if tensor.shape != value.shape:
                tensor.resize_(value.shape)
            tensor.copy_(value)

    def _keep(self, values):
        tensor, generator = self._torch.Tensor, self._torch.Generator
        for value in values:
            if id(value) in self._seen or type(value) not in (*PLAIN, tuple, tensor, generator):
                continue
            self._seen.add(id(value))
            if type(value) is generator:
                self._generators.append((value, value.get_state()))
                continue
            if type(value) is tensor:
                if value.layout is self._torch.strided and not value.is_meta:
                    own = unexpanded(value)
                    self._tensors.append((own, own.detach().clone()))
                continue
            if type(value) is not tuple:
                self._containers.append((value, value.copy()))
            self._keep(value.values() if isinstance(value, dict) else value)


def is_equal(torch, now, start):
    """Whether both are the same to the bit, what is not a number included; False of sparse ones."""
    if now.layout is not torch.strided:
        return False
    return now.shape == start.shape and torch.equal(
        *(_bits(torch, one) for one in (now, start.to(now.dtype)))
    )


def writing(torch, tensor):
    """A context in which a tensor can be written to: one of inference in inference only."""
    return torch.inference_mode() if tensor.is_inference() else torch.no_grad()


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
