"""What is to be noted of the script of a workload file: that it compiles its model itself."""

from __future__ import annotations

from compilegate.adapters.workload_files import WorkloadFile
from compilegate.domain.naming import LAUNCHER
from compilegate.domain.notes import SCRIPT_COMPILES, Note
from compilegate_doctor import OwnCompiling, where_it_compiles


def notes_on(file: WorkloadFile) -> tuple[Note, ...]:
    """That the job's own script compiles, and where it does.

    Only under the launcher, which leaves such a call out of the baseline; another entry point's
    baseline is the script as it is.
    """
    training = file.workload.training
    if training.entry_point != LAUNCHER:
        return ()
    script = str(training.hyperparameters.get("script", ""))
    try:
        content = (file.source_dir / script).read_bytes()
    except OSError:
        return ()
    return note_of(script, where_it_compiles(content, training.hyperparameters))


def note_of(script: str, compiling: OwnCompiling | None) -> tuple[Note, ...]:
    """Of the place in a script of this name; nothing where it is not seen to compile."""
    return (Note(SCRIPT_COMPILES, {"script": script, **compiling.to_dict()}),) if compiling else ()
