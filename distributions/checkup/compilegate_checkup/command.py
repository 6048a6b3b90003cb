"""``compilegate doctor``: what in a training script breaks or slows a compiled run?"""

from __future__ import annotations

import json
import os
import re
import stat
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from itertools import groupby
from pathlib import Path
from typing import Annotated, Any

import typer

from compilegate import __version__
from compilegate.adapters.workload_files import read_workload
from compilegate.cli.check import files_below
from compilegate.cli.common.output import answer, emit_json, progress
from compilegate.cli.common.session import JsonOption, LocalOption, StageOption, session
from compilegate.domain.compilers import COMPILERS
from compilegate.domain.errors import InvalidInputError
from compilegate.domain.naming import LAUNCHER
from compilegate.domain.reasons import Severity as ReasonSeverity
from compilegate_checkup import TEMPLATES
from compilegate_doctor import (
    BY_ID,
    MOST_BYTES,
    Examination,
    Observed,
    ScriptError,
    Severity,
    examine,
    observed_by,
    to_sarif,
)

CLEAN, BREAKS, SLOWS, BAD_INPUT = 0, 10, 11, 2
# Of scripts, by the worst that any has.
SCRIPT_CODES = ((Severity.BREAKS, BREAKS), (Severity.SLOWS, SLOWS))
DEPLOYMENT_CODES = {None: CLEAN, ReasonSeverity.BLOCK: BREAKS, ReasonSeverity.WARN: SLOWS}
PROGRESS_ABOVE = 40
WORKLOADS = (".yaml", ".yml")
SKIPPED = ("__pycache__", "node_modules", "site-packages")
ENVIRONMENT = "pyvenv.cfg"  # every virtual environment has one at its root
FRAMEWORK = re.compile(rb"torch|tensorflow|keras|transformers|accelerate|lightning|deepspeed")
# By compiler, whose rules it is examined by: a variant's are its base's. What compiles nothing has
# none beside those that hold for every compiler.
EXAMINED_AS = {
    name: one.examined_as or ((name,) if one.compiles else ()) for name, one in COMPILERS.items()
}
ALL = "all"  # of --compiler
COMPILER_NAMES = f"{', '.join(EXAMINED_AS)}, or {ALL}"
# By severity: the word for one finding, for several, and the colour.
WORDS = {
    Severity.BREAKS: ("breaks it", "break it", "red"),
    Severity.SLOWS: ("slows it", "slow it", "yellow"),
    Severity.NOTE: ("note", "notes", "cyan"),
}


class Part(StrEnum):
    """What ``--only`` takes."""

    BOOTSTRAP = "bootstrap"
    STACK = "stack"
    ROLES = "roles"
    BUCKET = "bucket"
    VPC = "vpc"
    FUNCTIONS = "functions"
    JOBS = "jobs"
    QUOTAS = "quotas"


