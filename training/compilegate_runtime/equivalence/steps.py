"""Steps of a training as they are compared; one in doubt is run again from other weights."""

import statistics

from compilegate_runtime.equivalence import compare
from compilegate_runtime.equivalence.arithmetic import SINGLE
from compilegate_runtime.equivalence.unseen import Unseen
from compilegate_runtime.equivalence.weights import names_of

REPEATS = 3  # of a step in doubt
DOUBTFUL = 12.0  # a ratio that sound compilers seldom have in one step
NEAR = 1e-3  # single precision's error at most; that of 8 or 11 bits is larger
REPEATED = 8  # roundings by which a repeated step may differ, where sums have no order
INFORMATIVE = 2  # steps with a gradient, less of which say nothing


class Steps:
    """Errors of some steps, by what they left.

    That is ``gradients``, and ``buffers`` with frozen weights and outputs that no gradient reaches.

    ``integers_differ`` says whether other integers were returned than by eager code.
    ``runs`` are the numbers of each step's runs. Each of ``steps`` is a list of batches, ``name``
    says which. Raises Unseen.
    """

    def __init__(self, subject, arithmetic, name, steps):
        self._arithmetic = arithmetic
        self._names = {kind: names_of(subject.model, kind) for kind in ("gradients", "buffers")}
        self._errors, self._changed, self._informative = {}, set(), set()
        self.integers_differ = False
        self.runs = [[number] for number in range(len(steps))]
        trained = arithmetic.trained(name, steps)
        self._add(trained, range(len(steps)))
        far = statistics.median_low(whole for _, whole in self._errors["gradients"][1][0])
        if name == "gradients":
            self._require_the_same_again(trained[2][0], steps[:1])
        if arithmetic.name == SINGLE and far > NEAR:
            raise Unseen("autocast_inside", f"eager code itself is {far:.2g} from double precision")
        for _ in range(REPEATS):
            self._repeat(name, steps)

    def figures(self, kind):
        """Figures of a kind; None where there is nothing of it."""
        if kind == "buffers" and not self._changed:
            return None
        made, plain = self._errors[kind]
        count = len(made[0][0]) - len(self._names[kind])
        names = self._names[kind] + [f"output {number + 1}" for number in range(count)]
        figures = compare.figures(names, made, plain, self._arithmetic.epsilon, self.runs)
        if kind == "buffers":
            return {**figures, "compared": len(self._changed)}
        count, ratio = len(self._informative), figures["ratio"]
        if count < INFORMATIVE and ratio is not None and ratio <= DOUBTFUL:
            raise Unseen("no_gradient", f"{count} steps have a gradient other than 0")
        return figures

    def _require_the_same_again(self, eager, steps):
        again = self._arithmetic.eager.train(steps)
        _, far = compare.errors(eager.gradients[0], again.gradients[0])
        of_buffers, _ = compare.errors(eager.buffers[0], again.buffers[0], mixed=True)
        far = max(far, *of_buffers, 0.0)
        if far > max(NEAR, REPEATED * self._arithmetic.epsilon):
            detail = f"eager code itself gives numbers that are {far:.2g} away when it is repeated"
            raise Unseen("state_outside", detail)

    def _repeat(self, name, steps):
        doubt = [runs for runs in self.runs if self._is_in_doubt(runs)]
        if doubt:
            first = sum(len(runs) for runs in self.runs)
            again = [steps[runs[0]] for runs in doubt]
            which = (name, *(runs[0] for runs in doubt))
            trained = self._arithmetic.trained(which, again, first=first)
            self._add(trained, [runs[0] for runs in doubt])
            for number, runs in enumerate(doubt, first):
                runs.append(number)

    def _is_in_doubt(self, runs):
        epsilon = self._arithmetic.epsilon
        return any(
            compare.is_in_doubt(*measured, epsilon, runs, DOUBTFUL)
            for measured in self._errors.values()
        )

    def _add(self, trained, numbers):
        truth, compiled, eagers = trained
        for kind in self._names:
            true, own, *ways = (getattr(one, kind) for one in (truth, compiled, *eagers))
            made, plain = compare.measured(true, own, ways, mixed=kind == "buffers")
            if kind in self._errors:
                before, ways = self._errors[kind]
                made = before + made
                # A way that is as good for some of the batches alone is the last, and left out.
                plain = [one + more for one, more in zip(ways, plain)]  # noqa: B905 - Python 3.8
            self._errors[kind] = made, plain
        if compiled.integers != eagers[0].integers:
            self.integers_differ = True
        for step in (*truth.buffers, *compiled.buffers, *eagers[0].buffers):
            self._changed.update(place for place, one in enumerate(step) if one is not None)
        self._informative.update(
            number
            for number, step in zip(numbers, truth.gradients)  # noqa: B905 - Python 3.8
            if any(one is not None and bool(one.any()) for one in step)
        )
