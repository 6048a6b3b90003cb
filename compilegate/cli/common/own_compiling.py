"""Whether the script of a workload file compiles its model itself."""

from __future__ import annotations

from compilegate.adapters.workload_files import WorkloadFile
from compilegate.domain.naming import LAUNCHER
from compilegate.domain.script_compiles import ScriptCompiles
from compilegate_doctor import OwnCompiling, where_it_compiles


def compiling_today(file: WorkloadFile) -> ScriptCompiles | None:
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
    compiling = where_it_compiles(content, training.hyperparameters)
    return None if compiling is None else place_of(script, compiling)


def place_of(script: str, compiling: OwnCompiling) -> ScriptCompiles:
    """The place in a script of this name."""
    return ScriptCompiles(script, compiling.line, compiling.source)
