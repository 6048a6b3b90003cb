"""Where a job's own script compiles its model, and what that means for what a trial measures."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from compilegate.domain.errors import shortened

# Behind an amount that a compiler saves or could save.
AGAINST = "against an uncompiled run"
LEFT_OUT = (
    "The baseline runs without that, so speed-up and saving are against an uncompiled run, not "
    "against the job as it runs today."
)
OFF_UNTIL_PROMOTED = (
    "Production's runs do so only while the flag is on, so until a candidate is promoted they may "
    "take longer than today."
)


@dataclass(frozen=True)
class ScriptCompiles:
    """The first such place; ``line`` counts from 1, ``source`` is the line as written."""

    script: str
    line: int
    source: str

    @classmethod
    def from_dict(cls, document: Mapping[str, Any] | None) -> ScriptCompiles | None:
        """Read ``script_compiles`` of a document; None where the script is not seen to compile."""
        if document is None:
            return None
        return cls(str(document["script"]), int(document["line"]), str(document["source"]))

    def to_dict(self) -> dict[str, Any]:
        """The place as it stands in documents under ``script_compiles``."""
        return asdict(self)

    @property
    def text(self) -> str:
        """Where the script compiles, and what that means for a saving."""
        return f"{self._where} {LEFT_OUT}"

    @property
    def in_production(self) -> str:
        """Where the script compiles, and what that means for production's runs."""
        return f"{self._where} {OFF_UNTIL_PROMOTED}"

    @property
    def _where(self) -> str:
        # Nothing of a script but its text reaches a terminal.
        where = f"line {self.line}: {shortened(self.source)}"
        return f"{shortened(self.script)} already compiles ({where})."
