"""``compilegate try``: two steps of every arm on this machine, before anything is paid."""

from __future__ import annotations

import contextlib
import json
import shutil
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Annotated, Any

import typer

from compilegate.adapters.bundle import make_bundle
from compilegate.adapters.workload_files import WorkloadFile, read_workload
from compilegate.cli.common import project
from compilegate.cli.common.error_handling import FAILURE, INVALID_EVIDENCE
from compilegate.cli.common.output import waiting
from compilegate.cli.common.session import FileArgument, JsonOption
from compilegate.cli.common.template import answer, show
from compilegate.cli.plan import full_runs
from compilegate.cli.tryout.process import (
    REQUIREMENTS,
    STEPS,
    Ended,
    default_python,
    installed,
    lacks,
    run,
)
from compilegate.domain.compilers import compiler_named
from compilegate.domain.eligibility import check_eligibility
from compilegate.domain.errors import InvalidInputError
from compilegate.domain.naming import LAUNCHER
from compilegate.domain.notes import SCRIPT_COMPILES, Note, said
from compilegate.domain.planning.arms import CONTROL, ArmPlan, Refusal, plan_arms
from compilegate.domain.workload.model import BASELINE, Workload
from compilegate.place import INSTALLED
from compilegate.usecases.registered import facts_for_workload

# What one arm of a try left behind: steps, metric, proof of its change, or why it failed.

MOST_LINES = 12
# The class of an import's error.
MISSING_PACKAGE = ModuleNotFoundError.__name__
# What the launcher prints where it leaves out a compilation of the script's own.
SAYS_LEFT_OUT = "compilegate script_compiles=left_out"
OK, FAILED, NOT_APPLIED, NO_METRIC, NOT_TRIED = (
    "ok", "failed", "not_applied", "no_metric", "not_tried",
)  # fmt: skip


@dataclass(frozen=True)
class ArmResult:
    """One arm; ``seconds_per_step`` is of its last step, ``seconds`` of the whole process.

    ``error`` is the class of the exception that ended it, where one is recorded.
    ``compiling_left_out``: the script compiles its model itself, and this arm trained without.
    """

    arm: str
    outcome: str
    why: str = ""
    steps: int = 0
    seconds_per_step: float | None = None
    samples_per_step: int | None = None
    compile_seconds: float | None = None
    metric: float | None = None
    reported: tuple[str, ...] = ()
    outcomes: bool = False
    initial_weights: str | None = None
    seconds: float = 0.0
    log: str = ""
    compiling_left_out: bool = False
    error: str | None = None

    def to_dict(self) -> dict[str, Any]:
        """For ``--json``."""
        return {**asdict(self), "reported": list(self.reported)}


def read_arm(arm: str, request: Mapping[str, Any], metric: str, ended: Ended) -> ArmResult:
    """What the arm's process left in its folder."""
    summary = _json(ended, "summary.json")
    steps = _steps(ended)
    compiler = summary.get("compiler") or {}
    metrics, values = summary.get("metrics") or {}, request["HyperParameters"]
    last = steps[-1] if steps else {}
    fields: dict[str, Any] = {
        "steps": len(steps),
        "seconds_per_step": last.get("seconds"),
        "samples_per_step": last.get("samples"),
        "compile_seconds": compiler.get("compile_seconds") or None,
        "metric": metrics.get(metric),
        "reported": tuple(sorted(metrics)),
        "outcomes": metric in (summary.get("outcomes") or {}),
        "initial_weights": summary.get("initial_weights_sha256"),
        "seconds": ended.seconds,
        "log": str(ended.log),
        "compiling_left_out": SAYS_LEFT_OUT in _printed(ended),
        "error": _error(ended, summary),
    }
    launched = json.loads(values["sagemaker_program"]) == LAUNCHER
    outcome, why = _outcome(ended, summary, metric, whole=launched or "steps" in values)
    return ArmResult(arm, outcome, why, **fields)


def _outcome(
    ended: Ended, summary: Mapping[str, Any], metric: str, *, whole: bool
) -> tuple[str, str]:
    compiler = summary.get("compiler") or {}
    if ended.code is None:
        return FAILED, "its time was up; --minutes gives more"
    if ended.code or not summary.get("finished"):
        refused = compiler.get("requested") not in (None, "none") and not compiler.get("applied")
        done = bool(summary.get("steps"))
        return (NOT_APPLIED if refused and done else FAILED), _reason(ended, summary)
    if whole and metric not in (summary.get("metrics") or {}):
        names = ", ".join(sorted(summary.get("metrics") or {})) or "none"
        return NO_METRIC, (
            f"quality.metric {metric} was not reported; metrics that were: {names}. Name one of "
            "them, or the line that prints it in metric_patterns"
        )
    return OK, ""


