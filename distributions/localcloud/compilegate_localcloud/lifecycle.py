"""Starts and stops the emulator, and knows whether it runs.

Attached, the emulator ends with the last process that uses it, however that ends, see ``users``.
Detached, it lives until ``stop``.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import json
import os
import shutil
import signal
import subprocess
import time
import uuid
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager
from pathlib import Path
from types import TracebackType
from typing import Any

from compilegate.place import PACKAGE
from compilegate_localcloud.connection import (
    NO_ACCOUNT,
    RunState,
    answers,
    process_exists,
    read_state,
)
from compilegate_localcloud.errors import NotReadyError
from compilegate_localcloud.places import Places, find_places
from compilegate_localcloud.users import ALONE, Users

DEFAULT_REGION = "us-east-1"
_START_SECONDS = 60.0
_STOP_SECONDS = 8.0
_POLL_SECONDS = 0.02
_TAIL_CHARACTERS = 2000
_OWN_PACKAGE = Path(__file__).resolve().parent
_DROPPED_VARIABLES = ("AWS_", "PYTHON", "VIRTUAL_ENV", "COMPILEGATE_")


class LocalCloud:
    """The one local cloud of a home folder."""

    def __init__(self, home: Path | None = None, *, places: Places | None = None) -> None:
        self.places = places or find_places(home)
        self._users = Users(self.places.home)
        self._process: subprocess.Popen[bytes] | None = None

    def start(
        self,
        *,
        attached: bool,
        region: str = DEFAULT_REGION,
        enforce_iam: bool = False,
        inject_failures: bool = False,
        hold_rates: bool = False,
        quotas: Mapping[str, int] | None = None,
        extra_arguments: tuple[str, ...] = (),
    ) -> RunState:
        """Start the emulator and wait until it serves.

        ``quotas`` are instances that training jobs may use at once by type; others have no limit.
        ``hold_rates``: AWS's published rates and quotas of calls and resources hold.
        Raises NotReadyError if it runs already or does not come up.
        """
        arguments = [*extra_arguments, "--region", region]
        arguments += ["--enforce-iam"] if enforce_iam else []
        arguments += ["--inject-failures"] if inject_failures else []
        arguments += ["--hold-rates"] if hold_rates else []
        arguments += ["--quotas", json.dumps(dict(quotas))] if quotas else []
        with self._joining():
            running = self._serving()
            if running is not None:
                raise NotReadyError(
                    f"The local cloud runs already (process {running.pid})",
                    fix="use it, or end it with `compilegate local down`.",
                )
            return self._start(arguments, attached=attached)

    def join_or_start(self, *, attached: bool) -> tuple[RunState, bool]:
        """The run that serves, else one that is started now, and whether it was.

        Of several commands at once one starts it; the others wait until it serves.
        """
        with self._joining():
            running = self._serving()
            if running is not None:
                return running, False
            return self._start(["--region", DEFAULT_REGION], attached=attached), True

    def deploying(self) -> AbstractContextManager[None]:
        """Keeps other commands from deploying to this cloud meanwhile."""
        return self._locked("deploy.lock")

    def stop(self) -> bool:
        """End the emulator and everything it started; False if none ran."""
        if not self.places.home.exists():
            return False
        with self._alone():
            state = read_state(self.places.state_file)
            ran = state is not None and process_exists(state)
            if state is not None and ran:
                self._end(state)
            self._forget()
            shutil.rmtree(self.places.journal, ignore_errors=True)
            self._users.leave()
            return ran

    def leave(self, *, failed: bool = False) -> None:
        """Use the cloud no longer; the last one out ends it if it is attached.

        ``failed``: also one that is not, if this object started it; never one that others use.
        """
        if not self._users.joined:
            return
        with self._alone():
            if not self._users.leave():
                return
            state = read_state(self.places.state_file)
            started = self._process.pid if self._process is not None else None
            if state is None or not process_exists(state):
                self._forget()
            elif state.attached or (failed and state.pid == started):
                self._end(state)
                self._forget()
                shutil.rmtree(self.places.journal, ignore_errors=True)

    def state(self) -> RunState | None:
        """The run that serves now, if any; leftovers of a run that died are removed.

        Raises NotReadyError for one that runs but does not answer.
        """
        state = self._serving()
        if state is None and self.places.state_file.exists():
            with self._alone():
                left = read_state(self.places.state_file)
                if left is not None and not process_exists(left):
                    self._forget()
        return state

    def _serving(self) -> RunState | None:
        state = read_state(self.places.state_file)
        if state is None or not process_exists(state):
            return None
        if answers(state) or not process_exists(state):
            return state if process_exists(state) else None
        raise NotReadyError(
            f"The local cloud (process {state.pid}) does not answer",
            fix="end it with `compilegate local down`.",
        )

    def running_state(self) -> RunState:
        """The run that serves now; raises NotReadyError if none does."""
        state = self.state()
        if state is None:
            raise NotReadyError(
                "The local cloud does not run", fix="start it with `compilegate local up`."
            )
        return state

    def client(self, service: str) -> Any:
        """A boto3 client for this local cloud."""
        return self.running_state().client(service)

    def __enter__(self) -> LocalCloud:
        """The cloud itself, not started yet: ``start`` takes options."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Use it no longer."""
        self.leave()

    def _start(self, arguments: list[str], *, attached: bool) -> RunState:
        run_id = uuid.uuid4().hex[:12]
        arguments = [*arguments, "--attached"] if attached else arguments
        with writing_to(self.places.home):
            self._process = self._spawn(run_id, arguments)
        return self._wait_until_serving(run_id, self._process)

    def _spawn(self, run_id: str, arguments: list[str]) -> subprocess.Popen[bytes]:
        places = self.places
        self._forget()
        shutil.rmtree(places.logs, ignore_errors=True)
        places.logs.mkdir(parents=True)
        command = [str(places.emulator_python), "-m", "compilegate_localcloud.emulator"]
        command += ["--home", str(places.home), "--run-id", run_id]
        command += ["--job-python", str(places.training_python), *arguments]
        with (places.logs / "emulator.log").open("ab") as log:
            return subprocess.Popen(
                command,
                cwd=places.home,
                env=_emulator_environment(),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                # Its own session: Ctrl-C reaches the command alone, which then ends it in order.
                start_new_session=True,
            )

    def _wait_until_serving(self, run_id: str, process: subprocess.Popen[bytes]) -> RunState:
        deadline = time.monotonic() + _START_SECONDS
        while time.monotonic() < deadline:
            state = read_state(self.places.state_file)
            if state is not None and state.run_id == run_id and answers(state):
                return state
            if process.poll() is not None:
                break
            time.sleep(_POLL_SECONDS)
        process.kill()
        status = process.wait()
        log = self.places.logs / "emulator.log"
        raise NotReadyError(_how_it_failed(status, log))

    def _end(self, state: RunState) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.kill(state.pid, signal.SIGTERM)
        if not self._gone(state, _STOP_SECONDS):
            # Its Lambda workers share its process group; the jobs' supervisors see it end.
            with contextlib.suppress(ProcessLookupError):
                os.killpg(state.pid, signal.SIGKILL)
            self._gone(state, _STOP_SECONDS)

    def _gone(self, state: RunState, seconds: float) -> bool:
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            if self._process is not None:
                self._process.poll()  # an ended child stays until it is polled
            if not process_exists(state):
                return True
            time.sleep(_POLL_SECONDS)
        return False

    def _forget(self) -> None:
        """Remove what a run leaves that could not clean up after itself."""
        self.places.state_file.unlink(missing_ok=True)
        shutil.rmtree(self.places.work, ignore_errors=True)
        if self._process is not None:
            self._process.poll()
            self._process = None

    @contextlib.contextmanager
    def _joining(self) -> Iterator[None]:
        """Alone, and a user of the cloud from then on unless the block fails."""
        with self._alone():
            before = self._users.joined
            with writing_to(self.places.home):
                self._users.join()
            try:
                yield
            except BaseException:
                if not before:
                    self._users.leave()
                raise

    def _alone(self) -> AbstractContextManager[None]:
        """Of several commands one at a time starts or ends the emulator."""
        return self._locked(ALONE)

    @contextlib.contextmanager
    def _locked(self, name: str) -> Iterator[None]:
        with writing_to(self.places.home):
            # Nobody else may read what jobs write there.
            self.places.home.mkdir(mode=0o700, parents=True, exist_ok=True)
            lock = (self.places.home / name).open("w")
        with lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield


