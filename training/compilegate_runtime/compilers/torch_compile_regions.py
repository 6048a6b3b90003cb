"""torch.compile of a model's repeated blocks: equal ones are compiled once for all."""

from compilegate_runtime.compilers.torch_compile import ALL_REGIONS, TorchCompile


class TorchCompileRegions(TorchCompile):
    """As TorchCompile with ``compile_regions``, which may name the list of blocks.

    A model without a list of equal blocks, and one whose blocks left no graph in training, is not
    compiled.
    """

    name, regions_alone = "torch_compile_regions", True

    @classmethod
    def create(cls, settings):
        """The backend of a job's ``Settings``."""
        return super().create(settings._replace(regions=settings.regions or ALL_REGIONS))


COMPILER = TorchCompileRegions
