"""Runs a module whose Python programs, and theirs, are forks of this process, with torch imported.

    in_forks.py --module benchmarks.gpu --words "--dry-run-cpu --blocks 1"

Each still is a process of its own. Graphs become one C++ file each, as by few_files.py.
"""

import os
import runpy
import subprocess
import sys
from pathlib import Path

from torch._inductor import config

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


config.cpp_wrapper = True
os.environ["TORCHINDUCTOR_DEBUG_COMPILE"] = "1"
subprocess.Popen = Forked
_, _, module, _, words = sys.argv
sys.argv = [module, *words.split()]
runpy.run_module(module, run_name="__main__", alter_sys=True)
