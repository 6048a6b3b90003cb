"""One examination: every part in every arithmetic, each for itself."""

import contextlib

from compilegate_runtime.equivalence import batches as of_batches
from compilegate_runtime.equivalence import surroundings
from compilegate_runtime.equivalence.arithmetic import OWN, SINGLE, Arithmetic, is_one
from compilegate_runtime.equivalence.parts import PARTS
from compilegate_runtime.equivalence.sides import Case
from compilegate_runtime.equivalence.unseen import Unseen, reason_of
from compilegate_runtime.equivalence.weights import Weights


def examined(torch, subject, clock, document, say):
    """Fill the document; what fails leaves its own part unseen."""
    _require(torch, subject)
    document.belongs_to(torch, subject)
    with surroundings.untouched(torch):
        weights, truths = Weights(torch, subject.model), {}
        try:
            for name in (SINGLE,) if is_one(torch, subject) else (OWN, SINGLE):
                arithmetic = Arithmetic(Case(torch, subject, weights, clock), name, truths)
                around = surroundings.precise(torch) if name == SINGLE else contextlib.nullcontext()
                with around:
                    _parts(subject, arithmetic, clock, document, say)
                arithmetic.compiled_anew.forget()
        finally:
            weights.restore()


def _parts(subject, arithmetic, clock, document, say):
    for part in PARTS:
        say(f"{part.__name__} ({arithmetic.name})")
        try:
            clock.check()
            for figures in part(subject, arithmetic):
                document.add(figures)
        except Exception as error:  # noqa: BLE001 - the other parts go on
            document.leave_out(part.__name__, arithmetic.name, reason_of(error))


def _require(torch, subject):
    """Raise Unseen where nothing can be compared."""
    if not hasattr(torch.compiler, "set_stance"):
        raise Unseen("old_torch", f"PyTorch {torch.__version__}")
    weights = [one for one in subject.model.parameters() if one.requires_grad]
    if not weights:
        raise Unseen("no_parameters", "the model has no weight that trains")
    if any(one.layout is not torch.strided for one in subject.model.parameters()):
        raise Unseen("sparse_weights")
    if any(of_batches.is_consumed(batch) for batch in subject.batches):
        raise Unseen("batch_consumed", "a batch is an iterator")
