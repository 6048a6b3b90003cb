"""The GPU benchmark, as far as it can be tried without one: what a GPU showed is kept, no more."""

from __future__ import annotations

import json
import math
import os
import random
import subprocess
from pathlib import Path

import pytest

from benchmarks.gpu import judged, observe, observed, results, runs, same
from benchmarks.gpu.machine import ROOT
from benchmarks.gpu.workloads import BASELINE, TINY, WORKLOADS
from tests.domain.evidence_builder import judge
from tests.training.jobs import FEW_FILES, PYTHON, QUICK

WORKLOAD = WORKLOADS[0]
GPU = {"gpu": "NVIDIA H200", "torch": "2.9.0", "cuda": "12.8", "driver_version": None, "date": "d"}


def segment(folder: Path, *, seconds: float, finished: bool = True, reason: str | None = None):
    """What one process of a block leaves."""
    folder.mkdir(parents=True)
    summary = {
        "schema": 1, "finished": finished, "reason": reason, "full_run_steps": 20_000,
        "fingerprint": {"gpu": "NVIDIA H200"}, "initial_loss": 1.0, "peak_memory_gib": 2.0,
        "compiler": {"requested": "torch_compile", "applied": True, "compile_seconds": 1.0,
                     "graphs": 1, "recompiles": 0, "graph_breaks": 0},
    }  # fmt: skip
    (folder / "summary.json").write_text(json.dumps(summary))
    lines = [
        json.dumps({"step": n, "seconds": seconds * (1 + n % 3 / 1000), "samples": 32, "loss": 1.0})
        for n in range(1, 61)
    ]
    (folder / "steps.jsonl").write_text("\n".join(lines) + "\n")


def job(state: Path, arms: dict[str, float], blocks: int) -> Path:
    """A speed job whose blocks are all whole; arms with their step's seconds."""
    folder = state / WORKLOAD.name / "speed-00"
    folder.mkdir(parents=True)
    (folder / "job.json").write_text(json.dumps({"arms": {name: {} for name in arms}}))
    for block in range(blocks):
        for name, seconds in arms.items():
            path = folder / "evidence" / f"block-{block}" / name
            segment(path, seconds=seconds * (1 + 0.001 * block if name == BASELINE else 1))
    return folder


