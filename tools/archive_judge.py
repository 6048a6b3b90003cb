"""Archives a commit's judge, before a change that makes judges decide otherwise.

    python -m tools.archive_judge COMMIT

``compilegate judge --replay`` then repeats what that judge decided.
"""

from __future__ import annotations

import io
import json
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path
from zipfile import ZIP_DEFLATED, ZipFile, ZipInfo

from compilegate_judge.judges import FOLDER

# In a process of its own, where nothing else has been loaded.
LOADED = """
import json, sys
sys.path.insert(0, sys.argv[1])
import compilegate.domain.judging.evidence_file, compilegate.domain.judging.judge
from compilegate.domain.decision import JUDGE_VERSION
files = [m.__file__ for n, m in sys.modules.items() if n.split(".")[0] == "compilegate"]
print(json.dumps([JUDGE_VERSION, files]))
"""
MAIN = '''"""Judges evidence: a JSON request on standard input, its answer on standard output."""

import json
import sys

from compilegate.domain.errors import InvalidEvidenceError
from compilegate.domain.judging.evidence_file import read_evidence
from compilegate.domain.judging.judge import judge

request = json.load(sys.stdin)
try:
    decision = judge(read_evidence(request["evidence"]))
    answer = {"decision": decision.to_dict(request["flag"])}
except InvalidEvidenceError as error:
    answer = {"refused": str(error)}
json.dump(answer, sys.stdout)
'''


def judge_of(checkout: Path) -> tuple[str, dict[str, bytes]]:
    """The version of a checkout's judge, and every file that it loads by its place there.

    With the data that lies in a package of its own modules.
    """
    checkout = checkout.resolve()
    ran = subprocess.run(  # noqa: S603 - its own Python and code
        [sys.executable, "-I", "-S", "-B", "-c", LOADED, str(checkout)],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    version, files = json.loads(ran.stdout)
    paths = [Path(file) for file in files]
    packages = [path.parent for path in paths if path.name == "__init__.py"]
    paths += [data for package in packages for data in package.glob("*.json")]
    return version, {path.relative_to(checkout).as_posix(): path.read_bytes() for path in paths}


def archive(checkout: Path, folder: Path = FOLDER) -> Path:
    """Write the archive of a checkout's judge, the same bytes from the same files.

    Raises FileExistsError where a judge of this version is archived already.
    """
    version, files = judge_of(checkout)
    place = folder / f"{version}.zip"
    with ZipFile(place, "x") as packed:
        for name, content in sorted({**files, "__main__.py": MAIN.encode()}.items()):
            packed.writestr(ZipInfo(name), content, ZIP_DEFLATED, compresslevel=9)
    return place


def main(commit: str) -> None:
    """Archive the judge of a commit."""
    git = ["git", "archive", commit, "compilegate"]
    packed = subprocess.run(git, capture_output=True, check=True).stdout  # noqa: S603
    with tempfile.TemporaryDirectory() as folder:
        with tarfile.open(fileobj=io.BytesIO(packed)) as files:
            files.extractall(folder, filter="data")
        archive(Path(folder))


if __name__ == "__main__":
    main(*sys.argv[1:])
