"""``compilegate try``: two steps of every arm on this machine, before anything is paid.

An arm starts as the container toolkit would start its job: arguments and variables are those of its
CreateTrainingJob request; ``/opt/ml`` is a folder of its own.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import shutil
import signal
import subprocess
import sys
import tarfile
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from compilegate.adapters.workload_files import PYTHON, WorkloadFile, make_bundle, read_workload
from compilegate.cli.common import project
from compilegate.cli.common.error_handling import FAILURE, INVALID_EVIDENCE
from compilegate.cli.common.output import answer, show, waiting
from compilegate.cli.common.session import FileArgument, JsonOption
from compilegate.cli.plan import full_runs
from compilegate.cli.trials import NO_STEP
from compilegate.domain.argument_text import argument
from compilegate.domain.compilers import compiler_named
from compilegate.domain.eligibility.check import blocking, check_eligibility
from compilegate.domain.errors import InvalidInputError
from compilegate.domain.formats import clock, plural
from compilegate.domain.naming import LAUNCHER
from compilegate.domain.notes import SCRIPT_COMPILES, Note, said
from compilegate.domain.planning.arms import CONTROL, ArmPlan, plan_arms
from compilegate.domain.reasons import Reason
from compilegate.domain.request.build import PLATFORM_PREFIX
from compilegate.domain.workload.model import BASELINE, Workload
from compilegate.place import INSTALLED, PROJECT
from compilegate.usecases.records import facts_for_workload
from compilegate_doctor import ScriptError, argument_style, describe
from compilegate_local import TEMPLATES, equivalence
from compilegate_local.equivalence import Asked

STEPS = 2
# Blocks a trial; two steps show how long compiling takes, which may answer it.
CANNOT_PAY = {"run_too_short", "saving_below_trial_cost"}
ROOT = "/opt/ml"
# Read by compilegate_runtime/environment.py.
VARIABLE = "COMPILEGATE_TRY_STEPS"
# What a user's own environment needs to find libraries, GPUs and caches of models.
INHERITED = ("PATH", "HOME", "LANG", "LD_LIBRARY_PATH", "CUDA_VISIBLE_DEVICES", "HF_HOME")
POLL_SECONDS = 0.2
# A Python on a slow network disk starts in less.
ASK_SECONDS = 30.0
EVIDENCE = "ml/output/data/evidence"
# Of a bundle; installed before the arms run, as a job's container does it.
REQUIREMENTS = "requirements.txt"
MINUTES = 10.0
MOST_LINES = 12
# The class of an import's error.
MISSING_PACKAGE = ModuleNotFoundError.__name__
# What the launcher prints where it leaves out a compilation of the script's own.
SAYS_LEFT_OUT = "compilegate script_compiles=left_out"
TIME_UP = "its time was up; --minutes gives more"
OK, FAILED, NOT_APPLIED, NO_METRIC, NOT_TRIED, NOT_EQUIVALENT = (
    "ok", "failed", "not_applied", "no_metric", "not_tried", "not_equivalent",
)  # fmt: skip
# What is known of an arm that was not tried. `seconds_per_step` is of the last step, `seconds` of
# the whole process; `error` is the class of the exception that ended it; `compiling_left_out`: the
# script compiles its model itself, and this arm trained without.
UNTRIED: Mapping[str, Any] = {
    "arm": "", "outcome": NOT_TRIED, "why": "", "steps": 0, "seconds_per_step": None,
    "samples_per_step": None, "compile_seconds": None, "metric": None, "reported": [],
    "outcomes": False, "initial_weights": None, "seconds": 0.0, "log": "",
    "compiling_left_out": False, "error": None, "equivalence": None,
}  # fmt: skip


def try_(
    file: FileArgument,
    *,
    python: Annotated[
        Path | None,
        typer.Option("--python", help="Default: what `make setup` made, else this one."),
    ] = None,
    input_paths: Annotated[
        list[str] | None,
        typer.Option("--input", metavar="CHANNEL=PATH", help="Data on this machine for a channel."),
    ] = None,
    only: Annotated[
        list[str] | None, typer.Option("--arm", metavar="NAME", help="Only this arm; repeatable.")
    ] = None,
    minutes: Annotated[
        float, typer.Option("--minutes", min=0.01, help="Time limit of each arm.")
    ] = MINUTES,
    keep: Annotated[
        Path | None, typer.Option("--keep", help="Keep code, logs and evidence in this folder.")
    ] = None,
    examine: Annotated[
        bool,
        typer.Option("--equivalence", help="Compare compiled with eager training; find errors."),
    ] = False,
    as_json: JsonOption = False,
) -> None:
    """Run two steps of every arm on this machine.

    Each arm starts as its job would: the same bundle, arguments and variables, and without --python
    what its requirements.txt lists, in an environment that is removed. Its data ends after two
    steps, so that the script evaluates and reports its metric. A script without a loader goes
    on until it has reported one.

    \b
    compilegate try jobs/bert.yaml
    compilegate try jobs/bert.yaml --python ~/venvs/train/bin/python
    compilegate try jobs/bert.yaml --input train=data/sample --arm baseline
    compilegate try jobs/bert.yaml --arm compile --equivalence

    With --equivalence each arm that compiles runs four steps, then the equivalence check. Where
    compiled training is further from double precision than rounding, it looks for stage, graph
    and operator, for --minutes at most, tries what helps, and leaves a file that shows the error
    with PyTorch alone.

    Exit code 0 all arms trained and reported, 13 a change was not applied or compiles wrongly, 1
    an arm failed or did not report a metric of quality, 2 bad input.
    """
    named = dict(map(_named, input_paths or ()))
    workload_file = read_workload(file, elsewhere=named)
    inputs = _inputs(workload_file, named)
    workload = workload_file.workload
    # The training environment of the checkout, in an installed package the own one.
    default = Path(sys.executable) if INSTALLED else PROJECT / PYTHON
    interpreter = _interpreter(python or default, workload)
    listed = (workload_file.source_dir / REQUIREMENTS).is_file()
    arms, others = _arms(workload, only or ())
    place = keep or Path(tempfile.mkdtemp(prefix="compilegate-try-"))
    if keep and keep.exists() and any(keep.iterdir()):
        raise InvalidInputError(
            "is not empty", field="--keep", value=str(keep), fix="name a new folder"
        )
    try:
        tried = _try(
            workload_file, arms, inputs, interpreter, place, seconds=60 * minutes,
            install=listed and not python, quiet=as_json, examine=examine, keep=keep,
        )  # fmt: skip
        results = [*tried, *others]
    finally:
        if not keep:
            shutil.rmtree(place, ignore_errors=True)
    if not keep:
        results = [{**one, "log": ""} for one in results]
    notes = list(_notes(workload_file, results, left_out=listed and bool(python)))
    outcomes = [one["outcome"] for one in results if one["outcome"] != NOT_TRIED]
    answer(
        {"workload": workload.name, "arms": results, "notes": notes}, TEMPLATES / "try",
        as_json=as_json, good=outcomes.count(OK) + outcomes.count(NOT_EQUIVALENT),
        tried=len(outcomes),
    )  # fmt: skip
    bad = {*outcomes} - {OK}
    code = INVALID_EVIDENCE if bad <= {NOT_APPLIED, NOT_EQUIVALENT} else FAILURE
    raise typer.Exit(code if bad else 0)


def _interpreter(python: Path, workload: Workload) -> Path:
    """The Python, checked for what every arm imports first."""
    problem = "" if shutil.which(str(python)) else "is not a Python"
    if not problem and workload.framework.kind == "pytorch":
        code = "import importlib.util; print(importlib.util.find_spec('torch'))"
        # A wrapper may answer nothing.
        with contextlib.suppress(OSError, subprocess.TimeoutExpired):
            asked = subprocess.run(  # noqa: S603 - the user's own Python, as an argument list
                [str(python), "-c", code], env=_inherited(), stdin=subprocess.DEVNULL,
                capture_output=True, text=True, check=False, timeout=ASK_SECONDS,
            )  # fmt: skip
            problem = "cannot import torch" if asked.stdout.strip() == "None" else ""
    if problem:
        install = "pip install 'compilegate[local]'" if INSTALLED else "run `make setup`"
        fix = f"name one that has what the script imports with --python, or {install}"
        raise InvalidInputError(problem, field="--python", value=str(python), fix=fix)
    return python


def _inherited() -> dict[str, str]:
    return {name: os.environ[name] for name in INHERITED if name in os.environ}


def _named(text: str) -> tuple[str, Path]:
    channel, equals, path = text.partition("=")
    if not equals or not Path(path).exists():
        fix = "write --input CHANNEL=PATH with a folder or file that exists"
        raise InvalidInputError("names no data", field="--input", value=text, fix=fix)
    return channel, Path(path)


def _inputs(file: WorkloadFile, named: Mapping[str, Path]) -> Mapping[str, Path]:
    """Where each channel's data lies on this machine."""
    for channel, uri in file.workload.training.inputs.items():
        if channel not in named and channel not in file.local_inputs:
            raise InvalidInputError(
                "is not on this machine, and nothing is downloaded", file=str(file.path),
                field=f"training.inputs.{channel}", value=uri,
                fix=f"add --input {channel}=PATH with a sample of it",
            )  # fmt: skip
    return {**file.local_inputs, **named}


