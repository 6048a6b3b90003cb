"""A tiny training job as SageMaker would start it: folders, channels, environment variables."""

import json
import os
import subprocess
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
TRAINING = ROOT / "training"
PYTHON = ROOT / ".venv-training" / "bin" / "python"


@dataclass(frozen=True)
class Finished:
    """What a job left behind."""

    status: int
    output: str
    folder: Path

    def summary(self, part=""):
        return json.loads((self.folder / "data" / "evidence" / part / "summary.json").read_text())

    def steps(self, part=""):
        text = (self.folder / "data" / "evidence" / part / "steps.jsonl").read_text()
        return [json.loads(line) for line in text.splitlines()]

    @property
    def failure(self):
        path = self.folder / "failure"
        return path.read_text() if path.exists() else None


class Jobs:
    """Starts jobs in folders of their own; one compile cache serves them all."""

    def __init__(self, folder, channels):
        self.folder = folder
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
            "TORCHINDUCTOR_CACHE_DIR": str(self.folder / "cache"),
            **{f"SM_CHANNEL_{name.upper()}": str(p) for name, p in self.channels.items()},
            **variables,
        }

    def run(self, entry_point, variables=None, **hyperparameters):
        output, environment = self.environment(variables or {})
        done = subprocess.run(
            self.command(entry_point, hyperparameters),
            env=environment,
            cwd=TRAINING,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )
        return Finished(done.returncode, done.stdout, output)

    def run_together(self, described, warm=()):
        """Run jobs, (entry point, variables, hyperparameters) by name, from one process.

        It has imported the modules named in ``warm``.
        """
        told, folders = [], {}
        for name, (entry_point, variables, hyperparameters) in described.items():
            folders[name], environment = self.environment(variables)
            told.append(
                {
                    "program": str(TRAINING / entry_point),
                    "arguments": self.command(entry_point, hyperparameters)[2:],
                    "environment": environment,
                    "output": str(folders[name] / "output.txt"),
                }
            )
        plan = self.folder / f"plan-{self.count}.json"
        plan.write_text(json.dumps(told))
        driver = Path(__file__).with_name("forked.py")
        done = subprocess.run(
            [PYTHON, driver, plan, *warm], check=True, stdout=subprocess.PIPE, text=True,
            env={**os.environ, "OMP_NUM_THREADS": "1", "HF_HUB_OFFLINE": "1"},
        )  # fmt: skip
        return {
            name: Finished(status, (folders[name] / "output.txt").read_text(), folders[name])
            for name, status in zip(folders, json.loads(done.stdout), strict=True)
        }

    def start(self, entry_point, variables=None, **hyperparameters):
        output, environment = self.environment(variables or {})
        process = subprocess.Popen(
            self.command(entry_point, hyperparameters),
            env=environment,
            cwd=TRAINING,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        return process, output
