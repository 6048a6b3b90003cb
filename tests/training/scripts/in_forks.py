"""in_forks.py MODULE ...: runs it; its Python programs, and theirs, are forks of this process."""

import os
import runpy
import subprocess
import sys
from pathlib import Path

sys.path[0] = str(Path(__file__).resolve().parents[3])
from tests.training.forked import leave  # noqa: E402 — importable by the line above


class Forked(subprocess.Popen):
    """A process; where it would be an interpreter, a fork that runs the interpreter's program."""

    def __init__(self, command, **options):
        environment = options.get("env") or os.environ

        def become():
            os.closerange(3, 256)  # by one of them the parent waits for the program to begin
            leave({"words": command[1:], "environment": environment, "output": "/dev/stdout"})

        if command[0] == sys.executable:
            options["preexec_fn"] = become
        super().__init__(command, **options)


subprocess.Popen = Forked
sys.argv.pop(0)
runpy.run_module(sys.argv[0], run_name="__main__", alter_sys=True)