def _arms(workload: Workload, only: Sequence[str]) -> tuple[list[ArmPlan], list[dict[str, Any]]]:
    """The arms that can run here, and the others with why not; with ``only``, these alone."""
    settings = project.settings()
    facts = facts_for_workload(workload, settings)
    checked = check_eligibility(workload, facts, region=settings.region)
    tried = [
        one.candidate for one in checked.candidates
        if {reason.code for reason in blocking(one.reasons)} <= CANNOT_PAY
    ]  # fmt: skip
    planned = plan_arms(workload, tried, facts, region=settings.region)
    if isinstance(planned, Reason):
        raise InvalidInputError(
            f"cannot be planned: {planned.message}", fix="run compilegate check FILE first"
        )
    here: dict[str, ArmPlan] = {}
    names = {one.name for one in tried}
    others = [(name, why) for name, why in checked.choice.left_out if name not in names]
    for arm in planned:
        if arm.role == CONTROL:
            continue
        if arm.framework or compiler_named(arm.compiler).launching is not None:
            others.append((arm.name, "its image exists on AWS only"))
        else:
            here[arm.name] = arm
    for name in only:
        if name not in here:
            fix = f"use one of {', '.join(here)}"
            raise InvalidInputError(
                "is no arm that can run here", field="--arm", value=name, fix=fix
            )
    if only:
        return [arm for arm in here.values() if arm.name in only], []
    return [*here.values()], [{**UNTRIED, "arm": name, "why": why} for name, why in others]


