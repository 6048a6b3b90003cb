"""One examination: every part in every arithmetic, each for itself."""

import contextlib

from compilegate_runtime.equivalence import batches as of_batches
from compilegate_runtime.equivalence import conditions, large, reduction
from compilegate_runtime.equivalence.arithmetic import OWN, SINGLE, Arithmetic, is_one
from compilegate_runtime.equivalence.outputs import Outputs
from compilegate_runtime.equivalence.parts import PARTS
from compilegate_runtime.equivalence.sides import Case
from compilegate_runtime.equivalence.unseen import Unseen, reason_of
from compilegate_runtime.equivalence.weights import Weights


def examined(torch, subject, clock, document, say):
    """Fill the document; what fails leaves its own part unseen."""
    document.belongs_to(torch, subject)
    outputs = Outputs(torch)
    try:
        _require(torch, subject)
        case = Case(torch, subject, Weights(torch, subject.model), clock, outputs)
    except Exception as error:  # noqa: BLE001 - the other processes wait for this one
        document.leave_out("gradients", None, reason_of(error))
        _together(torch, Case(torch, subject, None, clock, outputs), None, document)
        return
    with conditions.untouched(torch):
        made = _arithmetics(torch, case)
        try:
            for part in PARTS:
                for arithmetic in made:
                    say(f"{part.__name__} ({arithmetic.name})")
                    with _around(torch, arithmetic):
                        figures = part(arithmetic.subject, arithmetic)
                        _fill(part.__name__, arithmetic.name, document, figures)
            if large.is_large(subject.model):
                say("gradients of blocks")
                with conditions.precise(torch):
                    figures = large.by_blocks(torch, case)
                    _fill("gradients", SINGLE, document, figures)
            for reason in filter(None, (outputs.unseen, subject.left_out)):
                document.leave_out("gradients", None, reason)
            ready = bool(made) and document.has("gradients") and not clock.is_over()
            _together(torch, case, made[0] if ready else None, document)
        finally:
            for arithmetic in made:
                arithmetic.compiled_anew.forget()
            case.weights.restore()


def _arithmetics(torch, case):
    """Those in which the model is compared as a whole, the job's own first.

    Where double precision would take minutes (a large model, a graphics card), precision of fewer
    bits is held against single precision, and single precision is looked at with few samples.
    """
    subject = case.subject
    if large.is_large(subject.model):
        return [Arithmetic(case, OWN, {}, torch.float32)] if subject.is_of_few_bits else []
    slow = conditions.is_slow_in_double(torch, next(subject.model.parameters()).device)
    few, truths = case._replace(subject=subject.of_few(torch)) if slow else case, {}
    single = Arithmetic(few, SINGLE, truths)
    if is_one(torch, subject):
        return [single]
    if slow and subject.is_of_few_bits:
        return [Arithmetic(case, OWN, {}, torch.float32), single]
    return [Arithmetic(few, OWN, truths), single]


def _fill(name, arithmetic, document, figures):
    try:
        for one in figures:
            document.add(one)
    except Exception as error:  # noqa: BLE001 - the other parts go on
        document.leave_out(name, arithmetic, reason_of(error))


def _around(torch, arithmetic):
    return contextlib.nullcontext() if arithmetic.name == OWN else conditions.precise(torch)


def _together(torch, case, arithmetic, document):
    """What processes make together, where all of them are ready with an ``arithmetic``."""
    if case.subject.shared is None:
        return
    if reduction.agreed(torch, case.subject, arithmetic is not None):
        case.clock.release()
        with _around(torch, arithmetic):
            figures = reduction.part(case.subject, arithmetic)
            _fill("reduction", arithmetic.name, document, figures)
    else:
        reason = Unseen("failed", "a process had no gradients of its own, or no time left")
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
    if any(one.is_meta for one in [*weights, *subject.model.buffers()]):
        raise Unseen("no_values", "a weight or buffer on the meta device")
    reduction.require_whole(subject)
    if any(getattr(one, "_post_accumulate_grad_hooks", None) for one in weights):
        raise Unseen("optimizer_in_backward", "a weight has a hook that runs after its gradient")
    if any(isinstance(one, torch.jit.ScriptModule) for one in subject.model.modules()):
        raise Unseen("scripted", "a module was made by torch.jit")
    batches = [*subject.batches, subject.last_batch, *subject.recompiled, *subject.evaluation]
    if any(of_batches.is_consumed(batch) for batch in batches):
        raise Unseen("batch_consumed", "a batch is an iterator")
