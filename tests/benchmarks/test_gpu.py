"""The GPU benchmark, as far as it can be tried without one: what a GPU showed is kept, no more."""

from __future__ import annotations

import json
import os
import random
import subprocess
from pathlib import Path

import pytest

from benchmarks.gpu import judged, results, same
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


def test_a_gpus_blocks_are_judged_by_the_judges_own_functions(tmp_path):
    job(tmp_path, {BASELINE: 0.2, "compile": 0.1}, blocks=3)

    document = judged.document(WORKLOAD, tmp_path / WORKLOAD.name)
    figures = judged.figures(WORKLOAD, document, {"flops": 9.89e12, "parameters": 1}, "NVIDIA H200")

    compiled = figures["arms"][1]
    assert pytest.approx(2.0, rel=0.01) == compiled["steady"]["estimate"]
    assert judge(document).speedup.estimate == compiled["full_run"]["estimate"]
    assert pytest.approx(0.1, rel=0.01) == compiled["mfu"]
    assert judge(document).verdict.value == figures["verdict"]


@pytest.mark.parametrize(("simulated", "gpu"), [(True, "NVIDIA H200"), (False, None)])
def test_a_processors_figures_never_enter_the_gpus_results(simulated, gpu):
    record = {"workload": "bert-128", "simulated": simulated, "environment": {"gpu": gpu}}
    before = results.read()

    with pytest.raises(ValueError, match="not a GPU"):
        results.keep(record)

    assert before == results.read()


def test_the_page_shows_what_the_kept_results_say():
    """Where this fails: python -m benchmarks.gpu --results."""
    text = results.PAGE.read_text()

    assert results.refreshed(text) == text


@pytest.mark.parametrize("row", json.loads(judged.CARDS.read_text()))
def test_every_peak_has_its_source(row):
    peaks = [row[precision] for precision in ("bf16", "fp16", "fp8") if row[precision]]

    assert bool(peaks) == bool(row["source"])


@pytest.mark.parametrize("workload", (*WORKLOADS, *TINY), ids=lambda one: one.name)
def test_every_arm_trains_on_as_many_samples(workload):
    work = {
        arm.name: settings["batch_size"] * settings["steps"]
        for arm in workload.arms
        for settings in [workload.hyperparameters(arm, 1000)]
    }

    assert {1000 * workload.settings["batch_size"]} == set(work.values())


def test_coverage_of_nothing_but_noise_is_as_promised():
    noise = random.Random(7)
    shares = [
        same.coverage([noise.gauss(0, 0.01) for _ in range(12)])["share_that_holds_one"]
        for _ in range(60)
    ]

    assert pytest.approx(0.95, abs=0.03) == sum(shares) / len(shares)


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
