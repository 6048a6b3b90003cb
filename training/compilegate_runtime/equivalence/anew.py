"""The model compiled anew, the arm's way, in a type of number of the check's own."""

import contextlib

from compilegate_runtime.equivalence.sides import Side
from compilegate_runtime.equivalence.unseen import Unseen


class Anew(Side):
    """A side whose code is compiled when it first computes.

    With ``eager_numbers`` the compiler draws random numbers where and as eager code does; otherwise
    it draws them by the kernels' own generator. ``before()`` is called before it compiles.

    TorchDynamo finds code by what it is made of, not by its settings: what was compiled before is
    forgotten first, and this code when it has served.
    """

    def __init__(self, case, *, eager_numbers=True, before=None, **how):
        super().__init__(case, self._called, None, **how)
        self._eager_numbers, self._changes, self._graphs = eager_numbers, [], 0
        self._before = before or (lambda: None)

    def _called(self, batch):
        return self._subject.call_with(self.callable, batch)

    @contextlib.contextmanager
    def placed(self):
        """The starting weights, and the compiler as this side wants it."""
        import torch._dynamo.config as dynamo  # noqa: PLC0415
        import torch._inductor.config as inductor  # noqa: PLC0415

        if self._subject.compile_anew is None:
            raise Unseen("cannot_compile", "the model cannot be compiled anew")
        with contextlib.ExitStack() as stack:
            stack.enter_context(super().placed())
            stack.enter_context(inductor.patch(fallback_random=self._eager_numbers))
            stack.enter_context(dynamo.patch(fail_on_recompile_limit_hit=True))
            if self.callable is None:
                self._compile()
            else:
                self._weights.apply(self._changes)
            yield
            if self._made() == self._graphs:
                raise Unseen("not_compiled", "no graph was made of the model")

    def _compile(self):
        self._torch.compiler.reset()
        self._graphs = self._made()
        self._before()
        self.callable = self._subject.compile_anew(self._subject.model)
        self._changes = self._weights.changes()

    def forget(self):
        """Let nothing that was compiled here serve a run."""
        if self.callable is not None:
            self._torch.compiler.reset()

    @staticmethod
    def _made():
        from torch._dynamo.utils import counters  # noqa: PLC0415

        return counters["stats"]["unique_graphs"]
