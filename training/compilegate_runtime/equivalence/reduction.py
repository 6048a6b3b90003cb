"""Several processes: one's own gradients, and what all of them together make of them.

DistributedDataParallel averages gradients while they are computed. Every other part looks at what
one process has before that. Here each process makes the same steps with the reduction, and holds
what comes out against the mean of all references. Dropout is off: what is looked at is the sum.

Processes wait for each other, so that all of them begin, or none.
"""

import contextlib

from compilegate_runtime.equivalence.compare import compared, sampled
from compilegate_runtime.equivalence.unseen import Unseen
from compilegate_runtime.equivalence.weights import names_of

STEPS = 4


@contextlib.contextmanager
def alone(shared):
    """Let a process compute without the others."""
    if shared is None:
        yield
        return
    synchronised = getattr(shared, "require_forward_param_sync", None)
    with shared.no_sync():
        shared.require_forward_param_sync = False  # of buffers, before the forward pass
        try:
            yield
        finally:
            shared.require_forward_param_sync = synchronised


def agreed(torch, subject, ready):
    """Whether every process is ready."""
    device = next(subject.model.parameters()).device
    flag = torch.tensor(int(ready), device=device)
    torch.distributed.all_reduce(flag, op=torch.distributed.ReduceOp.MIN)
    return bool(flag)


def part(subject, arithmetic):
    """Gradients that all processes have together."""
    torch, steps = arithmetic.torch, [[batch] for batch in subject.batches[:STEPS]]
    truth, eager, compiled = arithmetic.reduced(steps)
    weights = [one for one in subject.model.parameters() if one.requires_grad]
    means = [_mean(torch, weights, step) for step in truth]
    figures = compared(
        names_of(subject.model, "gradients"), means, compiled, [eager], arithmetic.epsilon
    )
    del figures["total"]
    yield {"part": "reduction", "arithmetic": arithmetic.name, **figures}


def _mean(torch, weights, gradients):
    """Over the processes; a weight without a gradient has one of zeros."""
    filled = [
        sampled(torch, weight, len(weights)).double() * 0 if one is None else one.double()
        for weight, one in zip(weights, gradients)  # noqa: B905 - Python 3.8
    ]
    flat = torch.cat(filled).to(weights[0].device)
    torch.distributed.all_reduce(flat)
    flat = (flat / torch.distributed.get_world_size()).cpu()
    return list(flat.split([one.numel() for one in filled]))


def require_whole(subject):
    """Raise Unseen where a process has parts of weights alone (FSDP, DTensor)."""
    for name, one in subject.model.named_parameters():
        if hasattr(one, "to_local") or type(one).__name__ == "FlatParameter":
            raise Unseen("sharded_weights", name)
