"""Files on a full disk, and in folders that may not be written."""

from __future__ import annotations

import errno
import os
from pathlib import Path
from typing import Any

import pytest

from compilegate.adapters.workload_files import DIGEST_LENGTH, KEPT, unwritten, write_whole
from compilegate.domain.errors import EnvironmentNotReadyError

FULL = OSError(errno.ENOSPC, "No space left on device")


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "new" / "folder" / "facts.json"
    write_whole(path, b"old")
    return path


@pytest.mark.parametrize("at", ["write_bytes", "replace", "mkdir"])
def test_on_a_full_disk_the_old_file_stays_and_nothing_else(
    file: Path, at: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(path: Path, *given: Any, **_: Any) -> None:
        if at == "write_bytes":  # what fitted is there
            with path.open("wb") as half:
                half.write(given[0][:1])
        raise FULL

    monkeypatch.setattr(Path, at, full)
    with pytest.raises(
        EnvironmentNotReadyError,
        match=r"facts\.json could not be written: No space left.*Fix: free",
    ):
        write_whole(file, b"new")

    assert b"old" == file.read_bytes()
    assert [file] == list(file.parent.iterdir())


def test_a_link_stays_a_link_and_a_pipe_gets_what_is_written(file: Path, tmp_path: Path) -> None:
    link = tmp_path / "link.json"
    link.symlink_to(file)
    write_whole(link, b"new")
    reading, writing = os.pipe()
    write_whole(Path(f"/dev/fd/{writing}"), b"new")

    assert b"new" == os.read(reading, 9)
    os.close(reading)
    os.close(writing)
    assert link.is_symlink()
    assert b"new" == file.read_bytes()
    assert "x could not be written: full" == unwritten("x", OSError("full")).problem


def test_the_figures_that_these_tests_go_by() -> None:
    assert (12, 4) == (DIGEST_LENGTH, KEPT)
