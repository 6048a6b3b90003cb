"""Batches of tensors in containers and objects: kept, copied, turned around."""

import copy
import dataclasses
import types

from compilegate_runtime.equivalence.unseen import Unseen

FEW = 2  # samples, where double precision is slow
CODE = (type, types.ModuleType, types.FunctionType, types.MethodType)
# Of tensors, modules and iterators: what has one of these is no object that holds a batch.
OF_ITS_OWN = ("is_complex", "named_parameters", "__next__")


def kept(torch, values):
    """A batch as it is now, for later: what the training does to its own is not seen in it."""
    return mapped(torch, lambda tensor: tensor.detach().clone(), values)


def mapped(torch, change, values):
    """The same structure, in objects of its own, with every tensor changed.

    Numbers, functions, modules and iterators stay. Raises Unseen where an object cannot be copied.
    """
    return _Mapping(torch, change).of(values)


class _Mapping:
    def __init__(self, torch, change):
        self._torch, self._change = torch, change
        self._made = {}  # (an object, its copy) by identity: objects may know each other

    def of(self, values):
        if isinstance(values, self._torch.Tensor):
            return self._change(values)
        if isinstance(values, dict):
            changed = {key: self.of(value) for key, value in values.items()}
            return changed if type(values) is dict else _filled(_copy(values), changed)
        if isinstance(values, (list, tuple)):
            return _alike(values, [self.of(value) for value in values])
        return values if _attributes(values) is None else self._of_object(values)

    def _of_object(self, values):
        if id(values) not in self._made:
            made = _copy(values)
            self._made[id(values)] = values, made
            if made is not values:  # as constants give themselves
                for name, value in _attributes(made).items():
                    # Not by an assignment of its own, which may be forbidden or do more.
                    _put(made, name, self.of(value))
        return self._made[id(values)][1]


def _attributes(values):
    """Attributes by name of an object that may hold tensors; None of everything else."""
    if isinstance(values, CODE) or any(hasattr(type(values), name) for name in OF_ITS_OWN):
        return None
    if hasattr(values, "__dict__"):
        return dict(vars(values))
    if dataclasses.is_dataclass(values):  # with slots
        return {one.name: getattr(values, one.name) for one in dataclasses.fields(values)}
    return None


def _put(made, name, value):
    if hasattr(made, "__dict__"):
        vars(made)[name] = value
    else:
        object.__setattr__(made, name, value)


def _copy(values):
    try:
        return copy.copy(values)
    except Exception as error:
        raise Unseen("batch_not_copied", f"{type(values).__name__}: {error}") from error


def _filled(made, changed):
    """A dict of another class, such as the outputs of a model, with other values."""
    for key, value in changed.items():
        made[key] = value
    return made


def _alike(values, parts):
    """A list or tuple of the same class with other parts."""
    kind = type(values)
    if isinstance(values, list) and kind is not list:
        made = _copy(values)
        made[:] = parts
        return made
    return kind(*parts) if hasattr(values, "_fields") else kind(parts)


def leaves(values):
    """Everything in a batch that holds nothing else, in order."""
    return _leaves(values, {})


def _leaves(values, seen):
    if isinstance(values, dict):
        parts = values.values()
    elif isinstance(values, (list, tuple)):
        parts = values
    elif _attributes(values) is None:
        yield values
        return
    else:
        parts = () if id(values) in seen else _attributes(values).values()
        seen[id(values)] = values
    for value in list(parts):
        yield from _leaves(value, seen)


def is_consumed(batch):
    """Whether reading the batch uses it up, so that no second call sees the same."""
    return any(hasattr(one, "__next__") for one in leaves(batch))


def in_type(torch, batch, dtype):
    """The batch with its floating-point numbers in a type."""
    return mapped(torch, lambda one: one.to(dtype) if one.is_floating_point() else one, batch)


def turned(torch, batch):
    """The batch with its samples in the opposite order; None where it has no common first size."""
    if not _has_samples(torch, batch):
        return None
    return mapped(torch, lambda one: one.flip(0) if one.dim() else one, batch)


def cut(torch, batch):
    """The first samples of a batch; all of it where it has no common first size."""
    if not _has_samples(torch, batch):
        return batch
    return mapped(torch, lambda one: one[:FEW] if one.dim() else one, batch)


def _has_samples(torch, batch):
    tensors = [one for one in leaves(batch) if isinstance(one, torch.Tensor) and one.dim()]
    if any(one.layout is not torch.strided for one in tensors):
        return False  # sparse ones can be neither turned nor cut
    sizes = {one.shape[0] for one in tensors}
    return len(sizes) == 1 and sizes != {1}
