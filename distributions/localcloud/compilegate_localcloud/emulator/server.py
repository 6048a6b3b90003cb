"""Puts the emulator together and serves it until it is stopped.

Its own paths, ``/_compilegate/...``, are health and, for tests, failures.
"""

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
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

from hypercorn.asyncio import serve as hypercorn_serve
from hypercorn.config import Config
from ministack import app as ministack_app
from ministack.core import lambda_runtime

from compilegate_localcloud.emulator import (
    bundles,
    permissions,
    routes,
    schedules,
    scopes,
    services,
    workers,
)
from compilegate_localcloud.emulator.engine.loader import Loader
from compilegate_localcloud.emulator.gate import (
    SIGNED_SERVICE,
    Application,
    Gate,
    Message,
    Receive,
    Send,
    read_body,
)
from compilegate_localcloud.emulator.journal.file import UnusableError
from compilegate_localcloud.emulator.journal.recorder import Recorder
from compilegate_localcloud.emulator.journal.requests import Recording
from compilegate_localcloud.emulator.journal.restore import keep_job, open_recorder, restore
from compilegate_localcloud.emulator.published_rates import PublishedRates
from compilegate_localcloud.emulator.sagemaker.service import TrainingService
from compilegate_localcloud.emulator.settings import Settings, give_up
from compilegate_localcloud.names import ADMIN_PATH
from compilegate_localcloud.users import wait_until_unused

_NEEDS_LOADER = frozenset({"cloudformation", "states"})


class AdminApi:
    """Answers the emulator's own paths and lets everything else through to the AWS emulator."""

    def __init__(
        self, inner: Application, settings: Settings, service: TrainingService, loader: Loader
    ) -> None:
        self._inner, self._settings = inner, settings
        self._service, self._loader = service, loader

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        """One request."""
        if scope["type"] != "http":
            await self._inner(scope, receive, send)
        elif scope["path"].startswith(ADMIN_PATH):
            status, document = self._respond(
                scope["method"], scope["path"].removeprefix(ADMIN_PATH), await read_body(receive)
            )
            await _answer(send, status, document)
        else:
            if scope[SIGNED_SERVICE] in _NEEDS_LOADER:
                await asyncio.to_thread(self._loader.wait)
            await self._inner(scope, receive, send)

    def _respond(self, method: str, path: str, body: bytes) -> tuple[int, dict[str, Any]]:
        if path == "health":
            return 200, {"run_id": self._settings.run_id}
        if path == "failures" and not self._settings.inject_failures:
            return 403, {"error": "the local cloud was not started with failure injection"}
        if path == "failures" and method == "GET":
            return 200, {"left": self._service.failures.left()}
        if path == "failures" and method == "POST":
            return self._inject(json.loads(body))
        return 404, {"error": f"no such path: {path}"}

    def _inject(self, request: dict[str, Any]) -> tuple[int, dict[str, Any]]:
        if "kill_job" in request:
            killed = self._service.kill(str(request["kill_job"]))
            return (200 if killed else 404), {"killed": killed}
        if "quotas" in request:
            self._service.quotas.set({str(k): int(n) for k, n in request["quotas"].items()})
            return 200, {}
        try:
            self._service.failures.add(str(request["kind"]), int(request["count"]))
        except (KeyError, ValueError) as error:
            return 400, {"error": str(error)}
        return 200, {"left": self._service.failures.left()}


async def _answer(send: Send, status: int, document: dict[str, Any]) -> None:
    headers = [(b"content-type", b"application/json")]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": json.dumps(document).encode()})


_SHUTDOWN_SECONDS = 3.0
log = logging.getLogger("compilegate.emulator")


def serve(settings: Settings, listener: socket.socket) -> NoReturn:
    """Serve on the listening socket, then end the process and remove its working files."""
    try:
        recorder = open_recorder(settings)
        service, loader = install(settings, recorder)
        resumed = restore(recorder, service)
        if resumed:
            loader.hold_executions()
    except UnusableError as error:
        sys.stderr.write(f"{error}\n")
        sys.stderr.flush()
        os._exit(1)
    asyncio.run(_serve(_Parts(settings, service, loader, recorder, resumed=resumed), listener))
    raise AssertionError("the process ends with the loop")


@dataclass(frozen=True)
class _Parts:
    """What serves; ``resumed`` says that it goes on where a killed emulator was."""

    settings: Settings
    service: TrainingService
    loader: Loader
    recorder: Recorder
    resumed: bool


