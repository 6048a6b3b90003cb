"""A tiny training job as SageMaker would start it: folders, channels, environment variables."""

import contextlib
import json
import os
import random
import signal
import socket
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path

from compilegate.domain.request.build import quality_request
from tests.domain.test_request import CONTEXT, arm, workload
from tests.training.fork_server import ForkServer

ROOT = Path(__file__).resolve().parents[2]
TRAINING = ROOT / "training"
SCRIPTS = Path(__file__).with_name("scripts")
STAND_IN = Path(__file__).with_name("stand_in_lightning") / "lightning"
PYTHON = ROOT / ".venv-training" / "bin" / "python"
OUTPUT = "output.txt"  # what a job printed, in its folder


@dataclass(frozen=True)
class Finished:
    """What a job left behind."""

    status: int
    output: str
    folder: Path

    def evidence(self, part=""):
        return self.folder / "data" / "evidence" / part

    def summary(self, part=""):
        return json.loads((self.evidence(part) / "summary.json").read_text())

    def steps(self, part=""):
        text = (self.evidence(part) / "steps.jsonl").read_text()
        return [json.loads(line) for line in text.splitlines()]

    @property
    def failure(self):
        path = self.folder / "failure"
        return path.read_text() if path.exists() else None


# Read by torch when it is imported.
QUICK = {
    "OMP_NUM_THREADS": "1",
    # More would be processes that each import torch, beside those of other tests.
    "TORCHINDUCTOR_COMPILE_THREADS": "1",
    # On one machine it is built once, and halves the time of every kernel.
    "TORCHINDUCTOR_CPP_CACHE_PRECOMPILE_HEADERS": "1",
    # Loops without vector instructions, which need no trial of what the compiler can do.
    "TORCHINDUCTOR_VEC_ISA_OK": "0",
}
# As scripts/few_files.py: a C++ file for each graph, where a process imports torch afresh.
FEW_FILES = {"TORCHINDUCTOR_CPP_WRAPPER": "1", "TORCHINDUCTOR_DEBUG_COMPILE": "1"}
IMPORTED_AHEAD = ("torch._dynamo", "torch._inductor.compile_fx")
# A job that sets what is read when an interpreter starts or imports has one to itself,
READ_AT_START = ("PYTHON", "TORCH")
AFRESH = {"PYTHONHASHSEED": "1"}  # as has one with these variables
END_SECONDS = 120  # of a job that got a signal
PORTS_OF_A_JOB = 12


