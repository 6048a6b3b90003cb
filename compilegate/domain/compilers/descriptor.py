"""What the rest of the domain has to know of a graph compiler."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Proposal:
    """The candidate that is planned for a workload file that names none, and why."""

    candidate: str
    why: str


@dataclass(frozen=True)
class Launching:
    """How jobs start under a compiler that has launchers of its own.

    ``switches`` are hyperparameters that turn the compiler on in the training toolkit;
    ``distribution`` is the one way onto several GPUs.
    """

    switches: Mapping[str, object]
    distribution: str


@dataclass(frozen=True)
class Compiler:
    """One graph compiler; ``name`` is what ``compiler:`` in a workload file says.

    Compilers are proposed and listed in the order of ``rank``. ``title`` is what people call it.
    ``kind`` is the library that it compiles and ``since`` the first version with it, by
    ``source``; None where a table of images says both (``own_image``). ``modes`` are the values of
    ``compile_mode``. ``keeps_cache`` between jobs, so that only the first one compiles.
    ``assumed_as`` names the compiler whose rows in compilegate/facts/assumptions.json bound
    compile time and speed-up. ``launching`` is None where the framework's launchers start it.
    """

    name: str
    rank: int
    title: str
    kind: str | None = None
    since: tuple[int, int] | None = None
    source: str = ""
    modes: tuple[str, ...] = ()
    keeps_cache: bool = True
    own_image: bool = False
    assumed_as: str = ""
    proposal: Proposal | None = None
    launching: Launching | None = field(default=None, repr=False)

    @property
    def assumptions(self) -> str:
        """The compiler whose assumed compile time and speed-up hold for this one."""
        return self.assumed_as or self.name
