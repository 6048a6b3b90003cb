"""A script of somebody's own in two processes, started by torchrun: one job, one evidence."""

import pytest

from tests.training.test_families_together import launched
from tests.training.test_launch import SCRIPTS, TRAINER

pytestmark = [pytest.mark.training, pytest.mark.slow, pytest.mark.timeout(600)]

OWN = {"script": SCRIPTS / "together.py", "batch_size": 4, "learning_rate": 0.1, "seed": 3}


def test_two_processes_leave_one_evidence_with_the_samples_of_both(jobs):
    eager = launched(jobs, "launch.py", OWN)
    compiled = launched(jobs, "launch.py", {**OWN, "compiler": "torch_compile"})
    assert (0, 0) == (eager.status, compiled.status), eager.output + compiled.output
    found, ours = eager.summary(), compiled.summary()

    assert (True, 5, 2) == (found["finished"], found["steps"], found["devices"])
    assert {8} == {line["samples"] for line in eager.steps()}
    assert {
        "expected": 2, "reported": 2, "silent": [], "steps": [5, 5], "samples": 40,
        "tokens": None, "failed": {},
    } == found["ranks"]  # fmt: skip
    assert (2, 8) == tuple(found["fingerprint"][key] for key in ("world_size", "global_batch"))
    assert True is ours["compiler"]["applied"]
    assert ours["fingerprint"] == found["fingerprint"]
    assert ours["initial_weights_sha256"] == found["initial_weights_sha256"] is not None


def test_a_process_that_is_lost_fails_the_job(jobs):
    done = launched(jobs, "launch.py", {**OWN, "lose": "1"})

    assert 0 != done.status
    assert False is done.summary()["finished"]


def test_a_segment_ends_in_all_processes(jobs):
    done = launched(jobs, "launch.py", {**OWN, "max_steps": 2, "full_run_samples": 40})

    assert 0 == done.status, done.output
    found = done.summary()
    assert (True, 2, 5, [2, 2]) == (
        found["finished"], found["steps"], found["full_run_steps"], found["ranks"]["steps"],
    )  # fmt: skip


def test_two_processes_of_a_trainer_save_together_by_time_and_train_on(jobs, tmp_path):
    there = {"COMPILEGATE_CHECKPOINT_DIR": str(tmp_path)}
    own = {
        **TRAINER, "num_train_epochs": 30, "save_strategy": "no", "checkpoint_minutes": 1e-4,
        "ddp_backend": "gloo", "output_dir": tmp_path / "output",
    }  # fmt: skip
    first = launched(jobs, "launch.py", own, there)
    assert 0 == first.status, first.output
    kept = sorted(int(p.name[11:]) for p in (tmp_path / "progress").glob("checkpoint-*[0-9]"))
    second = launched(jobs, "launch.py", own, there)
    assert 0 == second.status, second.output
    found = second.summary()

    assert 0 < len(kept) <= 2
    states = (tmp_path / "progress" / f"checkpoint-{kept[-1]}").glob("rng_state_*.pth")
    assert 2 == len(list(states))
    assert ([kept[-1]], True) == (found["resumed"], found["finished"])
    assert list(range(1, found["steps"] + 1)) == [line["step"] for line in second.steps()]