@contextlib.contextmanager
def writing_to(folder: Path) -> Iterator[None]:
    """Lets a block that cannot write raise NotReadyError, which names the folder and the cause."""
    try:
        yield
    except OSError as error:
        raise NotReadyError(
            f"The local cloud cannot write to {folder}: {error.strerror or error}",
            fix="make the folder writable, or free space on its disk.",
        ) from error


def _how_it_failed(status: int, log: Path) -> str:
    """The end of the emulator's log; a full disk has none, so it ends with the error's number."""
    if status in errno.errorcode and status != 1:
        return (
            f"The local cloud did not start: {os.strerror(status)}. Its folder is {log.parents[1]}."
        )
    text = log.read_text(encoding="utf-8", errors="replace")
    return f"The local cloud did not start. Its log ends:\n{text[-_TAIL_CHARACTERS:]}"


def _emulator_environment() -> dict[str, str]:
    """The user's variables without what would aim the emulator's clients at real accounts."""
    kept = {
        name: value for name, value in os.environ.items() if not name.startswith(_DROPPED_VARIABLES)
    }
    folders = dict.fromkeys(str(package.parent) for package in (_OWN_PACKAGE, PACKAGE))
    return {**kept, "PYTHONPATH": os.pathsep.join(folders), **NO_ACCOUNT}
