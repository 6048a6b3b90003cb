"""CheckpointConfig: a folder that outlives the job in S3.

As SageMaker documents it: what is in S3 is written to the folder at the start; new and changed
files are copied to S3 while the job runs; a file that is deleted in the folder is deleted in S3.
Source: https://docs.aws.amazon.com/sagemaker/latest/dg/model-checkpoints.html
"""

from __future__ import annotations

import logging
import threading
from pathlib import Path
from typing import Any

from botocore.exceptions import BotoCoreError, ClientError

from compilegate.localcloud.emulator.sagemaker.layout import DEFAULT_CHECKPOINT_PATH, Layout
from compilegate.localcloud.emulator.sagemaker.storage import download_prefix, upload_folder

log = logging.getLogger("compilegate.sagemaker")


class Checkpoints:
    """Copies the folder from S3 before the job, and back while it runs and at its end."""

    def __init__(self, client: Any, request: dict[str, Any], layout: Layout) -> None:
        config = request.get("CheckpointConfig")
        self._client = client
        self._uri: str | None = config["S3Uri"] if config else None
        place = (config or {}).get("LocalPath") or DEFAULT_CHECKPOINT_PATH
        self._folder = Path(layout.mapped(place))
        self._uploaded: dict[Path, tuple[int, int]] = {}
        self._copying = threading.Lock()
        self._stopped = threading.Event()

    def restore(self) -> None:
        """Bring back what earlier jobs left."""
        if self._uri is None:
            return
        self._folder.mkdir(parents=True, exist_ok=True)
        download_prefix(self._client, self._uri, self._folder)
        for path in self._folder.rglob("*"):
            if path.is_file():
                state = path.stat()
                self._uploaded[path] = (state.st_mtime_ns, state.st_size)

    def save(self) -> None:
        """Copy what changed; a refused call is logged, since it must not fail a running job."""
        if self._uri is None or not self._folder.is_dir():
            return
        with self._copying:
            try:
                upload_folder(self._client, self._folder, self._uri, self._uploaded)
            except (BotoCoreError, ClientError, OSError) as error:
                log.warning("checkpoints not copied to %s: %s", self._uri, error)

    def save_every(self, seconds: float) -> None:
        """Begin copying in the background until ``close``."""
        if self._uri is not None:
            threading.Thread(target=self._repeat, args=(seconds,), daemon=True).start()

    def close(self) -> None:
        """Stop copying in the background."""
        self._stopped.set()

    def _repeat(self, seconds: float) -> None:
        while not self._stopped.wait(seconds):
            self.save()
