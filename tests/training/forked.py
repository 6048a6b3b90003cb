"""Starts jobs from one process that has imported what they import.

That takes longer than a tiny job. Each job still is a process of its own: it is forked before torch
has done anything but compile a layer, of which nothing is left to see. Run by the training
environment's Python; standard library only apart from what it imports ahead. Each line of standard
input is JSON. ``{"warm": [module, ...]}`` names modules to import. ``{"words": [program, argument,
...], "environment": {...}, "output": path}`` is a job; its answer is two lines, its process's id
and, once it has ended, its exit status. With a ``port`` the job is two processes that meet there.
"""

import ctypes
import functools
import gc
import importlib
import json
import os
import random
import runpy
import signal
import sys
import tempfile
from pathlib import Path

PR_SET_PDEATHSIG = 1  # of linux/prctl.h


def become_two(port):
    """Fork two processes, with the variables by which torchrun's meet; end after both."""
    for rank in ("0", "1"):
        if os.fork() == 0:
            ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)  # none outlives the job
            os.environ.update(RANK=rank, LOCAL_RANK=rank, WORLD_SIZE="2", LOCAL_WORLD_SIZE="2")
            os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=port)
            return
    os._exit(int(os.wait()[1] != 0 or os.wait()[1] != 0))  # one that fails ends the other


def become(job):
    """Run the job's program in this process, as an interpreter of its own would."""
    output = os.open(job["output"], os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    os.dup2(output, 1)
    os.dup2(output, 2)
    os.environ.clear()
    os.environ.update(job["environment"])
    if port := job.get("port"):
        become_two(port)
    tempfile.tempdir = None  # the job's TMPDIR says where
    random.seed()  # a fork has its parent's random numbers, a new interpreter has others
    if numpy := sys.modules.get("numpy"):
        numpy.random.seed()
    program, *arguments = job["words"]
    if program == "-c":
        sys.argv = [program, *arguments[1:]]
        sys.path.insert(0, "")
        exec(arguments[0], sys.modules["__main__"].__dict__)
        return
    sys.argv = [program, *arguments]
    sys.path.insert(0, str(Path(program).parent))
    runpy.run_path(program, run_name="__main__")


def leave(job):
    """End this process with the job's exit code, without taking torch down piece by piece."""
    code = 0
    try:
        become(job)
    except SystemExit as end:
        code = end.code or 0
    if not isinstance(code, int):  # what an interpreter does with words
        sys.stderr.write(f"{code}\n")
        code = 1
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


@functools.cache
def compile_ahead():
    """Compile a layer: what torch makes for the first one takes a second, and serves all jobs."""
    torch = sys.modules["torch"]
    # For a figure of its logs it would run each graph's guards for 40 ms.
    torch._dynamo.guards.profile_guard_manager = lambda *_: 0.0
    random_state = torch.random.get_rng_state()
    torch.compile(torch.nn.Linear(2, 1))(torch.ones(1, 2)).sum().backward()
    torch._dynamo.reset()
    torch._dynamo.utils.counters.clear()
    torch._dynamo.utils.compilation_time_metrics.clear()
    torch.random.set_rng_state(random_state)


def answer(number):
    """Write a line that whoever asked can read at once."""
    sys.stdout.write(f"{number}\n")
    sys.stdout.flush()


def main():
    """Serve one job after another until standard input ends."""
    sys.path.pop(0)  # this file's folder, which a job should not see
    for line in sys.stdin:
        job = json.loads(line)
        if "warm" in job:
            for module in job["warm"]:
                importlib.import_module(module)
            if "torch._inductor.compile_fx" in sys.modules:
                compile_ahead()
            gc.freeze()  # jobs share these objects' memory
            continue
        child = os.fork()
        if child == 0:
            leave(job)
        answer(child)
        answer(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))


if __name__ == "__main__":
    main()
