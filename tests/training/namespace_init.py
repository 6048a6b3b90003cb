"""The first process of a namespace (namespaces.py): prepares it, runs the command, reaps the rest.

Started as a script of its own, standard library only, with the plan as JSON and the command. When
it exits, the kernel ends every process that is left in the namespace.
"""

from __future__ import annotations

import fcntl
import json
import os
import socket
import struct
import subprocess
import sys
from pathlib import Path
from typing import Any

SIOCSIFFLAGS, IFF_UP = 0x8914, 0x1  # linux/sockios.h, linux/if.h


def main(plan: dict[str, Any], words: list[str]) -> int:
    """Prepare, run and return the command's exit status, 128 + n by signal n."""
    try:
        prepare(plan)
        process = os.posix_spawnp(words[0], words, os.environ)
    except (OSError, subprocess.CalledProcessError) as error:
        sys.stderr.write(f"namespace: {error}\n")
        return 1
    while True:
        ended, status = os.wait()  # orphans come to the first process too
        if ended == process:
            code = os.waitstatus_to_exitcode(status)
            return code if code >= 0 else 128 - code


def prepare(plan: dict[str, Any]) -> None:
    """Make the namespace what the plan says. Raises OSError or CalledProcessError."""
    socket.sethostname(plan["hostname"])
    if plan["network"]:
        bring_up_loopback()
    if plan["private"]:
        mount_privately(Path(plan["scratch"]), plan["private"], plan["mounted"])
    for name, text in plan["files"].items():
        write(Path(name), text)


def bring_up_loopback() -> None:
    """A network namespace begins with its loopback interface down."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
        fcntl.ioctl(any_socket, SIOCSIFFLAGS, struct.pack("16sh14x", b"lo", IFF_UP))


def mount_privately(scratch: Path, private: list[str], mounted: dict[str, str]) -> None:
    """Lay memory over the private folders; show each mounted folder at its place and its own."""
    mount("-t", "tmpfs", "namespace", str(scratch))
    here = Path.cwd()
    os.chdir(scratch)  # relative paths lead there when a private folder hides it
    for number, folder in enumerate(mounted.values()):
        Path(f"mounted-{number}").mkdir()
        mount("--bind", folder, f"mounted-{number}")
    for number, folder in enumerate(private):
        upper, work = Path(f"upper-{number}"), Path(f"work-{number}")
        upper.mkdir()
        work.mkdir()
        layers = f"lowerdir={folder},upperdir={upper},workdir={work}"
        mount("-t", "overlay", "-o", layers, "namespace", folder)
    for number, (place, folder) in enumerate(mounted.items()):
        for name in (place, folder):  # the folder may lie in a private one
            Path(name).mkdir(parents=True, exist_ok=True)
            mount("--bind", f"mounted-{number}", name)
    os.chdir(here)


def mount(*words: str) -> None:
    """The command of that name; unshare has made all mounts private."""
    subprocess.run(["mount", *words], check=True)


def write(path: Path, text: str) -> None:
    """A file for this user alone, in place of what was there: an overlay's may not be ours."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    path.unlink(missing_ok=True)
    with open(os.open(path, os.O_WRONLY | os.O_CREAT, 0o600), "w") as file:  # noqa: PTH123
        file.write(text)


if __name__ == "__main__":
    sys.exit(main(json.loads(sys.argv[1]), sys.argv[2:]))