def _try(
    file: WorkloadFile,
    arms: Sequence[ArmPlan],
    inputs: Mapping[str, Path],
    python: Path,
    place: Path,
    *,
    seconds: float,
    install: bool,
    quiet: bool,
    examine: bool,
    keep: Path | None,
) -> Iterator[dict[str, Any]]:
    """Run the arms one after the other in ``place``; shows each as it ends unless ``quiet``.

    With ``install`` they get a Python that also has what the bundle lists, as their jobs' has.
    """
    bundle, expected = make_bundle(file.source_dir).body, file.workload.quality.reported
    place = place.resolve()
    if install:
        with waiting(f"installing {REQUIREMENTS}"):
            python = installed(bundle, python, place / ".installed", seconds)
    seen = {""}
    requests = full_runs(file.workload, arms, project.settings().region)
    asked = equivalence.asked(seconds) if examine else Asked(STEPS, 0.0, {})
    for arm, request in zip(arms, requests, strict=True):
        folder = place / arm.name
        log = folder / "output.log"
        _lay_out(folder, bundle, inputs)
        interpreter = shutil.which(str(python)) or str(python)
        began = time.monotonic()
        with waiting(arm.name) as update:
            code = _run(
                [interpreter, *start_words(request, folder / "ml", asked.steps)], folder,
                {**_environment(request, folder / "ml", inputs, asked.steps), **asked.variables},
                began + seconds + asked.seconds, update,
            )  # fmt: skip
        if examine and _summary(folder).get("finished"):
            code = 0  # the check comes after the run: what ends it is no failure of the arm
        result = {
            **UNTRIED, "arm": arm.name, "seconds": time.monotonic() - began, "log": str(log),
            **_left_behind(folder, code, expected, request["HyperParameters"]),
        }  # fmt: skip
        if examine:
            script = (keep or Path()) / f"reproducer-{arm.name}.py"
            checked = equivalence.of_arm(_summary(folder), folder / EVIDENCE, script)
            result["equivalence"] = checked
            if result["outcome"] == OK and equivalence.fails(checked):
                result["outcome"] = NOT_EQUIVALENT
        if not quiet:
            lines = () if result["why"] in seen else _last_lines(log)
            show(
                TEMPLATES / "try_arm", result, value=result["metric"], metric_name=expected[0],
                last_lines=lines, **equivalence.shown(result["equivalence"]),
            )  # fmt: skip
        seen.add(result["why"])
        yield result