def doctor(
    ctx: typer.Context,
    paths: Annotated[
        list[Path] | None,
        typer.Argument(metavar="PATH...", help="Python files, folders, or workload files (YAML)."),
    ] = None,
    *,
    deployment: Annotated[
        bool,
        typer.Option("--deployment", help="Examine the AWS account and its network instead."),
    ] = False,
    only: Annotated[
        Part | None, typer.Option("--only", help="With --deployment: examine only this part.")
    ] = None,
    local: LocalOption = False,
    stage: StageOption = None,
    compiler: Annotated[
        str | None,
        typer.Option(
            "--compiler",
            metavar="NAME",
            help=f"One of {COMPILER_NAMES}. Default: from the script's imports or the workload's "
            "candidates.",
        ),
    ] = None,
    as_sarif: Annotated[
        bool, typer.Option("--sarif", help="Print one SARIF 2.1.0 log, for code review tools.")
    ] = False,
    as_json: JsonOption = False,
) -> None:
    """Find what breaks or slows a compiled run in a script.

    The script is read, not run.

    \b
    compilegate doctor train.py
    compilegate doctor src --compiler all
    compilegate doctor workloads/article-bert.yaml
    compilegate doctor src --sarif > doctor.sarif
    compilegate doctor --deployment workloads/article-bert.yaml

    A workload file selects its entry point, its candidates' compilers and its hyperparameters; what
    compilegate first --json printed also says whether shapes change and batches are full.
    The comment # compilegate: ignore[rule-id] with a reason suppresses a finding on its line.

    With --deployment, examines what jobs need of the AWS account: bootstrap, stack, roles, the VPC
    in cdk.json, and quotas for the instances of the workload files.

    Exit code 0 nothing but notes, 11 something slows it, 10 something breaks it, 2 bad input.
    """
    others = {"--sarif": as_sarif, "--compiler": compiler} if deployment else {"--only": only}
    for name, value in others.items():
        if value not in (None, False):
            problem = f"has no effect {'with' if deployment else 'without'} --deployment"
            raise InvalidInputError(problem, field=name, fix="drop it or change --deployment")
    if deployment:
        from compilegate_checkup.account import check_deployment  # noqa: PLC0415 - boto3

        severity = check_deployment(
            session(ctx).providers,
            paths or (),
            only=only,
            stage=stage,
            local=local,
            as_json=as_json,
        )
        raise typer.Exit(DEPLOYMENT_CODES[severity])
    if not paths:
        raise InvalidInputError(
            "is missing", field="PATH", fix="name Python files, folders or workload files; for "
            "the AWS account use --deployment"
        )  # fmt: skip
    if as_sarif and as_json:
        raise InvalidInputError("exclude each other", field="--json and --sarif", fix="choose one")
    targets: dict[tuple[Path, tuple[str, ...]], Target] = {}  # each once
    for target in _targets(paths, _compilers_named(compiler)):
        targets.setdefault((target.path.absolute(), target.compilers), target)
    examinations: list[Examination] = []
    unreadable: list[dict[str, str]] = []  # one in a folder does not stop the others
    for target in progress([*targets.values()], len(targets), "Reading", above=PROGRESS_ABOVE):
        try:
            examinations.append(_examine(target))
        except InvalidInputError as error:
            if not target.in_folder:
                raise
            unreadable.append({"file": target.name, "problem": str(error)})
    counts = _counts(examinations)
    if as_sarif:
        emit_json(to_sarif(examinations, version=__version__))
    else:
        _answer(examinations, unreadable, counts, as_json=as_json)
    otherwise = BAD_INPUT if unreadable else CLEAN
    worst = next((code for severity, code in SCRIPT_CODES if counts[severity]), otherwise)
    raise typer.Exit(worst)


def _answer(
    examinations: Sequence[Examination],
    unreadable: Sequence[Mapping[str, str]],
    counts: Mapping[str, int],
    *,
    as_json: bool,
) -> None:
    trained = [one for one in examinations if one.is_training]
    document = {
        "schema": 1, "counts": counts, "files": [one.to_dict() for one in trained],
        "unreadable": unreadable,
    }  # fmt: skip
    counted = {kind: counts[kind] for kind in Severity if counts[kind]}
    answer(
        document, TEMPLATES / "doctor", as_json=as_json, groups=_groups,
        shown=[one for one in trained if one.findings or one.not_seen],
        totals=[f"{number} {WORDS[kind][number != 1]}" for kind, number in counted.items()],
    )  # fmt: skip


def _compilers_named(name: str | None) -> tuple[str, ...]:
    """The compilers that the option selects; none where it is not given."""
    if name is None:
        return ()
    if name == ALL:
        return examined_as(EXAMINED_AS)
    if name not in EXAMINED_AS:
        raise InvalidInputError(
            "is not a compiler", field="--compiler", value=name, fix=f"use one of {COMPILER_NAMES}"
        )
    return (name,)


def examined_as(compilers: Iterable[str]) -> tuple[str, ...]:
    """The compilers whose rules these are examined by, each once."""
    return tuple(dict.fromkeys(rules for name in compilers for rules in EXAMINED_AS[name]))


@dataclass(frozen=True)
class Target:
    """A file to examine; without ``compilers`` its imports say which it is for.

    ``hyperparameters`` are those it is started with; ``in_folder`` says that a folder was named.
    """

    path: Path
    compilers: tuple[str, ...] = ()
    hyperparameters: Mapping[str, Any] | None = field(default=None, hash=False)
    in_folder: bool = False
    observed: Observed | None = None

    @property
    def name(self) -> str:
        """The path from the working folder, with forward slashes."""
        shown = os.fsencode(Path(os.path.relpath(self.path)).as_posix())
        return shown.decode(errors="replace")  # names on disk need not be text


def _targets(paths: Sequence[Path], compilers: tuple[str, ...]) -> Iterator[Target]:
    """The files that the paths select; raises InvalidInputError for other paths."""
    for path in paths:
        problem, fix = "", "name a .py file, a folder or a workload file"
        if path.is_dir():
            root = path.resolve()
            for file in files_below(path, (".py",), _is_skipped):
                if _is_inside(file, root):
                    yield Target(file, compilers, in_folder=True)
        elif not path.exists():
            problem, fix = "does not exist", "name a Python file, a folder or a workload file"
        elif path.suffix in WORKLOADS:
            yield from _of_workload(path, compilers)
        elif path.suffix == ".json":
            yield _of_first(path, compilers)
        elif path.suffix == ".py":
            yield Target(path, compilers)
        elif path.suffix == ".ipynb":
            problem = "is a notebook"
            fix = f"convert it first: jupyter nbconvert --to script {path.name}"
        else:
            problem = "is not a Python file"
        if problem:
            raise InvalidInputError(problem, file=str(path), fix=fix)


