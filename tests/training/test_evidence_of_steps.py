"""What a step leaves: timed in a GPU's queue, thinned in very long runs, of every process."""

import errno
import json
import os
import re
from contextlib import nullcontext

import pytest
from compilegate_runtime import evidence
from compilegate_runtime import recorder as recording
from compilegate_runtime.device import Processor
from compilegate_runtime.errors import DivergedError, TrainingError
from compilegate_runtime.evidence import EvidenceFiles, LossCurve
from compilegate_runtime.ranks import Ranks, account, unfinished
from compilegate_runtime.sampler import Nvml, Sampler
from compilegate_runtime.timing import CudaTimer, HostTimer, detached

from compilegate.adapters.job_outputs import read_steps
from tests.training.jobs import metric_patterns
from tests.training.stand_ins import Clock, Library, Queue, Store, Tensor, recorder_in, torch_with
from tests.training.test_recorder import lines, summary


class Gpu(Processor):
    """A device whose work is done when the test's queue has run."""

    def __init__(self, queue):
        super().__init__()
        self.queue = queue

    def timer(self, clock):
        return CudaTimer(torch_with(self.queue))

    def synchronize(self):
        self.queue.waits += 1
        self.queue.run(0.0)


@pytest.fixture
def queue():
    return Queue()


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def on_gpu(tmp_path, clock, queue):
    made = recorder_in(tmp_path, 50, device=Gpu(queue), clock=clock)
    yield made
    made.close()


def step(recorder, queue, loss, *, fetch=0.0, work=1.0, clock=None):
    """The processor tells the GPU what to do; the GPU does it when the queue runs."""
    recorder.begin_step()
    queue.run(fetch)
    recorder.got_batch()
    queue.run(work)
    recorder.end_step(Tensor(queue, loss), 8, tokens=100, gradient_norm=Tensor(queue, 0.5))
    queue.run(0.0)
    if clock:
        clock.now += 1.0


def test_a_step_on_a_gpu_lasts_what_its_queue_says(on_gpu, queue, clock, tmp_path):
    for loss in (3.0, 2.5, 2.25):
        step(on_gpu, queue, loss, fetch=0.25, work=0.5, clock=clock)

    written = lines(tmp_path)[1]
    assert (0.75, 0.25, 2.5, 0.5) == (
        written["seconds"], written["data_wait_seconds"], written["loss"], written["gradient_norm"],
    )  # fmt: skip


def test_only_the_first_step_waits_for_the_gpu(on_gpu, queue, clock):
    for loss in range(20, 0, -1):
        step(on_gpu, queue, float(loss), clock=clock)

    assert 1 == queue.waits


def test_steps_that_the_gpu_has_not_passed_are_written_later(on_gpu, queue, clock, tmp_path):
    step(on_gpu, queue, 3.0)
    for loss in (2.5, 2.0):
        on_gpu.begin_step()
        on_gpu.end_step(Tensor(queue, loss), 8)
        clock.now += 1.0
    before = len(lines(tmp_path))
    on_gpu.fail("enough")

    assert 1 == before
    assert [3.0, 2.5, 2.0] == [line["loss"] for line in lines(tmp_path)]


def test_a_bad_loss_is_noticed_when_the_gpu_has_passed_it(on_gpu, queue, clock, tmp_path):
    step(on_gpu, queue, 3.0, clock=clock)
    with pytest.raises(DivergedError, match="at step 2"):
        for _ in range(3):
            step(on_gpu, queue, float("nan"), clock=clock)
    on_gpu.fail("the loss became nan")

    assert [3.0, None] == [line["loss"] for line in lines(tmp_path)][:2]


def test_a_script_of_ones_own_may_have_some_bad_losses(on_gpu, queue, clock):
    on_gpu.bad_losses_allowed = 2
    for loss in (3.0, float("nan"), float("inf"), 2.0, float("nan"), float("nan")):
        step(on_gpu, queue, loss, clock=clock)
    step(on_gpu, queue, float("nan"))

    with pytest.raises(DivergedError):
        on_gpu.finish()


def test_numbers_of_a_queued_device_are_read_when_asked_for(clock):
    class Lazy:
        reads = 0

        def detach(self):
            return self

        def __float__(self):
            self.reads += 1
            return 2.0

    timer, loss = HostTimer(clock, detached), Lazy()
    timer.begin()
    clock.now += 3.0
    mark = timer.end(loss, None)
    before = loss.reads

    assert (0, (3.0, 0.0, [2.0, None])) == (before, mark.read())


@pytest.fixture
def small_files(monkeypatch, tmp_path):
    monkeypatch.setattr(evidence, "FULL_DETAIL_BYTES", 2000)
    monkeypatch.setattr(evidence, "COARSER_EVERY_BYTES", 2000)
    files = EvidenceFiles(tmp_path)
    yield files
    files.close()


