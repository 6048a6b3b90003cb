"""Loads what is slow to import while the emulator serves already: three seconds in all."""

from __future__ import annotations

import enum
import logging
import os
import threading
import time

from compilegate_localcloud.emulator.clients import service_model
from compilegate_localcloud.emulator.journal.recorder import Recorder
from compilegate_localcloud.emulator.replacements import replace, stand_in
from compilegate_localcloud.emulator.sagemaker.service import TrainingService
from compilegate_localcloud.emulator.settings import Settings

log = logging.getLogger("compilegate.emulator")


class Loader:
    """The interpreter and CloudFormation; requests to either wait until they are loaded."""

    def __init__(self, service: TrainingService, settings: Settings, recorder: Recorder) -> None:
        self._service, self._settings, self._recorder = service, settings, recorder
        self._loaded = threading.Event()

    def start(self) -> None:
        """Begin loading without waiting."""
        threading.Thread(target=self._load, daemon=True, name="loader").start()

    def hold_executions(self) -> None:
        """Let executions that a schedule or an event starts wait as well; requests are none."""
        from ministack.services import stepfunctions  # noqa: PLC0415 - slow to import

        def wait_and_run(arn: str) -> None:
            self.wait()
            stepfunctions._run_execution(arn)

        replace("ministack.services.stepfunctions._run_execution", wait_and_run)

    def wait(self) -> None:
        """Return once everything is loaded."""
        self._loaded.wait()

    def _load(self) -> None:
        try:
            stand_in("moto.batch.utils.JobStatus", _BatchJobStatus)
            from compilegate_localcloud.emulator.engine import (  # noqa: PLC0415
                executions,
                expressions,
                patches,
                sagemaker_task,
            )

            patches.install()
            expressions.install()
            sagemaker_task.install(self._service)
            running = executions.Executions(self._settings.logs / "executions", self._recorder)
            executions.install(running)
            self._service.end_lost(self._recorder.journal.written_at or time.time())
            running.resume()
        except Exception:  # without the interpreter nothing here can be trusted
            log.exception("the state-language interpreter did not load")
            os._exit(1)
        self._loaded.set()
        service_model("sagemaker")  # a large file; better read now than by the first training job


class _BatchJobStatus(enum.StrEnum):
    SUBMITTED = "SUBMITTED"
    PENDING = "PENDING"
    RUNNABLE = "RUNNABLE"
    STARTING = "STARTING"
    RUNNING = "RUNNING"
    SUCCEEDED = "SUCCEEDED"
    FAILED = "FAILED"
