"""Runs a command in namespaces of its own: mounts, processes, host name and, if asked, network.

The container toolkit's launchers by MPI expect a machine to themselves: they start sshd on port 22,
append to ``/etc/environment`` and read ``/opt/ml`` by that very name (``mpi.py`` and
``gethostname.c`` of sagemaker-training 5.1). In here all of that stays in the namespace, and every
process ends with it. Linux only, for root.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory

_INIT = Path(__file__).with_name("namespace_init.py")
_PROBE_SECONDS = 30


@dataclass(frozen=True)
class Namespace:
    """What the command sees differently.

    ``scratch`` is an empty folder of the caller's; what is written to the ``private`` folders lies
    there in memory and goes with the namespace. ``mounted`` shows a folder at another place as
    well, ``files`` are written before the command starts, for its user's eyes only. With
    ``network`` the namespace has a loopback interface and no other.
    """

    scratch: Path
    hostname: str
    network: bool
    private: Sequence[str] = ()
    mounted: Mapping[str, Path] = field(default_factory=dict)
    files: Mapping[str, str] = field(default_factory=dict)


def command(namespace: Namespace, words: Sequence[str]) -> list[str]:
    """The command line that runs ``words`` there; it exits as they do, 128 + n by signal n.

    Ending the first process of the line, by SIGKILL too, ends every process of the namespace.
    """
    plan = {
        "scratch": str(namespace.scratch),
        "hostname": namespace.hostname,
        "network": namespace.network,
        "private": list(namespace.private),
        "mounted": {place: str(folder) for place, folder in namespace.mounted.items()},
        "files": dict(namespace.files),
    }
    options = ["--mount", "--uts", "--pid", "--fork", "--kill-child", "--mount-proc"]
    if namespace.network:
        options.append("--net")
    return [
        "unshare", *options, sys.executable, "-I", "-S", str(_INIT), json.dumps(plan), *words,
    ]  # fmt: skip


def obstacle(private: Sequence[str]) -> str | None:
    """Why no namespace with these private folders can be had here; None if one can."""
    if shutil.which("unshare") is None:
        return "the command unshare (util-linux) is missing"
    with TemporaryDirectory() as folder:
        trial = Namespace(Path(folder), "algo-1", network=True, private=private)
        try:
            done = subprocess.run(
                command(trial, ["true"]), stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                stderr=subprocess.PIPE, text=True, timeout=_PROBE_SECONDS, check=False,
            )  # fmt: skip
        except subprocess.TimeoutExpired:
            return f"a namespace did not start within {_PROBE_SECONDS} s"
    if done.returncode == 0:
        return None
    lines = done.stderr.strip().splitlines()
    return lines[-1] if lines else f"unshare ended with exit code {done.returncode}"
