"""A stand-in for the backend of a compiler of another library."""

from compilegate_runtime.compilers.none import NoCompiler


class OtherStandIn(NoCompiler):
    """Trains as written."""

    name = "stand_in_jax"


COMPILER = OtherStandIn
