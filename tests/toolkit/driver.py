"""Starts a script through the toolkit's own code, once for each line of standard input.

A line is a script's name and the hyperparameters of a request as JSON. The toolkit decodes them,
makes the arguments and starts the script, which writes the arguments it got; they come back as a
line of JSON.
"""

import contextlib
import io
import json
import sys
from pathlib import Path

from sagemaker_training import environment, mapping, process


def arguments_of(script, hyperparameters):
    Path(environment.hyperparameters_file_dir).write_text(json.dumps(hyperparameters))
    words = mapping.to_cmd_args(environment.read_hyperparameters())
    more = () if "3.9.2" in sys.argv else (1,)  # processes per host
    with contextlib.redirect_stdout(io.StringIO()):
        process.ProcessRunner(script, words, {}, *more).run(capture_error=True)
    return json.loads(Path(environment.base_dir, "answer.json").read_text())


for line in sys.stdin:
    try:
        answer = arguments_of(*json.loads(line))
    except Exception as error:  # noqa: BLE001 — the test that asked says what it expected
        answer = {"error": str(error)}
    sys.stdout.write(json.dumps(answer) + "\n")
    sys.stdout.flush()
