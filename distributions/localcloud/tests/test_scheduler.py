"""Which jobs run side by side."""

import threading
import time

import pytest

from compilegate_localcloud.emulator.sagemaker.job import StopCause, TrainingJob
from compilegate_localcloud.emulator.sagemaker.scheduler import (
    Scheduler,
    has_gpu,
    measuring_cores,
    slots_for,
)


@pytest.fixture
def make_job(tmp_path):
    def make(name, stage="quality"):
        tags = [{"Key": "compilegate:stage", "Value": stage}]
        return TrainingJob(
            {"TrainingJobName": name, "Tags": tags},
            account="000000000000",
            region="us-east-1",
            folder=tmp_path / name,
            on_change=lambda job: None,
        )

    return make


class Waiting:
    """One job that asks for its turn on a thread of its own."""

    def __init__(self, scheduler, job):
        self.scheduler, self.job, self.answer = scheduler, job, None
        self.thread = threading.Thread(target=self._ask, daemon=True)
        self.thread.start()
        time.sleep(0.02)  # so that jobs ask in the order the test writes them

    def _ask(self):
        self.answer = self.scheduler.acquire(self.job)

    def runs(self):
        self.thread.join(timeout=0.05)
        return self.answer is True

    def leave(self):
        self.scheduler.release(self.job)


def test_as_many_jobs_run_as_there_are_slots(make_job):
    scheduler = Scheduler(2)
    first, second, third = (Waiting(scheduler, make_job(name)) for name in "abc")
    before = [first.runs(), second.runs(), third.runs()]
    first.leave()

    assert before == [True, True, False]
    assert third.runs()


@pytest.mark.parametrize(("slots", "cores"), [(1, 1), (5, 2), (32, 4)])
def test_a_measuring_job_has_half_of_the_machine_at_most_four_cores(make_job, slots, cores):
    scheduler = Scheduler(slots)
    beside = [Waiting(scheduler, make_job(str(number))) for number in range(slots - cores)]
    measuring = Waiting(scheduler, make_job("a", "speed"))
    one_too_many = Waiting(scheduler, make_job("b"))

    assert cores == measuring_cores(slots)
    assert all(job.runs() for job in [*beside, measuring])
    assert not one_too_many.runs()


def test_no_job_overtakes_a_waiting_measuring_job(make_job):
    scheduler = Scheduler(4)
    running = [Waiting(scheduler, make_job(name)) for name in "abc"]
    measuring = Waiting(scheduler, make_job("d", "speed"))
    late = Waiting(scheduler, make_job("e"))
    overtook = late.runs()
    running[0].leave()

    assert not overtook
    assert measuring.runs()
    assert not late.runs()


def test_stopped_job_gives_up_its_place(make_job):
    scheduler = Scheduler(1)
    running = Waiting(scheduler, make_job("a"))
    waiting = Waiting(scheduler, make_job("b", "speed"))
    last = Waiting(scheduler, make_job("c"))
    waiting.job.request_stop(StopCause.REQUESTED)
    scheduler.wake()
    waiting.thread.join(timeout=1)
    running.leave()

    assert waiting.answer is False
    assert last.runs()


@pytest.mark.parametrize(
    ("answer", "visible", "expected"),
    [
        ("echo 'GPU 0: NVIDIA H100 (UUID: GPU-1)'", None, True),
        ("echo 'GPU 0: NVIDIA H100 (UUID: GPU-1)'", "-1", False),
        ("echo 'No devices found.'", None, False),
        ("exit 9", None, False),  # a driver that does not run
        (None, None, False),
    ],
)
def test_a_gpu_counts_where_the_driver_lists_it_and_it_is_not_hidden(
    tmp_path, monkeypatch, answer, visible, expected
):
    if answer is not None:
        driver = tmp_path / "nvidia-smi"
        driver.write_text(f"#!/bin/sh\n{answer}\n")
        driver.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    if visible is not None:
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", visible)

    assert expected is has_gpu()
    assert slots_for(8) == (1 if expected else 8)
