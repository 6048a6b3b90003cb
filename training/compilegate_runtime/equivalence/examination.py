"""One examination: every part in every arithmetic, each for itself."""

import contextlib

from compilegate_runtime.equivalence import batches as of_batches
from compilegate_runtime.equivalence import reduction, surroundings
from compilegate_runtime.equivalence.arithmetic import OWN, SINGLE, Arithmetic, is_one
from compilegate_runtime.equivalence.parts import PARTS
from compilegate_runtime.equivalence.parts import reduction as reduction_part
from compilegate_runtime.equivalence.sides import Case
from compilegate_runtime.equivalence.unseen import Unseen, reason_of
from compilegate_runtime.equivalence.weights import Weights


def examined(torch, subject, clock, document, say):
    """Fill the document; what fails leaves its own part unseen."""
    document.belongs_to(torch, subject)
    try:
        _require(torch, subject)
        case = Case(torch, subject, Weights(torch, subject.model), clock)
    except Exception as error:  # noqa: BLE001 - the other processes wait for this one
        document.leave_out("gradients", None, reason_of(error))
        _together(torch, subject, None, document)
        return
    with surroundings.untouched(torch):
        try:
            truths, names = {}, (SINGLE,) if is_one(torch, subject) else (OWN, SINGLE)
            made = [Arithmetic(case, name, truths) for name in names]
            for arithmetic in made:
                with _around(torch, arithmetic):
                    for part in PARTS:
                        say(f"{part.__name__} ({arithmetic.name})")
                        _fill(part, subject, arithmetic, document)
                arithmetic.compiled_anew.forget()
            _together(torch, subject, made[0], document)
        finally:
            case.weights.restore()


def _fill(part, subject, arithmetic, document):
    try:
        for figures in part(subject, arithmetic):
            document.add(figures)
    except Exception as error:  # noqa: BLE001 - the other parts go on
        document.leave_out(part.__name__, arithmetic.name, reason_of(error))


def _around(torch, arithmetic):
    return contextlib.nullcontext() if arithmetic.name == OWN else surroundings.precise(torch)


def _together(torch, subject, arithmetic, document):
    """What processes make together, where all of them could do their own part."""
    if subject.shared is None:
        return
    if reduction.agreed(torch, subject, arithmetic is not None and document.has("gradients")):
        with _around(torch, arithmetic):
            _fill(reduction_part, subject, arithmetic, document)
    else:
        reason = Unseen("failed", "a process could not compare its own gradients")
        document.leave_out("reduction", None, reason)


def _require(torch, subject):
    """Raise Unseen where nothing can be compared."""
    if not hasattr(torch.compiler, "set_stance"):
        raise Unseen("old_torch", f"PyTorch {torch.__version__}")
    weights = list(subject.model.parameters())
    if not any(one.requires_grad for one in weights):
        raise Unseen("no_parameters", "the model has no weight that trains")
    if any(one.layout is not torch.strided for one in weights):
        raise Unseen("sparse_weights")
    reduction.require_whole(subject)
    batches = [*subject.batches, subject.last_batch, *subject.recompiled, *subject.evaluation]
    if any(of_batches.is_consumed(batch) for batch in batches):
        raise Unseen("batch_consumed", "a batch is an iterator")
