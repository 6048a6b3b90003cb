"""Several processes, and a job that is stopped and continues: each leaves one evidence."""

import json
import signal

import pytest

from tests.training.jobs import after_steps
from tests.training.test_launch import TRAINER, TRAINERS

pytestmark = pytest.mark.training

LANGUAGE_MODEL = {
    "width": 16, "layers": 1, "heads": 2, "block": 16, "steps": 10, "eval_blocks": 5,
    "learning_rate": 1e-3,
}  # fmt: skip
LONG = {**LANGUAGE_MODEL, "steps": 300, "batch_size": 2}
# Two halves of a batch add up in another order than the whole; float32 keeps about seven digits.
SAME = 1e-4


@pytest.fixture(scope="module")
def long(jobs):
    """What a job that nothing ends does in one go."""
    return jobs.run("causal_lm.py", **LONG)


def test_two_processes_train_what_one_does_with_their_batches_together(jobs):
    two = jobs.run_two("causal_lm.py", **LANGUAGE_MODEL, batch_size=2)
    one = jobs.run("causal_lm.py", **LANGUAGE_MODEL, batch_size=4)
    assert (0, 0) == (two.status, one.status), two.output + one.output
    ours, theirs = two.summary(), one.summary()

    assert ours["metrics"]["eval_loss"] == pytest.approx(theirs["metrics"]["eval_loss"], rel=SAME)
    assert ours["initial_loss"] == pytest.approx(theirs["initial_loss"], rel=SAME)
    assert (2, 2) == (ours["devices"], ours["fingerprint"]["world_size"])
    assert theirs["fingerprint"]["global_batch"] == ours["fingerprint"]["global_batch"]
    assert (2, 2, []) == tuple(ours["ranks"][key] for key in ("expected", "reported", "silent"))
    for key in ("samples", "tokens"):
        assert theirs["ranks"][key] == ours["ranks"][key]
    norms = [step["gradient_norm"] for step in one.steps()]
    assert [step["gradient_norm"] for step in two.steps()] == pytest.approx(norms, rel=1e-3)
    assert 1 == two.output.count("compilegate eval_loss=")


@pytest.mark.parametrize("by", [signal.SIGTERM, signal.SIGKILL], ids=["stopped", "killed"])
def test_a_job_that_was_ended_continues_as_if_it_had_not_been(jobs, long, tmp_path, by):
    """AWS kills a job without a signal that its script could act on; torchrun sends SIGTERM."""
    there = {"COMPILEGATE_CHECKPOINT_DIR": str(tmp_path)}
    stops = by == signal.SIGTERM
    own = LONG if stops else {**LONG, "checkpoint_minutes": 1e-4}
    saves = tmp_path / "progress"
    saved_twice = lambda _: len(list(saves.glob("step-*[0-9]"))) > 1  # noqa: E731
    when = after_steps(0) if stops else saved_twice
    ended = jobs.interrupt("causal_lm.py", there, when=when, by=by, **own)
    before, lines = ended.summary(), ended.steps()
    resumed = jobs.run("causal_lm.py", there, **own)

    assert (143 if stops else -9) == ended.status, ended.output
    assert (0, 0) == (long.status, resumed.status), resumed.output
    summary = resumed.summary()
    (start,) = summary["resumed"]
    assert 0 < start <= len(lines) < 300
    if stops:
        assert before["steps"] == start
        assert "its checkpoint is saved" in before["reason"]
        assert summary["wall_seconds"] > before["wall_seconds"]
    else:
        assert (False, None) == (before["finished"], before["reason"])
    assert list(range(1, 301)) == [step["step"] for step in resumed.steps()]
    for key in ("metrics", "loss_curve", "initial_loss", "finished"):
        assert long.summary()[key] == summary[key]


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
def test_two_processes_of_a_trainer_save_together_by_time_and_train_on(jobs, tmp_path):
    jobs.warm(*TRAINERS)
    there = {"COMPILEGATE_CHECKPOINT_DIR": str(tmp_path)}
    own = {
        **TRAINER, "num_train_epochs": 30, "save_strategy": "no", "checkpoint_minutes": 1e-4,
        "ddp_backend": "gloo", "output_dir": tmp_path / "output",
    }  # fmt: skip
    first = jobs.run_two("launch.py", there, **own)
    assert 0 == first.status, first.output
    kept = sorted(int(p.name[11:]) for p in (tmp_path / "progress").glob("checkpoint-*[0-9]"))
    second = jobs.run_two("launch.py", there, **own)
    assert 0 == second.status, second.output
    summary = second.summary()

    assert 0 < len(kept) <= 2
    states = (tmp_path / "progress" / f"checkpoint-{kept[-1]}").glob("rng_state_*.pth")
    assert 2 == len(list(states))
    assert ([kept[-1]], True) == (summary["resumed"], summary["finished"])
    assert list(range(1, summary["steps"] + 1)) == [line["step"] for line in second.steps()]
