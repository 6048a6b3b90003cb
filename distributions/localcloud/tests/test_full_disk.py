"""A disk that is full at any write of a training job: the job fails, says so, leaves nothing."""

from __future__ import annotations

import errno
import os
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from compilegate_localcloud.emulator.sagemaker import runner
from compilegate_localcloud.emulator.sagemaker.container import Layout
from compilegate_localcloud.emulator.sagemaker.job import TrainingJob
from compilegate_localcloud.emulator.settings import parse_arguments

REQUEST = {
    "TrainingJobName": "j", "RoleArn": "arn:aws:iam::000000000000:role/training",
    "InputDataConfig": [
        {"ChannelName": "train", "DataSource": {"S3DataSource": {"S3Uri": "s3://data/train/"}}}
    ],
    "OutputDataConfig": {"S3OutputPath": "s3://data/out"},
}  # fmt: skip
WRITES = ("Layout", "download_prefix", "write_config", "start", "output.tar.gz", "model.tar.gz")


class Machine:
    """Where a job runs; its disk is full at one of its writes."""

    def __init__(self, full_at: str) -> None:
        self.full_at, self.written = full_at, list[str]()

    def writes(self, name: str, answer: Any = None) -> Any:
        if name == self.full_at:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        self.written.append(name)
        return answer

    def install(self, monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
        """Into the module that runs jobs; only the process and AWS are not real."""
        log = SimpleNamespace(add=print, close=lambda: None, tail=lambda: "")
        fakes: dict[str, Any] = {
            "client_for": lambda *_: None,
            "JobLog": lambda *_: log,
            "Layout": lambda root: self.writes("Layout", Layout(root)),
            "download_prefix": lambda *_: self.writes("download_prefix", 1),
            "upload_archive": lambda *given: self.writes(given[-1], f"s3://data/{given[-1]}"),
        }
        for name, fake in fakes.items():
            monkeypatch.setattr(runner, name, fake)
        monkeypatch.setattr(Layout, "write_config", lambda *_: self.writes("write_config"))
        monkeypatch.setattr(runner.container, "command", lambda *_: [])
        monkeypatch.setattr(runner.container, "environment", lambda *_: {})
        monkeypatch.setattr(runner.container, "has_torchrun", lambda *_: True)
        self.folder = folder

    def start(self, *_: Any, **__: Any) -> Any:
        """The process, which leaves evidence and succeeds."""

        def run(_add: Any) -> int:
            (self.folder / "output" / "data" / "summary.json").write_text("{}")
            return 0

        return self.writes("start", SimpleNamespace(run=run))


def run_job(full_at: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> TrainingJob:
    machine, folder = Machine(full_at), tmp_path / "j"
    machine.install(monkeypatch, folder)
    job = TrainingJob(REQUEST, account="000000000000", region="us-east-1", folder=folder,
                      on_change=lambda _: None)  # fmt: skip
    settings = parse_arguments(["--home", str(tmp_path), "--run-id", "x", "--job-python", "x"])
    free: Any = SimpleNamespace(acquire=lambda _: True, release=lambda _: None)
    failures: Any = SimpleNamespace(before_start=lambda: None)
    fork_server: Any = machine
    runner.TrainingRun(
        job, settings=settings, scheduler=free, fork_server=fork_server, failures=failures
    ).run()
    return job


@pytest.mark.parametrize("full_at", WRITES)
def test_a_job_on_a_full_disk_fails_with_cause_and_fix(
    full_at: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    job = run_job(full_at, tmp_path, monkeypatch)

    reason = job.describe()["FailureReason"]
    assert ("Failed", None) == (job.status, job.model_uri)
    assert reason.startswith("InternalServerError: No space left on device")
    assert "Fix: free space" in reason
    assert not job.folder.exists()


def test_with_space_it_completes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert "Completed" == run_job("nowhere", tmp_path, monkeypatch).status
