"""The optimizer's step in fused kernels of torch's own, which only reorder its arithmetic."""

import functools
import importlib
import inspect
import weakref

from compilegate_runtime.compilers.none import NoCompiler
from compilegate_runtime.errors import CompilerUnavailableError, NotAppliedError


class FusedOptimizer(NoCompiler):
    """Compiles nothing: torch's optimizers are made with ``fused=True``, whatever the script says.

    Proven by the optimizers that took a step: by their groups, and by whose step it was.
    """

    name, takes_any_script = "fused_optimizer", True

    def __init__(self):
        super().__init__(self.name)
        try:
            import torch  # noqa: PLC0415 — only jobs of this arm pay for it

            made = importlib.import_module("torch.optim.optimizer")  # torch.optim hides it
            register = made.register_optimizer_step_post_hook
        except (ImportError, AttributeError) as error:
            raise CompilerUnavailableError(
                f"compiler {self.name} needs PyTorch 2.1 or later: {error}"
            ) from error
        self._kinds = [kind for kind in vars(torch.optim).values() if _can_be_fused(kind)]
        self._made, self._by_the_arm = weakref.WeakSet(), weakref.WeakSet()
        self._stepped = weakref.WeakSet()
        for kind in self._kinds:
            kind.__init__ = self._fusing(kind.__init__)
        register(lambda optimizer, *_: self._stepped.add(optimizer))

    def _fusing(self, original):
        @functools.wraps(original)
        def initialise(optimizer, *args, **kwargs):
            if optimizer not in self._made and not kwargs.get("fused"):
                self._by_the_arm.add(optimizer)
                kwargs = {**kwargs, "fused": True}
                kwargs.pop("foreach", None)  # the other way to step, which excludes this one
            self._made.add(optimizer)  # the constructor that its own one calls follows it
            try:
                original(optimizer, *args, **kwargs)
            except RuntimeError as error:
                raise self._not_applied(f"{type(optimizer).__name__}: {error}") from error

        return initialise

    def verify(self):
        """Raise NotAppliedError unless every optimizer that took a step took a fused one, and not
        as the script itself asked for.
        """
        plain = sorted({type(one).__name__ for one in self._stepped if not self._is_fused(one)})
        if plain or not self._stepped:
            able = ", ".join(kind.__name__ for kind in self._kinds)
            raise self._not_applied(
                f"the steps of {', '.join(plain) or 'any optimizer'} were not fused; torch.optim "
                f"fuses those of {able}"
            )
        if not self._by_the_arm & self._stepped:
            raise self._not_applied("the script's optimizer is fused as written: leave the arm out")

    def _is_fused(self, optimizer):
        groups = all(group.get("fused") for group in optimizer.param_groups)
        # torch wraps the step of each class of which an optimizer is made.
        steps = [inspect.unwrap(kind.step) for kind in self._kinds]
        return groups and inspect.unwrap(type(optimizer).step) in steps

    def _not_applied(self, why):
        return NotAppliedError(f"compiler {self.name} was requested but not applied: {why}")

    def evidence(self):
        """The ``compiler`` part of a run's summary."""
        fused = sorted(
            type(one).__name__ for one in self._by_the_arm & self._stepped if self._is_fused(one)
        )
        proof = f"fused steps of {', '.join(fused) or 'no optimizer'}"
        applied = len(fused) > 0 and all(map(self._is_fused, self._stepped))
        return {**super().evidence(), "applied": applied, "proof": proof}


def _can_be_fused(kind):
    return inspect.isclass(kind) and "fused" in inspect.signature(kind.__init__).parameters


COMPILER = FusedOptimizer
