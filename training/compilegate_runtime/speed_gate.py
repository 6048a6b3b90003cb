"""The speed gate's job: short segments of every arm, back to back, each in a fresh process.

Arms that run minutes apart on different machines differ by more than a compiler saves, so one
job measures all that can share a machine. Arms that need others (another instance type, image
or launcher) come in a job of their own, and the baseline's blocks in another.

A compiled arm first runs a few unmeasured steps to fill its compile cache (their cost is kept as
the cold compilation); then every block runs each arm once, in an order that
alternates from block to block. All segments of a job see the same data in the same order, as
the priming did: what is measured is a job whose cache is warm, which is what production runs
are after the first.

A candidate that fails is a result and the job continues. A baseline that fails leaves nothing
to compare with and fails the job.
"""

import argparse
import json
import os
import re
import signal
import sys
from pathlib import Path

SOURCE = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(SOURCE))  # started by path, its own package is not importable yet

from compilegate_runtime import (  # noqa: E402
    compile_cache,
    environment,
    kept,
    mpi_segments,
    profiled,
    scratch,
    segments,
)
from compilegate_runtime.compilers import NoCompiler  # noqa: E402
from compilegate_runtime.errors import HyperparameterError, StoppedError, TrainingError  # noqa: E402
from compilegate_runtime.hyperparameters import decoded  # noqa: E402
from compilegate_runtime.progress import write_line  # noqa: E402
from compilegate_runtime.segments import follow, rendezvous, why_it_failed  # noqa: E402

PROGRAM = "compilegate_runtime/speed_gate.py"  # as a job's request names it
BASELINE = "baseline"
PRIMING_STEPS = 20


class Arm:
    """One arm as the plan describes it, and why it failed, if it did."""

    def __init__(self, name, hyperparameters):
        self.name = name
        self.hyperparameters = hyperparameters
        self.failure = None

    @property
    def compiles(self):
        """Whether the arm has a compile cache to fill."""
        return self.hyperparameters.get("compiler", "none") != "none"


def main(arguments):
    """Run the job's blocks on the compile cache of the jobs before it, and keep that cache."""
    plan, arms = parse(arguments)
    with compile_cache.preserved():
        if compile_cache.LOCAL not in os.environ:
            os.environ[compile_cache.LOCAL] = str(scratch.folder("inductor"))
        if not mpi_segments.started_by_mpi(os.environ):
            run_blocks(plan, arms)
        elif environment.rank():
            mpi_segments.wait_for_first_process()
        else:
            with mpi_segments.first_process(environment.world_size()):
                run_blocks(plan, arms, mpi_segments.Mpirun(PROGRAM))


def run_blocks(plan, arms, mpirun=None):
    """Prime, then run every block; ``mpirun`` starts the segments if it started the job."""
    plan.mpirun = mpirun
    folder = environment.evidence_folder()
    for place, arm in enumerate(arms):
        if arm.compiles:
            say(arm=arm.name, priming=PRIMING_STEPS)
            steps = min(PRIMING_STEPS, plan.steps)
            path = folder / "cold" / arm.name
            own = {kept.VARIABLE: kept.FIRST}
            block = plan.first_block
            run_segment(arm, plan, path, steps=steps, block=block, place=place, own=own)
            if arm.failure:
                path = folder / f"block-{plan.first_block}" / arm.name
                record_failure(arm, path, plan.first_block)
    for block in range(plan.first_block, plan.first_block + plan.blocks):
        for arm in arms if block % 2 == 0 else reversed(arms):
            if arm.failure:
                continue  # it would fail again
            say(block=block, blocks=plan.first_block + plan.blocks, arm=arm.name)
            path = folder / f"block-{block}" / arm.name
            # Counted from the plan, so that every process of the job counts alike.
            place = (1 + block - plan.first_block) * len(arms) + arms.index(arm)
            own = {profiled.VARIABLE: profiled.ASKED}
            run_segment(arm, plan, path, steps=plan.steps, block=block, place=place, own=own)
            if arm.failure and arm.name == BASELINE:
                raise TrainingError(f"the baseline failed in block {block}: {arm.failure}")
    say(finished_blocks=plan.blocks)


def parse(arguments):
    """Read the job's hyperparameters. Raises HyperparameterError naming what is wrong."""
    parser = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    parser.add_argument("--first_block", type=int, default=0)
    parser.add_argument("--blocks", type=int, required=True)
    parser.add_argument("--steps", type=int, required=True)
    parser.add_argument("--baseline", choices=("here", "elsewhere"), default="here")
    plan, arms = parse_arms(parser, arguments)
    names = [arm.name for arm in arms]
    if plan.baseline == "here" and BASELINE not in names:
        reject(f"no arm is named {BASELINE}")
    if plan.baseline == "elsewhere" and (BASELINE in names or not names):
        reject(f"with the baseline elsewhere, this job needs other arms, not {names}")
    return plan, arms


def parse_arms(parser, arguments):
    """The job's plan and its arms, by a parser of what else it takes."""
    parser.error = reject
    parser.add_argument("--program", required=True)
    parser.add_argument("--launcher", choices=segments.LAUNCHERS, default="none")
    # The model-parallel library finds it in SM_HP_MP_PARAMETERS, which every segment inherits.
    parser.add_argument("--mp_parameters")
    names = (re.fullmatch(r"--arm_(\d+)", word) for word in arguments)
    indices = sorted({int(name.group(1)) for name in names if name})
    for index in indices:
        parser.add_argument(f"--arm_{index}", required=True)
    plan = parser.parse_args(arguments)
    if not (SOURCE / plan.program).is_file():
        reject(f"program {plan.program} is not in the source folder")
    plan.mpirun = None
    return plan, [_arm(f"arm_{i}", getattr(plan, f"arm_{i}")) for i in indices]


