"""The cloud of the embedded cloud's own tests, on which the rest of the project runs here."""

from distributions.localcloud.tests.conftest import (
    client,
    cloud,
    machines,
    make_function,
    trainer,
)

__all__ = ["client", "cloud", "machines", "make_function", "trainer"]
