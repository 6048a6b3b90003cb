"""The launcher of the managed compiler's older images, with a stand-in for the one they carry."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

LAUNCHER = Path(__file__).parents[2] / "training" / "compilegate_runtime" / "xla_launcher.py"
STAND_IN = """
import json, sys
print(json.dumps(sys.argv[1:]))
sys.exit(int(sys.argv[-1]))
"""


@pytest.mark.parametrize("code", [0, 3])
def test_the_images_launcher_gets_every_argument_and_its_exit_code_is_the_jobs(tmp_path, code):
    package = tmp_path / "torch_xla" / "distributed"
    package.mkdir(parents=True)
    (package / "sm_dist.py").write_text(STAND_IN)
    told = ["--training_script", "train.py", "--prompt", "two words; $HOME", "--code", str(code)]

    ended = subprocess.run(
        [sys.executable, str(LAUNCHER), *told], capture_output=True, text=True, timeout=60,
        env={**os.environ, "PYTHONPATH": str(tmp_path)}, check=False,
    )  # fmt: skip

    assert code == ended.returncode
    assert told == json.loads(ended.stdout)
