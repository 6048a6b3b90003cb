"""The GPU benchmark's whole pipeline, without a GPU."""

import json

import pytest

from benchmarks.gpu import results
from tests.domain.evidence_builder import judge
from tests.training.jobs import SCRIPTS

pytestmark = [pytest.mark.training, pytest.mark.slow]
FEW_FILES = SCRIPTS / "few_files.py"
WITHOUT_CHECK = {"COMPILEGATE_EQUIVALENCE_SECONDS": "0.01"}  # of which the benchmark reads nothing


def test_the_whole_pipeline_runs_without_a_gpu_and_goes_on_where_it_stopped(jobs, tmp_path):
    def dry_run(*options):
        words = [FEW_FILES, "--program", SCRIPTS / "in_forks.py", "benchmarks.gpu", "--dry-run-cpu"]
        own = ["--state", tmp_path, *options]
        done = jobs._ended(*jobs._start_words([*map(str, [*words, *own])], WITHOUT_CHECK))
        assert 0 == done.status, done.output
        return done.output

    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "docstrings").symlink_to(jobs.channels["train"].parent)
    first = dry_run("--blocks", "1", "--seeds", "0")
    second = dry_run()
    third = dry_run()
    profile = dry_run("--profile", "tiny-lm/baseline")
    itself = dry_run("--same", "tiny-lm/baseline", "--blocks", "1")

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
