"""One training job from its request to its end."""

from __future__ import annotations

import contextlib
import errno
import logging
import threading
from pathlib import Path
from typing import Any

from botocore.exceptions import BotoCoreError, ClientError

from compilegate_localcloud.emulator.clients import client_for
from compilegate_localcloud.emulator.sagemaker import container
from compilegate_localcloud.emulator.sagemaker.container import Layout
from compilegate_localcloud.emulator.sagemaker.failures import (
    DamagedFolderError,
    InjectedFailures,
    JobFailedError,
)
from compilegate_localcloud.emulator.sagemaker.job import StopCause, TrainingJob
from compilegate_localcloud.emulator.sagemaker.job_log import JobLog
from compilegate_localcloud.emulator.sagemaker.process import ForkServer, TrainingProcess
from compilegate_localcloud.emulator.sagemaker.scheduler import Scheduler
from compilegate_localcloud.emulator.sagemaker.storage import (
    Checkpoints,
    download_prefix,
    reason_of,
    upload_archive,
)
from compilegate_localcloud.emulator.settings import Settings

DEFAULT_MAX_RUNTIME_SECONDS = 86_400
_SIGKILL_STATUS = 137
_REASON_TAIL_CHARACTERS = 700  # leaves room for the prefix, the command and the exit code
_NO_SPACE = (errno.ENOSPC, errno.EDQUOT)
log = logging.getLogger("compilegate.sagemaker")


def _cause(error: Exception, folder: Path) -> str:
    if isinstance(error, OSError) and error.errno in _NO_SPACE:
        return f"{error.strerror} for {folder}. Fix: free space on its disk"
    return f"{type(error).__name__}: {error}"


