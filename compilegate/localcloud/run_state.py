"""What is known of a running emulator, and whether it still runs."""

from __future__ import annotations

import json
import os
import subprocess
import urllib.error
import urllib.request
from dataclasses import dataclass
from pathlib import Path

HOST = "127.0.0.1"
# A proxy set for the internet must not be asked for this machine.
_OPENER = urllib.request.build_opener(urllib.request.ProxyHandler({}))


@dataclass(frozen=True)
class RunState:
    """One run of the emulator as it announced itself; ``started_at`` in epoch seconds."""

    run_id: str
    pid: int
    port: int
    region: str
    attached: bool
    enforce_iam: bool
    inject_failures: bool
    started_at: float

    @property
    def endpoint(self) -> str:
        """URL that SDKs call."""
        return f"http://{HOST}:{self.port}"


def read_state(path: Path) -> RunState | None:
    """The announced state; None if there is none or it is not readable."""
    try:
        return RunState(**json.loads(path.read_text(encoding="utf-8")))
    except (OSError, ValueError, TypeError):
        return None


def answers(state: RunState, timeout_seconds: float = 10.0) -> bool:
    """Whether this very run answers on its port; a later process there is not it."""
    try:
        with _OPENER.open(
            f"{state.endpoint}/_compilegate/health", timeout=timeout_seconds
        ) as response:
            return bool(json.loads(response.read()).get("run_id") == state.run_id)
    except (OSError, ValueError, urllib.error.URLError):
        return False


def process_exists(state: RunState) -> bool:
    """Whether the announced process is still this run; ids are used again by other processes."""
    try:
        os.kill(state.pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return False  # another user's: ours would let us
    return state.run_id in _command_line(state.pid)


def _command_line(pid: int) -> str:
    record = Path("/proc") / str(pid) / "cmdline"
    if record.exists():
        return record.read_bytes().replace(b"\0", b" ").decode("utf-8", "replace")
    listing = subprocess.run(
        ["ps", "-o", "command=", "-p", str(pid)],  # noqa: S607  # absent /proc means macOS or BSD
        capture_output=True,
        text=True,
        check=False,
    )
    return listing.stdout
