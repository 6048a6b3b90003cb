"""What of a training is compared, part by part: each compiled, eager and in double precision."""

import math

from compilegate_runtime.equivalence.compare import compared
from compilegate_runtime.equivalence.unseen import Unseen

STEPS = 4
HELD_OUT = 2  # batches of the evaluation


def gradients(subject, arithmetic):
    """Gradients of every weight in the first steps, and the buffers after each of them."""
    if len(subject.batches) < STEPS:
        raise Unseen("too_few_batches", f"{len(subject.batches)} of {STEPS}")
    trained = arithmetic.trained("gradients", subject.batches[:STEPS])
    yield _gradients("gradients", subject, arithmetic, trained, total=True)
    names = [name for name, _ in subject.model.named_buffers()]
    if names:
        yield _compared("buffers", names, arithmetic, trained, "buffers")


def last_batch(subject, arithmetic):
    """The smaller batch at the end of an epoch, for which code of its own was compiled."""
    if subject.last_batch is not None:
        yield _one_step("last_batch", subject, arithmetic, [subject.last_batch])


def recompiled(subject, arithmetic):
    """Batches for which the run compiled other graphs than for the first ones."""
    made = [
        _one_step("recompiled", subject, arithmetic, [one], number)
        for number, one in enumerate(subject.recompiled)
    ]
    if made:
        yield max(made, key=lambda one: math.inf if one["ratio"] is None else one["ratio"])


def accumulation(subject, arithmetic):
    """Gradients that several calls add up."""
    count = min(subject.accumulation, len(subject.batches))
    if count > 1:
        yield _one_step("accumulation", subject, arithmetic, subject.batches[:count])


def evaluation(subject, arithmetic):
    """What the evaluation computes of held-out batches."""
    if not subject.evaluation or subject.evaluate is None:
        return
    truth, compiled, eagers = arithmetic.computed(subject.evaluation[:HELD_OUT])
    names = [f"output {number + 1}" for number in range(len(truth[0]))]
    figures = compared(names, truth, compiled, eagers, arithmetic.epsilon)
    yield _part("evaluation", arithmetic, figures)


PARTS = (gradients, last_batch, recompiled, accumulation, evaluation)


def _one_step(part, subject, arithmetic, batches, number=0):
    trained = arithmetic.trained((part, number), batches, accumulated=len(batches))
    return _gradients(part, subject, arithmetic, trained)


def _gradients(part, subject, arithmetic, trained, *, total=False):
    names = [name for name, one in subject.model.named_parameters() if one.requires_grad]
    return _compared(part, names, arithmetic, trained, "gradients", total=total)


def _compared(part, names, arithmetic, trained, field, *, total=False):
    truth, compiled, eagers = trained
    figures = compared(
        names, getattr(truth, field), getattr(compiled, field),
        [getattr(one, field) for one in eagers], arithmetic.epsilon,
    )  # fmt: skip
    return _part(part, arithmetic, figures, total=total)


def _part(part, arithmetic, figures, *, total=False):
    if not total:
        del figures["total"]
    return {"part": part, "arithmetic": arithmetic.name, **figures}
