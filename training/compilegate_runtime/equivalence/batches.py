"""Batches as nested tuples, lists and dicts of tensors: kept, copied, turned around."""

FEW = 2  # samples, where double precision is slow


def kept(torch, values):
    """A batch as it is now, for later: what the training does to its own is not seen in it."""
    return mapped(torch, lambda tensor: tensor.detach().clone(), values)


def mapped(torch, change, values):
    """The same structure with every tensor changed; what is no tensor stays."""
    if isinstance(values, torch.Tensor):
        return change(values)
    if isinstance(values, dict):
        changed = {key: mapped(torch, change, value) for key, value in values.items()}
        return changed if type(values) is dict else _alike(values, changed)
    if isinstance(values, (list, tuple)):
        parts = [mapped(torch, change, value) for value in values]
        named = hasattr(values, "_fields")
        return type(values)(*parts) if named else type(values)(parts)
    return values


def _alike(values, changed):
    """A dict of another class, such as the outputs of a tokenizer, with other values."""
    try:
        return type(values)(changed)
    except TypeError:
        return changed


def leaves(values):
    """Everything in a batch that is no container, in order."""
    if isinstance(values, dict):
        values = list(values.values())
    if isinstance(values, (list, tuple)):
        for value in values:
            yield from leaves(value)
    else:
        yield values


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
    sizes = {one.shape[0] for one in tensors}
    return len(sizes) == 1 and sizes != {1}
