"""The speed gate's plan, and its segments under the managed compiler's launchers (stand-ins)."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from types import SimpleNamespace

import pytest
from compilegate_runtime import segments, speed_gate
from compilegate_runtime.errors import HyperparameterError, TrainingError

from compilegate.domain.argument_text import encoded_document
from tests.training.jobs import TRAINING
from tests.training.stand_ins import SUMMARY_KEYS

PLAN = ["--program", "causal_lm.py", "--blocks", "1", "--steps", "5"]
RUNTIME = TRAINING / "compilegate_runtime"
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
SM_DIST = """
import json, sys
print(json.dumps(sys.argv[1:]))
sys.exit(int(sys.argv[-1]))
"""


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"--program": "absent.py"}, "absent.py is not in the source folder"),
        ({"--arm_0": "{"}, "arm_0 must be JSON"),
        ({"--arm_0": '{"name": "compile", "hyperparameters": {}}'}, "no arm is named baseline"),
        ({"--baseline": "elsewhere"}, "needs other arms"),
        ({"--typo": "1"}, "typo"),
    ],
)
def test_the_speed_gate_names_what_is_wrong_with_its_plan(change, message):
    words = {
        "--program": "causal_lm.py",
        "--blocks": "1",
        "--steps": "5",
        "--arm_0": '{"name": "baseline", "hyperparameters": {}}',
        **change,
    }
    with pytest.raises(HyperparameterError, match=message):
        speed_gate.parse([word for pair in words.items() for word in pair])


def test_the_speed_gate_reads_arms_that_were_encoded_for_a_shell():
    arm = {"name": "baseline", "hyperparameters": {"prompt": "it's $(id)"}}
    _, arms = speed_gate.parse([*PLAN, "--arm_0", encoded_document(arm)])

    assert "it's $(id)" == arms[0].hyperparameters["prompt"]
    with pytest.raises(HyperparameterError, match="arm_0 is not urlsafe base64"):
        speed_gate.parse([*PLAN, "--arm_0", "base64:e"])


def test_a_segment_gets_the_words_that_a_whole_run_gets():
    pairs = {"flag": True, "rate": 1e-05, "v": 9, "text": "a b"}
    words = speed_gate.arguments_of(pairs)

    assert ["--flag", "True", "--rate", "1e-05", "--text", "a b", "-v", "9"] == words


# Leaves a summary. It ends badly after a check, and where its learning rate is too large.
TRAINS = """
import json, os, pathlib, sys
folder = pathlib.Path(os.environ["COMPILEGATE_EVIDENCE_DIR"])
folder.mkdir(parents=True)
checks = os.environ.get("COMPILEGATE_EQUIVALENCE") == "first"
reason = "the loss became nan" if "1e+30" in sys.argv else None
profile = os.environ.get("COMPILEGATE_PROFILE") == "1"
summary = {"finished": not reason, "reason": reason, "checks": checks, "profile": profile}
(folder / "summary.json").write_text(json.dumps(summary))
if reason:
    pathlib.Path(os.environ["SM_OUTPUT_FAILURE"]).write_text(reason)
os._exit(9)
"""


@pytest.fixture
def run_blocks(tmp_path, monkeypatch):
    """Runs arms by their hyperparameters; the summaries by their place, the arms' failures."""
    (tmp_path / "train.py").write_text(TRAINS)
    monkeypatch.setattr(speed_gate, "SOURCE", tmp_path)
    monkeypatch.setenv("COMPILEGATE_EVIDENCE_DIR", str(tmp_path / "evidence"))

    def run(blocks=1, **by_name):
        arms = [speed_gate.Arm(name, values) for name, values in by_name.items()]
        plan = SimpleNamespace(
            program="train.py", first_block=0, blocks=blocks, steps=5, launcher="none"
        )
        speed_gate.run_blocks(plan, arms)
        summaries = {
            path.parent.relative_to(tmp_path / "evidence").as_posix(): json.loads(path.read_text())
            for path in tmp_path.rglob("summary.json")
        }
        return summaries, [arm.failure for arm in arms]

    return run


def test_what_fills_the_cache_is_checked_all_else_profiled_and_what_ends_either_fails_no_arm(
    run_blocks,
):
    made, failures = run_blocks(baseline={}, compile={"compiler": "torch_compile"})

    assert [None, None] == failures
    checked = {place for place, summary in made.items() if summary["checks"]}
    assert checked == {place for place, summary in made.items() if not summary["profile"]}
    assert ({"cold/compile"}, {"block-0/baseline", "block-0/compile"}) == (
        checked, made.keys() - checked,
    )  # fmt: skip


def test_a_candidate_that_fails_is_a_result_and_is_left_out_from_then_on(run_blocks):
    made, failures = run_blocks(3, baseline={}, burst={"rate": 1e30})

    assert [None, "the loss became nan"] == failures
    assert (False, "the loss became nan") == (
        made["block-0/burst"]["finished"], made["block-0/burst"]["reason"],
    )  # fmt: skip
    blocks = {f"block-{number}/baseline" for number in range(3)}
    assert blocks == {place for place, summary in made.items() if summary["finished"]}
    assert blocks | {"block-0/burst"} == made.keys()


def test_a_baseline_that_fails_fails_the_job(run_blocks):
    with pytest.raises(TrainingError, match="the baseline failed in block 0: the loss became nan"):
        run_blocks(baseline={"rate": 1e30}, compile={})


def test_a_segment_that_died_without_a_word_is_still_a_result(tmp_path):
    arm = SimpleNamespace(
        name="compile", hyperparameters={"compiler": "torch_compile"}, failure="exit code -9"
    )
    speed_gate.record_failure(arm, tmp_path, 2)

    summary = json.loads((tmp_path / "summary.json").read_text())
    assert SUMMARY_KEYS <= summary.keys()
    assert (False, "exit code -9", None) == (
        summary["finished"], summary["reason"], summary["compiler"]["applied"],
    )  # fmt: skip
    assert "" == (tmp_path / "steps.jsonl").read_text()


def test_a_job_whose_baseline_runs_elsewhere_measures_the_other_arms():
    arm = '{"name": "p4d", "hyperparameters": {}}'
    plan, arms = speed_gate.parse(
        [*PLAN, "--arm_0", arm, "--baseline", "elsewhere", "--mp_parameters", "ddp=1"]
    )

    assert ("elsewhere", ["p4d"]) == (plan.baseline, [arm.name for arm in arms])


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
    words = json.loads((output / "evidence/block-1/managed/summary.json").read_text())
    assert words[words.index("--max_steps") + 1] == "9"


@pytest.mark.parametrize("code", [0, 3])
def test_the_images_launcher_gets_every_argument_and_its_exit_code_is_the_jobs(tmp_path, code):
    package = tmp_path / "torch_xla" / "distributed"
    package.mkdir(parents=True)
    (package / "sm_dist.py").write_text(SM_DIST)
    words = ["--training_script", "train.py", "--prompt", "two words; $HOME", "--code", str(code)]

    ended = subprocess.run(
        [sys.executable, RUNTIME / "xla_launcher.py", *words],
        capture_output=True, text=True, timeout=60,
        env={**os.environ, "PYTHONPATH": str(tmp_path)}, check=False,
    )  # fmt: skip

    assert code == ended.returncode
    assert words == json.loads(ended.stdout)
