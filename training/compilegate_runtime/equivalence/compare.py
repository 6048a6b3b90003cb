"""How far compiled code is from eager code, both measured by double precision.

Of a tensor p (a weight's gradient, a buffer, an output) in step t, of n values:

    length(p, t) = max(|p64(t)|, FLOOR d(t) sqrt(n(p)))
    e(p, t)      = |p(t) - p64(t)| / length(p, t)
    stays(p, t)  = min over the runs of step t of e(p, t)
    yardstick(p) = max(epsilon, upper quartile over t of e_eager)
    ratio(p)     = max(upper median over t of e_compiled / yardstick(p),
                       max over repeated t of stays_compiled / max(yardstick(p), stays_eager))

The floor is for tensors whose true value is rounding itself, such as the gradient of a bias before
a normalisation: they have no relative error. Its d is the root mean square of all gradients
together. Buffers and outputs are of different units, so that there it is the median of theirs, and
no counter or mask can hide the others. What a mask holds has no length either: infinities, numbers
beyond any computation, and large negative ones that are exact on both sides.

Eager's error is that of the worst among ways that are as good as any other: more threads or fewer,
another order of samples, weights some roundings away. It has a floor too, epsilon of the
arithmetic, since the few numbers of a small tensor are exact by chance.

Gradients jump where a value passes the kink of a ReLU or a maximum. A rounding that does this makes
an error of a thousandth of a gradient, in a few steps of many: in small networks seldom enough that
eager code has none of it. So no single run of a step decides. A step whose error is large is run
again on its batch, from weights that are moved otherwise: other values lie at a kink then, while a
fault that the batch causes stays. With the fraction f of runs in which compiled code jumps, all of
n runs of a step do with f**n. The median is a jump with f > 1/2, eager's quartile with f > 1/4.
A number that is not finite is no rounding in any run.
"""

import itertools
import math
import statistics

FLOOR = 1e-2
HUGE = 1e30  # what lies beyond it is a mask's, whatever its type calls the least number
MASKED = -1e4  # or below, and exactly the same in every type: a mask's, too
SAMPLED = 2**16  # values of a tensor that are compared; a smaller one counts whole
SAMPLED_TOGETHER = 2**24  # values of all tensors of a step; memory holds a dozen such steps