def record(number, **more):
    return {
        "step": number, "seconds": 0.01 * number, "samples": 8, "tokens": None,
        "loss": 1.0, "data_wait_seconds": 0.0, **more,
    }  # fmt: skip


def test_a_very_long_run_leaves_a_line_for_several_steps_and_loses_none(small_files, tmp_path):
    for number in range(1, 1001):
        small_files.append_steps([record(number)])

    written = lines(tmp_path)
    assert 1000 == sum(line.get("steps", 1) for line in written) == written[-1]["step"]
    assert {1, 10, 100} <= {line.get("steps", 1) for line in written}
    assert sum(line.get("steps", 1) * line["seconds"] for line in written) == pytest.approx(5005.0)
    assert (tmp_path / "steps.jsonl").stat().st_size < 8000
    with (tmp_path / "steps.jsonl").open("rb") as handle:
        steps = read_steps(handle)
    assert (1000, 8.0) == (steps.steps, steps.samples_per_step)
    assert steps.loss_curve()[-1][2] == pytest.approx(5005.0)


def test_a_step_that_compiled_keeps_a_line_of_its_own(small_files, tmp_path):
    for number in range(1, 101):
        more = {"compile_seconds": 4.0} if number == 73 else {}
        small_files.append_steps([record(number, **more)])

    by_step = {line["step"]: line for line in lines(tmp_path)}
    assert ("steps" in by_step[73], 4.0) == (False, by_step[73]["compile_seconds"])
    assert 100 == sum(line.get("steps", 1) for line in by_step.values())


@pytest.mark.parametrize(("planned", "last"), [(50_000, 50_000), (None, 49_001)])
def test_a_long_runs_loss_curve_stays_short_and_keeps_both_ends(planned, last):
    curve = LossCurve(planned)
    for number in range(1, 50_001):
        curve.add(number, float(number))

    steps = [at for at, _ in curve.points]
    assert len(steps) <= (202 if planned else 400)
    assert (1, sorted(steps)) == (steps[0], steps)
    assert steps[-1] >= last


@pytest.mark.parametrize("full", [False, True], ids=["room again", "full"])
def test_a_write_of_which_the_disk_takes_a_part_is_finished_or_an_error(
    full, tmp_path, monkeypatch
):
    """POSIX lets a write on a disk that becomes full end early, without an error."""
    real, calls = os.pwrite, []

    def part(descriptor, body, offset):
        calls.append(offset)
        if full and len(calls) > 1:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return real(descriptor, bytes(body)[:30] if len(calls) == 1 else body, offset)

    monkeypatch.setattr(os, "pwrite", part)
    files = EvidenceFiles(tmp_path)
    with pytest.raises(OSError, match="No space left") if full else nullcontext():
        files.append_steps([record(1), record(2)])
    files.close()

    if not full:
        with (tmp_path / "steps.jsonl").open("rb") as handle:
            assert [1.0, 2.0] == list(read_steps(handle).numbers)


def test_a_line_torn_by_a_killed_job_ends_the_steps(tmp_path):
    files = EvidenceFiles(tmp_path)
    files.append_steps([record(1), record(2)])
    files.close()
    path = tmp_path / "steps.jsonl"
    path.write_bytes(path.read_bytes()[:-20])
    with path.open("rb") as handle:
        assert [1.0] == list(read_steps(handle).numbers)


def state(samples, *, finished=True, reason=None):
    return {"steps": 5, "samples": samples, "tokens": None, "finished": finished, "reason": reason}


def test_samples_are_summed_over_all_processes():
    store = Store()
    for rank in (1, 2):
        Ranks(rank, 3, store).report(**state(10 * rank))
    total = account(Ranks(0, 3, store).reports(), state(5))

    assert (35, 3, []) == (total["samples"], total["reported"], total["silent"])


def test_a_process_that_dies_shows_and_no_sum_is_made_up():
    store = Store()
    Ranks(1, 3, store).report(**state(10, finished=False, reason="out of memory"))
    states = Ranks(0, 3, store).all_finished(within_seconds=0)
    total = account(states, state(5))

    assert (None, [2], {"1": "out of memory"}) == (
        total["samples"], total["silent"], total["failed"],
    )  # fmt: skip
    assert "process 0 of 3 reported nothing" in unfinished(states)
    assert "process 1 of 3 stopped after step 5: out of memory" in unfinished(
        [state(5), *states[1:]]
    )


def test_a_run_whose_other_process_died_is_not_finished(tmp_path, clock, monkeypatch):
    made = recorder_in(tmp_path, 1, clock=clock)
    store = Store()
    made._ranks = Ranks(0, 2, store)
    Ranks(1, 2, store).report(**state(8, finished=False, reason="killed"))
    for loss in made.steps([1.0]):
        made.end_step(loss, samples=8)

    with pytest.raises(TrainingError, match="process 1 of 2 stopped"):
        made.finish()
    made.fail("process 1")
    assert (16, False) == (lines(tmp_path)[0]["samples"], summary(tmp_path)["finished"])