def dry_run(state: Path, *options: str) -> str:
    """The command in the training environment, quietly."""
    command = [str(PYTHON), "-m", "benchmarks.gpu", "--dry-run-cpu", "--state", str(state)]
    done = subprocess.run(
        [*command, *options], cwd=ROOT, env={**os.environ, **QUICK, **FEW_FILES},
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert 0 == done.returncode, done.stderr
    return done.stdout + done.stderr


def kernel(name, ts, dur, cat="kernel"):
    return {"ph": "X", "cat": cat, "name": name, "ts": ts, "dur": dur}


def test_a_gpus_blocks_are_judged_by_the_judges_own_functions(tmp_path):
    job(tmp_path, {BASELINE: 0.2, "compile": 0.1}, blocks=3)

    document = judged.document(WORKLOAD, tmp_path / WORKLOAD.name)
    figures = judged.figures(WORKLOAD, document, {"flops": 9.89e12, "parameters": 1}, "NVIDIA H200")

    compiled = figures["arms"][1]
    assert pytest.approx(2.0, rel=0.01) == compiled["steady"]["estimate"]
    assert judge(document).speedup.estimate == compiled["full_run"]["estimate"]
    assert pytest.approx(0.1, rel=0.01) == compiled["mfu"]
    assert judge(document).verdict.value == figures["verdict"]


def test_a_block_that_was_cut_short_is_measured_again(tmp_path):
    folder = job(tmp_path, {BASELINE: 0.2, "compile": 0.1}, blocks=2)
    (folder / "evidence" / "block-1" / "compile" / "summary.json").unlink()

    assert {0: [BASELINE, "compile"]} == runs.whole_blocks(folder)
    assert 2 == runs.next_block(tmp_path / WORKLOAD.name)


def test_the_first_compilation_is_the_cold_one_whatever_call_it_was_in(tmp_path):
    folder = job(tmp_path, {BASELINE: 0.2, "compile": 0.1}, blocks=2)
    for number, compiled in ((0, 1.5), (1, 60.0)):
        path = folder.parent / f"speed-{number:02d}" / "evidence" / "cold" / "compile"
        path.mkdir(parents=True)
        summary = {"compiler": {"compile_seconds": compiled}}
        (path / "summary.json").write_text(json.dumps(summary))
    (folder.parent / "speed-01" / "job.json").write_text(json.dumps({"arms": {BASELINE: {}}}))

    arms = judged.document(WORKLOAD, folder.parent)["arms"]

    assert {60.0} == {run["cold_compile_seconds"] for run in arms[1]["runs"]}


def test_a_segment_that_was_stopped_is_no_result_and_one_that_failed_is(tmp_path):
    folder = job(tmp_path, {BASELINE: 0.2}, blocks=2)
    (folder / "job.json").write_text(json.dumps({"arms": {BASELINE: {}, "compile": {}}}))
    blocks = folder / "evidence"
    segment(blocks / "block-0" / "compile", seconds=0.1, finished=False, reason=runs.STOPPED)
    segment(blocks / "block-1" / "compile", seconds=0.1, finished=False, reason="no memory")

    assert [1] == list(runs.whole_blocks(folder))
    assert {"compile": "no memory"} == runs.failures(folder.parent)


@pytest.mark.parametrize(("simulated", "gpu"), [(True, "NVIDIA H200"), (False, None)])
def test_a_processors_figures_never_enter_the_gpus_results(simulated, gpu):
    record = {"workload": "bert-128", "simulated": simulated, "environment": {"gpu": gpu}}
    before = results.read()

    with pytest.raises(ValueError, match="not a GPU"):
        results.keep(record)

    assert before == results.read()


def test_a_simulated_record_is_not_shown_on_the_page():
    record = {"simulated": True, "arms": []}

    shown = results.everything({"cards": {"NVIDIA H200": {"bert-128": record}}})

    assert results.NOTHING == shown


def test_the_page_shows_what_the_kept_results_say():
    """Where this fails: python -m benchmarks.gpu --results."""
    text = results.PAGE.read_text()

    assert results.refreshed(text) == text


def test_a_kept_record_becomes_a_table_beside_what_others_report(tmp_path):
    job(tmp_path, {BASELINE: 0.2, "compile": 0.1}, blocks=3)
    document = judged.document(WORKLOAD, tmp_path / WORKLOAD.name)
    record = {
        "workload": WORKLOAD.name, "simulated": False, "environment": GPU, "left_out": {},
        "settings": dict(WORKLOAD.settings), "metric": "eval_accuracy", "margin": 0.02,
        **judged.figures(WORKLOAD, document, None, GPU["gpu"]),
    }  # fmt: skip
    results.keep(record, tmp_path / "kept.json")

    shown = results.refreshed(results.PAGE.read_text(), results.read(tmp_path / "kept.json"))

    assert "### NVIDIA H200" in shown
    assert "| compile | 2.00x (2.00 to 2.01) |" in shown
    assert results.NOTHING not in shown


@pytest.mark.parametrize("row", json.loads(judged.CARDS.read_text()))
def test_every_peak_has_its_source(row):
    peaks = [row[precision] for precision in ("bf16", "fp16", "fp8") if row[precision]]

    assert bool(peaks) == bool(row["source"])


@pytest.mark.parametrize(
    ("card", "precision", "expected"),
    [
        ("NVIDIA H200", "bf16", 989.0),
        ("NVIDIA H100 PCIe", "fp8", 1513.0),
        ("NVIDIA GB200", "bf16", None),
        ("NVIDIA H200", "fp32", None),
        ("a card of tomorrow", "bf16", None),
    ],
)
def test_a_peak_that_is_not_published_is_unknown(card, precision, expected):
    assert expected == judged.peak_tflops(card, precision)


@pytest.mark.parametrize("workload", (*WORKLOADS, *TINY), ids=lambda one: one.name)
def test_every_arm_trains_on_as_many_samples(workload):
    work = {
        arm.name: settings["batch_size"] * settings["steps"]
        for arm in workload.arms
        for settings in [workload.hyperparameters(arm, 1000)]
    }

    assert {1000 * workload.settings["batch_size"]} == set(work.values())


def test_a_larger_batch_learns_faster_by_the_square_root():
    arm = next(arm for arm in WORKLOAD.arms if arm.name == "compile-batch")

    settings = WORKLOAD.hyperparameters(arm, 1000)

    assert math.isclose(
        WORKLOAD.settings["learning_rate"] * math.sqrt(2), settings["learning_rate"]
    )
    assert {"compiler": "torch_compile", "batch_size": 64} == WORKLOAD.overrides(arm)


def test_a_trace_is_reported_by_kind_of_work_and_idle_time():
    events = [
        kernel("sm90_xmma_gemm_bf16", 0, 40),
        kernel("triton_poi_fused_add_0", 40, 20),
        kernel("Memcpy HtoD", 50, 10, cat="gpu_memcpy"),
        kernel("flash_fwd_kernel", 90, 10),
        kernel("aten::mm", 0, 1000, cat="cpu_op"),
    ]

    summary = observed.summary(events, steps=2)

    assert "gpu" == summary["device"]
    assert pytest.approx(0.30) == summary["idle"]
    assert pytest.approx(0.40) == summary["kinds"]["matrix multiplication"]
    assert pytest.approx(0.20) == summary["kinds"]["fused by the compiler"]
    assert pytest.approx(0.10) == summary["kinds"]["attention"]


def test_an_empty_trace_says_so():
    assert "the trace holds no work" == observed.summary([], steps=1)["reason"]


def test_the_recorders_steps_are_held_against_the_profilers_without_its_start_and_end():
    first, end = observed.PROFILED
    steps = [{"step": n, "seconds": 0.011} for n in range(1, end + 1)]
    steps[first - 1]["seconds"] = 3.0  # the profiler starts
    steps[end - 2]["seconds"] = 5.0  # and writes what it saw

    assert {"seconds_per_step": pytest.approx(0.011), "ratio": pytest.approx(1.1)} == (
        observe.recorded(steps, 0.01)
    )
    assert observe.recorded(steps, None) is None
    assert observe.recorded(steps[:10], 0.01) is None


def test_an_arm_against_itself_is_measured_by_the_speed_gate_under_two_names(tmp_path):
    arm = WORKLOAD.arms[1]
    twins = same.against_itself(WORKLOAD, arm)
    made = job(tmp_path, {BASELINE: 0.1, same.AGAIN: 0.1}, blocks=3)

    logs = judged.steady_logs(judged.document(twins, made.parent), same.AGAIN)

    assert [BASELINE, same.AGAIN] == [one.name for one in twins.arms]
    assert WORKLOAD.hyperparameters(arm, 10) == twins.hyperparameters(twins.arms[1], 10)
    assert twins.hyperparameters(twins.arms[0], 10) == twins.hyperparameters(twins.arms[1], 10)
    assert [0.0, 0.001, 0.002] == pytest.approx(logs, abs=1e-5)


@pytest.mark.parametrize(
    ("logs", "share", "whole"),
    [
        ([-0.01, 0.01, -0.01, 0.01], 1.0, True),
        ([0.10, 0.11, 0.10, 0.11], 0.0, False),
        ([0.05], None, None),
        ([], None, None),
    ],
)
def test_coverage_counts_the_intervals_that_hold_one(logs, share, whole):
    counted = same.coverage(logs)

    assert share == counted["share_that_holds_one"]
    assert whole is counted["holds_one"]


def test_coverage_of_nothing_but_noise_is_as_promised():
    noise = random.Random(7)
    shares = [
        same.coverage([noise.gauss(0, 0.01) for _ in range(12)])["share_that_holds_one"]
        for _ in range(60)
    ]

    assert pytest.approx(0.95, abs=0.03) == sum(shares) / len(shares)


@pytest.mark.parametrize(("cost", "expected"), [(0.0, True), (0.03, False)])
def test_quality_is_the_judges_comparison_against_the_margin(tmp_path, cost, expected):
    job(tmp_path, {BASELINE: 0.2, "compile": 0.1}, blocks=3)
    document = judged.document(WORKLOAD, tmp_path / WORKLOAD.name)
    for arm, worse in zip(document["arms"], (0.0, cost), strict=True):
        arm["runs"] += [
            {
                "stage": "quality", "mode": "shadow", "order": seed, "seed": seed,
                "metric": 0.9 + seed / 1000 - worse, "finished": True, "applied": True,
            }
            for seed in range(3)
        ]  # fmt: skip

    quality = judged.figures(WORKLOAD, document, None, None)["arms"][1]["quality"]

    low, high = quality["interval"]
    assert pytest.approx(-cost) == quality["difference"]
    assert low < -cost < high
    assert expected == quality["within_margin"]


@pytest.mark.slow
@pytest.mark.training
@pytest.mark.skipif(not PYTHON.exists(), reason="the training environment is not set up")
def test_the_whole_pipeline_runs_without_a_gpu_and_goes_on_where_it_stopped(tmp_path):
    first = dry_run(tmp_path, "--blocks", "1", "--seeds", "0")
    second = dry_run(tmp_path)
    third = dry_run(tmp_path)
    profile = dry_run(tmp_path, "--profile", "tiny-lm/baseline")
    itself = dry_run(tmp_path, "--same", "tiny-lm/baseline", "--blocks", "1")

    assert "SIMULATED" in second
    assert "all is measured" in first
    assert "block=1 blocks=2 arm=baseline" in second
    assert "block=0" not in second
    assert "block=" not in third
    assert "matrix multiplication" in profile
    assert '"recorded": {' in profile
    assert '"blocks": 1' in itself
    record = results.read(tmp_path / "results.json")["cards"][results.SIMULATED]["tiny-lm"]
    evidence = json.loads((tmp_path / "tiny-lm" / "evidence.json").read_text())
    compiled = next(arm for arm in record["arms"] if arm["name"] == "compile")
    assert record["simulated"]
    assert 2 == compiled["blocks"]
    assert 0 < compiled["compile_seconds_warm"] < compiled["compile_seconds_cold"]
    assert 0 < compiled["steady"]["interval"][0] < compiled["steady"]["interval"][1]
    assert judge(evidence).verdict.value == record["verdict"] != "invalid"
