"""The GPU benchmark's parts: what a GPU showed is kept, no more.

tests/training/test_gpu_benchmark.py runs the whole of it.
"""

from __future__ import annotations

import json
import random
from pathlib import Path

import pytest

from benchmarks.gpu import judged, machine, results, same
from benchmarks.gpu.workloads import BASELINE, TINY, WORKLOADS
from tests.domain.evidence_builder import judge

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


def test_the_code_is_copied_once_and_writes_the_channels(tmp_path, monkeypatch):
    program = tmp_path / "training" / "prepare_data.py"
    program.parent.mkdir()
    program.write_text("import os, sys\nos.makedirs(sys.argv[1] + '/docstrings/train')\n")
    monkeypatch.setattr(machine, "ROOT", tmp_path)
    prepared = machine.Machine(tmp_path / "state")
    prepared.prepare()
    code = program.read_text()
    program.write_text("another")
    prepared.prepare()

    assert prepared.has("docstrings")
    assert code == (prepared.training / "prepare_data.py").read_text()
