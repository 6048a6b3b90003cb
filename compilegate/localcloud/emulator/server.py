"""Puts the emulator together and serves it until it is told to stop."""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import os
import shutil
import signal
import socket
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from hypercorn.asyncio import serve as hypercorn_serve
from hypercorn.config import Config
from ministack import app as ministack_app
from ministack.core import lambda_runtime

from compilegate.localcloud.emulator import lambda_workers, log_files, routes
from compilegate.localcloud.emulator.admin import Door
from compilegate.localcloud.emulator.engine.loader import Loader
from compilegate.localcloud.emulator.sagemaker.service import TrainingService
from compilegate.localcloud.emulator.settings import Settings

_SHUTDOWN_SECONDS = 5.0
log = logging.getLogger("compilegate.emulator")


def serve(settings: Settings, listener: socket.socket) -> None:
    """Serve on the listening socket; remove the working files at the end."""
    service = TrainingService(settings)
    loader = Loader(service)
    routes.install(service)
    lambda_workers.install()
    log_files.install(settings.logs)
    try:
        asyncio.run(_serve(settings, listener, service, loader))
    finally:
        _clean_up(settings)
    # Threads of executions and jobs may still wait for something that will not come; the
    # supervisors end the jobs' processes when this process is gone.
    sys.stderr.flush()
    os._exit(0)


async def _serve(
    settings: Settings, listener: socket.socket, service: TrainingService, loader: Loader
) -> None:
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    if settings.attached:
        _stop_with_parent(loop, stop)
    config = Config()
    config.bind = [f"fd://{listener.fileno()}"]
    config.keep_alive_timeout = 75
    config.graceful_timeout = 0.5
    config.loglevel = "WARNING"
    door = Door(ministack_app.app, settings, service, loader)
    announced = asyncio.create_task(_announce(settings, listener, loader))
    await hypercorn_serve(door, config, shutdown_trigger=stop.wait)
    announced.cancel()


async def _announce(settings: Settings, listener: socket.socket, loader: Loader) -> None:
    """Say where the emulator listens; the socket takes connections already."""
    port = listener.getsockname()[1]
    state = {
        "run_id": settings.run_id,
        "pid": os.getpid(),
        "port": port,
        "region": settings.region,
        "attached": settings.attached,
        "enforce_iam": settings.enforce_iam,
        "inject_failures": settings.inject_failures,
        "started_at": time.time(),
    }
    partial = settings.state_file.with_suffix(".partial")
    partial.write_text(json.dumps(state), encoding="utf-8")
    partial.replace(settings.state_file)
    log.info("serving on port %s", port)
    loader.start()


def _stop_with_parent(loop: asyncio.AbstractEventLoop, stop: asyncio.Event) -> None:
    """End when the pipe from the process that started this one is closed, however it ended."""

    def wait() -> None:
        with contextlib.suppress(OSError):
            while os.read(0, 4096):
                pass
        loop.call_soon_threadsafe(stop.set)
        time.sleep(_SHUTDOWN_SECONDS)
        os._exit(1)  # the loop did not end in time

    threading.Thread(target=wait, daemon=True, name="parent-watch").start()


def _clean_up(settings: Settings) -> None:
    lambda_runtime.reset()
    shutil.rmtree(settings.temporary.parent, ignore_errors=True)
    for path in _own_state(settings):
        path.unlink(missing_ok=True)


def _own_state(settings: Settings) -> Iterator[Path]:
    """The state file, unless a later run has written its own."""
    with contextlib.suppress(OSError, ValueError):
        state: dict[str, Any] = json.loads(settings.state_file.read_text(encoding="utf-8"))
        if state.get("run_id") == settings.run_id:
            yield settings.state_file
