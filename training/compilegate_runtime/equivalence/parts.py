"""What of a training is compared, part by part: each compiled, eager and in double precision."""

import math

from compilegate_runtime.equivalence.arithmetic import SINGLE
from compilegate_runtime.equivalence.compare import compared, worst
from compilegate_runtime.equivalence.steps import Steps
from compilegate_runtime.equivalence.unseen import Unseen

STEPS = 4
AGAIN = 2  # steps on batches of which there is one
HELD_OUT = 2  # batches of the evaluation


def gradients(subject, arithmetic):
    """Gradients of every weight in the first steps, and what else each of them left."""
    if len(subject.batches) < STEPS:
        raise Unseen("too_few_batches", f"{len(subject.batches)} of {STEPS}")
    steps = [[batch] for batch in subject.batches[:STEPS]]
    made = Steps(subject, arithmetic, "gradients", steps)
    yield _part("gradients", arithmetic, made.figures("gradients"))
    buffers = made.figures("buffers")
    if buffers is not None:
        yield _part("buffers", arithmetic, _without_total(buffers))
    if made.integers_differ:
        raise Unseen("integers_differ", "in the training's outputs", 0.5)


def last_batch(subject, arithmetic):
    """The smaller batch at the end of an epoch, for which code of its own was compiled."""
    if subject.last_batch is not None:
        yield _again(subject, arithmetic, "last_batch", [subject.last_batch])


def recompiled(subject, arithmetic):
    """Batches for which the run compiled other graphs than for the first ones."""
    made = [
        _again(subject, arithmetic, "recompiled", [one], number)
        for number, one in enumerate(subject.recompiled)
    ]
    if made:
        yield worst(made)
    if subject.missed:
        graphs = subject.missed + len(made)
        raise Unseen("no_recompile", f"{subject.missed} of {graphs}", subject.missed / graphs)


def accumulation(subject, arithmetic):
    """Gradients that several calls add up."""
    count = min(subject.accumulation, len(subject.batches))
    if count > 1:
        yield _again(subject, arithmetic, "accumulation", subject.batches[:count])


def evaluation(subject, arithmetic):
    """What the evaluation computes of held-out batches."""
    if not subject.evaluation or subject.evaluate is None:
        return
    truth, compiled, eagers = arithmetic.computed(subject.evaluation[:HELD_OUT])
    names = names_of_outputs(truth)
    if not names:
        raise Unseen("no_output", "the evaluation returns no floating-point numbers")
    made = compared(names, truth, compiled, eagers, arithmetic.epsilon, mixed=True)
    yield _part("evaluation", arithmetic, _without_total(made))


def names_of_outputs(batches):
    """Names of what the evaluation computes of each batch."""
    return [f"output {number + 1}" for number in range(len(batches[0]))]


def optimizer(subject, arithmetic):
    """A step of the optimizer, where the run compiled it."""
    compiled = subject.optimizer is not None and subject.compiled_step is not None
    if compiled and arithmetic.is_the_jobs:
        yield _part("optimizer", arithmetic, _without_total(arithmetic.optimizer_moved()))


def randomness(subject, arithmetic):
    """What the compiled code draws at random, where the model does."""
    batch = subject.batches[0]
    if not arithmetic.draws(batch):
        return
    seen = [arithmetic.random_losses(batch)] if arithmetic.is_the_jobs else []
    if arithmetic.name == SINGLE:
        seen += arithmetic.own_numbers(batch)
    ratio, where = max(seen)
    figures = {"compared": len(seen), "ratio": ratio if ratio < math.inf else None, "where": where}
    yield {"part": "randomness", "arithmetic": arithmetic.name, **figures}


PARTS = (gradients, last_batch, recompiled, accumulation, evaluation, optimizer, randomness)


def _again(subject, arithmetic, part, batches, number=0):
    """Some steps on the same batches, between which the weights move."""
    made = Steps(subject, arithmetic, (part, number), [batches] * AGAIN)
    return _part(part, arithmetic, _without_total(made.figures("gradients")))


def _part(part, arithmetic, figures):
    return {"part": part, "arithmetic": arithmetic.name, **figures}


def _without_total(figures):
    return {key: value for key, value in figures.items() if key != "total"}
