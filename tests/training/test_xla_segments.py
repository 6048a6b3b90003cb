"""Segments under the managed compiler's launchers, with stand-ins for those of its images."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from compilegate_runtime import environment, segments

RUNTIME = Path(__file__).parents[2] / "training" / "compilegate_runtime"
HOSTS = {"SM_NUM_GPUS": "4", "SM_HOSTS": '["algo-1", "algo-2"]', "SM_CURRENT_HOST": "algo-2"}
# Each stand-in takes its own arguments as the image's launcher does and runs the script.
STAND_IN = """
import json, os, runpy, sys
words = sys.argv[1:]
own, script = words[:{own}], words[{own}]
with open(os.environ["CALLS"], "a") as calls:
    print(json.dumps([own, os.environ.get("XRT_HOST_ORDINAL")]), file=calls)
sys.argv = words[{own}:]
runpy.run_path(script, run_name="__main__")
"""
SCRIPT = """
import json, os, pathlib, sys
folder = pathlib.Path(os.environ["COMPILEGATE_EVIDENCE_DIR"])
folder.mkdir(parents=True)
(folder / "summary.json").write_text(json.dumps(sys.argv[1:]))
"""


@pytest.fixture
def hosts(monkeypatch):
    for name, value in HOSTS.items():
        monkeypatch.setenv(name, value)


def test_the_runners_command_and_variables_are_the_toolkits(hosts):
    expected = {
        "GPU_NUM_DEVICES": "4",
        "XRT_HOST_ORDINAL": "1",
        "XRT_SHARD_WORLD_SIZE": "2",
        "XRT_WORKERS": "localservice:0;algo-1:43857|localservice:1;algo-2:43857",
        "XRT_MESH_SERVICE_ADDRESS": "algo-1:53957",
    }

    assert expected.items() <= segments.launcher_variables("xla_spawn").items()
    assert [
        "-m", "torch_xla.distributed.xla_spawn", "--num_gpus", "4", "train.py",
    ] == segments.launcher_words("xla_spawn", "train.py")  # fmt: skip


def test_one_host_has_no_mesh(hosts, monkeypatch):
    monkeypatch.setenv("SM_HOSTS", '["algo-2"]')

    assert "XRT_MESH_SERVICE_ADDRESS" not in segments.launcher_variables("xla_spawn")


def test_without_a_launcher_a_segment_is_the_script_alone():
    assert (["train.py"], {}) == (
        segments.launcher_words("none", "train.py"), segments.launcher_variables("none"),
    )  # fmt: skip


def test_only_the_first_process_of_a_segment_writes_its_evidence(monkeypatch):
    monkeypatch.setenv("COMPILEGATE_EVIDENCE_DIR", "/evidence/block-0/compile")
    folders = []
    for rank in ("0", "1", "15"):
        monkeypatch.setenv("RANK", rank)
        folders.append(environment.evidence_folder())

    assert Path("/evidence/block-0/compile") == folders[0]
    assert 3 == len(set(folders))


@pytest.mark.parametrize(
    ("launcher", "own"), [("xla_spawn", ["--num_gpus", "4"]), ("sm_dist", ["--training_script"])]
)
def test_the_speed_gate_starts_every_segment_by_the_launcher(tmp_path, launcher, own):
    code, package = tmp_path / "code", tmp_path / "lib" / "torch_xla" / "distributed"
    shutil.copytree(RUNTIME, code / "compilegate_runtime")
    (code / "train.py").write_text(SCRIPT)
    package.mkdir(parents=True)
    (package / f"{launcher}.py").write_text(STAND_IN.format(own=len(own)))
    calls, output = tmp_path / "calls", tmp_path / "output"
    variables = {
        **os.environ, **HOSTS, "CALLS": str(calls), "SM_OUTPUT_DATA_DIR": str(output),
        "PYTHONPATH": str(tmp_path / "lib"),
    }  # fmt: skip
    segment = {"name": "managed", "hyperparameters": {"compiler": "sagemaker_training_compiler"}}

    ended = subprocess.run(
        [sys.executable, "compilegate_runtime/speed_gate.py", "--program", "train.py",
         "--launcher", launcher, "--blocks", "2", "--steps", "9", "--baseline", "elsewhere",
         "--arm_0", json.dumps(segment)],
        cwd=code, env=variables, capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip

    assert 0 == ended.returncode, ended.stderr
    ordinal = "1" if launcher == "xla_spawn" else None
    # Once to fill the compile cache, then once for each block.
    assert [[own, ordinal]] * 3 == [json.loads(line) for line in calls.read_text().splitlines()]
    told = json.loads((output / "evidence" / "block-1" / "managed" / "summary.json").read_text())
    assert told[told.index("--max_steps") + 1] == "9"
