"""Run by a test: ends commands whose output nobody reads, each in a copy of this process.

Standard input has a list of argument lists as JSON; standard output gets ``[exit code, standard
error]`` of each. With ``stderr_too`` as first argument, standard error goes the same way.
"""

from __future__ import annotations

import json
import os
import sys

from compilegate.cli.main import main


def ended(arguments: list[str], *, stderr_too: bool) -> tuple[int, str]:
    """Exit code and standard error of one command."""
    no_reader, output = os.pipe()
    os.close(no_reader)
    error, error_of_child = os.pipe()
    child = os.fork()
    if child == 0:
        os.dup2(output, 1)
        os.dup2(output if stderr_too else error_of_child, 2)
        sys.argv = ["compilegate", *arguments]
        main()
    os.close(output)
    os.close(error_of_child)
    with os.fdopen(error) as stream:
        text = stream.read()
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), text


if __name__ == "__main__":
    results = [ended(one, stderr_too="stderr_too" in sys.argv) for one in json.load(sys.stdin)]
    json.dump(results, sys.stdout)
