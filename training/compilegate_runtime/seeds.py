"""One seed gives the same weights and the same data order in every arm."""

import random

SEED_STRIDE = 1_000_003  # a prime: seeds of neighbouring runs stay apart


def seed_everything(seed):
    """Seed every generator that initial weights and dropout draw from."""
    random.seed(seed)
    for module in _numpy():
        module.random.seed(seed % 2**32)
    import torch  # noqa: PLC0415 — the rest of this module does without it

    torch.manual_seed(seed)


def data_order(seed, count):
    """Yield one shuffled epoch of ``range(count)`` after the other, endlessly.

    Drawn from a generator of its own, so that other uses of random numbers (compiled dropout
    draws differently from eager dropout) cannot change the order of samples.
    """
    order = random.Random(seed)  # noqa: S311 — shuffles samples, guards no secret
    indices = list(range(count))
    while True:
        order.shuffle(indices)
        yield list(indices)


def batches(seed, count, batch_size):
    """Yield lists of ``batch_size`` indices; a ragged rest of an epoch is dropped."""
    for epoch in data_order(seed, count):
        for start in range(0, count - batch_size + 1, batch_size):
            yield epoch[start : start + batch_size]


def shift_seeds(by):
    """Vary the runs of a script that sets a seed of its own, in all arms alike.

    Every seed that it sets for all random numbers from now on is moved by the run's own. Its own
    generators keep theirs: often they split training data from held-out data.
    """
    import torch  # noqa: PLC0415 — the rest of this module does without it

    owners = [(module.random, "seed") for module in _numpy()]
    owners += [(torch.cuda, name) for name in ("manual_seed", "manual_seed_all")]
    for owner, name in [(random, "seed"), (torch, "manual_seed"), *owners]:
        setattr(owner, name, _shifted(getattr(owner, name), by))


def _numpy():
    """The module, where it is installed."""
    try:
        import numpy  # noqa: PLC0415 — a script may do without it
    except ImportError:
        return []
    return [numpy]


def _shifted(original, by):
    def seed(value=None, *others):
        moved = (value + SEED_STRIDE * by) % 2**32 if isinstance(value, int) else value
        return original(moved, *others)

    return seed
