"""Eager code in double (or single) precision, on the random numbers that eager code drew.

A model that casts to a lower type by itself (``logits.float()``) is not followed there. An operator
that draws random numbers gives those that the recorded run drew: in another type of number the
generator would give others.
"""

import contextlib

LOW = ("float16", "bfloat16", "float32")
# Operators of random numbers alone, whose result depends on nothing else that is computed.
GENERATORS = ("rand", "bernoulli", "uniform", "normal", "exponential", "geometric", "cauchy",
              "log_normal", "multinomial", "poisson")  # fmt: skip


def modes(torch, clock, exact):
    """(a context that records random numbers on a list, one that computes in ``exact`` from it)."""
    from torch.utils._python_dispatch import TorchDispatchMode  # noqa: PLC0415
    from torch.utils._pytree import tree_map  # noqa: PLC0415

    from compilegate_runtime.equivalence.unseen import Unseen  # noqa: PLC0415

    wide = {getattr(torch, low): exact for low in LOW}
    if exact == torch.float64:
        wide[torch.complex64] = torch.complex128

    def draws(func, args, kwargs):
        return torch.Tag.nondeterministic_seeded in func.tags and not _drops_nothing(
            func._schema, args, kwargs
        )

    class Recording(TorchDispatchMode):
        def __init__(self, tape):
            super().__init__()
            self._tape = tape

        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            made = func(*args, **(kwargs or {}))
            if draws(func, args, kwargs or {}):
                self._tape.append(tree_map(lambda one: _copy(torch, one), made))
            return made

    class Exact(TorchDispatchMode):
        def __init__(self, tape):
            super().__init__()
            self._left = iter(tape)

        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            clock.check()
            args, kwargs = tree_map(self._widened, (args, kwargs or {}))
            if _mixes(torch, args):
                args = tree_map(_caster(torch, wide, func._schema, args[0]), args)
            drawn = draws(func, args, kwargs)
            return self._replayed(func, args, kwargs) if drawn else func(*args, **kwargs)

        @staticmethod
        def _widened(value):
            return wide.get(value, value) if isinstance(value, torch.dtype) else value

        def _replayed(self, func, args, kwargs):
            drawn = next(self._left, None)
            name = func._schema.name.rpartition("::")[2]
            if drawn is None:
                raise Unseen("random_numbers", f"{name} was not drawn by eager code")
            if name == "native_dropout":
                mask = drawn[1]
                share = 1 - args[1]
                return args[0] * mask * (1 / share if share else 0.0), mask
            if not any(part in name for part in GENERATORS):
                raise Unseen("random_numbers", f"{name} draws inside of what it computes")
            made = func(*args, **kwargs)
            made.copy_(drawn)
            return made

    return Recording, Exact


@contextlib.contextmanager
def computing(torch, mode, exact):
    """In a mode, where numbers without a type are of ``exact`` too."""
    before = torch.get_default_dtype()
    torch.set_default_dtype(exact)
    try:
        with mode:
            yield
    finally:
        torch.set_default_dtype(before)


def _drops_nothing(schema, args, kwargs):
    """Whether an operator that can drop values, such as fused attention, is to drop none."""
    names = [one.name for one in schema.arguments]
    if "dropout_p" not in names:
        return False
    place = names.index("dropout_p")
    return not (args[place] if place < len(args) else kwargs.get("dropout_p", 0.0))


def _copy(torch, value):
    return value.detach().clone() if isinstance(value, torch.Tensor) else value


def _mixes(torch, args):
    tensors = _tensors(torch, args)
    kinds = {one.dtype for one in tensors if one.is_floating_point() or one.is_complex()}
    return len(kinds) > 1


def _tensors(torch, values):
    for value in values:
        if isinstance(value, torch.Tensor):
            yield value
        elif isinstance(value, (list, tuple)):
            yield from _tensors(torch, value)


def _caster(torch, wide, schema, first):
    """What brings numbers to one type: that of the ``first`` where it is written to."""
    if not schema.is_mutable:
        return lambda one: _in_wide(torch, wide, one)
    written = schema.arguments[0].alias_info
    if written is not None and written.is_write and isinstance(first, torch.Tensor):
        return lambda one: _like(torch, first, one)
    return lambda one: one


def _in_wide(torch, wide, value):
    if not isinstance(value, torch.Tensor):
        return value
    return value.to(wide.get(value.dtype, value.dtype))


def _like(torch, target, value):
    """A tensor in the type of what it is written to."""
    if not isinstance(value, torch.Tensor):
        return value
    real = target.is_floating_point() and value.is_floating_point()
    return value.to(target.dtype) if real or (target.is_complex() and value.is_complex()) else value
