"""A stand-in for a graph compiler's backend: it counts calls and compiles nothing."""

from compilegate_runtime.compilers.none import NoCompiler
from compilegate_runtime.errors import NotAppliedError


class StandIn(NoCompiler):
    """Counts the calls of what it was given."""

    name, modes = "stand_in", ("careful",)

    def __init__(self):
        super().__init__()
        self._calls = 0

    def apply(self, module):
        """Return the module with its calls counted."""

        def counted(*values):
            self._calls += 1
            return module(*values)

        return counted

    def verify(self):
        """Raise NotAppliedError unless a call was counted."""
        if not self._calls:
            raise NotAppliedError(f"compiler {self.name} was requested but not applied")

    def evidence(self):
        """The ``compiler`` part of a run's summary."""
        applied = bool(self._calls)
        return {**super().evidence(), "applied": applied, "proof": f"{self._calls} calls"}


COMPILER = StandIn
