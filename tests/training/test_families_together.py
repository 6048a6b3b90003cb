"""Several processes, and a job that is stopped and goes on: each tells of one training."""

import json
import signal
import socket
import subprocess
import time

import pytest

from tests.training.jobs import PYTHON, TRAINING, Finished

pytestmark = pytest.mark.training

LANGUAGE_MODEL = {
    "width": 16, "layers": 1, "heads": 2, "block": 16, "steps": 10, "eval_blocks": 5,
    "learning_rate": 1e-3,
}  # fmt: skip
CLASSIFIER = {"width": 16, "layers": 1, "heads": 2, "max_length": 24, "steps": 4, "dropout": 0.0}
LONG = {**LANGUAGE_MODEL, "steps": 300, "batch_size": 2}
# Two halves of a batch add up in another order than the whole; float32 keeps about seven digits.
SAME = 1e-4


def launched(jobs, entry_point, hyperparameters, variables=None):
    """The job in two processes, as torchrun starts them."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    output, environment = jobs.environment(variables or {})
    launcher = [str(PYTHON), "-m", "torch.distributed.run", "--nproc_per_node=2"]
    words = jobs.command(entry_point, hyperparameters)[1:]
    done = subprocess.run(
        [*launcher, f"--master_port={port}", *words], env=environment, cwd=TRAINING, text=True,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False,
    )  # fmt: skip
    return Finished(done.returncode, done.stdout, output)


@pytest.fixture(scope="module")
def whole(jobs):
    """What one process does in one go, from one warm process."""
    return jobs.run_together(
        {
            "causal_lm.py": ("causal_lm.py", {}, {**LANGUAGE_MODEL, "batch_size": 4}),
            "text_classification.py": (
                "text_classification.py", {}, {**CLASSIFIER, "batch_size": 4},
            ),
            "long": ("causal_lm.py", {}, LONG),
        },
        warm=("torch._dynamo",),
    )  # fmt: skip


@pytest.mark.parametrize(
    ("entry_point", "hyperparameters", "metric"),
    [
        ("causal_lm.py", LANGUAGE_MODEL, "eval_loss"),
        pytest.param("text_classification.py", CLASSIFIER, "eval_accuracy", marks=pytest.mark.slow),
    ],
)
def test_two_processes_train_what_one_does_with_their_batches_together(
    jobs, whole, entry_point, hyperparameters, metric
):
    two = launched(jobs, entry_point, {**hyperparameters, "batch_size": 2})
    one = whole[entry_point]
    assert (0, 0) == (two.status, one.status), two.output + one.output
    ours, theirs = two.summary(), one.summary()

    assert ours["metrics"][metric] == pytest.approx(theirs["metrics"][metric], rel=SAME)
    assert ours["initial_loss"] == pytest.approx(theirs["initial_loss"], rel=SAME)
    assert (2, 2) == (ours["devices"], ours["fingerprint"]["world_size"])
    assert theirs["fingerprint"]["global_batch"] == ours["fingerprint"]["global_batch"]
    assert (2, 2, []) == tuple(ours["ranks"][key] for key in ("expected", "reported", "silent"))
    for key in ("samples", "tokens"):
        assert theirs["ranks"][key] == ours["ranks"][key]
    norms = [step["gradient_norm"] for step in one.steps()]
    assert [step["gradient_norm"] for step in two.steps()] == pytest.approx(norms, rel=1e-3)
    assert 1 == two.output.count(f"compilegate {metric}=")


def test_a_job_that_was_stopped_goes_on_as_if_it_had_not_been(jobs, whole, tmp_path):
    there = {"COMPILEGATE_CHECKPOINT_DIR": str(tmp_path)}
    process, folder = jobs.start("causal_lm.py", there, **LONG)
    path = folder / "data" / "evidence" / "steps.jsonl"
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline and not (path.exists() and path.read_text().count("\n")):
        time.sleep(0.01)
    process.send_signal(signal.SIGTERM)
    output = process.communicate(timeout=60)[0]
    stopped = json.loads((folder / "data" / "evidence" / "summary.json").read_text())
    resumed = jobs.run("causal_lm.py", there, **LONG)

    assert 143 == process.returncode, output
    assert "its checkpoint is saved" in stopped["reason"]
    assert (0, 0) == (whole["long"].status, resumed.status), resumed.output
    found = resumed.summary()
    assert [stopped["steps"]] == found["resumed"]
    assert 0 < stopped["steps"] < 300
    assert list(range(1, 301)) == [step["step"] for step in resumed.steps()]
    for key in ("metrics", "loss_curve", "initial_loss", "finished"):
        assert whole["long"].summary()[key] == found[key]
    assert found["wall_seconds"] > stopped["wall_seconds"]


def test_a_job_that_was_killed_goes_on_from_its_last_save_by_time(jobs, whole, tmp_path):
    """As AWS stops it: no signal that a script could act on comes before SIGKILL."""
    there = {"COMPILEGATE_CHECKPOINT_DIR": str(tmp_path)}
    often = {**LONG, "checkpoint_minutes": 1e-4}
    process, folder = jobs.start("causal_lm.py", there, **often)
    saves, deadline = tmp_path / "progress", time.monotonic() + 60
    while time.monotonic() < deadline and len(list(saves.glob("step-*[0-9]"))) < 2:
        time.sleep(0.01)
    process.kill()
    process.communicate(timeout=60)
    killed = json.loads((folder / "data" / "evidence" / "summary.json").read_text())
    lines = (folder / "data" / "evidence" / "steps.jsonl").read_text().splitlines()
    resumed = jobs.run("causal_lm.py", there, **often)

    assert (False, None) == (killed["finished"], killed["reason"])
    assert (0, 0) == (whole["long"].status, resumed.status), resumed.output
    found = resumed.summary()
    (went_on,) = found["resumed"]
    assert 0 < went_on <= len(lines) < 300
    assert list(range(1, 301)) == [step["step"] for step in resumed.steps()]
    for key in ("metrics", "loss_curve", "initial_loss", "finished"):
        assert whole["long"].summary()[key] == found[key]


def test_another_runs_checkpoint_is_not_gone_on_from(jobs, tmp_path):
    progress = tmp_path / "progress" / "step-000000005"
    progress.mkdir(parents=True)
    (progress / "run.json").write_text(json.dumps({"settings": {"seed": 3}, "evidence": {}}))
    (progress / "whole.json").write_text(json.dumps({}))
    there = {"COMPILEGATE_CHECKPOINT_DIR": str(tmp_path)}
    done = jobs.run("causal_lm.py", there, **{**LANGUAGE_MODEL, "batch_size": 2})

    assert 0 == done.status, done.output
    assert [] == done.summary()["resumed"]
    assert "another run's checkpoint" in done.output


@pytest.mark.slow
def test_the_speed_gate_of_two_processes_starts_every_segment_afresh(jobs):
    """Each segment's processes find each other, and none of those before them."""
    small = json.dumps({**LANGUAGE_MODEL, "batch_size": 2})
    again = json.dumps({"name": "again", "hyperparameters": json.loads(small)})
    first = json.dumps({"name": "baseline", "hyperparameters": json.loads(small)})
    gate = {"program": "causal_lm.py", "blocks": 2, "steps": 9, "arm_0": first, "arm_1": again}
    done = launched(jobs, "compilegate_runtime/speed_gate.py", gate)

    assert 0 == done.status, done.output
    found = [
        done.summary(f"block-{block}/{arm}") for block in (0, 1) for arm in ("baseline", "again")
    ]
    assert [True] * 4 == [segment["finished"] for segment in found]
    assert [[2, []]] * 4 == [[s["ranks"]["reported"], s["ranks"]["silent"]] for s in found]
    assert 1 == len({segment["initial_loss"] for segment in found})
    lengths = [len(done.steps(f"block-{block}/baseline")) for block in (0, 1)]
    assert [9, 9] == lengths
