"""The two arithmetics in which compiled code is compared with eager code.

``own`` is the job's: its types of number, the code that the run compiled. A fault smaller than its
rounding is invisible there: in bfloat16 that is most of what an epsilon or an approximated function
changes. So the same model is compiled anew in ``single``: weights and products of 32 bits, autocast
off. Where the job computes in single precision by itself, both are one.
"""

import contextlib
import functools

from compilegate_runtime.equivalence import batches as of_batches
from compilegate_runtime.equivalence import conditions, optimizer, randomness, reduction
from compilegate_runtime.equivalence.anew import Anew
from compilegate_runtime.equivalence.compare import errors
from compilegate_runtime.equivalence.reference import computing, modes
from compilegate_runtime.equivalence.sides import Side
from compilegate_runtime.equivalence.unseen import Unseen

OWN, SINGLE = "own", "single"
VARIATIONS = 2  # of eager code, by weights that are rounded otherwise
SAME = 1e-9  # relative: two ways in double precision that mean the same


class Arithmetic:
    """Trains the model compiled, eager and in double precision.

    ``truths`` are what was computed in double precision already, by the name of the batches: it is
    the same for both arithmetics where no random numbers are drawn.
    """

    def __init__(self, case, name, truths, exact=None):
        """``exact`` is the type of number of the reference, double precision unless it is given."""
        self._case, self.name, self._truths = case, name, truths
        self._exact = case.torch.float64 if exact is None else exact
        torch, subject = self.torch, self.subject = case.torch, case.subject
        low = {"fp16": torch.float16, "bf16": torch.bfloat16}.get(subject.precision, torch.float32)
        self.epsilon = torch.finfo(low if name == OWN else torch.float32).eps
        self._variations = range(1, VARIATIONS + 1 if name == SINGLE else 1)
        self._record, self._replay = modes(torch, case.clock, self._exact)
        self.is_the_jobs = name == OWN or is_one(torch, subject)
        own, single = {"forward": subject.autocast}, {"dtype": torch.float32}
        self._how = own if self.is_the_jobs else single
        self.eager = self._side(self._eagerly, subject.model, self._recorded, **self._how)
        self.reference = self._side(self._eagerly, subject.model, self._exactly, dtype=self._exact)
        self.compiled_anew = self.anew()
        self._ready = self._side(subject.call, subject.compiled, self._alone, **self._how)
        self.compiled = self._ready if self.is_the_jobs else self.compiled_anew

    def anew(self):
        """A side that compiles the model when it first computes, on eager code's random numbers."""
        return Anew(self._case, **self._how)

    def _side(self, loss_of, function, around, **how):
        return Side(self._case, loss_of, function, around=around, **how)

    def _eagerly(self, batch):
        return self.subject.call_with(self.subject.model, batch)

    def _alone(self, _tape):
        return reduction.alone(self.subject.shared)

    @contextlib.contextmanager
    def _recorded(self, tape):
        with self.torch.compiler.set_stance("force_eager"), self._record(tape):
            yield

    @contextlib.contextmanager
    def _exactly(self, tape):
        stance, precise = self.torch.compiler.set_stance("force_eager"), contextlib.nullcontext()
        if self._exact == self.torch.float32:
            precise = conditions.precise(self.torch)
        with stance, precise, computing(self.torch, self._replay(tape), self._exact):
            yield

    def trained(self, name, steps, first=0):
        """(truth, compiled, [eager, ...]) of ``Trained`` in these steps, called ``name``.

        Each step is a list of batches, ``first`` the number of the first one. Raises Unseen where
        eager's gradients are not finite or the compiler drew other numbers.
        """
        tapes, name = [[] for _ in steps], (name, first)
        eager = self.eager.train(steps, tapes, first)
        _require_finite(self.torch, eager, "eager_not_finite")
        if any(tapes) or name not in self._truths:
            self._truths[name] = self.reference.train(steps, tapes, first)
        truth = self._truths[name]
        _require_finite(self.torch, truth, "reference_not_finite")
        side = self.compiled_anew if any(tapes) else self.compiled
        compiled = side.train(steps, first=first)
        if any(tapes) and not _equal(self.torch, eager.random, compiled.random):
            raise Unseen("random_numbers", "compiled code drew other numbers than eager code")
        others = self._as_good(truth, steps, first, random=any(tapes))
        return truth, compiled, [eager, *others]

    def computed(self, batches):
        """(truth, compiled, [eager, ...]) of what the evaluation computes on these batches."""
        eager, truth, compiled = (
            side.compute(batches) for side in (self.eager, self.reference, self.compiled)
        )
        vary = functools.partial(self.eager.compute, batches)
        return truth, compiled, [eager, *map(vary, self._variations)]

    def draws(self, batch):
        """Whether eager code draws random numbers."""
        tape = []
        self.eager.train([[batch]], [tape])
        return bool(tape)

    def random_losses(self, batch):
        """(worst, what) of losses by the code that the run compiled."""
        self.compiled_anew.forget()  # which would serve it
        eager, compiled = (
            side.losses(batch, randomness.LOSSES) for side in (self.eager, self._ready)
        )
        return randomness.of_losses(self.torch, eager, compiled, self.epsilon)

    def own_numbers(self, batch):
        """[(worst, what), ...] of the kernels' own generator, in code that is compiled anew."""
        masks = randomness.Masks(self.torch, self.subject.model)
        side = Anew(self._case, eager_numbers=False, before=masks.watch, **self._how)
        try:
            eager, compiled = (one.slopes(batch, randomness.SEEDS) for one in (self.eager, side))
            for seed in range(2):
                side.losses(batch, randomness.CALLS // 2, masks.keep, seed)
        finally:
            masks.release()
            side.forget()
        return [randomness.of_slopes(eager, compiled), masks.differences(self.epsilon)]

    def reduced(self, steps):
        """(truth of this process, eager, compiled) gradients that all processes have together."""
        subject = self.subject
        dropout = not self.draws(steps[0][0])
        force = self.torch.compiler.set_stance
        eager = self._side(subject.call, None, lambda _: force("force_eager"), **self._how)
        compiled = self._side(subject.call, None, None, **self._how)
        sides = (self.reference, eager, compiled)
        return [side.train(steps, dropout=dropout).gradients for side in sides]

    def optimizer_moved(self):
        """Figures of a compiled step of the optimizer, in the type of the weights themselves."""
        case, batch = self._case, self.subject.batches[0]
        return optimizer.figures_of(
            self.torch, self.subject, case.weights, lambda: self.eager.gradients(batch)
        )

    def _as_good(self, truth, steps, first, *, random):
        """Eager code that rounds in another way, where that means the same."""
        torch, count = self.torch, self.torch.get_num_threads()
        on_processor = next(self.subject.model.parameters()).device.type == "cpu"
        if on_processor and count > 1:
            with conditions.threads(torch, count // 2):
                yield self.eager.train(steps, first=first)
        if not on_processor:
            with conditions.other_kernels(torch):
                yield self.eager.train(steps, first=first)
        for variation in self._variations:
            yield self.eager.train(steps, first=first, variation=variation)
        others = [[of_batches.turned(torch, batch) for batch in step] for step in steps]
        if random or any(batch is None for step in others for batch in step):
            return
        begin = self.reference.train(others[:1], first=first)
        of_buffers, _ = errors(truth.buffers[0], begin.buffers[0], mixed=True)
        if max(errors(truth.gradients[0], begin.gradients[0])[1], *of_buffers, 0.0) < SAME:
            yield self.eager.train(others, first=first)


def is_one(torch, subject):
    """Whether the job computes in single precision by itself."""
    kinds = {one.dtype for one in subject.model.parameters() if one.is_floating_point()}
    device = next(subject.model.parameters()).device.type
    return (
        subject.precision == "fp32"
        and kinds == {torch.float32}
        and conditions.is_precise(torch, device)
    )


def _require_finite(torch, trained, code):
    for number, step in enumerate(trained.gradients):
        if any(one is not None and not bool(torch.isfinite(one).all()) for one in step):
            raise Unseen(code, f"gradients of step {number + 1}")


def _equal(torch, one, other):
    pairs = [pair for states in zip(one, other) for pair in zip(*states)]  # noqa: B905 - Python 3.8
    return all(torch.equal(*pair) for pair in pairs)
