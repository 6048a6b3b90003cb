"""``try`` starts every arm as its job would start and says what each left behind."""

import json
import sys
import textwrap

import pytest

from tests.cli import init_scripts as scripts
from tests.cli.project import write_project

# Stands for the training environment's Python: notes how it was started, leaves what is asked for.
PYTHON = """\
#!{executable}
import json, os, pathlib, shutil, sys, time
values = dict(zip((word[2:] for word in sys.argv[2::2]), sys.argv[3::2]))
output = pathlib.Path(os.environ["SM_OUTPUT_DATA_DIR"])
(output / "started.json").write_text(json.dumps(
    {{"argv": sys.argv[1:], "env": dict(os.environ), "files": sorted(os.listdir("."))}}))
arm = values["arm"]
plan = {plan!r}.get(arm, {{}})
print("a line of", arm)
print(plan.get("prints", ""))
if plan.get("hides"):
    (output.parents[1] / "../output.log").unlink()
time.sleep(plan.get("sleep", 0))
if "failure" in plan:
    pathlib.Path(os.environ["SM_OUTPUT_DIR"], "failure").write_text(plan["failure"])
evidence = output / "evidence"
evidence.mkdir()
step = {{"step": 2, "seconds": 0.5, "samples": 32}}
(evidence / "steps.jsonl").write_text((json.dumps(step) + "\\n") * plan.get("steps", 2))
compiler = values["compiler"]
summary = {{"finished": not plan.get("code"), "error": plan.get("error"),
           "steps": plan.get("steps", 2),
           "metrics": plan.get("metrics", {{"eval_accuracy": 0.75}}),
           "outcomes": {{"eval_accuracy": {{}}}},
           "initial_weights_sha256": plan.get("weights", "a"),
           "compiler": {{"requested": compiler, "compile_seconds": 9.0 if compiler != "none" else 0,
                        "applied": plan.get("applied", True) if compiler != "none" else None}}}}
summary.update(plan.get("summary", {{}}))
for name, text in plan.get("leaves", {{}}).items():
    (evidence / name).write_text(text)
if not plan.get("bare"):
    (evidence / "summary.json").write_text(json.dumps(summary))
for place, instead in plan.get("destroys", {{}}).items():
    gone = output.parents[1] / place
    gone.unlink() if gone.is_file() else shutil.rmtree(gone)
    if instead == "folder":
        gone.mkdir()
    elif instead == "pipe":
        os.mkfifo(gone)
    elif instead:
        gone.symlink_to(gone if instead == "itself" else instead)
sys.exit(plan.get("code", 0))
"""
LAUNCHED = (
    "entry_point: train.py",
    "entry_point: launch.py\n"
    "  hyperparameters: {script: train.py, data: /opt/ml/input/data/train}\n"
    "  environment: {PLACE: /opt/ml/model}",
)
CANDIDATES = ("schema: 1", "schema: 1\ncandidates:\n  - {name: compile, compiler: torch_compile}")


@pytest.fixture
def project(tmp_path):
    return write_project(tmp_path / "team", LAUNCHED, CANDIDATES)


def python(folder, **plan):
    path = folder / "python"
    path.write_text(textwrap.dedent(PYTHON).format(executable=sys.executable, plan=plan))
    path.chmod(0o755)
    return path


@pytest.fixture
def tried(project, tmp_path, invoke):
    """The command, with what the process of each arm does."""

    def call(*options, file=project, **plan):
        return invoke("try", file, "--python", python(tmp_path, **plan), *options)

    return call


def test_every_arm_is_started_as_its_job_would_be(tried, tmp_path):
    kept = tmp_path / "kept"
    result = tried("--keep", kept, "--json")
    assert 0 == result.exit_code, result.output
    document = json.loads(result.stdout)

    assert [("baseline", "ok"), ("compile", "ok")] == [
        (arm["arm"], arm["outcome"]) for arm in document["arms"]
    ]
    assert (2, 0.5, 0.75, True, 9.0) == tuple(
        document["arms"][1][key]
        for key in ("steps", "seconds_per_step", "metric", "outcomes", "compile_seconds")
    )
    root = kept / "compile" / "ml"
    started = json.loads((root / "output" / "data" / "started.json").read_text())
    program, *words = started["argv"]
    values = dict(zip(words[::2], words[1::2], strict=True))
    assert "launch.py" == program
    assert {"compilegate_runtime", "train.py"} <= set(started["files"])
    assert {
        "--script": "train.py", "--compiler": "torch_compile", "--batch_size": "32",
        "--data": f"{root}/input/data/train",
    }.items() <= values.items()  # fmt: skip
    assert f"{root}/model" == started["env"]["PLACE"]
    assert "2" == started["env"]["COMPILEGATE_TRY_STEPS"]
    assert (root / "input" / "data" / "train" / "rows.csv").is_file()
    assert not any(name.startswith("--sagemaker") for name in values)


OUTCOMES = {
    "a change that was not applied": (
        {"compile": {"code": 1, "applied": False, "failure": "no graph was compiled"}},
        13, "not_applied", "no graph was compiled",
    ),
    "another metric": (
        {"compile": {"metrics": {"eval_loss": 1.0}}},
        1, "no_metric", "eval_accuracy, not reported; metrics that were: eval_loss",
    ),
    "no evidence": ({"compile": {"code": 7}}, 1, "failed", "a line of compile"),
}  # fmt: skip


