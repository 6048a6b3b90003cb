"""A job of pairs: whole runs of two arms, one after the other on one machine, in the order A B B A.

Each is a run as a job of its own would make it: a fresh process, the compile cache that the job
began with, none of the files that the run before it left. What a run compiles is kept once the job
ends. A run that fails says so in its evidence, and the next one starts.

A script may keep files where nothing here looks. The first run of a job then finds less than the
others, so that the next job begins with the other arm.
"""

import argparse
import contextlib
import json
import os
import shutil
import sys
import time
from pathlib import Path

SOURCE = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(SOURCE))  # started by path, its own package is not importable yet

from compilegate_runtime import compile_cache, environment, scratch  # noqa: E402
from compilegate_runtime.hyperparameters import decoded  # noqa: E402
from compilegate_runtime.speed_gate import (  # noqa: E402
    Arm,
    parse_arms,
    reject,
    run_once,
    say,
    start,
)


def main(arguments):
    """Make the job's runs, each on the compile cache of the jobs before it."""
    plan, runs = parse(arguments)
    with compile_cache.preserved(), scratch.held("pairs") as before:
        kept = Path(os.environ.get(compile_cache.LOCAL) or str(scratch.folder("inductor")))
        compile_cache.copy_changed(kept, before)
        for place, (arm, seed, replicate) in enumerate(runs):
            say(run=place, runs=len(runs), arm=arm.name)
            with scratch.held("run") as own, emptied(folders()):
                compile_cache.copy_changed(before, own / "inductor")
                make(arm, plan, seed, replicate=replicate, place=place, own=own)
                compile_cache.copy_changed(own / "inductor", kept)
        say(finished_runs=len(runs))


def parse(arguments):
    """The plan, and (arm, seed, replicate) of every run in its order.

    Raises HyperparameterError naming what is wrong.
    """
    parser = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    parser.add_argument("--runs", required=True)
    plan, arms = parse_arms(parser, arguments)
    described = {arm.name: arm.hyperparameters for arm in arms}
    try:
        asked = json.loads(decoded("runs", plan.runs))
        # Each run fails by itself, so that it is an arm of its own.
        return plan, [(Arm(name, described[name]), int(seed), int(n)) for name, seed, n in asked]
    except (ValueError, TypeError, KeyError):
        reject(f"runs must be JSON of [arm, seed, replicate], got {plan.runs!r}")


def make(arm, plan, seed, *, replicate, place, own):
    """One whole run; ``own`` is a folder that ends with it."""
    folder = environment.evidence_folder() / f"run-{place}" / arm.name
    apart = {
        compile_cache.LOCAL: own / "inductor",
        "TMPDIR": own / "tmp",
        "HF_DATASETS_CACHE": own / "datasets",
        "CUDA_CACHE_PATH": own / "cuda",
    }
    for path in apart.values():
        path.mkdir(exist_ok=True)
    # A run in a job of its own finds no bytecode of its bundle either.
    variables = {name: str(path) for name, path in apart.items()}
    variables["PYTHONDONTWRITEBYTECODE"] = "1"
    values, began = {**arm.hyperparameters, "seed": seed}, time.monotonic()
    run_once(arm, plan, folder, values=values, replicate=replicate, place=place, own=variables)
    seconds, path = time.monotonic() - began, folder / "summary.json"
    if path.exists():
        summary = {**json.loads(path.read_text()), "process_seconds": seconds}
        path.write_text(json.dumps(summary, indent=1) + "\n")


def folders():
    """Where a run's files would be found by the next one."""
    named = (os.environ.get(name) for name in ("SM_MODEL_DIR", "SM_OUTPUT_DATA_DIR"))
    checkpoints = environment.own_path(f"{environment.ROOT}/checkpoints")
    return [Path(place) for place in (*filter(None, named), checkpoints, SOURCE)]


@contextlib.contextmanager
def emptied(places):
    """Remove what the block leaves in these folders, but for the evidence."""
    environment.evidence_folder().mkdir(parents=True, exist_ok=True)
    before = {path for place in places if place.is_dir() for path in place.iterdir()}
    try:
        yield
    finally:
        left = {path for place in places if place.is_dir() for path in place.iterdir()}
        for path in left - before:
            if path.is_dir() and not path.is_symlink():
                shutil.rmtree(str(path), ignore_errors=True)
            else:
                path.unlink()


if __name__ == "__main__":
    start(main)
