"""A tiny training job as SageMaker would start it: folders, channels, environment variables."""

import json
import os
import signal
import socket
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
TRAINING = ROOT / "training"
SCRIPTS = Path(__file__).with_name("scripts")
PYTHON = ROOT / ".venv-training" / "bin" / "python"


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


class Jobs:
    """Starts jobs in folders of their own; one compile cache, ``cache``, serves them all."""

    def __init__(self, folder, channels, cache):
        self.folder, self.cache = folder, cache
        self.channels = channels
        self.count = 0

    def command(self, program, hyperparameters):
        words = [str(PYTHON), str(program if Path(program).is_absolute() else TRAINING / program)]
        for key, value in hyperparameters.items():
            words += [f"--{key}", str(value)]
        return words

    def environment(self, variables):
        self.count += 1
        output = self.folder / f"job-{self.count}"
        (output / "data").mkdir(parents=True)
        return output, {
            **{key: os.environ[key] for key in ("PATH", "HOME") if key in os.environ},
            "SM_OUTPUT_DIR": str(output),
            "SM_OUTPUT_DATA_DIR": str(output / "data"),
            "OMP_NUM_THREADS": "1",
            # More would be processes that each import torch, beside those of other tests.
            "TORCHINDUCTOR_COMPILE_THREADS": "1",
            "TORCHINDUCTOR_CACHE_DIR": str(self.cache),
            # On one machine it is built once, and halves the time of every kernel.
            "TORCHINDUCTOR_CPP_CACHE_PRECOMPILE_HEADERS": "1",
            # Loops without vector instructions, which need no trial of what the compiler can do.
            "TORCHINDUCTOR_VEC_ISA_OK": "0",
            **{f"SM_CHANNEL_{name.upper()}": str(p) for name, p in self.channels.items()},
            **variables,
        }

    def run(self, entry_point, variables=None, **hyperparameters):
        return self._run(self.command(entry_point, hyperparameters), variables)

    def run_two(self, entry_point, variables=None, **hyperparameters):
        """Run the job in two processes, as torchrun starts them."""
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        launcher = ["-m", "torch.distributed.run", "--nproc_per_node=2", f"--master_port={port}"]
        python, *words = self.command(entry_point, hyperparameters)
        return self._run([python, *launcher, *words], variables)

    def _run(self, command, variables):
        process, folder = self._start(command, variables)
        output = process.communicate()[0]
        return Finished(process.returncode, output, folder)

    def interrupt(
        self, entry_point, variables=None, *, when, by=signal.SIGTERM, **hyperparameters
    ):  # fmt: skip
        """Start a job, send it a signal once ``when(folder)`` is true, and wait for its end."""
        process, folder = self._start(self.command(entry_point, hyperparameters), variables)
        deadline = time.monotonic() + 120
        while process.poll() is None and time.monotonic() < deadline and not when(folder):
            time.sleep(0.01)
        process.send_signal(by)
        output = process.communicate(timeout=120)[0]
        return Finished(process.returncode, output, folder)

    def _start(self, command, variables):
        output, environment = self.environment(variables or {})
        process = subprocess.Popen(
            command, env=environment, cwd=TRAINING, stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT, text=True,
        )  # fmt: skip
        return process, output

    def run_together(self, described, warm=()):
        """Run jobs, (entry point, variables, hyperparameters) by name, from one process.

        It has imported the modules named in ``warm``.
        """
        plan, folders = [], {}
        for name, (entry_point, variables, hyperparameters) in described.items():
            folders[name], environment = self.environment(variables)
            plan.append(
                {
                    "program": str(TRAINING / entry_point),
                    "arguments": self.command(entry_point, hyperparameters)[2:],
                    "environment": environment,
                    "output": str(folders[name] / "output.txt"),
                }
            )
        path = self.folder / f"plan-{self.count}.json"
        path.write_text(json.dumps(plan))
        driver = Path(__file__).with_name("forked.py")
        done = subprocess.run(
            [PYTHON, driver, path, *warm], check=True, stdout=subprocess.PIPE, text=True,
            env={**os.environ, "OMP_NUM_THREADS": "1", "HF_HUB_OFFLINE": "1"},
        )  # fmt: skip
        return {
            name: Finished(status, (folders[name] / "output.txt").read_text(), folders[name])
            for name, status in zip(folders, json.loads(done.stdout), strict=True)
        }


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


def run_code(code, *arguments):
    """Run code in the training environment; what its last line prints, read as JSON."""
    if not PYTHON.exists():
        pytest.skip("the training environment is not set up; run make setup")
    done = subprocess.run(
        [PYTHON, "-c", code, *arguments], cwd=TRAINING, capture_output=True, text=True, check=False
    )
    assert 0 == done.returncode, done.stderr
    return json.loads(done.stdout.splitlines()[-1])
