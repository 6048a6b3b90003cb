"""A training script that reports what its container has, then ends as asked.

Endings (``--ending``): ``fail`` raises an error at once, ``wait`` runs until it is stopped.
Runs on every image that Compilegate supports, from Python 3.8 on.
"""

import json
import os
import signal
import sys
import time
from importlib import metadata
from pathlib import Path

REPORT = "compilegate-probe "
SIGTERM_SEEN = "compilegate-probe-sigterm"
STDOUT_LINE = "compilegate-probe-standard-output"
STDERR_LINE = "compilegate-probe-standard-error"
PACKAGES = ("sagemaker-training", "sagemaker-pytorch-training", "torch")
CHECKPOINTS = "COMPILEGATE_PROBE_CHECKPOINTS"
# The log keeps the report, so nothing but these names leaves the environment.
VARIABLES = ("SM_", "COMPILEGATE_", "TORCHINDUCTOR_", "TRAINING_JOB_")


def version(package):
    """The installed version of a package, None where it is not installed."""
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None


def first_process():
    """Command line of process 1, which a stop signals first; None where it cannot be read."""
    try:
        return Path("/proc/1/cmdline").read_bytes().decode(errors="replace").split("\0")[:3]
    except OSError:
        return None


def report(arguments, restored):
    """What the tool compares with what it sent."""
    return {
        "arguments": arguments,
        "environment": {k: v for k, v in os.environ.items() if k.startswith(VARIABLES)},
        "packages": {name: version(name) for name in PACKAGES},
        "python": sys.version.split()[0],
        "first_process": first_process(),
        "restored": restored,
    }


def main():
    """Report, save a checkpoint, end as asked."""
    signal.signal(signal.SIGTERM, lambda *_: print(SIGTERM_SEEN, flush=True))
    arguments = {sys.argv[i]: sys.argv[i + 1] for i in range(1, len(sys.argv) - 1, 2)}
    ending = arguments["--ending"]
    folder = Path(os.environ[CHECKPOINTS])
    folder.mkdir(parents=True, exist_ok=True)
    restored = sorted(path.name for path in folder.iterdir())
    (folder / (ending + ".txt")).write_text("saved while training")
    data = Path(os.environ["SM_OUTPUT_DATA_DIR"])
    data.mkdir(parents=True, exist_ok=True)
    (data / "probe.txt").write_text(ending)
    print(REPORT + json.dumps(report(arguments, restored)), flush=True)
    if ending == "fail":
        print(STDOUT_LINE, flush=True)
        raise RuntimeError(STDERR_LINE)
    while True:
        time.sleep(0.2)


if __name__ == "__main__":
    main()
