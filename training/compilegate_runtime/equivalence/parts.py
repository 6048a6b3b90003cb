"""What of a training is compared, part by part: each compiled, eager and in double precision."""

import math
import statistics

from compilegate_runtime.equivalence.arithmetic import SINGLE
from compilegate_runtime.equivalence.compare import compared, worst
from compilegate_runtime.equivalence.unseen import Unseen

STEPS = 4
AGAIN = 2  # steps on batches of which there is one
IN_DOUBT = 8  # steps where the ratio is large
DOUBTFUL = 12.0  # a ratio that sound compilers seldom have
NEAR = 1e-3  # single precision's error at most; that of 8 or 11 bits is larger
HELD_OUT = 2  # batches of the evaluation


def gradients(subject, arithmetic):
    """Gradients of every weight in the first steps, and the buffers after each of them."""
    if len(subject.batches) < STEPS:
        raise Unseen("too_few_batches", f"{len(subject.batches)} of {STEPS}")
    steps = [[batch] for batch in subject.batches[:STEPS]]
    made, (truth, compiled, eagers) = _gradients(subject, arithmetic, "gradients", steps)
    yield _part("gradients", arithmetic, made)
    names = [name for name, _ in subject.model.named_buffers()]
    if names:
        eager = [one.buffers for one in eagers]
        made = compared(names, truth.buffers, compiled.buffers, eager, arithmetic.epsilon)
        yield _part("buffers", arithmetic, _without_total(made))


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
    names = [f"output {number + 1}" for number in range(len(truth[0]))]
    made = compared(names, truth, compiled, eagers, arithmetic.epsilon)
    yield _part("evaluation", arithmetic, _without_total(made))


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
    made, _ = _gradients(subject, arithmetic, (part, number), [batches] * AGAIN)
    return _part(part, arithmetic, _without_total(made))


def _gradients(subject, arithmetic, name, steps):
    """(figures, what they are of); a large ratio is looked at in more steps."""
    names = [one for one, weight in subject.model.named_parameters() if weight.requires_grad]
    truth, compiled, eagers = trained = arithmetic.trained(name, steps)
    eager = [one.gradients for one in eagers]
    made = compared(names, truth.gradients, compiled.gradients, eager, arithmetic.epsilon)
    far = statistics.median(made["total"]["eager"])
    if arithmetic.name == SINGLE and far > NEAR:
        raise Unseen("autocast_inside", f"eager code itself is {far:.2g} from double precision")
    if made["ratio"] is not None and made["ratio"] > DOUBTFUL:
        further = steps * (IN_DOUBT // len(steps) - 1)
        more, others, moved = arithmetic.trained(name, further, first=len(steps))
        made = compared(
            names, truth.gradients + more.gradients, compiled.gradients + others.gradients,
            [a + b.gradients for a, b in zip(eager, moved)], arithmetic.epsilon,  # noqa: B905
        )  # fmt: skip
    return made, trained


def _part(part, arithmetic, figures):
    return {"part": part, "arithmetic": arithmetic.name, **figures}


def _without_total(figures):
    return {key: value for key, value in figures.items() if key != "total"}
