"""torch.compile for any size from the first graph on, where shapes differ from step to step."""

from compilegate_runtime.compilers.torch_compile import TorchCompile
from compilegate_runtime.errors import HyperparameterError, NotAppliedError


class TorchCompileDynamic(TorchCompile):
    """As TorchCompile with ``compile_dynamic: true``, proven by graphs whose sizes may change."""

    name = "torch_compile_dynamic"

    @classmethod
    def create(cls, settings):
        """The backend of a job's ``Settings``; raises HyperparameterError for fixed shapes."""
        if settings.dynamic == "false":
            raise HyperparameterError(
                f"compile_dynamic false does not go with compiler {cls.name}; leave it out, or "
                "name compiler torch_compile"
            )
        return super().create(settings._replace(dynamic="true"))

    def verify(self):
        """Raise NotAppliedError also where every graph was compiled for one size alone."""
        super().verify()
        if not self.symbolic_graphs():
            raise NotAppliedError(
                f"compiler {self.requested} was requested but not applied: no graph has a size "
                "that may change. Does the script mark its tensors as static?"
            )


COMPILER = TorchCompileDynamic