def _reason(ended: Ended, summary: Mapping[str, Any]) -> str:
    """The launcher's own words; where it had none, the end of what the process printed."""
    failure = text_of(ended.folder / "output" / "failure")
    if failure is not None:
        return failure.strip()
    lines = last_lines(ended)
    return str(summary.get("reason") or (lines[-1] if lines else f"exit code {ended.code}"))


def _error(ended: Ended, summary: Mapping[str, Any]) -> str | None:
    """As the recorder caught it; without a recorder, as Python's traceback ends."""
    if summary.get("error"):
        return str(summary["error"])
    lines = last_lines(ended)
    return MISSING_PACKAGE if lines and lines[-1].startswith(f"{MISSING_PACKAGE}:") else None


def last_lines(ended: Ended) -> list[str]:
    """The last lines that the process printed."""
    return [line for line in _printed(ended).splitlines() if line.strip()][-MOST_LINES:]


def _printed(ended: Ended) -> str:
    return text_of(ended.log) or ""


def text_of(path: Path) -> str | None:
    """What a file says; None where there is none, because the script may do with it as it likes."""
    with contextlib.suppress(OSError):
        if path.is_file():
            return path.read_text(encoding="utf-8", errors="replace")
    return None


def _json(ended: Ended, name: str) -> dict[str, Any]:
    path = ended.folder / "output" / "data" / "evidence" / name
    try:
        document = json.loads(text_of(path) or "")
    except ValueError:
        return {}
    return document if isinstance(document, dict) else {}


def _steps(ended: Ended) -> list[dict[str, Any]]:
    path = ended.folder / "output" / "data" / "evidence" / "steps.jsonl"
    try:
        return [json.loads(line) for line in (text_of(path) or "").splitlines()]
    except ValueError:
        return []


MINUTES = 10.0
Inputs = Annotated[
    list[str] | None,
    typer.Option("--input", metavar="CHANNEL=PATH", help="Data on this machine for a channel."),
]


