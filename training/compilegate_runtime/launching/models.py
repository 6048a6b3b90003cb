"""Finds the models that a script trains, compiles them, and notes what they are fed."""

import contextlib

from compilegate_runtime.initial_weights import InitialWeights

IMMEDIATE = "_compiled_call_impl"  # what nn.Module calls instead of itself, since PyTorch 2.2


class Models:
    """Watches calls of modules until the first optimizer step; those that train are the models.

    ``fed(samples, tokens, model)`` is called at every training call of a model, before it runs.
    """

    def __init__(self, torch, compiler, fed=None):
        self._torch, self._compiler, self.fed = torch, compiler, fed
        self.types = set()  # of numbers, in which the models compute and are kept
        self._original = None
        self.found = []
        self.initial_loss = None
        self.initial_loss_known = False
        self.initial_weights = InitialWeights()

    def watch(self):
        """Begin to watch."""
        module = self._torch.nn.Module
        self._original = module.__call__
        module.__call__ = self._caller()

    def stop_watching(self):
        """Every model is known: calls of other modules cost nothing any more."""
        if self._original is not None:
            self._torch.nn.Module.__call__ = self._original
            self._original = None

    @contextlib.contextmanager
    def unwatched(self):
        """Torch as it is, for the moment: what torch.compile makes keeps the call it finds."""
        if self._original is None:
            yield
            return
        module = self._torch.nn.Module
        watched, module.__call__ = module.__call__, self._original
        try:
            yield
        finally:
            module.__call__ = watched

    def _caller(self):
        models = self

        def call(module, *args, **kwargs):
            original = models._original
            # Inside of a call nothing is watched: only the outermost module is a model, and the
            # compiler sees torch as it is.
            models._torch.nn.Module.__call__ = original
            try:
                if models._trains(module):
                    models._adopt(module, args, kwargs)
                return original(module, *args, **kwargs)
            finally:
                if models._original is not None:
                    models._torch.nn.Module.__call__ = models._caller()

        return call

    def _trains(self, module):
        return (
            module.training
            and self._torch.is_grad_enabled()
            and not self._is_known(module)
            and any(parameter.requires_grad for parameter in module.parameters())
        )

    def _is_known(self, module):
        """Whether it is a model or a part of one, which activation checkpointing calls again."""
        return any(module is part for known in self.found for part in known.modules())

    def _adopt(self, module, args, kwargs):
        if not self.found:
            self._measure_initial_loss(module, args, kwargs)
        elif self.initial_loss is None and self._has_dropout(module):
            self.initial_loss_known = False
        self.found.append(module)
        self.initial_weights.add(module)
        self.types |= {str(p.dtype).rpartition(".")[2] for p in module.parameters()}
        self.types |= self._cast_to()
        call = self._compiled(module)
        # Not through setattr, which a module of torch.compile hands on to what it wraps.
        if hasattr(type(module), IMMEDIATE):
            module.__dict__[IMMEDIATE] = self._noting(module, call)
        else:
            module.__dict__["forward"] = self._noting(module, call)

    def _cast_to(self):
        """The type of number that autocast, if it is on here, computes in."""
        torch = self._torch
        kinds = (
            (torch.is_autocast_enabled, torch.get_autocast_gpu_dtype),
            (torch.is_autocast_cpu_enabled, torch.get_autocast_cpu_dtype),
        )
        return {str(of()).rpartition(".")[2] for enabled, of in kinds if enabled()}

    def _compiled(self, module):
        """What to call instead of the module, compiled unless it already is."""
        old = not hasattr(type(module), IMMEDIATE)
        plain = module.forward if old else module._call_impl
        ready = None if old else getattr(module, IMMEDIATE)
        if ready is not None:  # the script called module.compile()
            return ready
        if not self._compiler.compiles_modules or is_compiled(module):
            return plain
        if self._compiler.compiles_regions:
            self._compiler.apply(module)
            return plain
        if isinstance(module, self._torch.nn.parallel.DistributedDataParallel):
            # Its own code is closed to TorchDynamo, which finds the buckets from inside of it.
            inner = module.module
            inner.__dict__["forward" if old else IMMEDIATE] = self._compiled(inner)
            return plain
        alone = _function_of_its_own(plain, module, len(self.found))
        return self._compiler.compiled(alone, module)

    def _noting(self, module, call):
        number = len(self.found)

        def noting(*args, **kwargs):
            if module.training and self._torch.is_grad_enabled():
                self.fed(*size_of(args, kwargs), number)
            return call(*args, **kwargs)

        return noting

    def _measure_initial_loss(self, module, args, kwargs):
        """The first batch's loss before any training, without dropout, which the arms must share.

        Eager and compiled code draw different random numbers for dropout, so the first training
        loss of two arms differs where a model has any.
        """
        inner = getattr(module, "_orig_mod", module)
        inner = getattr(inner, "module", inner)  # not through DDP, which counts its calls
        self.initial_loss_known = not self._has_dropout(inner)
        with contextlib.suppress(Exception), _as_it_was(self._torch, inner):
            inner.eval()
            with self._torch.no_grad():
                loss = loss_in(inner(*args, **kwargs))
            if loss is not None:
                self.initial_loss, self.initial_loss_known = float(loss), True

    def _has_dropout(self, module):
        kind = self._torch.nn.modules.dropout._DropoutNd
        return any(isinstance(child, kind) and child.p > 0 for child in module.modules())