def sampled(torch, tensor, count=1):
    """Values of a tensor, evenly spread, on the processor; None of None.

    ``count`` tensors share what may be kept.
    """
    if tensor is None:
        return None
    tensor = tensor.detach()
    if tensor.layout is not torch.strided:
        tensor = _marked(torch, tensor.to_sparse_coo().coalesce())
    values = spread(tensor, min(SAMPLED, max(1, SAMPLED_TOGETHER // count))).clone()
    return torch.view_as_real(values).reshape(-1).cpu() if values.is_complex() else values.cpu()


def spread(tensor, most):
    """At most so many values of a tensor, evenly spread, as a view where it can be.

    The stride shares no factor with any dimension: with one, it would pass by the same columns of
    a matrix again and again.
    """
    stride = -(-tensor.numel() // most)
    while any(size > 1 and math.gcd(stride, size) > 1 for size in tensor.shape):
        stride += 1
    return tensor.reshape(-1)[:: max(1, stride)]


def _marked(torch, sparse):
    """A sparse gradient's values, each times 1 to 2 as its place says: a wrong row shows."""
    place = torch.zeros_like(sparse.indices()[0])
    for index in sparse.indices():
        place = (place * 31 + index * 2654435761) % 1024
    values = sparse.values().double()
    return values * (1 + place.double() / 1024).reshape(-1, *[1] * (values.dim() - 1))


def errors(truth, made, *, mixed=False):
    """e(p) of every tensor, and of all together; infinite where a number is missing.

    Both are a step's tensors in the same order. None is zero: a weight that got no gradient.
    ``mixed`` ones are of different units.
    """
    each = [_measured(*pair) for pair in itertools.zip_longest(truth, made)]
    whole = math.hypot(*(length for _, length, _ in each))
    density = whole / math.sqrt(max(1, sum(count for *_, count in each)))
    if mixed:
        present = [length / math.sqrt(count) for _, length, count in each if length > 0]
        density = statistics.median_low(present) if present else 0.0
    return [
        _quotient(difference, max(length, FLOOR * density * math.sqrt(max(1, count))))
        for difference, length, count in each
    ], _quotient(math.hypot(*(difference for difference, *_ in each)), whole)


def compared(names, truth, compiled, eagers, epsilon, *, mixed=False):
    """``figures`` of steps that ran once, each a list of tensors by ``names``."""
    return figures(names, *measured(truth, compiled, eagers, mixed=mixed), epsilon)


def measured(truth, compiled, eagers, *, mixed=False):
    """(``errors`` of compiled code by step, those of each way to compute eagerly)."""
    made, *plain = (
        [errors(true, own, mixed=mixed) for true, own in zip(truth, one)]  # noqa: B905 - Python 3.8
        for one in (compiled, *eagers)
    )
    return made, plain


def figures(names, made, plain, epsilon, steps=()):
    """The worst ratio of what is ``measured`` to the worst way of eager code, as a document's part.

    ``steps`` are the numbers of each step's runs. ``ratio`` is None where compiled code gave no
    finite number.
    """
    tensors = [
        (*of_tensor(made, plain, epsilon, place, steps), place) for place in range(len(names))
    ]
    ratio, error, yardstick, number, place = max(tensors)
    return {
        "compared": len(names),
        "ratio": _finite(ratio),
        "where": names[place],
        "step": number + 1,
        "error": _finite(error),
        "eager_error": _finite(yardstick),
        "total": {
            "compiled": [_finite(whole) for _, whole in made],
            "eager": [_finite(whole) for _, whole in plain[0]],
            "epsilon": epsilon,
        },
    }


def of_tensor(made, plain, epsilon, place, steps=()):
    """(ratio, error, eager's error, number of the run) of the tensor at a place.

    ``made`` are the ``errors`` of each run, ``plain`` those of each way to compute eagerly,
    ``steps`` the numbers of each step's runs: one that ran once alone decides nothing.
    """
    own = sorted(((run[0][place], number) for number, run in enumerate(made)), reverse=True)
    error, number = own[0] if own[0][0] == math.inf else own[(len(made) - 1) // 2]
    yardstick = _yardstick(plain, place)
    seen = [(error / max(epsilon, yardstick), error, yardstick, number)]
    for runs in steps:
        if len(runs) > 1:
            seen.append(_staying(made, plain, epsilon, place, runs))
    return max(seen)


def is_in_doubt(made, plain, epsilon, runs, most):
    """Whether an error of any tensor has stayed in all ``runs`` of a step, above this ratio."""
    places = range(len(made[0][0]))
    ratios = (_staying(made, plain, epsilon, place, runs)[0] for place in places)
    return any(most < ratio < math.inf for ratio in ratios)


def _staying(made, plain, epsilon, place, runs):
    """``of_tensor`` of what stays in all runs of a step."""
    error, *eager = (min(one[run][0][place] for run in runs) for one in (made, *plain))
    yardstick = max(_yardstick(plain, place), *eager)
    return error / max(epsilon, yardstick), error, yardstick, runs[0]


def _yardstick(plain, place):
    quarter = len(plain[0]) // 4
    return max(sorted((run[0][place] for run in way), reverse=True)[quarter] for way in plain)


def worst(figures):
    """Of several figures the one with the largest ratio; None where there are none."""
    return max(
        figures, key=lambda one: math.inf if one["ratio"] is None else one["ratio"], default=None
    )


def _measured(true, made):
    """(length of the difference, of the truth, number of values that make it) of a tensor."""
    if true is None and made is None:
        return 0.0, 0.0, 0
    true, made = (None if one is None else one.double() for one in (true, made))
    if true is None:
        return _finite_or_infinite(made.norm()), 0.0, 0
    counts = true.abs() <= HUGE
    if made is None or made.shape != true.shape:
        length = float(true[counts].norm())
        return math.inf if made is not None else length, length, int(counts.sum())
    beyond = (true.abs() > HUGE) & (made.abs() > HUGE) & (true.sign() == made.sign())
    same = (true == made) | (true.isnan() & made.isnan()) | beyond
    counts &= ~(same & (true <= MASKED))
    difference = (made - true).masked_fill(same, 0.0).norm()
    return _finite_or_infinite(difference), float(true[counts].norm()), int(counts.sum())


def _finite_or_infinite(length):
    return float(length) if float(length) < math.inf else math.inf  # nan too


def _quotient(error, length):
    return error / length if length > 0 else (0.0 if error == 0 else math.inf)


def _finite(value):
    return value if value < math.inf else None