def install(settings: Settings, recorder: Recorder) -> tuple[TrainingService, Loader]:
    """Put the emulator's own parts into ministack; the loader puts in the interpreter later."""
    service = TrainingService(settings, lambda job: keep_job(recorder, job))
    routes.install(service)
    scopes.install()
    schedules.install()
    bundles.install()
    workers.install()
    services.install(settings.logs / "cloudwatch")
    permissions.install(settings.logs / "permissions.jsonl")
    return service, Loader(service, settings, recorder)


async def _serve(parts: _Parts, listener: socket.socket) -> None:
    settings = parts.settings
    stop = asyncio.Event()
    ending = _Ending(settings, parts.service, parts.recorder)
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    if settings.attached:
        _stop_with_users(settings.home, loop, stop, ending)
    config = Config()
    config.bind = [f"fd://{listener.fileno()}"]
    config.keep_alive_timeout = 75
    config.graceful_timeout = 0.1
    config.loglevel = "WARNING"
    recording = Recording(ministack_app.app, parts.recorder)
    limited = PublishedRates(recording) if settings.hold_rates else recording
    admin = AdminApi(limited, settings, parts.service, parts.loader)
    application = Gate(admin, listener.getsockname()[1])
    announced = asyncio.create_task(_announce(parts, listener))
    announced.add_done_callback(_end_if_it_failed)

    async def stopped() -> None:
        await stop.wait()
        ending.within(_SHUTDOWN_SECONDS)

    await hypercorn_serve(application, config, shutdown_trigger=stopped)
    announced.cancel()
    ending.now()


async def _announce(parts: _Parts, listener: socket.socket) -> None:
    """Say where the emulator listens; the socket takes connections already."""
    settings = parts.settings
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
        "secret": os.environ["AWS_SECRET_ACCESS_KEY"],
        "resumed": parts.resumed,
    }
    partial = settings.state_file.with_suffix(".partial")
    partial.unlink(missing_ok=True)
    # Its owner alone may read the key; the mode holds only for a file that did not exist.
    descriptor = os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        json.dump(state, file)
    partial.replace(settings.state_file)
    log.info("serving on port %s", port)
    parts.loader.start()


def _end_if_it_failed(announced: asyncio.Task[None]) -> None:
    """Nobody finds an emulator that could not say where it listens, for want of space mostly."""
    error = None if announced.cancelled() else announced.exception()
    if isinstance(error, OSError):
        give_up("say where it listens", error)


def _stop_with_users(
    home: Path, loop: asyncio.AbstractEventLoop, stop: asyncio.Event, ending: _Ending
) -> None:
    """End when nobody uses this emulator any more, however they ended."""

    def wait() -> None:
        wait_until_unused(home)
        ending.within(_SHUTDOWN_SECONDS)
        loop.call_soon_threadsafe(stop.set)

    threading.Thread(target=wait, daemon=True, name="users-watch").start()


class _Ending:
    """Ends the process, in order where time allows: executions may still run for hours."""

    def __init__(self, settings: Settings, service: TrainingService, recorder: Recorder) -> None:
        self._settings, self._service, self._recorder = settings, service, recorder
        self._lock = threading.Lock()

    def within(self, seconds: float) -> None:
        """End after that time at the latest."""
        timer = threading.Timer(seconds, self.now)
        timer.daemon = True
        timer.start()

    def now(self) -> NoReturn:
        """End what was started, remove the working files, and leave."""
        with self._lock:  # a second caller waits here until the process ends
            try:
                self._service.abandon_all()
                lambda_runtime.reset()
                workers.close()
                self._recorder.journal.delete()
                shutil.rmtree(self._settings.temporary.parent, ignore_errors=True)
                for path in _own_state(self._settings):
                    path.unlink(missing_ok=True)
            finally:
                sys.stderr.flush()
                # Not sys.exit: threads that wait for functions and executions would hold it up.
                os._exit(0)


def _own_state(settings: Settings) -> Iterator[Path]:
    """The state file, unless a later run has written its own."""
    with contextlib.suppress(OSError, ValueError):
        state: dict[str, Any] = json.loads(settings.state_file.read_text(encoding="utf-8"))
        if state.get("run_id") == settings.run_id:
            yield settings.state_file