@contextlib.contextmanager
def _as_it_was(torch, module):
    """Leave modes and random numbers as they are found."""
    modes = [(child, child.training) for child in module.modules()]
    devices = list(range(torch.cuda.device_count())) if torch.cuda.is_initialized() else []
    try:
        with torch.random.fork_rng(devices=devices):
            yield
    finally:
        for child, training in modes:
            child.training = training


def _function_of_its_own(call, module, number):
    """A function for one model alone, whose compilations nobody takes for another's.

    torch.compile leaves the bound method of a module of torch's own, such as nn.Sequential,
    uncompiled without a word (seen in PyTorch 2.13), so it is given a function instead.
    """

    def forward(*args, **kwargs):
        return call(*args, **kwargs)

    forward.__code__ = forward.__code__.replace(co_name=f"{type(module).__name__}_{number}")
    return forward


def is_compiled(module):
    """Whether torch.compile made this module or one inside of it."""
    return any(hasattr(child, "_orig_mod") for child in module.modules())


def loss_in(output):
    """The loss among a model's outputs, None when there is no single one."""
    if hasattr(output, "loss"):
        return output.loss
    if isinstance(output, dict):
        return output.get("loss")
    parts = output if isinstance(output, (tuple, list)) else [output]
    scalars = [part for part in parts if hasattr(part, "dim") and part.dim() == 0]
    return scalars[0] if len(scalars) == 1 else None


def size_of(args, kwargs):
    """Samples and non-padding tokens of a model's inputs; tokens may be a tensor, or None."""
    tensors = [value for value in _flat([*args, kwargs]) if getattr(value, "ndim", 0) > 0]
    if not tensors:
        return None, None
    named = {**kwargs, **(args[0] if args and isinstance(args[0], dict) else {})}
    mask, words = named.get("attention_mask"), named.get("input_ids", tensors[0])
    samples = int(words.shape[0]) if getattr(words, "ndim", 0) else int(tensors[0].shape[0])
    if getattr(mask, "ndim", 0) == 2:
        return samples, mask.sum()
    whole = not words.is_floating_point() and not words.is_complex() and words.ndim == 2
    return samples, words.numel() if whole else None


def _flat(values):
    for value in values:
        if isinstance(value, dict):
            yield from _flat(value.values())
        elif isinstance(value, (list, tuple)):
            yield from _flat(value)
        else:
            yield value
