"""A small project on disk: a workload file, its source folder and a local input."""

from __future__ import annotations

from pathlib import Path

WORKLOAD = """\
schema: 1
name: bert-docs
framework:
  name: pytorch
  version: "2.13.0"
model:
  family: transformer
  name: bert-base
training:
  source_dir: training
  entry_point: train.py
  instance_type: ml.g5.xlarge
  instance_count: 1
  distribution: none
  precision: fp32
  batch_size: 32
  learning_rate: 5.0e-5
  inputs: {train: data/train}
  max_runtime_hours: 12
shapes:
  static: true
schedule:
  runs_per_week: 3
  run_hours: 6.0
quality:
  metric: eval_accuracy
  goal: maximize
  margin: 0.005
"""


def write_project(folder: Path, *changes: tuple[str, str]) -> Path:
    """Write the project with text replaced in its workload file; returns that file."""
    text = WORKLOAD
    for old, new in changes:
        assert old in text
        text = text.replace(old, new)
    runtime = folder / "training" / "compilegate_runtime"
    runtime.mkdir(parents=True, exist_ok=True)
    (runtime / "__init__.py").write_text("")
    (folder / "training" / "train.py").write_text("print('training')\n")
    (folder / "data" / "train").mkdir(parents=True, exist_ok=True)
    (folder / "data" / "train" / "rows.csv").write_text("1,2\n")
    (folder / "workloads").mkdir(exist_ok=True)
    file = folder / "workloads" / "bert-docs.yaml"
    file.write_text(text, encoding="utf-8")
    return file


COMPILES = "import torch\nmodel = torch.compile(model)\n"
# Started by the launcher, which leaves a script's own compiling out.
LAUNCHED = (
    "entry_point: train.py", "entry_point: launch.py\n  hyperparameters: {script: train.py}",
)  # fmt: skip


def write_compiling(folder: Path, *changes: tuple[str, str]) -> Path:
    """A project whose script compiles itself; returns its workload file."""
    file = write_project(folder, *changes, LAUNCHED)
    (folder / "training" / "train.py").write_text(COMPILES)
    return file