def _arm(key, text):
    try:
        described = json.loads(decoded(key, text))
        return Arm(described["name"], described["hyperparameters"])
    except (ValueError, TypeError, KeyError) as error:
        raise HyperparameterError(
            f"{key} must be JSON with name and hyperparameters, got {text!r}"
        ) from error


def reject(message):
    """Raises HyperparameterError."""
    raise HyperparameterError(message)


def run_segment(arm, plan, folder, *, steps, block, place, own):
    """Run one arm once for ``steps`` steps; on failure say why in ``arm.failure``.

    ``place`` is the segment's number in the job, ``own`` are variables of this segment alone.
    """
    values = {"seed": plan.first_block + 1, **arm.hyperparameters, "max_steps": steps}
    run_once(arm, plan, folder, values=values, replicate=block, place=place, own=own)


def run_once(arm, plan, folder, *, values, replicate, place, own):
    """Run one arm once with these hyperparameters, as ``run_segment`` does."""
    block, hyperparameters = replicate, {**values, "arm": arm.name, "replicate": replicate}
    words = arguments_of(hyperparameters)
    with scratch.held("gate") as own_folder:
        failure = own_folder / "failure"
        variables_of_its_own = {
            **own,
            **rendezvous(os.environ, place),
            "COMPILEGATE_EVIDENCE_DIR": str(folder),
            "SM_OUTPUT_FAILURE": str(failure),
        }
        command, variables = _start(plan, words, variables_of_its_own)
        labels = {"block": block, "arm": arm.name}
        status, lines = follow(command, variables, SOURCE, lambda text: say(text, **labels))
        # Check and profile come after the run: what ends them is no failure of the arm.
        if status != 0 and not _has_finished(folder):
            own_reason = failure.read_text() if failure.exists() else ""
            arm.failure = own_reason or why_it_failed(status, lines)
            record_failure(arm, folder, block, own_reason)


def _has_finished(folder):
    path = folder / "summary.json"
    return path.exists() and json.loads(path.read_text())["finished"] is True


def _start(plan, words, own):
    """A segment's command and variables, its ``own`` among them."""
    program = str(SOURCE / plan.program)
    if plan.mpirun:
        variables = compile_cache.without_place(plan.mpirun.variables)
        # mpirun hands these to every host, and no others.
        shared = {compile_cache.LOCAL: os.environ[compile_cache.LOCAL]}
        if compile_cache.BUNDLES in variables:
            shared[compile_cache.BUNDLES] = variables[compile_cache.BUNDLES]
        own = {**own, **shared}
        return plan.mpirun.command(program, words, own), {**variables, **own}
    variables = compile_cache.without_place(os.environ)
    command = [sys.executable, *segments.launcher_words(plan.launcher, program), *words]
    return command, {**variables, **segments.launcher_variables(plan.launcher), **own}


def arguments_of(hyperparameters):
    """Hyperparameters as arguments, as SageMaker's toolkit makes them for a whole run."""
    pairs = sorted(hyperparameters.items())
    return [
        word
        for name, value in pairs
        for word in (("--" if len(name) > 1 else "-") + name, str(value))
    ]


def record_failure(arm, folder, block, own_reason=""):
    """Make sure that a failed segment says so, even when it died before its first line.

    ``own_reason`` is what its first process left in its failure file. Without one it was ended from
    outside, and its evidence may lack the reason.
    """
    path = folder / "summary.json"
    folder.mkdir(parents=True, exist_ok=True)
    summary = json.loads(path.read_text()) if path.exists() else _empty_summary(arm, block)
    reason = (own_reason and summary.get("reason")) or arm.failure
    summary.update(finished=False, reason=reason)
    path.write_text(json.dumps(summary, indent=1) + "\n")
    (folder / "steps.jsonl").touch()
    say(block=block, arm=arm.name, failed=json.dumps(summary["reason"]))


def _empty_summary(arm, block):
    compiler = NoCompiler(arm.hyperparameters.get("compiler", "none")).evidence()
    return {
        "schema": 1,
        "job": environment.job_name(),
        "arm": arm.name,
        "replicate": block,
        "seed": None,
        "full_run_steps": arm.hyperparameters.get("steps"),
        "compiler": {**compiler, "applied": None, "proof": "the segment failed"},
        "metrics": {},
        "outcomes": {},
        "loss_curve": [],
        "peak_memory_gib": None,
        "devices": environment.world_size(),
        "fingerprint": {},
        "initial_loss": None,
        "initial_weights_sha256": None,
        "final_weights_sha256": None,
        "final_start_sha256": None,
        "node": environment.node(),
    }


def say(text="", **labels):
    """Print one line that the job's metric definitions and the live progress understand."""
    words = [f"{key}={value}" for key, value in labels.items()]
    write_line(" ".join(["compilegate", *words, *([text] if text else [])]))


def _stop(_signal, _frame):
    raise StoppedError


def start(job):
    """Run the job of this process's arguments; end with 1 and the reason if it fails."""
    signal.signal(signal.SIGTERM, _stop)
    try:
        job(sys.argv[1:])
    except TrainingError as problem:
        write_line(f"compilegate failed: {problem}", sys.stderr)
        environment.write_failure(str(problem))
        sys.exit(1)


if __name__ == "__main__":
    start(main)
