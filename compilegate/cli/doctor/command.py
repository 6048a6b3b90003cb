"""``compilegate doctor``: what in a training script breaks or slows a compiled run?"""

from __future__ import annotations

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
from compilegate.cli.common.output import emit_json, progress
from compilegate.cli.common.session import JsonOption, LocalOption, StageOption, session
from compilegate.cli.common.template import answer
from compilegate.domain.compilers import COMPILERS
from compilegate.domain.errors import InvalidInputError
from compilegate.domain.naming import LAUNCHER
from compilegate.domain.reasons import Severity as ReasonSeverity
from compilegate_doctor import (
    BY_ID,
    MOST_BYTES,
    Examination,
    ScriptError,
    Severity,
    examine,
    to_sarif,
)

# Which files ``compilegate doctor`` examines: scripts, folders, a workload's entry point.

WORKLOADS = (".yaml", ".yml")
SKIPPED = ("__pycache__", "node_modules", "site-packages")
# By compiler, whose rules it is examined by: a variant's are its base's.
EXAMINED_AS = {name: one.examined_as or (name,) for name, one in COMPILERS.items()}
ENVIRONMENT = "pyvenv.cfg"  # every virtual environment has one at its root


@dataclass(frozen=True)
class Target:
    """A file to examine; without ``compilers`` its imports say which it is for.

    ``hyperparameters`` are those it is started with; ``in_folder`` says that a folder was named.
    """

    path: Path
    compilers: tuple[str, ...] = ()
    hyperparameters: Mapping[str, Any] | None = field(default=None, hash=False)
    in_folder: bool = False

    @property
    def examined_as(self) -> tuple[str, ...]:
        """The compilers whose rules apply; none where the imports say so."""
        return examined_as(self.compilers)

    @property
    def name(self) -> str:
        """The path from the working folder, with forward slashes."""
        shown = os.fsencode(Path(os.path.relpath(self.path)).as_posix())
        return shown.decode(errors="replace")  # names on disk need not be text

    def read(self) -> bytes:
        """The file's bytes. Raises InvalidInputError where it cannot be read or is no script."""
        try:
            status = self.path.stat()
            if not stat.S_ISREG(status.st_mode):  # a pipe would be waited for without end
                raise self._no_script("is not a plain file")
            if status.st_size > MOST_BYTES:
                raise self._no_script(f"has {status.st_size:,} bytes, which is no script")
            return self.path.read_bytes()
        except OSError as error:
            raise InvalidInputError(
                f"cannot be read: {error.strerror}", file=self.name, fix="make it readable"
            ) from error

    def _no_script(self, problem: str) -> InvalidInputError:
        return InvalidInputError(problem, file=self.name, fix="name the file that trains")


def examined_as(compilers: Iterable[str]) -> tuple[str, ...]:
    """The compilers whose rules these are examined by, each once."""
    return tuple(dict.fromkeys(rules for name in compilers for rules in EXAMINED_AS[name]))


def find_targets(paths: list[Path], compilers: tuple[str, ...]) -> list[Target]:
    """The files that the paths select, each once; raises InvalidInputError for other paths."""
    targets: dict[tuple[Path, tuple[str, ...]], Target] = {}
    for path in paths:
        for target in _targets(path, compilers):
            targets.setdefault((target.path.absolute(), target.compilers), target)
    return list(targets.values())


def _targets(path: Path, compilers: tuple[str, ...]) -> Iterator[Target]:
    if path.is_dir():
        yield from (Target(file, compilers, in_folder=True) for file in _python_files(path))
    elif not path.exists():
        raise InvalidInputError("does not exist", file=str(path), fix="name a Python file, "
                                "a folder or a workload file")  # fmt: skip
    elif path.suffix in WORKLOADS:
        yield from _of_workload(path, compilers)
    elif path.suffix == ".ipynb":
        raise InvalidInputError(
            "is a notebook", file=str(path),
            fix=f"convert it first: jupyter nbconvert --to script {path.name}",
        )  # fmt: skip
    elif path.suffix != ".py":
        raise InvalidInputError("is not a Python file", file=str(path), fix="name a .py file, "
                                "a folder or a workload file")  # fmt: skip
    else:
        yield Target(path, compilers)