def _lay_out(folder: Path, bundle: bytes, inputs: Mapping[str, Path]) -> None:
    """The bundle's code, and what a container has in ``/opt/ml``."""
    _unpack(bundle, folder / "code")
    for place in ("output/data", "model", "checkpoints", "input/data"):
        (folder / "ml" / place).mkdir(parents=True)
    for channel, source in inputs.items():
        target = folder / "ml" / "input" / "data" / channel
        if source.is_dir():
            target.symlink_to(source.resolve())
        else:
            target.mkdir()
            (target / source.name).symlink_to(source.resolve())


def _unpack(bundle: bytes, folder: Path) -> None:
    with tarfile.open(fileobj=io.BytesIO(bundle)) as archive:
        archive.extractall(folder, filter="data")


def start_words(request: Mapping[str, Any], root: Path, steps: int) -> list[str]:
    """The program and its arguments, as the toolkit makes them of a request."""
    values = {name: json.loads(text) for name, text in request["HyperParameters"].items()}
    program = str(values["sagemaker_program"])
    own = {name: value for name, value in values.items() if not name.startswith(PLATFORM_PREFIX)}
    if program != LAUNCHER:  # it calls the recorder: its own number of steps, or a segment
        own["steps" if "steps" in own else "max_steps"] = steps
    words = [program]
    for name, value in sorted(own.items()):
        words += [f"--{name}" if len(name) > 1 else f"-{name}", _mapped(argument(value), root)]
    return words


def _mapped(value: str, root: Path) -> str:
    """A path under ``/opt/ml`` as it is called here; other values unchanged."""
    inside = value == ROOT or value.startswith(f"{ROOT}/")
    return str(root) + value.removeprefix(ROOT) if inside else value


def _environment(
    request: Mapping[str, Any], root: Path, inputs: Mapping[str, Path], steps: int
) -> dict[str, str]:
    channels = {
        "".join(mark if mark.isalnum() else "_" for mark in channel).upper(): channel
        for channel in inputs
    }
    return {
        **_inherited(),
        "PYTHONUNBUFFERED": "1",
        "SM_OUTPUT_DIR": str(root / "output"),
        "SM_OUTPUT_DATA_DIR": str(root / "output" / "data"),
        "SM_MODEL_DIR": str(root / "model"),
        "TRAINING_JOB_NAME": str(request["TrainingJobName"]),
        **{
            f"SM_CHANNEL_{name}": str(root / "input" / "data" / channel)
            for name, channel in channels.items()
        },
        **{name: _mapped(value, root) for name, value in request["Environment"].items()},
        VARIABLE: str(steps),
    }


