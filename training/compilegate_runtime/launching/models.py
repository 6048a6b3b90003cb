"""Finds the models that a script trains, compiles them, and counts what they are fed."""

import contextlib
import inspect
import sys
from pathlib import Path

from compilegate_runtime.equivalence.batches import leaves
from compilegate_runtime.equivalence.outputs import loss_in
from compilegate_runtime.errors import NotAppliedError
from compilegate_runtime.fingerprint import InitialWeights
from compilegate_runtime.kept import Kept
from compilegate_runtime.progress import write_line

LEFT_OUT = "compilegate script_compiles=left_out"
IMMEDIATE = "_compiled_call_impl"  # what nn.Module calls instead of itself, since PyTorch 2.2


class Models:
    """Watches calls of modules until the first optimizer step; those that train are the models.

    ``fed(samples, tokens, model)`` is called at every training call of a model, before it runs.
    """

    def __init__(self, torch, compiler, fed=None):
        self._torch, self._compiler, self.fed = torch, compiler, fed
        self.types = set()  # of numbers, in which the models compute and are kept
        self._original = None
        self.models = []
        self.initial_loss = None
        self.initial_loss_known = False
        self.initial_weights = InitialWeights()
        # Of the first model, for the equivalence check.
        self.kept, self.autocast, self.modes = Kept(torch, compiler), contextlib.nullcontext, []
        self.calls = 0  # that make up a step, once the first one is over

    def watch(self):
        """Begin to watch."""
        module = self._torch.nn.Module
        self._original = module.__call__
        module.__call__ = self._caller()

    def stop_watching(self):
        """All models are known: calls of other modules cost nothing from here on."""
        if self._original is not None:
            self._torch.nn.Module.__call__ = self._original
            self._original = None

    @contextlib.contextmanager
    def unwatched(self):
        """Restore torch's own call while torch.compile makes a module, which keeps that call."""
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
        def call(module, *args, **kwargs):
            original = self._original
            # Inside of a call nothing is watched: only the outermost module is a model, and the
            # compiler sees torch as it is.
            self._torch.nn.Module.__call__ = original
            try:
                if self._trains(module) and not _describes(args, kwargs):
                    self._adopt(module, args, kwargs)
                return original(module, *args, **kwargs)
            finally:
                if self._original is not None:
                    self._torch.nn.Module.__call__ = self._caller()

        return call

    def _trains(self, module):
        return (
            module.training
            and self._torch.is_grad_enabled()
            and not self._is_watched(module)
            and any(parameter.requires_grad for parameter in module.parameters())
        )

    def _is_watched(self, module):
        """Whether it is a model or a part of one, which activation checkpointing calls again."""
        return any(module is part for model in self.models for part in model.modules())

    def _adopt(self, module, args, kwargs):
        if not self.models:
            self._measure_initial_loss(module, args, kwargs)
        elif self.initial_loss is None and self._has_dropout(module):
            self.initial_loss_known = False
        self.models.append(module)
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
        alone = _function_of_its_own(plain, module, len(self.models))
        return self._compiler.compiled(alone, module)

    def _noting(self, module, call):
        number = len(self.models)

        def noting(*args, **kwargs):
            trains = module.training and self._torch.is_grad_enabled()
            if trains:
                self.fed(*size_of(args, kwargs), number)
            if number == 1 and self.kept.asked:
                self._keep(trains, [list(args), kwargs])
            return call(*args, **kwargs)

        return noting

    def _keep(self, trains, batch):
        if not trains:
            self.kept.evaluating(batch)
            return
        if not self.modes:
            self.modes = [(part, part.training) for part in self.models[0].modules()]
            self.autocast = autocast_as_here(self._torch)
        self.calls += self._original is not None  # until the first step is over
        self.kept.training(batch)

    def anew(self, module):
        """The module compiled once more, as it was compiled for the run."""
        if self._compiler.compiles_regions:
            return self._compiler.anew(module)
        return self._compiler.anew(_function_of_its_own(module._call_impl, module, 0))

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
    """Restore modes and random numbers afterwards."""
    modes = [(child, child.training) for child in module.modules()]
    devices = list(range(torch.cuda.device_count())) if torch.cuda.is_initialized() else []
    try:
        with torch.random.fork_rng(devices=devices):
            yield
    finally:
        for child, training in modes:
            child.training = training


def _function_of_its_own(call, module, number):
    """A function for one model alone, whose compilations are not confused with another's.

    torch.compile leaves the bound method of a module of torch's own, such as nn.Sequential,
    uncompiled without a warning (seen in PyTorch 2.13), so it gets a function instead.
    """

    def forward(*args, **kwargs):
        return call(*args, **kwargs)

    forward.__code__ = forward.__code__.replace(co_name=f"{type(module).__name__}_{number}")
    return forward


