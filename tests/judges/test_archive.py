"""Each archive is the judge of its commit, needs nothing else, and decides alone."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from zipfile import ZipFile

import pytest

from compilegate import judges
from compilegate.domain.errors import EnvironmentNotReadyError, InvalidEvidenceError
from stacks.assets import SOURCES
from tests.domain.evidence_builder import GOOD, document
from tests.judges.archive import check_out, contents, zipped

FLAG = "/compilegate/prod/workloads/lm/compiler"


@pytest.fixture(params=sorted(judges.archives()))
def version(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def test_an_archive_is_made_of_its_commit_again(version: str, tmp_path: Path) -> None:
    commit = judges.archives()[version]["commit"]
    known = subprocess.run(["git", "cat-file", "-e", commit], check=False, capture_output=True)
    if known.returncode:
        pytest.skip("this checkout has no history")

    check_out(commit, tmp_path)
    made, files = contents(tmp_path)

    assert (version, judges.archives()[version]["sha256"]) == (made, judges.digest(files))


def test_the_same_files_make_the_same_bytes() -> None:
    files = {"b.py": b"2", "a.py": b"1"}

    assert zipped(files) == zipped(dict(reversed(files.items())))


def test_an_archive_decides_under_its_own_version(version: str) -> None:
    decision = judges.decide(version, document(metrics=GOOD), FLAG)

    assert (version, "promote", FLAG) == (
        decision["judge_version"], decision["verdict"], decision["flag"]["name"],
    )  # fmt: skip


def test_an_archive_loads_nothing_of_the_present_package(version: str) -> None:
    """Neither from this checkout nor from what is installed."""
    place = judges.command(version)[-1]
    code = (
        f"import sys; sys.path.insert(0, {place!r})\n"
        "import compilegate.domain.judging.judge, compilegate.domain.judging.evidence_file\n"
        "print([m.__file__ for n, m in sys.modules.items() if n.startswith('compilegate')])"
    )
    ran = subprocess.run(
        [sys.executable, "-I", "-S", "-c", code], capture_output=True, text=True, check=True
    )

    files = json.loads(ran.stdout.replace("'", '"'))
    assert files and all(file.startswith(place) for file in files)


def test_evidence_that_an_archive_cannot_read_is_refused(version: str) -> None:
    with pytest.raises(InvalidEvidenceError, match="schema"):
        judges.decide(version, {"schema": 7}, FLAG)


def test_an_archive_that_was_changed_decides_nothing(
    version: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(judges, "FOLDER", tmp_path)
    judges.command.cache_clear()
    with ZipFile(tmp_path / f"{version}.zip", "w") as archive:
        archive.writestr("__main__.py", "")

    with pytest.raises(EnvironmentNotReadyError, match="install Compilegate again"):
        judges.command(version)


def test_no_lambda_carries_the_archives() -> None:
    """A Lambda decides what is new; only ``judge --replay`` repeats."""
    assert not [source for source in SOURCES if "compilegate/judges".startswith(source)]