def try_(
    file: FileArgument,
    *,
    python: Annotated[
        Path | None,
        typer.Option("--python", help="Default: what `make setup` made, else this one."),
    ] = None,
    input_paths: Inputs = None,
    only: Annotated[
        list[str] | None, typer.Option("--arm", metavar="NAME", help="Only this arm; repeatable.")
    ] = None,
    minutes: Annotated[
        float, typer.Option("--minutes", min=0.01, help="Time limit of each arm.")
    ] = MINUTES,
    keep: Annotated[
        Path | None, typer.Option("--keep", help="Keep code, logs and evidence in this folder.")
    ] = None,
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

    Exit code 0 all arms trained and reported, 13 a change was not applied, 1 an arm failed or did
    not report quality.metric, 2 bad input.
    """
    named = dict(map(_named, input_paths or ()))
    workload_file = read_workload(file, elsewhere=named)
    inputs = _inputs(workload_file, named)
    workload = workload_file.workload
    interpreter = _interpreter(python or default_python(), workload)
    listed = (workload_file.source_dir / REQUIREMENTS).is_file()
    arms, others = _arms(workload)
    if only:
        arms, others = _chosen(arms, only), []
    place = keep or Path(tempfile.mkdtemp(prefix="compilegate-try-"))
    if keep is not None and keep.exists() and any(keep.iterdir()):
        raise InvalidInputError(
            "is not empty", field="--keep", value=str(keep), fix="name a new folder"
        )
    try:
        tried = _try(
            workload_file, arms, inputs, interpreter, place, seconds=60 * minutes,
            install=listed and python is None, quiet=as_json,
        )  # fmt: skip
        results = [*tried, *others]
    finally:
        if keep is None:
            shutil.rmtree(place, ignore_errors=True)
    if keep is None:
        results = [replace(one, log="") for one in results]
    notes = list(_notes(workload_file, results, left_out=listed and python is not None))
    document = {
        "workload": workload.name, "arms": [one.to_dict() for one in results], "notes": notes,
    }  # fmt: skip
    outcomes = [one.outcome for one in results if one.outcome != NOT_TRIED]
    answer(
        document, "try", as_json=as_json,
        good=outcomes.count(OK), tried=len(outcomes), steps=STEPS,
    )  # fmt: skip
    raise typer.Exit(_exit_code(results))


def _interpreter(python: Path, workload: Workload) -> Path:
    """The Python, checked for what every arm imports first."""
    install = "pip install 'compilegate[local]'" if INSTALLED else "run `make setup`"
    fix = f"name one that has what the script imports with --python, or {install}"
    problem = None
    if shutil.which(str(python)) is None:
        problem = "is not a Python"
    elif workload.framework.kind == "pytorch" and lacks(python, "torch"):
        problem = "cannot import torch"
    if problem is not None:
        raise InvalidInputError(problem, field="--python", value=str(python), fix=fix)
    return python


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


def _arms(workload: Workload) -> tuple[list[ArmPlan], list[ArmResult]]:
    """The arms that can run here, and the others with why not."""
    settings = project.settings()
    facts = facts_for_workload(workload, settings)
    choice = check_eligibility(workload, facts, region=settings.region).choice
    planned = plan_arms(workload, choice.candidates, facts, region=settings.region)
    if isinstance(planned, Refusal):
        raise InvalidInputError(
            f"cannot be planned: {planned.reason.message}", fix="run compilegate check FILE first"
        )
    here, others = [], [ArmResult(name, NOT_TRIED, why) for name, why in choice.left_out]
    for arm in planned:
        compiler = compiler_named(arm.compiler)
        if arm.role == CONTROL:
            continue
        if arm.framework or (compiler is not None and compiler.launching is not None):
            others.append(ArmResult(arm.name, NOT_TRIED, "its image exists on AWS only"))
        else:
            here.append(arm)
    return here, others


def _chosen(arms: Sequence[ArmPlan], only: Sequence[str]) -> list[ArmPlan]:
    names = [arm.name for arm in arms]
    for name in only:
        if name not in names:
            fix = f"use one of {', '.join(names)}"
            raise InvalidInputError(
                "is no arm that can run here", field="--arm", value=name, fix=fix
            )
    return [arm for arm in arms if arm.name in only]


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
) -> Iterator[ArmResult]:
    """Run the arms one after the other in ``place``; shows each as it ends unless ``quiet``.

    With ``install`` they get a Python that also has what the bundle lists, as their jobs' has.
    """
    bundle, metric = make_bundle(file.source_dir).body, file.workload.quality.metric
    place = place.resolve()
    if install:
        with waiting(f"installing {REQUIREMENTS}"):
            python = installed(bundle, python, place / ".installed", seconds)
    seen = {""}
    requests = full_runs(file.workload, arms, project.settings().region)
    for arm, request in zip(arms, requests, strict=True):
        with waiting(arm.name) as update:
            ended = run(
                request,
                bundle=bundle,
                inputs=inputs,
                folder=place / arm.name,
                python=Path(shutil.which(str(python)) or python),
                limit_seconds=seconds,
                on_wait=lambda log: update(_last_line(log)),
            )
        result = read_arm(arm.name, request, metric, ended)
        if not quiet:
            lines = () if result.why in seen else last_lines(ended)
            show(
                "try_arm", result.to_dict(), value=result.metric, metric_name=metric,
                last_lines=lines,
            )  # fmt: skip
        seen.add(result.why)
        yield result


def _last_line(log: Path) -> str:
    """The arm, which names the log's folder, and the last line that it printed."""
    lines = (text_of(log) or "").splitlines()
    shown = "".join(mark for mark in (lines[-1] if lines else "") if mark.isprintable())
    return f"{log.parent.name}: {shown}"


def _notes(file: WorkloadFile, results: Sequence[ArmResult], *, left_out: bool) -> Iterator[str]:
    if any(one.arm == BASELINE and one.compiling_left_out for one in results):
        yield from said([Note(SCRIPT_COMPILES, {})], "tried")
    starts = {one.initial_weights for one in results if one.initial_weights is not None}
    if len(starts) > 1:
        yield (
            "The arms begin with different weights although they have one seed, so a trial would "
            "be invalid: the script draws them without the trial's seed."
        )
    if any(one.error == MISSING_PACKAGE for one in results):
        yield (
            "This Python lacks a package that the script imports. A job and try install what "
            f"{file.source_dir / REQUIREMENTS} lists; or name a Python that has it with --python."
        )
    if left_out:
        place = file.source_dir / REQUIREMENTS
        yield f"{place} was not installed over --python; a job installs it."
    for one in results:
        if one.outcome == NOT_TRIED:
            yield f"{one.arm}: not tried, {one.why}."


def _exit_code(results: Sequence[ArmResult]) -> int:
    outcomes = {one.outcome for one in results} - {OK, NOT_TRIED}
    if not outcomes:
        return 0
    return INVALID_EVIDENCE if outcomes == {NOT_APPLIED} else FAILURE