class Jobs:
    """Starts jobs in folders of their own; one compile cache, ``cache``, serves them all.

    They are forked from one process that has imported torch, which takes longer than they do.
    """

    def __init__(self, folder, channels, cache):
        self.folder = folder
        self.channels = channels
        self.count = 0
        kept = {key: os.environ[key] for key in ("PATH", "HOME") if key in os.environ}
        own = {"TORCHINDUCTOR_CACHE_DIR": str(cache), "HF_HUB_OFFLINE": "1"}
        self._base = {**kept, **QUICK, **own}
        self._server = None

    def close(self):
        if self._server:
            self._server.close()

    def warm(self, *modules):
        """Let the jobs after this one find these modules imported."""
        if self._server is None:
            self._server = ForkServer(PYTHON, self._base, TRAINING)
        self._server.warm(modules)

    def words(self, program, hyperparameters):
        words = [str(program if Path(program).is_absolute() else TRAINING / program)]
        for key, value in hyperparameters.items():
            words += [f"--{key}", str(value)]
        return words

    def run(self, entry_point, variables=None, **hyperparameters):
        return self._ended(*self._start(entry_point, variables, hyperparameters))

    def run_in_few_files(self, entry_point, variables=None, **hyperparameters):
        """Run a job whose graphs are compiled to one file each (scripts/few_files.py)."""
        program = TRAINING / entry_point
        return self.run(SCRIPTS / "few_files.py", variables, program=program, **hyperparameters)

    def run_code(self, code, *arguments):
        """Run code; what its last line prints, read as JSON."""
        done = self._ended(*self._start_words(["-c", code, *arguments], {}))
        assert 0 == done.status, done.output
        return json.loads(done.output.splitlines()[-1])

    def run_all(self, described):
        """Run jobs, (entry point, variables, hyperparameters) by name."""
        return {
            name: self.run(entry_point, variables, **hyperparameters)
            for name, (entry_point, variables, hyperparameters) in described.items()
        }

    def run_two(self, entry_point, variables=None, **hyperparameters):
        """Run the job in two processes."""
        started = self._start(entry_point, variables, hyperparameters, port=free_port())
        return self._ended(*started)

    def interrupt(
        self, entry_point, variables=None, *, when, by=signal.SIGTERM, **hyperparameters
    ):  # fmt: skip
        """Start a job, send it a signal once ``when(folder)`` is true, and wait for its end."""
        process, folder = self._start(entry_point, variables, hyperparameters)
        deadline = time.monotonic() + END_SECONDS
        while process.poll() is None and time.monotonic() < deadline and not when(folder):
            time.sleep(0.01)
        process.send_signal(by)
        return self._ended(process, folder, END_SECONDS)

    def _start(self, entry_point, variables, hyperparameters, **more):
        words, variables = self.words(entry_point, hyperparameters), variables or {}
        if any(name.startswith(READ_AT_START) for name in variables):
            return self._start_interpreter(words, variables)
        return self._start_words(words, variables, **more)

    def _start_words(self, words, variables, **more):
        self.warm(*IMPORTED_AHEAD)
        folder, environment = self._place(variables)
        return self._server.start(words, environment, folder / OUTPUT, **more), folder

    def _start_interpreter(self, words, variables):
        folder, environment = self._place(variables)
        with (folder / OUTPUT).open("w") as output:
            process = subprocess.Popen(
                [PYTHON, *words], env=environment, cwd=TRAINING, stdout=output,
                stderr=subprocess.STDOUT,
            )  # fmt: skip
        return process, folder

    def _place(self, variables):
        self.count += 1
        folder = self.folder / f"job-{self.count}"
        (folder / "data").mkdir(parents=True)
        return folder, {
            **self._base,
            "SM_OUTPUT_DIR": str(folder),
            "SM_OUTPUT_DATA_DIR": str(folder / "data"),
            **{f"SM_CHANNEL_{name.upper()}": str(p) for name, p in self.channels.items()},
            **variables,
        }

    @staticmethod
    def _ended(process, folder, seconds=None):
        try:
            status = process.wait(seconds)
        except BaseException:  # the test's own time is over
            process.send_signal(signal.SIGKILL)
            process.wait()
            raise
        return Finished(status, (folder / OUTPUT).read_text(), folder)


def free_port():
    """A port that nothing listens on now, nor on those after it, which are the job's segments'.

    Below the ports that the system gives to whatever asks for one.
    """
    while True:
        first = random.randrange(10_000, 32_000)
        with contextlib.suppress(OSError), contextlib.ExitStack() as probes:
            for port in range(first, first + PORTS_OF_A_JOB):
                probes.enter_context(socket.socket()).bind(("127.0.0.1", port))
            return str(first)


def metric_patterns():
    """By metric, how SageMaker finds it in a log of a job that a trial requests."""
    request = quality_request(workload(), arm(), run="q1a17", replicate=0, seed=17, context=CONTEXT)
    definitions = request["AlgorithmSpecification"]["MetricDefinitions"]
    return {one["Name"]: one["Regex"] for one in definitions}


def after_steps(count):
    """``when`` for Jobs.interrupt: more than ``count`` steps are on disk."""

    def reached(folder):
        path = folder / "data" / "evidence" / "steps.jsonl"
        return path.exists() and path.read_text().count("\n") > count

    return reached


def stopped_after(jobs, steps, variables, **settings):
    """Run a job that SIGTERM stops after so many steps."""
    done = jobs.interrupt("launch.py", variables, when=after_steps(steps), **settings)
    assert 143 == done.status, done.output
    return done


def numbers(done):
    return [line["step"] for line in done.steps()]
