"""The releases of the container toolkit that jobs are tried under, and where they lie.

5.1.1 is in the environments of tests and training (requirements/toolkit.in), the others in
``build/toolkits``, which ``make dev`` fills.
"""

from __future__ import annotations

from pathlib import Path

from compilegate_localcloud.places import REPOSITORY

# The oldest of a supported image and the newest start the script with a list of arguments, the
# one of today's images through a shell.
RELEASES = ("3.9.2", "5.1.1", "5.1.4")
INSTALLED = "5.1.1"
# Release 3.9.2 is of the days of Python 3.8, and waits for its host's name, which SageMaker's
# network knows.
OLD_PYTHON = """\
import collections, collections.abc, socket
collections.Mapping = collections.abc.Mapping
known = socket.gethostbyname
socket.gethostbyname = lambda name: "127.0.0.1" if name.startswith("algo-") else known(name)
"""


def folder_of(release: str, scratch: Path) -> Path | None:
    """What to put on the path for a release, None for the one that is installed."""
    if release == INSTALLED:
        return None
    folder = REPOSITORY / "build" / "toolkits" / release
    assert folder.is_dir(), f"{folder} is missing: run make dev"
    if release != "3.9.2":
        return folder
    for item in folder.iterdir():
        (scratch / item.name).symlink_to(item)
    (scratch / "sitecustomize.py").write_text(OLD_PYTHON)
    # Jobs fork from a process that began without it.
    (scratch / "bin").unlink()
    (scratch / "bin").mkdir()
    (scratch / "bin" / "train").write_text(OLD_PYTHON + (folder / "bin" / "train").read_text())
    return scratch
