"""What the equivalence check examines of a script: its one model, called as the script calls it."""

from compilegate_runtime import equivalence
from compilegate_runtime.equivalence.batches import mapped
from compilegate_runtime.equivalence.unseen import Unseen
from compilegate_runtime.kept import shapes_of


def subject_of(torch, models, precision, regions, loader=None):
    """The Subject of the ``models`` that were watched, when the script is over.

    ``regions`` says whether blocks alone are compiled, and evaluation with them is not; ``loader``
    is that of the training data, None where there is none. Raises Unseen for several models.
    """
    kept = models.kept
    kept.done()
    models.fed = lambda *_: None  # the run is over
    if len(models.models) != 1:
        raise Unseen("several_models", f"{len(models.models)} models train")
    (called,) = models.models
    for part, training in models.modes:
        part.training = training
    model, compiled, shared = bare(torch, called)
    batches, further = kept.batches(), kept.further()
    last = smaller(torch, batches[0], loader) if batches else None
    if last is not None:
        further = [one for one in further if shapes_of(one) != shapes_of(last)]
    return equivalence.Subject(
        model,
        lambda batch: _output(called, batch),
        batches,
        precision=precision,
        autocast=models.autocast,
        compiled=compiled,
        call_with=_output,
        compile_anew=models.anew,
        last_batch=last,
        recompiled=further,
        missed=kept.missed,
        # The evaluation's graphs depend on shapes alone: training batches stand for unseen ones.
        evaluation=None if regions else kept.held_out() or batches[:2],
        evaluate=_output,
        accumulation=models.calls,
        shared=shared,
        left_out=Unseen("input_gradients", "of a batch", 0.5) if kept.differentiated else None,
    )


def bare(torch, called):
    """(the module itself, what computes it, the wrapper that reduces its gradients or None)."""
    shared = called if isinstance(called, torch.nn.parallel.DistributedDataParallel) else None
    compiled = called if shared is None else called.module
    return compiled._modules.get("_orig_mod", compiled), compiled, shared


def _output(function, batch):
    return function(*batch[0], **batch[1])


def smaller(torch, batch, loader):
    """A batch of as many samples as the loader's last one; None where it is whole or not known.

    Only its shape matters to a compiler: it is cut from the batch given.
    """
    of = getattr(loader, "batch_sampler", None)
    size, samples = getattr(of, "batch_size", None), getattr(of, "sampler", None)
    if not size or getattr(of, "drop_last", True) or not hasattr(samples, "__len__"):
        return None
    rows = len(samples) % size

    def cut(tensor):
        return tensor[:rows] if tensor.dim() and len(tensor) == size else tensor

    return mapped(torch, cut, batch) if rows else None
