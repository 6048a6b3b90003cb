"""Runs several jobs from one process that has imported what they import.

That takes longer than a tiny job. Each job still is a process of its own: it is forked before torch
has done anything. Started by the training environment's Python with a JSON file and the names of
modules: ``[{"program": path, "arguments": [...], "environment": {...}, "output": path}, ...]``.
"""

import importlib
import json
import os
import runpy
import sys
from pathlib import Path


def run(job):
    """Become the job."""
    with open(job["output"], "w") as output:  # noqa: PTH123
        os.dup2(output.fileno(), 1)
        os.dup2(output.fileno(), 2)
    os.environ.update(job["environment"])
    sys.argv = [job["program"], *job["arguments"]]
    sys.path.insert(0, str(Path(job["program"]).parent))
    runpy.run_path(job["program"], run_name="__main__")


def leave(work, job):
    """End this process with the job's exit code, without taking torch down piece by piece."""
    code = 0
    try:
        work(job)
    except SystemExit as end:
        code = end.code or 0
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


def main(jobs):
    """Fork each job and print its exit code."""
    codes = []
    for job in jobs:
        child = os.fork()
        if child == 0:
            leave(run, job)
        codes.append(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
    sys.stdout.write(json.dumps(codes))


if __name__ == "__main__":
    for module in sys.argv[2:]:
        importlib.import_module(module)
    main(json.loads(Path(sys.argv[1]).read_text()))