def _run(
    command: Sequence[str],
    folder: Path,
    environment: Mapping[str, str],
    until: float,
    update: Callable[[str], None],
) -> int | None:
    """The exit code of one arm's process; None where its time was up. Shows its last line."""
    began = time.monotonic()
    with (folder / "output.log").open("wb") as output:
        process = subprocess.Popen(  # noqa: S603 - the user's own script, as an argument list
            command, cwd=folder / "code", env=environment, stdin=subprocess.DEVNULL, stdout=output,
            stderr=subprocess.STDOUT, start_new_session=True,
        )  # fmt: skip
        try:
            while time.monotonic() < until:
                try:
                    return process.wait(POLL_SECONDS)
                except subprocess.TimeoutExpired:
                    lines = _text_of(folder / "output.log").splitlines()
                    last = lines[-1] if lines else ""
                    shown = "".join(mark for mark in last if mark.isprintable())
                    steps = len(_text_of(folder / EVIDENCE / "steps.jsonl").splitlines())
                    done = plural(steps, "step") if steps else NO_STEP
                    update(f"{folder.name}, {clock(time.monotonic() - began)}, {done}: {shown}")
            return None
        finally:
            # With what it has started, such as workers of a data loader.
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def _left_behind(
    folder: Path, code: int | None, expected: Sequence[str], values: Mapping[str, str]
) -> dict[str, Any]:
    """What an arm's process left in its folder, and what that says."""
    log, summary = folder / "output.log", _summary(folder)
    steps: list[dict[str, Any]] = []
    with contextlib.suppress(ValueError):
        rows = _text_of(folder / EVIDENCE / "steps.jsonl").splitlines()
        steps = [json.loads(row) for row in rows]
    compiler, metrics = summary.get("compiler") or {}, summary.get("metrics") or {}
    lines, last = _last_lines(log), steps[-1] if steps else {}
    outcome, why = OK, ""
    # A script that calls the recorder reports a metric where it makes a number of steps.
    reports = json.loads(values["sagemaker_program"]) == LAUNCHER or "steps" in values
    if code is None:
        outcome, why = FAILED, TIME_UP
    elif code or not summary.get("finished"):
        refused = compiler.get("requested") not in (None, "none") and not compiler.get("applied")
        outcome = NOT_APPLIED if refused and summary.get("steps") else FAILED
        # The launcher's own words; where it had none, the end of what the process printed.
        failure = _text_of(folder / "ml" / "output" / "failure").strip()
        ended = [f"exit code {code}", *lines]
        why = failure or str(summary.get("reason") or ended[-1])
    elif reports and (silent := [name for name in expected if name not in metrics]):
        names = ", ".join(sorted(metrics)) or "none"
        outcome = NO_METRIC
        why = (
            f"quality names {', '.join(silent)}, not reported; metrics that were: {names}. Name "
            "those, or the line that prints it in metric_patterns"
        )
    # Without a recorder, as Python's traceback ends.
    no_import = bool(lines) and lines[-1].startswith(f"{MISSING_PACKAGE}:")
    ended_by = MISSING_PACKAGE if no_import else None
    return {
        "outcome": outcome,
        "why": why,
        "steps": len(steps),
        "seconds_per_step": last.get("seconds"),
        "samples_per_step": last.get("samples"),
        "compile_seconds": compiler.get("compile_seconds") or None,
        "metric": metrics.get(expected[0]),
        "reported": sorted(metrics),
        "outcomes": expected[0] in (summary.get("outcomes") or {}),
        "initial_weights": summary.get("initial_weights_sha256"),
        "compiling_left_out": SAYS_LEFT_OUT in _text_of(log),
        "error": str(summary["error"]) if summary.get("error") else ended_by,
    }


