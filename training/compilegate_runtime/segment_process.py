"""One segment's process: where it meets the others of its kind, what it prints, how it ends."""

import re
import signal
import subprocess
import sys
import threading

SEGMENT_TIMEOUT_SECONDS = 3600  # a hanging segment must not eat the job's whole time limit
LINES_KEPT = 15
DEFAULT_PORT = 29500  # torch's own, where the launcher names none
# What a segment that is told to stop gets to save its evidence: SageMaker gives the job 120, but
# torchrun kills its processes after 30.
STOP_SECONDS = 25
# What mpirun puts before each line of a process, see domain/request/metrics.py.
TAG = re.compile(r"\[[^\]]*\]<(?:stdout|stderr)>: ?")
PROGRESS, FAILED = "compilegate ", "compilegate failed: "


def rendezvous(variables, place):
    """Where the processes of one segment meet, if a launcher has started several of this gate.

    A store outlives its segment, and the next one would take its keys for its own and wait for
    processes that are gone. Torchrun's store lives as long as the job; under MPI the first
    process keeps the store, and ends later than the others. So each segment's first process
    opens a store at a port of the segment's own.
    """
    torchrun = "TORCHELASTIC_USE_AGENT_STORE" in variables
    if not torchrun and int(variables.get("OMPI_COMM_WORLD_SIZE") or 1) < 2:
        return {}
    port = int(variables.get("MASTER_PORT") or DEFAULT_PORT) + 1 + place
    first = 1024
    own = {"MASTER_PORT": str(port if port < 65536 else first + port % 65536)}
    return {**own, "TORCHELASTIC_USE_AGENT_STORE": "False"} if torchrun else own


def follow(command, variables, folder, on_progress):
    """Run a process, hand its progress on, print its other lines; return exit code and last lines.

    ``on_progress`` gets each line of progress without its ``compilegate``.
    """
    process = subprocess.Popen(  # noqa: S603 — the command is this interpreter and a checked file
        command,
        cwd=str(folder),
        env=variables,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        universal_newlines=True,
    )
    watch = threading.Timer(SEGMENT_TIMEOUT_SECONDS, end, [process])
    watch.start()
    lines = []
    try:
        for line in process.stdout:
            text = TAG.sub("", line.rstrip(), count=1) if line.startswith("[") else line.rstrip()
            lines = [*lines, text][-LINES_KEPT:]
            if text.startswith(PROGRESS) and not text.startswith(FAILED):
                on_progress(text[len(PROGRESS) :])
            else:
                sys.stdout.write(line)
        return process.wait(), lines
    finally:
        watch.cancel()
        end(process)  # this job is being stopped: let the segment save its evidence


def end(process):
    """End a process that still runs, by SIGKILL where it does not obey SIGTERM in time."""
    if process.poll() is None:
        process.terminate()
        try:
            process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def why_it_failed(status, lines):
    """A reason for people, for a segment whose first process left none itself."""
    told = [line[len(FAILED) :] for line in lines if line.startswith(FAILED)]
    if told:
        return told[0]
    how = f"exit code {status}"
    if status < 0:
        how = f"it was ended by {signal.Signals(-status).name}"
    return " | ".join([how, *lines])
