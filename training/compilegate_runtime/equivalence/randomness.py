"""Random numbers of compiled code, by their distribution.

A compiler draws other numbers than eager code, so that nothing can be compared one by one. What it
draws is held against what eager code draws, or what it has to be, in standard errors:

    losses of one batch, eager and compiled, N each     mean, variance, correlation of neighbours
    a dropout layer's mask, kept with chance q          (kept - n q) / sqrt(n q (1 - q))
    a mask and that of the next step, of another seed   agreements, of which a = q^2 + (1 - q)^2
    or process, of the next value, of another layer     of n are expected
    what is kept / (input / q) - 1                      in units of the arithmetic's epsilon

Losses that repeat where eager's differ come from a generator that stands still: no finite number.

A backward pass may draw another mask than its forward pass. With one seed throughout, and a step h
along the gradient g,

    (loss(w + h g) - loss(w - h g)) / (2 h |g|^2) = 1        up to the curvature of the loss

What is missing from 1 is compared with eager code's: the least of some seeds with the largest,
since the curvature differs from mask to mask and a fault is there with all.
"""

import math

from compilegate_runtime.equivalence.unseen import Unseen

LOSSES = 32
SEEDS = 3
STRAIGHT = 2e-4  # the least that eager code's difference from 1 counts
CALLS = 4
MASKED = 2**18  # values of a mask that are looked at
TINY = 1e-30  # below this, numbers lose digits


def of_losses(torch, eager, compiled, epsilon):
    """(largest standard error, what it is of) by which losses differ in distribution.

    Means may also differ by a rounding, ``epsilon`` of them.
    """
    eager, compiled = (torch.tensor(one, dtype=torch.float64) for one in (eager, compiled))
    rounding = float(eager.mean().abs()) * epsilon
    if float(eager.std()) <= rounding:
        return 0.0, "losses that do not vary"
    if len(set(compiled.tolist())) < len(set(eager.tolist())) / 2:
        return math.inf, "losses that repeat"
    count = len(eager)
    before, after = eager.var(), compiled.var()
    centred = compiled - compiled.mean()
    neighbours = (centred[1:] * centred[:-1]).sum() / centred.square().sum() * math.sqrt(count)
    return _largest([
        ((compiled.mean() - eager.mean()) / (rounding + ((before + after) / count).sqrt()), "mean"),
        ((after / before).log() / 2 * math.sqrt(count - 1), "variance of the loss"),
        (neighbours, "losses of neighbouring steps"),
    ])  # fmt: skip


def of_slopes(eager, compiled):
    """(ratio, what it is of) of how far slopes along the gradient are from its square.

    Raises Unseen where eager code has no gradient with any seed.
    """
    finite = [one for one in eager if one < math.inf]
    if not finite:
        raise Unseen("no_gradient", "eager code has none along which the loss could fall")
    return min(compiled) / max(STRAIGHT, *finite), "backward pass"


class Masks:
    """Dropout layers of a model, watched while it is compiled and called."""

    def __init__(self, torch, model):
        self._torch, self._held, self._seen, self._hooks = torch, {}, {}, []
        self._layers = {
            name: one
            for name, one in model.named_modules()
            if type(one) is torch.nn.Dropout and 0 < one.p < 1 and not one.inplace
        }

    def watch(self):
        """Hold the last input and output of each layer, from here on."""
        for name, layer in self._layers.items():
            self._held[name], self._seen[name] = _Held(), []
            self._hooks.append(layer.register_forward_hook(self._held[name]))

    def keep(self):
        """Keep what was held of the last call."""
        for name, held in self._held.items():
            if held.made is not None:
                self._seen[name].append((held.inputs, held.made))
            held.inputs = held.made = None

    def release(self):
        """Watch no longer."""
        for hook in self._hooks:
            hook.remove()

    def differences(self, epsilon):
        """(largest standard error, what it is of), of CALLS calls, half with another seed."""
        errors, last = [(0.0, "")], None
        for name, calls in self._seen.items():
            if len(calls) < CALLS:
                continue  # fused attention takes a layer's chance without calling it
            kept = 1 - self._layers[name].p
            first, second, third = (self._mask(*call) for call in calls[:3])
            errors += [
                (_beyond(first, kept), f"{name}: share that is kept"),
                (self._agreement(first, second, kept), f"{name}: neighbouring steps"),
                (self._agreement(first, third, kept), f"{name}: other seeds"),
                (self._agreement(first[1:], first[:-1], kept, once=False), f"{name}: neighbours"),
                (self._scale(*calls[-1], kept) / epsilon, f"{name}: scale"),
            ]
            if last is not None and last[1] == kept:
                errors.append((self._agreement(first, last[0], kept), f"{name}: previous layer"))
            last = first, kept
        return _largest(errors)

    def _mask(self, inputs, made):
        """Which values were kept, of those that are not 0, or flushed to 0, by themselves."""
        return (made != 0)[inputs.abs() > TINY].double()

    def _scale(self, inputs, made, kept):
        there = (made != 0) & (inputs.abs() > TINY)
        return float((made[there] * kept / inputs[there] - 1).abs().max()) if there.any() else 0.0

    def _agreement(self, one, other, kept, *, once=True):
        """Agreements beyond chance, each value in one of them; of a mask with itself in two."""
        count = min(len(one), len(other))
        expected = kept**2 + (1 - kept) ** 2
        spread = expected * (1 - expected)
        if not once:
            spread += 2 * (kept**3 + (1 - kept) ** 3 - expected**2)
        agreed = float((one[:count] == other[:count]).sum())
        return _standard(agreed, count, expected, spread)


class _Held:
    """What went in and came out last; attributes, since code is compiled for a list's length."""

    inputs = made = None

    def __call__(self, _module, inputs, made):
        self.inputs, self.made = (one.detach().reshape(-1)[:MASKED] for one in (inputs[0], made))


def _beyond(mask, kept):
    return _standard(float(mask.sum()), len(mask), kept, kept * (1 - kept))


def _standard(seen, count, expected, spread):
    return (seen - count * expected) / math.sqrt(count * spread) if count and spread else 0.0


def _largest(errors):
    values = [(abs(float(value)), name) for value, name in errors]
    return max((math.inf if math.isnan(value) else value, name) for value, name in values)