def _summary(folder: Path) -> dict[str, Any]:
    with contextlib.suppress(ValueError):
        document = json.loads(_text_of(folder / EVIDENCE / "summary.json"))
        return document if isinstance(document, dict) else {}
    return {}


def _text_of(path: Path) -> str:
    """What a file says; nothing where there is none: the script may do with it as it likes."""
    with contextlib.suppress(OSError):
        if path.is_file():
            return path.read_text(encoding="utf-8", errors="replace")
    return ""


def _last_lines(log: Path) -> list[str]:
    return [line for line in _text_of(log).splitlines() if line.strip()][-MOST_LINES:]


def installed(bundle: bytes, python: Path, folder: Path, limit_seconds: float) -> Path:
    """A Python in ``folder`` with what the bundle lists over what ``python`` has.

    The environment of ``python`` stays as it is. Raises InvalidInputError with pip's own words.
    """
    from compilegate_localcloud.interpreter import own_interpreter  # noqa: PLC0415 - compilegate[local]

    _unpack(bundle, folder / "code")
    own = own_interpreter(python, folder / "environment").python
    command = [str(own), "-m", "pip", "install", "--quiet", "-r", REQUIREMENTS]
    try:
        ended = subprocess.run(  # noqa: S603 - the user's own packages, as an argument list
            command, cwd=folder / "code", env=dict(os.environ), stdin=subprocess.DEVNULL,
            capture_output=True, text=True, check=False, timeout=limit_seconds,
        )  # fmt: skip
        why = ended.stderr
    except subprocess.TimeoutExpired:
        why = TIME_UP
    else:
        if not ended.returncode:
            return own
    lines = [line for line in why.splitlines() if line.strip()] or ["pip gave no reason"]
    errors = [line for line in lines if line.startswith("ERROR:")] or lines[-1:]
    raise InvalidInputError(
        f"cannot be installed: {' '.join(errors).replace('ERROR: ', '')}", file=REQUIREMENTS,
        fix="correct it, or name a Python that has what it lists with --python",
    )  # fmt: skip


def _other_style(file: WorkloadFile) -> Iterator[str]:
    """That the script takes its arguments in another style than they are passed in."""
    training = file.workload.training
    script = str(training.hyperparameters.get("script", training.entry_point))
    try:
        read = describe((file.source_dir / script).read_bytes(), script)
    except (OSError, ScriptError):
        return
    style = argument_style(read.command_line)
    if style and style[0] != training.hyperparameters.get("argument_style", "words"):
        yield (
            f"{script} takes its arguments as {style[1]}: set argument_style: {style[0]} in "
            f"training.hyperparameters, with the launcher {LAUNCHER} as entry_point."
        )


def _notes(
    file: WorkloadFile, results: Sequence[Mapping[str, Any]], *, left_out: bool
) -> Iterator[str]:
    if any(one["arm"] == BASELINE and one["compiling_left_out"] for one in results):
        yield from said([Note(SCRIPT_COMPILES, {})], "tried")
    if len({one["initial_weights"] for one in results} - {None}) > 1:
        yield (
            "The arms begin with different weights although they have one seed, so a trial would "
            "be invalid: the script draws them without the trial's seed."
        )
    place = file.source_dir / REQUIREMENTS
    if any(one["error"] == MISSING_PACKAGE for one in results):
        yield (
            "This Python lacks a package that the script imports. A job and try install what "
            f"{place} lists; or name a Python that has it with --python."
        )
    if any(one["outcome"] == FAILED and not one["steps"] for one in results):
        yield from _other_style(file)
    if left_out:
        yield f"{place} was not installed over --python; a job installs it."
    for result in results:
        if result["outcome"] == NOT_TRIED:
            yield f"{result['arm']}: not tried, {result['why']}."
