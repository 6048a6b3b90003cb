"""What an archive holds, and the archive itself; the same bytes from the same commit."""

from __future__ import annotations

import io
import subprocess
import tarfile
import zipfile
from pathlib import Path

from benchmarks.decision.provenance import judge_of

MAIN = '''"""Judges evidence: a JSON request a line in, its answer a line out."""

import json
import sys

from compilegate.domain.errors import InvalidEvidenceError
from compilegate.domain.judging.evidence_file import read_evidence
from compilegate.domain.judging.judge import judge

for line in sys.stdin:
    request = json.loads(line)
    try:
        decision = judge(read_evidence(request["evidence"]))
        answer = {"decision": decision.to_dict(request["flag"])}
    except InvalidEvidenceError as error:
        answer = {"refused": str(error)}
    print(json.dumps(answer), flush=True)
'''
EPOCH = (1980, 1, 1, 0, 0, 0)


def contents(checkout: Path) -> tuple[str, dict[str, bytes]]:
    """The version of a checkout's judge, and what its archive holds."""
    version, files = judge_of(checkout)
    return version, {**files, "__main__.py": MAIN.encode()}


def check_out(commit: str, folder: Path) -> str:
    """Write a commit's package ``compilegate`` below a folder; returns the commit's full name."""
    name = _git("rev-parse", f"{commit}^{{commit}}").decode().strip()
    with tarfile.open(fileobj=io.BytesIO(_git("archive", name, "compilegate"))) as packed:
        packed.extractall(folder, filter="data")
    return name


def zipped(files: dict[str, bytes]) -> bytes:
    """An archive without times and modes."""
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        for place in sorted(files):
            entry = zipfile.ZipInfo(place, EPOCH)
            archive.writestr(entry, files[place], zipfile.ZIP_DEFLATED, compresslevel=9)
    return packed.getvalue()


def _git(*arguments: str) -> bytes:
    return subprocess.run(["git", *arguments], capture_output=True, check=True).stdout