@pytest.mark.parametrize("case", OUTCOMES)
def test_what_stands_in_the_way_is_said(case, tried):
    plan, code, outcome, why = OUTCOMES[case]

    result = tried("--json", **plan)

    baseline, compiled = json.loads(result.stdout)["arms"]
    assert (code, "ok", outcome) == (result.exit_code, baseline["outcome"], compiled["outcome"])
    assert why in compiled["why"]


def test_the_screen_shows_each_arm_and_where_it_ended(tried):
    text = tried(compile={"code": 1, "failure": "no"}, baseline={"weights": "b"}).stdout

    assert "baseline: trains" in text
    assert "eval_accuracy = 0.75, with outcomes per example" in text
    assert "compile: failed\n  no.\n" in text
    assert "    | a line of compile" in text
    assert "begin with different weights" in text
    assert "1 of 2 arms trained and reported." in text


def test_one_reason_of_several_arms_is_shown_once_and_says_what_to_do(tried):
    missing = "ModuleNotFoundError"
    plan = {"code": 1, "failure": f"{missing}: No module named 'timm'.", "error": missing}

    text = tried(baseline=plan, compile=plan).stdout

    assert 2 == text.count("failed\n  ModuleNotFoundError: No module named")
    assert ("| a line of baseline" in text, "| a line of compile" in text) == (True, False)
    assert "timm'..\n" not in text
    assert LACKS in " ".join(text.split())


LACKS = "name a Python that has it with --python"


@pytest.mark.parametrize(("steps", "said"), [(0, True), (2, False)])
def test_a_script_that_dies_on_the_style_of_its_arguments(steps, said, tmp_path, tried):
    file = write_project(tmp_path / "hydra", LAUNCHED, CANDIDATES)
    (tmp_path / "hydra" / "training" / "train.py").write_text(scripts.HYDRA)

    result = tried("--arm", "baseline", "--json", file=file, baseline={"code": 1, "steps": steps})

    document = json.loads(result.stdout)
    assert ["failed"] == [one["outcome"] for one in document["arms"]]
    assert said is any("argument_style: hydra" in note for note in document["notes"])


@pytest.mark.parametrize(
    ("destroys", "outcome"),
    [
        ({"..": ""}, "failed"), ({"output/data": "itself"}, "failed"),
        ({"output": "/nowhere"}, "failed"), ({"../output.log": "folder"}, "ok"),
        ({"output/data/evidence/summary.json": "pipe"}, "failed"),
        ({"../output.log": "pipe"}, "ok"),
    ],
)  # fmt: skip
def test_an_arm_that_destroys_its_folder_fails_alone(destroys, outcome, tried):
    result = tried("--json", baseline={"destroys": destroys})

    ended = [arm["outcome"] for arm in json.loads(result.stdout)["arms"]]
    assert ([outcome, "ok"], int(outcome != "ok")) == (ended, result.exit_code)


@pytest.mark.parametrize("hides", [False, True])  # its log, while it is read
def test_an_arm_that_hangs_is_ended(hides, tried):
    stuck = {"sleep": 60, "hides": hides}
    result = tried("--arm", "baseline", "--minutes", 0.01, "--json", baseline=stuck)

    (arm,) = json.loads(result.stdout)["arms"]
    assert (1, "failed", "") == (result.exit_code, arm["outcome"], arm["log"])  # it was not kept
    assert "its time was up" in arm["why"]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--python", "/no/python"), "--python: is not a Python (got '/no/python')"),
        (("--arm", "copmile"), "--arm: is no arm that can run here (got 'copmile'). Fix: use one"),
        (("--input", "train"), "--input: names no data (got 'train')"),
        (("--keep", "team"), "--keep: is not empty"),
    ],
)
def test_a_wrong_option_starts_nothing(options, message, tried):
    result = tried(*options)

    assert 2 == result.exit_code
    assert message in result.stderr


def test_a_python_without_torch_starts_nothing(project, tmp_path, invoke):
    bare = tmp_path / "bare"
    bare.write_text(f'#!/bin/sh\nexec {sys.executable} -S -I "$@"\n')
    bare.chmod(0o755)

    result = invoke("try", project, "--python", bare, "--keep", tmp_path / "kept", "--json")

    (error,) = json.loads(result.stdout)["errors"]
    assert (2, "--python", str(bare)) == (result.exit_code, error["field"], error["value"])
    assert error["problem"] == "cannot import torch"
    assert "--python, or run `make setup`" in error["fix"]
    assert not (tmp_path / "kept").exists()


def test_data_in_s3_needs_a_sample_here(tmp_path, tried):
    file = write_project(tmp_path / "s3", LAUNCHED, ("data/train", "s3://bucket/train/"))
    (tmp_path / "sample.csv").write_text("1\n")

    given = tried("--input", "train=sample.csv", "--arm", "baseline", file=file)

    assert "training.inputs.train: is not on this machine" in tried(file=file).stderr
    assert 0 == given.exit_code, given.output


def test_a_script_that_already_compiles_is_named(tried):
    left_out = {"prints": "compilegate script_compiles=left_out"}
    # A function of the script's own stays uncompiled in every arm.
    of_both = tried(baseline=left_out, compile=left_out).stdout
    of_one = json.loads(tried("--json", compile=left_out).stdout)

    assert "not against the job as it runs today" in " ".join(of_both.split())
    assert [] == of_one["notes"]
    assert [False, True] == [arm["compiling_left_out"] for arm in of_one["arms"]]