class TrainingRun:
    """Drives a job through Starting, Pending, Downloading, Training and Uploading."""

    def __init__(
        self,
        job: TrainingJob,
        *,
        settings: Settings,
        scheduler: Scheduler,
        fork_server: ForkServer,
        failures: InjectedFailures,
    ) -> None:
        self.job, self._settings = job, settings
        self._scheduler, self._failures = scheduler, failures
        self._fork_server = fork_server
        self._process: TrainingProcess | None = None
        self._s3: Any = None

    def run(self) -> None:
        """Run to the end; every error becomes the job's status and reason."""
        try:
            self._failures.before_start()
            if not self._scheduler.acquire(self.job):
                self.job.stop()
                return
            try:
                self._run_on_machine()
            finally:
                self._scheduler.release(self.job)
        except JobFailedError as error:
            self.job.fail(str(error))
        except (BotoCoreError, ClientError) as error:
            words = reason_of(error) if isinstance(error, ClientError) else str(error)
            self.job.fail(f"ClientError: {words}")
        except Exception as error:  # a fault of this backend must end the job, not hang it
            log.exception("training job %s", self.job.name)
            self.job.fail(f"InternalServerError: {_cause(error, self.job.folder)}")
        finally:
            container.remove(self.job.folder)
            log.info("training job %s ended: %s", self.job.name, self.job.status)

    def abandon(self) -> None:
        """End the training process because the emulator ends."""
        if self._process is not None and not self.job.finished.is_set():
            self._process.abandon()

    def kill(self) -> None:
        """Kill the training process from outside, for tests."""
        if self._process is not None:
            self._process.kill()

    def _run_on_machine(self) -> None:
        self.job.begin_billing()
        self.job.enter("Downloading", "Downloading input data")
        role = self.job.request["RoleArn"]
        self._s3 = client_for("s3", self.job.region, role)
        layout = Layout(self.job.folder)
        self._download_channels(layout)
        checkpoints = Checkpoints(self._s3, self.job.request, layout)
        checkpoints.restore()
        # The service writes metrics, where logs are written with the job's role.
        metrics = client_for("cloudwatch", self.job.region)
        job_log = JobLog(client_for("logs", self.job.region, role), metrics, self.job)
        try:
            status = self._train(layout, checkpoints, job_log)
        finally:
            checkpoints.close()
            job_log.close()
        self._finish(layout, checkpoints, job_log, status)

    def _download_channels(self, layout: Layout) -> None:
        for channel in self.job.request.get("InputDataConfig") or []:
            uri = channel["DataSource"]["S3DataSource"]["S3Uri"]
            folder = layout.data / channel["ChannelName"]
            folder.mkdir()
            try:
                count = download_prefix(self._s3, uri, folder)
            except ClientError as error:
                raise JobFailedError(
                    f"ClientError: Data download failed: {uri}: {reason_of(error)}"
                ) from error
            if not count:
                raise JobFailedError(
                    f'ClientError: Data download failed: No S3 objects found under S3 URL "{uri}" '
                    "given in input data source. Please ensure that the bucket exists in the "
                    f"selected region ({self.job.region}), that objects exist under that S3 "
                    f'prefix, and that the role "{self.job.request["RoleArn"]}" has '
                    '"s3:ListBucket" permissions on the bucket.'
                )

    def _train(self, layout: Layout, checkpoints: Checkpoints, job_log: JobLog) -> int:
        if self.job.stopping.is_set():
            return 0
        layout.write_config(self.job.request, self._hyperparameters(job_log))
        command = container.command(self._settings, layout)
        environment = container.environment(self.job, layout, self._settings)
        self.job.enter("Training", "Training image download completed. Training in progress.")
        self._process = self._fork_server.start(
            command, folder=layout.root, environment=environment
        )
        with self._watch():
            checkpoints.save_every(self._settings.checkpoint_seconds)
            return self._process.run(job_log.add)

    def _hyperparameters(self, job_log: JobLog) -> dict[str, str]:
        """Those of the request, without launchers that cannot run here; the log says which."""
        requested: dict[str, str] = self.job.request.get("HyperParameters") or {}
        count = (self.job.request.get("ResourceConfig") or {}).get("InstanceCount", 1)
        if count > 1:
            job_log.add(f"local cloud: InstanceCount is {count}, one process runs for all of them")
        torchrun = container.has_torchrun(self._settings)
        absent = container.missing_launchers(requested, instances=count, torchrun=torchrun)
        for name in absent.values():
            job_log.add(f"local cloud: the script starts without its launcher, {name}")
        return {key: value for key, value in requested.items() if key not in absent}

    @contextlib.contextmanager
    def _watch(self) -> Any:
        """Stop the process when the job is asked to stop or has run for too long."""
        limit = (self.job.request.get("StoppingCondition") or {}).get(
            "MaxRuntimeInSeconds", DEFAULT_MAX_RUNTIME_SECONDS
        )
        timer = threading.Timer(limit, self.job.request_stop, (StopCause.MAX_RUNTIME,))
        timer.daemon = True
        timer.start()
        ended = threading.Event()
        threading.Thread(target=self._stop_when_asked, args=(ended,), daemon=True).start()
        try:
            yield
        finally:
            timer.cancel()
            ended.set()

    def _stop_when_asked(self, ended: threading.Event) -> None:
        while not ended.is_set():
            if self.job.stopping.wait(0.2):
                if self._process is not None:
                    self._process.stop(self._settings.stop_grace_seconds)
                return

    def _finish(
        self, layout: Layout, checkpoints: Checkpoints, job_log: JobLog, status: int
    ) -> None:
        self.job.enter("Uploading", "Uploading generated training model")
        checkpoints.save()
        failed = status != 0 and self.job.stop_cause is None
        try:
            self._upload(layout, layout.output_data, "output.tar.gz", always=False)
            if not failed:
                self.job.model_uri = self._upload(layout, layout.model, "model.tar.gz")
        except DamagedFolderError as error:
            if not failed:
                raise JobFailedError(f"AlgorithmError: {error}, exit code: {status}") from error
        if failed:
            raise JobFailedError(self._reason(layout, job_log, status))
        if self.job.stop_cause is None:
            self.job.complete()
        else:
            self.job.stop()

    def _upload(
        self, layout: Layout, folder: Path, name: str, *, always: bool = True
    ) -> str | None:
        """Pack and upload one of the job's folders, an empty one only where ``always`` is set."""
        place = self.job.request["OutputDataConfig"]["S3OutputPath"]
        try:
            layout.check(folder)
            if always or any(folder.iterdir()):
                return upload_archive(self._s3, folder, place, self.job.name, name)
        except (DamagedFolderError, PermissionError) as error:
            words = f"the job left {layout.name(folder)} so that it cannot be read: {error}"
            raise DamagedFolderError(words) from error
        return None

    def _reason(self, layout: Layout, job_log: JobLog, status: int) -> str:
        reason = layout.reason(_REASON_TAIL_CHARACTERS)
        if reason is not None:
            return f"AlgorithmError: {reason}, exit code: {status}"
        message = job_log.tail()[-_REASON_TAIL_CHARACTERS:]
        if status == _SIGKILL_STATUS:
            message += "\nThe process was killed (SIGKILL), usually for lack of memory."
        return f"AlgorithmError: {message}, exit code: {status}"