def test_without_a_store_nothing_is_said_about_other_processes():
    assert unfinished(Ranks(0, 2).all_finished(within_seconds=0)) is None
    assert account(Ranks(0, 2).reports(), state(5))["samples"] is None


def test_the_gpu_is_sampled_beside_the_training():
    library = Library(busy=75, used=3 * 2**30)
    sampler = Sampler(Nvml(uuid="GPU-1", library=library), every_seconds=0.001)
    sampler.start()
    while not sampler.figures()["samples"]:
        pass
    sampler.close()

    assert (0.75, 3.0, None) == tuple(
        sampler.figures()[key] for key in ("utilization", "memory_gib", "reason")
    )
    assert "nvmlDeviceGetHandleByUUID" in library.calls


def test_what_cannot_be_sampled_is_null_with_its_reason(recorder_summary):
    expected = {"samples": 0, "utilization": None, "memory_gib": None, "reason": "no NVIDIA GPU"}

    assert expected == recorder_summary["gpu"]
    with pytest.raises(OSError, match="nvmlInit_v2 returned 9"):
        Nvml(library=Library(code=9))


@pytest.fixture
def recorder_summary(tmp_path, clock):
    made = recorder_in(tmp_path, 1, clock=clock)
    made.write_summary()
    made.close()
    return json.loads((tmp_path / "summary.json").read_text())


def test_a_summary_is_not_written_in_every_step(tmp_path, clock, monkeypatch):
    written = []
    made = recorder_in(tmp_path, clock=clock)
    monkeypatch.setattr(made._files, "write_summary", written.append)
    for _ in range(1000):
        made.begin_step()
        clock.now += 0.1
        made.end_step(1.0, 1)

    assert 1 + 1000 * 0.1 / recording.SUMMARY_EVERY_SECONDS >= len(written) > 5


def test_every_metric_that_a_request_defines_is_printed_and_read(tmp_path, clock, capsys):
    made = recorder_in(tmp_path, 10, clock=clock)
    for loss in made.steps([2.5] * 10):
        clock.now += 0.5
        made.end_step(loss, samples=8)
    made.metric("eval_accuracy", 0.875)
    printed = capsys.readouterr().out.splitlines()

    values = {
        name: float(match[1])
        for name, pattern in metric_patterns().items()
        for line in printed
        if (match := re.search(pattern, line))
    }
    expected = {
        "step": 10, "steps": 10, "seconds": 0.5, "samples_per_second": 16.0, "loss": 2.5,
        "eval_accuracy": 0.875,
    }  # fmt: skip
    assert expected == values


def test_a_run_that_goes_on_has_one_evidence_without_a_gap(tmp_path):
    def work(recorder, losses):
        for loss in losses:
            recorder.begin_step()
            recorder.end_step(loss, samples=2, tokens=5)

    first, second = (recorder_in(tmp_path / name, 4) for name in ("first", "second"))
    work(first, [4.0, 3.0])
    first.evaluated("accuracy", 0.5)
    first.evaluated("accuracy", float("nan"))
    state = json.loads(json.dumps(first.state()))
    second.resume(state, tmp_path / "first" / "steps.jsonl")
    work(second, [2.0, 1.0])
    second.metric("accuracy", 0.75)
    second.finish()
    summary = json.loads((tmp_path / "second" / "summary.json").read_text())
    lines = (tmp_path / "second" / "steps.jsonl").read_text().splitlines()

    assert [1, 2, 3, 4] == [json.loads(line)["step"] for line in lines]
    assert [[1, 4.0], [2, 3.0], [3, 2.0], [4, 1.0]] == summary["loss_curve"]
    assert (4.0, [2], True) == (summary["initial_loss"], summary["resumed"], summary["finished"])
    assert (8, 20) == (summary["ranks"]["samples"], summary["ranks"]["tokens"])
    steps, values, seconds = zip(*summary["evaluations"]["accuracy"], strict=True)
    assert ((2, 4), (0.5, 0.75)) == (steps, values)
    assert 0 < seconds[0] < seconds[1] <= summary["wall_seconds"]


def test_every_report_of_a_metric_is_an_evaluation_and_of_too_many_every_second_goes():
    kept = evidence.Evaluations()
    reported = evidence.Reported(lambda name, value: kept.add(name, 1, value, value + 1.0))
    for value in range(evidence.EVALUATIONS + 5):
        reported.update({"accuracy": float(value)})
    for name in range(evidence.EVALUATED_METRICS):
        reported[f"other{name}"] = 0.5

    assert evidence.EVALUATIONS + 4 == reported["accuracy"]
    assert [1.0, 3.0, 5.0] == [value for _, value, _ in kept.of["accuracy"][:3]]
    assert evidence.EVALUATIONS + 3 == kept.of["accuracy"][-1][1]
    assert evidence.EVALUATED_METRICS == len(kept.of)
