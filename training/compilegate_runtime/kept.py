"""What a run keeps for the equivalence check that it is asked to end with.

Batches are copied before the run uses them, to the processor: a GPU's peak of memory is a figure of
the run. Nothing here fails or slows a run that is measured: copies are few, and what could not be
kept is missing in the check, which says so.
"""

import math
import os

from compilegate_runtime.equivalence import STEPS
from compilegate_runtime.equivalence.batches import leaves, mapped
from compilegate_runtime.errors import HyperparameterError

VARIABLE = "COMPILEGATE_EQUIVALENCE"
FIRST, LAST = "first", "last"
# Seconds that the check may take; without it this share of a whole run, and three minutes at most.
LIMIT = "COMPILEGATE_EQUIVALENCE_SECONDS"
SHARE, MOST_SECONDS = 0.02, 180.0
LONGEST = 86_400.0  # that can be chosen
# Batches for which a run compiled further graphs, copies made to find them, and held-out batches.
FURTHER, COPIES, HELD_OUT = 4, 32, 2


def weights_asked_for():
    """The weights, first or last ones, at which this process is to end with the check; or None."""
    asked = os.environ.get(VARIABLE)
    return asked if asked in (FIRST, LAST) else None


def chosen_seconds():
    """Those that the environment gives the check, None where it says nothing.

    Raises HyperparameterError for anything but a positive number of seconds.
    """
    chosen = os.environ.get(LIMIT)
    if not chosen:
        return None
    try:
        seconds = float(chosen)
    except ValueError:
        seconds = math.nan
    if not 0 < seconds <= LONGEST:
        raise HyperparameterError(
            f"{LIMIT} must be a number of seconds above 0 and up to {LONGEST:.0f}, got {chosen!r}: "
            "correct it in training.environment, or leave it out for 2 % of a whole run"
        )
    return seconds


def limit_seconds(full_run_seconds):
    """Seconds that the check may take in a workload whose whole run takes so many."""
    return chosen_seconds() or min(MOST_SECONDS, SHARE * full_run_seconds)


class Kept:
    """Batches of one model: the first ones, those that compiled further graphs, held-out ones.

    A batch is whatever the model is called with, in tuples, lists and dicts. One of a shape that
    was not seen before is copied; the copy stays if the compiler worked for it.
    """

    def __init__(self, torch, compiler):
        self._torch, self._compiler = torch, compiler
        self.asked = compiler.compiles_modules and weights_asked_for() is not None
        self._keeps = self.asked
        self._first, self._further, self._held_out = [], [], []
        self._shapes, self._copies = set(), 0
        self._call = None  # the last one: compilations before it, and its batch if it was copied
        self.differentiated = False  # whether gradients flow to what the model is called with
        self.missed = 0  # times that the compiler worked for a batch that was not kept

    def training(self, batch):
        """The model is about to be trained on a batch."""
        if self._keeps:
            self.note_compilations()
            self._attempt(self._keep, batch)

    def evaluating(self, batch):
        """The model is about to compute without gradients."""
        if self._keeps:
            self.note_compilations()
            if len(self._held_out) < HELD_OUT:
                self._attempt(lambda one: self._held_out.append(self._copied(one)), batch)

    def note_compilations(self):
        """What was compiled until now belongs to the last training call."""
        call, self._call = self._call, None
        if call is None or call[0] == self._compiler.compilations():
            return
        if call[1] is None:
            self.missed += 1
        else:
            self._further.append(call[1])

    def done(self):
        """Training is over: what is called from now on is the check's own."""
        self.note_compilations()
        self._keeps = False

    def batches(self):
        """The first ones, where they were."""
        return [self._placed(*one) for one in self._first]

    def further(self):
        """Those for which other graphs were compiled later."""
        return [self._placed(*one) for one in self._further]

    def held_out(self):
        """Those of the evaluation."""
        return [self._placed(*one) for one in self._held_out]

    def _keep(self, batch):
        if len(self._first) < STEPS:
            self._shapes.add(shapes_of(batch))
            self._first.append(self._copied(batch))
        else:
            self._call = self._compiler.compilations(), self._copy_of_a_new_shape(batch)

    def _copy_of_a_new_shape(self, batch):
        if self._copies == COPIES or len(self._further) == FURTHER:
            return None
        shapes = shapes_of(batch)
        if shapes in self._shapes:
            return None
        self._shapes.add(shapes)
        self._copies += 1
        return self._copied(batch)

    def _attempt(self, keep, batch):
        try:
            keep(batch)
        except Exception:  # noqa: BLE001 - whatever a script's batch is, its run goes on
            self._keeps = False
            self.missed += 1  # graphs that are compiled from here on are not seen

    def _copied(self, batch):
        """A copy on the processor, and the device of each tensor."""
        kind = self._torch.Tensor
        tensors = [one for one in leaves(batch) if isinstance(one, kind)]
        self.differentiated |= any(one.requires_grad for one in tensors)
        devices = [one.device for one in tensors]
        return mapped(self._torch, lambda one: one.detach().to("cpu", copy=True), batch), devices

    def _placed(self, copy, devices):
        places = iter(devices)
        return mapped(self._torch, lambda one: one.to(next(places)), copy)


def shapes_of(batch):
    """What of a batch makes a compiler compile anew: shapes, and numbers that are no tensors."""
    return tuple(
        tuple(one.shape) if hasattr(one, "shape") else one
        for one in leaves(batch)
        if hasattr(one, "shape") or isinstance(one, (bool, int, float, str, type(None)))
    )