def _of_workload(path: Path, compilers: tuple[str, ...]) -> Iterator[Target]:
    """The entry point, once per set of hyperparameters that a candidate is started with."""
    file = read_workload(path, needs_inputs=False)
    training = file.workload.training
    starts: list[tuple[str, dict[str, Any], set[str]]] = []
    for candidate in file.workload.candidates:
        hyperparameters = {**training.hyperparameters, **candidate.hyperparameters}
        entry = _script(candidate.entry_point or training.entry_point, hyperparameters)
        same = next((item for item in starts if item[:2] == (entry, hyperparameters)), None)
        if same is None:
            same = (entry, hyperparameters, set())
            starts.append(same)
        same[2].add(candidate.compiler or "none")
    if not starts:
        own = dict(training.hyperparameters)
        starts.append((_script(training.entry_point, own), own, set()))
    for entry, hyperparameters, named in starts:
        chosen = compilers or tuple(name for name in COMPILERS if name in named)
        yield Target(file.source_dir / entry, chosen, hyperparameters)


def _script(entry_point: str, hyperparameters: Mapping[str, Any]) -> str:
    """The script that trains: under the launcher the one that it runs."""
    return str(hyperparameters["script"]) if entry_point == LAUNCHER else entry_point


def _python_files(folder: Path) -> Iterator[Path]:
    """Python files below a folder, without hidden folders, environments and links out of it."""
    root = folder.resolve()
    for place, folders, files in os.walk(folder, followlinks=False):
        here = Path(place)
        folders[:] = sorted(
            name for name in folders
            if not name.startswith(".") and name not in SKIPPED
            and not (here / name / ENVIRONMENT).is_file()
        )  # fmt: skip
        for name in sorted(files):
            path = here / name
            if path.suffix == ".py" and not name.startswith(".") and _inside(path, root):
                yield path


def _inside(path: Path, root: Path) -> bool:
    if not path.is_symlink():
        return True
    try:
        return path.resolve(strict=True).is_relative_to(root)
    except (OSError, RuntimeError):  # a link to nowhere, or to itself
        return False


CLEAN, BREAKS, SLOWS, BAD_INPUT = 0, 10, 11, 2
DEPLOYMENT_CODES = {None: CLEAN, ReasonSeverity.BLOCK: BREAKS, ReasonSeverity.WARN: SLOWS}
PROGRESS_ABOVE = 40
ALL = "all"  # of --compiler
COMPILER_NAMES = f"{', '.join(EXAMINED_AS)}, or {ALL}"
FRAMEWORK = re.compile(rb"torch|tensorflow|keras|transformers|accelerate|lightning|deepspeed")
STYLES = {Severity.BREAKS: "red", Severity.SLOWS: "yellow", Severity.NOTE: "cyan"}
WORDS = {
    Severity.BREAKS: ("breaks it", "break it"),
    Severity.SLOWS: ("slows it", "slow it"),
    Severity.NOTE: ("note", "notes"),
}


class Part(StrEnum):
    """What ``--only`` takes."""

    BOOTSTRAP = "bootstrap"
    STACK = "stack"
    VPC = "vpc"
    QUOTAS = "quotas"


PathsArgument = Annotated[
    list[Path] | None,
    typer.Argument(metavar="PATH...", help="Python files, folders, or workload files (YAML)."),
]
DeploymentOption = Annotated[
    bool,
    typer.Option("--deployment", help="Examine the AWS account and its network instead."),
]
OnlyOption = Annotated[
    Part | None, typer.Option("--only", help="With --deployment: examine only this part.")
]
CompilerOption = Annotated[
    str | None,
    typer.Option(
        "--compiler",
        metavar="NAME",
        help=f"One of {COMPILER_NAMES}. Default: from the script's imports or the workload's "
        "candidates.",
    ),
]
SarifOption = Annotated[
    bool, typer.Option("--sarif", help="Print one SARIF 2.1.0 log, for code review tools.")
]


