"""A running embedded cloud: what it announced, whether it still runs, how clients reach it."""

from __future__ import annotations

import functools
import json
import os
import subprocess
import threading
import urllib.request
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

import boto3
import botocore.session
from botocore.auth import SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.config import Config
from botocore.credentials import Credentials

from compilegate_localcloud.errors import CloudEndedError
from compilegate_localcloud.names import ACCOUNT, ADMIN_PATH, ADMIN_SERVICE, HOST

# A proxy for the internet must not be used for this machine.
_OPENER = urllib.request.build_opener(urllib.request.ProxyHandler({}))
# Variables of a process that must reach no real account, which profiles name, and no proxy.
NO_ACCOUNT = {
    "AWS_EC2_METADATA_DISABLED": "true",
    "AWS_CONFIG_FILE": "/dev/null",
    "AWS_SHARED_CREDENTIALS_FILE": "/dev/null",
    "NO_PROXY": HOST,
    "no_proxy": HOST,
}
# The same of this process's clients, as botocore names it: no profile, and no file that has one.
_NO_PROFILES: dict[str, Any] = {
    "profile": (None, [], None, None),
    "config_file": (None, [], os.devnull, None),
    "credentials_file": (None, [], os.devnull, None),
}
_ANSWER_SECONDS = 10.0
_MAKING = threading.Lock()  # two threads that ask at once would make a client each


@dataclass(frozen=True)
class RunState:
    """One run of the emulator as it announced itself; ``started_at`` in epoch seconds.

    ``secret`` is the secret key of its account: with it everything is allowed here.
    """

    run_id: str
    pid: int
    port: int
    region: str
    attached: bool
    enforce_iam: bool
    inject_failures: bool
    started_at: float
    # The default is that of a release that checked no signatures.
    secret: str = field(default="local", repr=False)
    # Whether it goes on where one that was killed was.
    resumed: bool = False

    @property
    def endpoint(self) -> str:
        """URL that SDKs call."""
        return f"http://{HOST}:{self.port}"

    def environment(self) -> dict[str, str]:
        """Variables that make the AWS clients of another process call this cloud.

        Set them in place of the process's own ``AWS_`` variables: a profile named there would be
        looked up and not found.
        """
        return {
            "AWS_ENDPOINT_URL": self.endpoint,
            "AWS_ACCESS_KEY_ID": ACCOUNT,
            "AWS_SECRET_ACCESS_KEY": self.secret,
            "AWS_DEFAULT_REGION": self.region,
            "AWS_REGION": self.region,
            **NO_ACCOUNT,
        }

    def session(self) -> boto3.Session:
        """A session with the local account's credentials; pass its clients ``endpoint_url``."""
        return boto3.Session(
            aws_access_key_id=ACCOUNT,
            aws_secret_access_key=self.secret,
            region_name=self.region,
            botocore_session=botocore.session.Session(session_vars=_NO_PROFILES),
        )

    def watch_over(self, session: boto3.Session) -> None:
        """Let calls of the session's later clients raise CloudEndedError once this run has ended.

        They would otherwise try again for minutes, and then blame the network.
        """

        def check(caught_exception: Exception | None = None, **_: Any) -> None:
            if caught_exception is not None and not process_exists(self):
                raise _ended(self) from caught_exception

        session.events.register_first("needs-retry", check)

    def client(self, service: str) -> Any:
        """The one client of an AWS service of this cloud.

        It is made once: a second one would have exception classes of its own, which do not catch
        those of the first.
        """
        with _MAKING:
            return _client(self, service)


@functools.cache
def _client(state: RunState, service: str) -> Any:
    session = state.session()
    state.watch_over(session)
    return session.client(
        service,
        endpoint_url=state.endpoint,
        # A proxy for the internet must not be used for this machine.
        config=Config(proxies={}, inject_host_prefix=False, s3={"addressing_style": "path"}),
    )


def _ended(state: RunState) -> CloudEndedError:
    return CloudEndedError(
        f"The local cloud (process {state.pid}) has ended: it was stopped, or it died. One that "
        "died goes on where it was, its trials too, with the next command that starts it",
        fix="run this command again, or `compilegate local up`, which starts one that stays until "
        "`compilegate local down`. What it printed last: `compilegate local logs emulator --last "
        "20`",
    )


def read_state(path: Path) -> RunState | None:
    """The announced state; None if there is none or it is not readable."""
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
        names = {one.name for one in fields(RunState)}  # another release may have said more
        return RunState(**{key: value for key, value in document.items() if key in names})
    except (OSError, ValueError, TypeError, AttributeError):
        return None


def answers(state: RunState) -> bool:
    """Whether this very run answers on its port; a later process there is not it."""
    try:
        return bool(call_emulator(state, "health").get("run_id") == state.run_id)
    except (OSError, ValueError):
        return False


def call_emulator(
    state: RunState, path: str, document: Mapping[str, Any] | None = None
) -> dict[str, Any]:
    """Call one of the emulator's own paths, with POST where there is a document to send.

    Raises urllib.error.HTTPError for a refused call.
    """
    signed = AWSRequest(
        method="GET" if document is None else "POST",
        url=f"{state.endpoint}{ADMIN_PATH}{path}",
        headers={"Host": f"{HOST}:{state.port}"},
        data=None if document is None else json.dumps(document).encode(),
    )
    credentials = Credentials(ACCOUNT, state.secret)
    SigV4Auth(credentials, ADMIN_SERVICE, state.region).add_auth(signed)
    request = urllib.request.Request(  # noqa: S310  # the address is this machine's
        signed.url, data=signed.data, headers=dict(signed.headers.items())
    )
    with _OPENER.open(request, timeout=_ANSWER_SECONDS) as response:
        answer: dict[str, Any] = json.loads(response.read())
        return answer


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