def _of_workload(path: Path, compilers: tuple[str, ...]) -> Iterator[Target]:
    """The entry point, once per set of hyperparameters that a candidate is started with."""
    file = read_workload(path, needs_inputs=False)
    training = file.workload.training
    starts: list[tuple[str, dict[str, Any], set[str]]] = []
    for candidate in file.workload.candidates:
        hyperparameters = {**training.hyperparameters, **candidate.hyperparameters}
        entry = candidate.entry_point or training.entry_point
        named = next((own for *start, own in starts if start == [entry, hyperparameters]), None)
        if named is None:
            starts.append((entry, hyperparameters, {candidate.compiler or "none"}))
        else:
            named.add(candidate.compiler or "none")
    own = (training.entry_point, dict(training.hyperparameters), set[str]())
    for entry, hyperparameters, named in starts or [own]:
        chosen = compilers or tuple(name for name in COMPILERS if name in named)
        # Under the launcher the script that it runs.
        script = str(hyperparameters["script"]) if entry == LAUNCHER else entry
        yield Target(file.source_dir / script, chosen, hyperparameters)


def _of_first(path: Path, compilers: tuple[str, ...]) -> Target:
    """The script that ``compilegate first`` ran, with what it saw."""
    try:
        document = json.loads(path.read_bytes())
        hyperparameters, observed = observed_by(document)
        source = Path(document["file"]).parent / document["workload"]["training"]["source_dir"]
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise InvalidInputError(
            "is not what compilegate first --json prints", file=str(path),
            fix="write it anew: compilegate first SCRIPT --json > first.json",
        ) from error  # fmt: skip
    return Target(
        source / str(hyperparameters["script"]), compilers, hyperparameters, observed=observed
    )


def _is_skipped(folder: Path) -> bool:
    return folder.name in SKIPPED or (folder / ENVIRONMENT).is_file()


def _is_inside(path: Path, root: Path) -> bool:
    try:
        return not path.is_symlink() or path.resolve(strict=True).is_relative_to(root)
    except (OSError, RuntimeError):  # a link to nowhere, or to itself
        return False


def _examine(target: Target) -> Examination:
    """Raises InvalidInputError where the file cannot be read or is no script."""
    try:
        status = target.path.stat()
        problem = ""
        if not stat.S_ISREG(status.st_mode):  # a pipe would be waited for without end
            problem = "is not a plain file"
        elif status.st_size > MOST_BYTES:
            problem = f"has {status.st_size:,} bytes, which is no script"
        if problem:
            raise InvalidInputError(problem, file=target.name, fix="name the file that trains")
        content = target.path.read_bytes()
    except OSError as error:
        raise InvalidInputError(
            f"cannot be read: {error.strerror}", file=target.name, fix="make it readable"
        ) from error
    if target.in_folder and not FRAMEWORK.search(content):
        return Examination(target.name, (), False, (), 0, ())
    try:
        examination = examine(
            content,
            target.name,
            compilers=examined_as(target.compilers) or target.compilers,
            hyperparameters=target.hyperparameters,
            observed=target.observed,
        )
    except ScriptError as error:
        raise InvalidInputError(
            error.problem, field=error.place, file=error.file, fix=error.fix
        ) from error
    # Under the names that the team uses: a variant is examined by its base's rules.
    return replace(examination, compilers=target.compilers or examination.compilers)


def _groups(examination: Examination) -> list[dict[str, Any]]:
    """Findings one after the other that have one rule and fix."""
    groups = []
    for (rule, fix), same in groupby(examination.findings, key=lambda one: (one.rule, one.fix)):
        findings = list(same)
        severity = min((finding.severity for finding in findings), key=list(Severity).index)
        word, _, colour = WORDS[severity]
        groups.append({
            "word": word, "style": f"bold {colour}", "fix": fix,
            "title": f"{BY_ID[rule].title} ({rule})", "findings": findings,
        })  # fmt: skip
    return groups


def _counts(examinations: Sequence[Examination]) -> dict[str, int]:
    """How many findings of each severity, how many files."""
    findings = [finding for item in examinations for finding in item.findings]
    return {
        "files": len(examinations),
        "training_files": sum(item.is_training for item in examinations),
        **{str(kind): sum(finding.severity is kind for finding in findings) for kind in Severity},
        "suppressed": sum(item.suppressed for item in examinations),
    }