def doctor(
    ctx: typer.Context,
    paths: PathsArgument = None,
    *,
    deployment: DeploymentOption = False,
    only: OnlyOption = None,
    local: LocalOption = False,
    stage: StageOption = None,
    compiler: CompilerOption = None,
    as_sarif: SarifOption = False,
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

    A workload file selects its entry point, its candidates' compilers and its hyperparameters.
    The comment # compilegate: ignore[rule-id] with a reason suppresses a finding on its line.

    With --deployment, examines what jobs need of the AWS account: bootstrap, stack, role, the VPC
    in cdk.json, and quotas for the instances of the workload files.

    Exit code 0 nothing but notes, 11 something slows it, 10 something breaks it, 2 bad input.
    """
    others = {"--sarif": as_sarif, "--compiler": compiler} if deployment else {"--only": only}
    for name, value in others.items():
        if value not in (None, False):
            problem = f"has no effect {'with' if deployment else 'without'} --deployment"
            raise InvalidInputError(problem, field=name, fix="drop it or change --deployment")
    if deployment:
        from compilegate.cli.doctor.deployment import check_deployment  # noqa: PLC0415 - boto3

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
    targets = find_targets(paths, _compilers_named(compiler))
    examinations, unreadable = _examine_all(targets)
    if as_sarif:
        emit_json(to_sarif(examinations, version=__version__))
    else:
        number, trained = counts(examinations), [one for one in examinations if one.is_training]
        answer(
            _document(examinations, unreadable), "doctor", as_json=as_json,
            shown=[one for one in trained if one.findings or one.not_seen],
            groups=_groups,
            totals=[f"{number[kind]} {WORDS[kind][number[kind] != 1]}" for kind in Severity
                   if number[kind]],
        )  # fmt: skip
    raise typer.Exit(_exit_code(examinations, unreadable))


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


def _examine_all(targets: Sequence[Target]) -> tuple[list[Examination], dict[str, str]]:
    """Examine each file; an unreadable one in a folder does not stop the others."""
    examinations: list[Examination] = []
    unreadable: dict[str, str] = {}
    for target in progress(targets, len(targets), "Reading", above=PROGRESS_ABOVE):
        try:
            examinations.append(_examine(target))
        except InvalidInputError as error:
            if not target.in_folder:
                raise
            unreadable[target.name] = str(error)
    return examinations, unreadable


def _examine(target: Target) -> Examination:
    content = target.read()
    if target.in_folder and not FRAMEWORK.search(content):
        return Examination(target.name, (), False, (), 0, ())
    try:
        examination = examine(
            content,
            target.name,
            compilers=target.examined_as,
            hyperparameters=target.hyperparameters,
        )
    except ScriptError as error:
        raise InvalidInputError(
            error.problem, field=error.place, file=error.file, fix=error.fix
        ) from error
    # Under the names that the team uses: a variant is examined by its base's rules.
    return replace(examination, compilers=target.compilers or examination.compilers)


def _document(examinations: Sequence[Examination], unreadable: dict[str, str]) -> dict[str, object]:
    return {
        "schema": 1,
        "counts": counts(examinations),
        "files": [item.to_dict() for item in examinations if item.is_training],
        "unreadable": [{"file": file, "problem": text} for file, text in unreadable.items()],
    }


def _exit_code(examinations: Sequence[Examination], unreadable: dict[str, str]) -> int:
    severities = {finding.severity for item in examinations for finding in item.findings}
    if Severity.BREAKS in severities:
        return BREAKS
    if Severity.SLOWS in severities:
        return SLOWS
    return BAD_INPUT if unreadable else CLEAN


def _groups(examination: Examination) -> list[dict[str, Any]]:
    """Findings one after the other that have one rule and fix."""
    groups = []
    for (rule, fix), same in groupby(examination.findings, key=lambda one: (one.rule, one.fix)):
        findings = list(same)
        severity = min((finding.severity for finding in findings), key=list(Severity).index)
        groups.append({
            "word": WORDS[severity][0], "style": f"bold {STYLES[severity]}", "fix": fix,
            "title": f"{BY_ID[rule].title} ({rule})", "findings": findings,
        })  # fmt: skip
    return groups


def counts(examinations: Sequence[Examination]) -> dict[str, int]:
    """How many findings of each severity, how many files."""
    findings = [finding for item in examinations for finding in item.findings]
    return {
        "files": len(examinations),
        "training_files": sum(item.is_training for item in examinations),
        **{str(kind): sum(finding.severity is kind for finding in findings) for kind in Severity},
        "suppressed": sum(item.suppressed for item in examinations),
    }
