"""Loads what is slow to import while the emulator serves already: three seconds in all."""

from __future__ import annotations

import enum
import logging
import os
import sys
import threading
import types
from pathlib import Path

from compilegate.localcloud.emulator.sagemaker.service import TrainingService
from compilegate.localcloud.emulator.sagemaker.validation import service_model

log = logging.getLogger("compilegate.emulator")


class Loader:
    """The interpreter and CloudFormation; requests to either wait until they are loaded."""

    def __init__(self, service: TrainingService, record_to: Path | None) -> None:
        self._service, self._record_to = service, record_to
        self._loaded = threading.Event()

    def start(self) -> None:
        """Begin loading without waiting."""
        threading.Thread(target=self._load, daemon=True, name="loader").start()

    def wait(self) -> None:
        """Return once everything is loaded."""
        self._loaded.wait()

    def _load(self) -> None:
        try:
            _leave_out_ec2()
            from compilegate.localcloud.emulator.engine import (  # noqa: PLC0415
                expressions,
                hooks,
                patches,
                sagemaker_task,
            )
            from compilegate.localcloud.emulator.engine.executions import (  # noqa: PLC0415
                Executions,
            )

            patches.install()
            expressions.install(self._record_to)
            sagemaker_task.install(self._service)
            hooks.install(Executions())
        except Exception:  # without the interpreter nothing here can be trusted
            log.exception("the state-language interpreter did not load")
            os._exit(1)
        self._loaded.set()
        service_model()  # a large file; better read now than by the first training job


class _BatchJobStatus(enum.StrEnum):
    SUBMITTED = "SUBMITTED"
    PENDING = "PENDING"
    RUNNABLE = "RUNNABLE"
    STARTING = "STARTING"
    RUNNING = "RUNNING"
    SUCCEEDED = "SUCCEEDED"
    FAILED = "FAILED"


def _leave_out_ec2() -> None:
    """moto's Batch task imports all of moto's EC2 for one enumeration: a second we do without."""
    module = types.ModuleType("moto.batch.utils")
    module.JobStatus = _BatchJobStatus  # type: ignore[attr-defined]
    sys.modules.setdefault("moto.batch", types.ModuleType("moto.batch"))
    sys.modules.setdefault("moto.batch.utils", module)