def is_compiled(module):
    """Whether torch.compile made this module or one inside of it."""
    return any(hasattr(child, "_orig_mod") for child in module.modules())


def autocast_as_here(torch):
    """Makes contexts that compute in the types that this place computes in."""
    kinds = (
        ("cuda", torch.is_autocast_enabled(), torch.get_autocast_gpu_dtype()),
        ("cpu", torch.is_autocast_cpu_enabled(), torch.get_autocast_cpu_dtype()),
    )
    on = [(device, dtype) for device, enabled, dtype in kinds if enabled]
    if not on:
        return contextlib.nullcontext
    device, dtype = on[0]
    return lambda: torch.autocast(device, dtype=dtype)


def _describes(args, kwargs):
    """Whether a call builds a graph, as Keras does: the first size of a placeholder is None."""
    shapes = [getattr(value, "shape", None) for value in (*args, *kwargs.values())]
    return any(isinstance(shape, tuple) and None in shape for shape in shapes)


def size_of(args, kwargs):
    """Samples and non-padding tokens of a model's inputs; tokens may be a tensor, or None."""
    tensors = [value for value in leaves([*args, kwargs]) if getattr(value, "ndim", 0) > 0]
    if not tensors:
        return None, None
    named = {**kwargs, **(args[0] if args and isinstance(args[0], dict) else {})}
    mask, words = named.get("attention_mask"), named.get("input_ids", tensors[0])
    samples = int(words.shape[0]) if getattr(words, "ndim", 0) else int(tensors[0].shape[0])
    if getattr(mask, "ndim", 0) == 2:
        return samples, mask.sum()
    if getattr(words, "ndim", 0) != 2 or not hasattr(words, "numel"):
        return samples, None  # as for arrays of NumPy
    whole = not words.is_floating_point() and not words.is_complex()
    return samples, words.numel() if whole else None


def leave_compiling_to_the_arm(torch, compiler, models, source):
    """Make the arm alone decide how torch.compile compiles a model.

    Without a compiler the model stays as it is; with torch.compile it is compiled the arm's way.
    The script's own functions, whose code lies in the folder ``source``, and methods of models
    stay uncompiled in both arms: the models that they call are compiled. Functions that libraries
    compile for themselves belong to both arms and stay as they are.
    """
    original = torch.compile

    def compile_model(model=None, **kwargs):
        if model is None:
            return lambda decorated: compile_model(decorated, **kwargs)
        of_a_model = isinstance(model, torch.nn.Module)
        if not of_a_model and not _is_the_scripts(torch, model, source):
            return original(model, **kwargs)
        if not of_a_model or not compiler.compiles_modules:
            write_line(LEFT_OUT)
            return model
        with models.unwatched():
            return compiler.compiled(model)

    torch.compile = compile_model
    if hasattr(torch.nn.Module, "compile"):

        def compile_in_place(self, *_args, **_kwargs):
            if not compiler.compiles_modules:
                write_line(LEFT_OUT)
                return
            alone = _function_of_its_own(self._call_impl, self, len(models.models))
            self.__dict__[IMMEDIATE] = compiler.compiled(alone, self)

        torch.nn.Module.compile = compile_in_place


def _is_the_scripts(torch, function, source):
    """Whether a function is the script's own, or a model's method."""
    code = getattr(inspect.unwrap(function), "__code__", None)
    own = code is not None and source in Path(code.co_filename).resolve().parents
    return own or isinstance(getattr(function, "__self__", None), torch.nn.Module)


def check_precision(settings, seen):
    """Raise NotAppliedError unless the script trains in the precision that the arm asks for.

    ``seen`` are the types of number in which the model was called and its weights are kept.
    """
    dtype = {"fp16": "float16", "bf16": "bfloat16"}.get(settings.precision)
    state = getattr(sys.modules.get("accelerate.state"), "AcceleratorState", None)
    mixed = getattr(state, "_shared_state", {}).get("_mixed_precision") if state else None
    if settings.precision == "fp8":
        done = mixed == "fp8"
    else:
        done = dtype is None or dtype in seen or mixed == settings.precision
    if not done:
        raise NotAppliedError(
            f"precision {settings.precision} was requested but not applied: the script trains in "
            f"{', '.join(sorted(seen))}{_precision_fix(settings)}"
        )


def _precision_fix(settings):
    name = settings.argument_names.get("precision")
    if name:
        return f" though its {name} is set, as many do on a processor: write precision: fp32 there"
    return '. Name the script\'s own argument for it: argument_names: \'{"precision": "dtype"}\''
