"""What a shell completes without asking a cloud: names of workloads that are near the folder."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import suppress
from itertools import islice
from pathlib import Path

FOLDERS = (Path(), Path("workloads"))
MOST_FILES = 200  # a shell waits for the answer
HEAD_BYTES = 2000
_NAME = re.compile(rb"^name:[ \t]*[\"']?([a-z0-9-]{1,32})", re.MULTILINE)


def workload_names(incomplete: str) -> list[str]:
    """Names in workload files here and in ``workloads``, and of local trials that are kept."""
    names = {*_of_files(), *_of_trials()}
    return sorted(name for name in names if name.startswith(incomplete))


def _of_files() -> Iterator[str]:
    files = (path for folder in FOLDERS for path in folder.glob("*.y*ml"))
    for path in islice(files, MOST_FILES):
        with suppress(OSError), path.open("rb") as file:
            if name := _NAME.search(file.read(HEAD_BYTES)):
                yield name[1].decode()


def _of_trials() -> Iterator[str]:
    from compilegate.adapters.kept_trials import TRIALS  # noqa: PLC0415 - no command needs it

    for folder in islice(TRIALS.glob("*/"), MOST_FILES):
        yield folder.name.rpartition("-")[0]
