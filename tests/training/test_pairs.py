"""A job of pairs: whole runs of both arms on one machine, each as in a job of its own."""

from __future__ import annotations

import json

import pytest
from compilegate_runtime import compile_cache, pairs, speed_gate
from compilegate_runtime.errors import HyperparameterError

from compilegate.domain.argument_text import encoded_document

# Says what it found, and leaves files wherever a script may; a run with seed 18 of compile fails.
TRAINS = """
import json, os, pathlib, sys
words = dict(zip(sys.argv[1::2], sys.argv[2::2]))
folder = pathlib.Path(os.environ["COMPILEGATE_EVIDENCE_DIR"])
folder.mkdir(parents=True)
cache, model = (pathlib.Path(os.environ[n]) for n in ("TORCHINDUCTOR_CACHE_DIR", "SM_MODEL_DIR"))
places = [pathlib.Path(), model, pathlib.Path(os.environ["SM_OUTPUT_DATA_DIR"])]
found = sorted(path.name for place in [*places, cache] for path in place.glob("left*"))
for place in places:
    (place / "left").mkdir()
(cache / ("left-by-" + words["--arm"] + words["--seed"])).write_text("kernel")
fails = words["--arm"] == "compile" and words["--seed"] == "18"
summary = {"finished": not fails, "reason": "nan" if fails else None, "found": found, **words}
(folder / "summary.json").write_text(json.dumps(summary))
if fails:
    pathlib.Path(os.environ["SM_OUTPUT_FAILURE"]).write_text("nan")
sys.exit(int(fails))
"""
ARMS = [{"name": "baseline", "hyperparameters": {}},
        {"name": "compile", "hyperparameters": {"compiler": "torch_compile"}}]  # fmt: skip
ABBA = [["baseline", 17, 3], ["compile", 17, 0], ["compile", 18, 1], ["baseline", 18, 4]]


@pytest.fixture
def run_job(tmp_path, monkeypatch):
    """Makes the runs; the summaries by place, and the names of what the cache holds after them."""
    source, kept = tmp_path / "code", tmp_path / "kept"
    for folder in (source, kept, tmp_path / "model", tmp_path / "data"):
        folder.mkdir()
    (source / "train.py").write_text(TRAINS)
    (kept / "left-before").write_text("kernel")
    for module in (pairs, speed_gate):
        monkeypatch.setattr(module, "SOURCE", source)
    monkeypatch.setenv("SM_MODEL_DIR", str(tmp_path / "model"))
    monkeypatch.setenv("SM_OUTPUT_DATA_DIR", str(tmp_path / "data"))
    monkeypatch.delenv("COMPILEGATE_EVIDENCE_DIR", raising=False)
    monkeypatch.delenv(compile_cache.KEPT, raising=False)
    monkeypatch.setenv(compile_cache.LOCAL, str(kept))

    def run(runs=ABBA):
        described = [word for i, arm in enumerate(ARMS) for word in (f"--arm_{i}", json.dumps(arm))]
        pairs.main(["--program", "train.py", "--runs", encoded_document(runs), *described])
        evidence = tmp_path / "data" / "evidence"
        made = {
            path.parent.relative_to(evidence).as_posix(): json.loads(path.read_text())
            for path in evidence.rglob("summary.json")
        }
        return made, sorted(path.name for path in kept.iterdir())

    return run


def test_every_run_is_whole_and_finds_what_the_job_began_with_and_nothing_of_the_others(run_job):
    made, kept = run_job()

    assert [f"run-{place}/{arm}" for place, (arm, _, _) in enumerate(ABBA)] == sorted(made)
    assert {("left-before",)} == {tuple(summary["found"]) for summary in made.values()}
    assert ABBA == [
        [one["--arm"], int(one["--seed"]), int(one["--replicate"])]
        for one in (made[place] for place in sorted(made))
    ]
    assert all("--max_steps" not in one and one["process_seconds"] > 0 for one in made.values())
    assert ["left-before", *(f"left-by-{arm}{seed}" for arm, seed, _ in sorted(ABBA))] == kept


def test_a_run_that_fails_marks_itself_alone(run_job):
    made, _ = run_job()

    assert ["nan"] == [one["reason"] for one in made.values() if not one["finished"]]
    assert "nan" == made["run-2/compile"]["reason"]


@pytest.mark.parametrize("runs", [[["absent", 1, 0]], [["baseline"]], 7, [["baseline", "x", 0]]])
def test_runs_that_cannot_be_read_are_refused(run_job, runs):
    with pytest.raises(HyperparameterError, match="runs must be JSON"):
        run_job(runs)
