"""``python -m tests.judges archive COMMIT`` or ``differ VERSION``."""

from __future__ import annotations

import json
import sys
import tempfile
from pathlib import Path

from compilegate.judges import FOLDER, archives, digest
from tests.judges.archive import check_out, contents, zipped
from tests.judges.differences import summary


def archive(commit: str) -> int:
    """Write the archive and its row of archives.json; refuses another one of the same version."""
    with tempfile.TemporaryDirectory() as folder:
        name = check_out(commit, Path(folder))
        version, files = contents(Path(folder))
    row = {"commit": name, "sha256": digest(files)}
    listed = dict(archives())
    if listed.setdefault(version, row)["sha256"] != row["sha256"]:
        print(f"judge {version} is archived already, and that of {name} differs", file=sys.stderr)
        return 1
    (FOLDER / f"{version}.zip").write_bytes(zipped(files))
    (FOLDER / "archives.json").write_text(json.dumps(listed, indent=1) + "\n")
    print(f"judge {version} of {name[:12]}: {len(files)} files")
    return 0


def main(action: str, what: str) -> int:
    """The command's exit code."""
    if action == "archive":
        return archive(what)
    print(summary(what))
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
