"""What a check is given: a model, how it is called and compiled, and what it was fed."""

import contextlib
import copy

from compilegate_runtime.equivalence.batches import cut


class Subject:
    """One model of a job, as the job has it at the moment of the check.

    ``model`` is the module whose weights train, without wrappers for several processes.
    ``call(batch)`` gives what the model returns for a kept batch, by the code that the run
    compiled: a loss, or what losses are made of (outputs.py). ``call_with(callable, batch)`` does
    the same with something else that is called like the model; ``compile_anew(model)`` compiles the
    model the arm's way and returns such a callable (in place or not); both are called without
    autocast. ``autocast()`` is the context in which ``call`` is called. ``compiled`` is what the
    run calls instead of the model, the model itself where it was compiled in place. ``batches`` are
    what ``call`` takes, copied before they were used (``kept``): at least STEPS, of the size that
    most steps have.

    Optional, None or empty where it does not apply: ``last_batch``, the smaller one at the end of
    an epoch; ``recompiled``, batches for which the run compiled further graphs, ``missed`` how many
    others it compiled; ``evaluation``, held-out batches, with ``evaluate(callable, batch)``, whose
    floating-point tensors (outputs, loss) are compared, for an evaluation that runs compiled;
    ``accumulation``, calls whose gradients make up a step; ``optimizer`` with ``compiled_step()``,
    where its step is compiled; ``shared``, the wrapper that reduces gradients over processes, which
    ``call`` goes through (DDP); ``left_out``, an Unseen of gradients that no weight has.
    """

    def __init__(
        self, model, call, batches, *, precision="fp32", autocast=contextlib.nullcontext,
        compiled=None, call_with=None, compile_anew=None, last_batch=None, recompiled=(), missed=0,
        evaluation=(), evaluate=None, accumulation=1, optimizer=None, compiled_step=None,
        shared=None, left_out=None,
    ):  # fmt: skip
        self.model, self.call, self.batches = model, call, list(batches)
        self.compiled = model if compiled is None else compiled
        self.precision, self.autocast = precision, autocast
        self.is_of_few_bits = precision in ("bf16", "fp16", "tf32")
        self.call_with, self.compile_anew = call_with or called_with, compile_anew
        self.last_batch, self.recompiled, self.missed = last_batch, list(recompiled), missed
        self.evaluation, self.evaluate = list(evaluation or ()), evaluate
        self.accumulation = accumulation
        self.optimizer, self.compiled_step, self.shared = optimizer, compiled_step, shared
        self.left_out = left_out

    def of_few(self, torch):
        """The same with batches of few samples."""
        few = copy.copy(self)
        few.batches = [cut(torch, one) for one in self.batches]
        few.recompiled = [cut(torch, one) for one in self.recompiled]
        if self.last_batch is not None:
            few.last_batch = cut(torch, self.last_batch)
        return few


def called_with(function, batch):
    """Call with the parts of a batch: a dict by name, a list or tuple in order."""
    if isinstance(batch, dict):
        return function(**batch)
    return function(*batch) if isinstance(batch, (list, tuple)) else function(batch)
