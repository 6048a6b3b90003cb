"""What a script's own compiling means for a trial's baseline, said wherever money is shown."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from compilegate.adapters.workload_files import WorkloadFile
from compilegate.doctor import OwnCompiling, where_it_compiles
from compilegate.domain.errors import shortened
from compilegate.domain.naming import LAUNCHER

# Behind an amount that a compiler could save.
AGAINST = "against an uncompiled run"
LEFT_OUT = (
    "The baseline runs without that, so a saving here is one against an uncompiled run, not "
    "against the job as it runs today."
)


def compiling_today(file: WorkloadFile) -> dict[str, Any] | None:
    """Where the job's own script compiles, None where it is not seen to.

    Only under the launcher, which leaves such a call out of the baseline; another entry point's
    baseline is the script as it is.
    """
    training = file.workload.training
    if training.entry_point != LAUNCHER:
        return None
    script = str(training.hyperparameters.get("script", ""))
    try:
        content = (file.source_dir / script).read_bytes()
    except OSError:
        return None
    found = where_it_compiles(content, training.hyperparameters)
    return None if found is None else place_of(script, found)


def place_of(script: str, found: OwnCompiling) -> dict[str, Any]:
    """The place as it stands in documents under ``script_compiles``."""
    return {"script": script, **found.to_dict()}


def compiling_text(place: Mapping[str, Any]) -> str:
    """Where a script compiles, and what that means for a saving."""
    # Nothing of a script but its text reaches the terminal.
    where = f"line {place['line']}: {shortened(place['source'])}"
    return f"{place['script']} already compiles ({where}). {LEFT_OUT}"
