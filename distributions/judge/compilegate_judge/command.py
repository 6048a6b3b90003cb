"""``compilegate judge``: decide on existing evidence, without AWS."""

from __future__ import annotations

import io
import json
import os
import stat
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any, TextIO

import typer

from compilegate.cli.common import project
from compilegate.cli.common.cloud import check_workload_exists
from compilegate.cli.common.error_handling import BAD_INPUT, INVALID_EVIDENCE
from compilegate.cli.common.outcome import decision_rows
from compilegate.cli.common.output import emit_json, progress, show
from compilegate.cli.common.session import Invocation, JsonOption, LocalOption, StageOption, session
from compilegate.domain import naming
from compilegate.domain.codec import read
from compilegate.domain.decision import (
    EXIT_CODES,
    JUDGE_VERSION,
    Decision,
    NextStep,
    QualityStep,
    SpeedStep,
    Verdict,
)
from compilegate.domain.errors import InvalidEvidenceError, InvalidInputError, shortened
from compilegate.domain.formats import UNKNOWN, money, plural
from compilegate.domain.judging.evidence_file import read_evidence
from compilegate.domain.judging.judge import judge as decide
from compilegate.domain.judging.measured import measure
from compilegate.domain.reasons import Reason
from compilegate.report.statements import shown_reasons
from compilegate.report.words import control_sentences
from compilegate.usecases.records import workload_names
from compilegate.usecases.reports import silent_arms
from compilegate_judge import TEMPLATES
from compilegate_judge.replay import find_decision, replay

# Evidence documents that ``compilegate judge`` reads: one, or a stream of lines.

STANDARD_INPUT = "-"
TOO_DEEP = "the document is nested too deeply"
EVIDENCE = "name an evidence document (JSON)"
MANY = "many documents, one per line, need --jsonl"


def read_json(file: str) -> object:
    """One JSON document, from standard input where the file is ``-``."""
    with _opened(file, EVIDENCE) as opened:
        text = opened.read()
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        fix = MANY if _is_json(text.lstrip().partition("\n")[0]) else EVIDENCE
        raise InvalidInputError(f"is not JSON: {error}", file=file, fix=fix) from error


def _is_json(text: str) -> bool:
    with suppress(ValueError, RecursionError):
        return isinstance(json.loads(text), dict)
    return False


@contextmanager
def _opened(file: str, fix: str) -> Iterator[TextIO]:
    """A file, a pipe, a device or standard input, as UTF-8 whatever the locale says.

    Broken UTF-8 affects its own line only. Raises InvalidInputError for anything else.
    """
    if file == STANDARD_INPUT:
        if isinstance(sys.stdin, io.TextIOWrapper):
            sys.stdin.reconfigure(encoding="utf-8", errors="replace")
        yield sys.stdin
        return
    path = Path(file)
    try:
        there = path.exists() and not path.is_dir()
    except OSError:  # a name longer than the file system takes
        there = False
    if not there:
        raise InvalidInputError("is not a file", file=file, fix=fix)
    with path.open(encoding="utf-8", errors="replace") as opened:
        yield opened


def judged(document: object) -> Decision:
    """The decision; a document that breaks the contract is decided as invalid."""
    if not isinstance(document, Mapping):
        return _invalid(document, "the document must be a JSON object")
    try:
        return decide(read_evidence(document))
    except InvalidEvidenceError as error:
        return _invalid(document, str(error))
    except RecursionError:
        return _invalid(document, TOO_DEEP)


def _invalid(document: object, why: str) -> Decision:
    """The decision on a document that nothing can be read from."""
    workload = document.get("workload") if isinstance(document, Mapping) else None
    named = isinstance(workload, str) and workload and workload.isprintable()
    return Decision(
        workload=str(workload) if named else "unknown",
        decision_id="invalid",
        judge_version=JUDGE_VERSION,
        stage="speed",
        verdict=Verdict.INVALID,
        candidate=None,
        reasons=(Reason("evidence_invalid", why),),
    )


def stream(file: str, stage: str) -> int:
    """Answer every line; the exit code is that of bad input if a line was not JSON, else 0."""
    out, code = sys.stdout, 0
    try:
        eager = not stat.S_ISREG(os.fstat(out.fileno()).st_mode)
    except (OSError, ValueError):  # a stream in memory
        eager = True
    with _opened(file, "name a file of JSON lines, or -") as lines:
        # A terminal that shows the decisions needs no count of them.
        counted = lines if out.isatty() else progress(lines, None, "Judging")
        for number, line in enumerate(counted, start=1):
            if not line.strip():
                continue
            try:
                decision = judged(json.loads(line))
            except ValueError as error:
                decision, code = _invalid(None, f"line {number} is not JSON: {error}"), BAD_INPUT
            except RecursionError:
                decision, code = _invalid(None, f"line {number}: {TOO_DEEP}"), BAD_INPUT
            flag = naming.flag_parameter(stage, decision.workload)
            out.write(json.dumps(decision.to_dict(flag), separators=(",", ":")) + "\n")
            if eager:  # a reader of the pipe gets each decision when it is made
                out.flush()
    out.flush()
    return code


REFUSED = 11
# Options of --plan and their bounds, beyond which the t quantiles lose precision.
PLAN_OPTIONS = {
    "--spread": (1e-12, 1e12),
    "--margin": (1e-12, 1e12),
    "--history": (0, 100_000),
    "--max-runs": (2, 100_000),
    "--candidates": (1, 100),
    "--alpha": (1e-4, 0.5),
}
# Options that exclude others, and options without effect unless another one is used.
EXCLUDES = {
    "--replay": ("FILE", "--jsonl", "--explain", "--plan", *PLAN_OPTIONS),
    "--plan": ("--explain", "--jsonl"),
    "--jsonl": ("--explain",),
}
REQUIRES = {
    "--local": "--replay",
    "--workload": "--replay",
    **dict.fromkeys(PLAN_OPTIONS, "--plan"),
}


def judge(
    ctx: typer.Context,
    file: Annotated[
        str | None,
        typer.Argument(
            metavar="FILE",
            help="An evidence document (JSON), - for standard input; with --plan also a workload "
            "file.",
        ),
    ] = None,
    *,
    jsonl: Annotated[
        str | None,
        typer.Option(metavar="FILE", help="Many documents, one per line; - is standard input."),
    ] = None,
    explain: Annotated[
        bool, typer.Option("--explain", help="Show every number with formula, inputs and meaning.")
    ] = False,
    plan: Annotated[
        bool, typer.Option("--plan", help="Show how many full runs a proof of quality takes.")
    ] = False,
    spread: Annotated[
        float | None,
        typer.Option(help="With --plan: standard deviation of the metric between runs."),
    ] = None,
    margin: Annotated[
        float | None,
        typer.Option(help="With --plan: the loss to rule out, in the metric's unit."),
    ] = None,
    history: Annotated[
        int | None, typer.Option(help="With --plan: number of past baseline runs.")
    ] = None,
    max_runs: Annotated[
        int | None, typer.Option(help="With --plan: full runs allowed per candidate.")
    ] = None,
    candidates: Annotated[
        int | None, typer.Option(help="With --plan: candidates that share alpha.")
    ] = None,
    alpha: Annotated[
        float | None,
        typer.Option(help="With --plan: probability of a wrong promotion. Default: 0.05."),
    ] = None,
    replay: Annotated[
        str | None,
        typer.Option(metavar="DECISION_ID", help="Repeat a recorded decision on its evidence."),
    ] = None,
    workload: Annotated[
        str | None, typer.Option(metavar="NAME", help="With --replay: search only this workload.")
    ] = None,
    local: LocalOption = False,
    stage: StageOption = None,
    as_json: JsonOption = False,
) -> None:
    """Judge an evidence document, or plan a proof's runs.

    Uses the same judge as the state machine. Needs no AWS, except with --replay.

    \b
    compilegate judge evidence.json
    compilegate judge evidence.json --explain
    cat many.jsonl | compilegate judge --jsonl - > decisions.jsonl
    compilegate judge --plan --spread 0.003 --margin 0.005 --history 10
    compilegate judge --replay 2053da26888173a1 --local

    --jsonl writes one decision per line, in order and as it is made. A document that breaks the
    contract, or a line that is not JSON, is decided as invalid; a line that is not JSON also sets
    the exit code to 2. Otherwise it is 0.

    --plan exits with 11 when no allowed number of runs could prove the margin.

    --replay finds a recorded decision and repeats it on its stored evidence. Exit code 0 when every
    field is the same, 13 when one differs, 11 when there is no evidence.
    """
    options = {
        "FILE": file, "--jsonl": jsonl, "--explain": explain, "--plan": plan, "--replay": replay,
        "--workload": workload, "--local": local, "--spread": spread, "--margin": margin,
        "--history": history, "--max-runs": max_runs, "--candidates": candidates, "--alpha": alpha,
    }  # fmt: skip
    used = {
        name: value for name, value in options.items() if value is not None and value is not False
    }
    _check_options(used)
    if replay is not None:
        code = _replay(Invocation(session(ctx), local, stage, as_json), replay, workload)
    elif plan:
        from compilegate_judge import plan as proof  # noqa: PLC0415 - slow, seldom used

        answer = proof.plan(file, {name: used[name] for name in PLAN_OPTIONS if name in used})
        if as_json:
            emit_json(answer)
        else:
            proof.show_plan(answer)
        designs = answer.get("designs")
        code = REFUSED if designs and all(design["refused"] for design in designs) else 0
    elif jsonl is not None:
        code = stream(jsonl, project.stage_name(stage))
    else:
        code = _one(str(file), project.stage_name(stage), explain=explain, as_json=as_json)
    raise typer.Exit(code)


def _check_options(used: Mapping[str, Any]) -> None:
    """Refuse options that exclude each other or have no effect."""
    for option, others in EXCLUDES.items():
        for name in others:
            if option in used and name in used:
                raise InvalidInputError(
                    f"cannot be combined with {option}", field=name, fix="drop one of them"
                )
    for name, required in REQUIRES.items():
        if name in used and required not in used:
            raise InvalidInputError(
                f"requires {required}", field=name, fix=f"add {required}",
                value=None if used[name] is True else used[name],
            )  # fmt: skip
    if not {"FILE", "--jsonl", "--plan", "--replay"} & used.keys():
        raise InvalidInputError("FILE is missing", fix="name a FILE, or use --jsonl FILE")
    if {"FILE", "--jsonl"} <= used.keys():
        raise InvalidInputError("FILE cannot be combined with --jsonl", fix="drop one of them")


def _one(file: str, stage: str, *, explain: bool, as_json: bool) -> int:
    document = read_json(file)
    decision = judged(document)
    shown = decision.to_dict(naming.flag_parameter(stage, decision.workload))
    items: Sequence[Any] = ()
    if explain:
        from compilegate_judge.explanation import explain as explained  # noqa: PLC0415 - slow

        items = explained(document, decision)
    if not as_json:
        _show_decision(read(Decision, shown), document)
        if explain:
            from compilegate_judge.screen import show_explanation  # noqa: PLC0415 - as above

            show_explanation(items)
    elif explain:
        emit_json({"decision": shown, "explanation": [item.to_dict() for item in items]})
    else:
        emit_json(shown)
    return EXIT_CODES[decision.verdict]


def _show_decision(decision: Decision, document: object) -> None:
    """Verdict first, then reasons, figures and the next step."""
    measured = measure(document, decision)[0] if isinstance(document, Mapping) else None
    rows = [
        ("candidate", decision.candidate or UNKNOWN),
        *decision_rows(decision),
        ("judge", f"{decision.judge_version}, decision {decision.decision_id}"),
        *(("control", text) for text in control_sentences(decision.controls)),
        ("next", next_words(decision.next) if decision.next else ""),
    ]
    reasons = shown_reasons(decision, measured, silent=silent_arms(document))
    show(
        TEMPLATES / "judge", {"workload": decision.workload, "verdict": decision.verdict},
        explained_reasons=reasons, rows=rows,
    )  # fmt: skip


def next_words(step: NextStep) -> str:
    """``2 runs (compile seed 17, baseline seed 17), about $480: why``."""
    what, who, usd = plural(len(step.arms), "run"), ", ".join(step.arms), None
    if isinstance(step, SpeedStep):
        what, usd = f"{plural(step.blocks, 'block')} from {step.block} on", step.usd
    elif isinstance(step, QualityStep):
        what, usd = plural(len(step.runs), f"{step.mode} run"), step.usd
        who = ", ".join(f"{run.arm} seed {run.seed}" for run in step.runs)
    price = ""
    if usd is not None:
        price = f", about {money(usd)}" if usd else ", no extra cost"
    return f"{what} ({who}){price}: {step.why}"


NOT_REPLAYABLE = 11
MOST_SHOWN = 12


def _replay(invocation: Invocation, decision_id: str, workload: str | None) -> int:
    """Show whether a recorded decision is the same; exit code 0, 13, or 11 without evidence."""
    cloud = invocation.open_records(workload)
    if workload:
        check_workload_exists(workload, cloud)
    workloads = [workload] if workload else workload_names(cloud.services.store)
    replayed = replay(find_decision(decision_id, workloads, cloud.services), cloud.services)
    comparison, then = replayed.comparison, replayed.decision.judge_version
    document = {
        **asdict(replayed.record),
        "decision_id": replayed.decision.decision_id,
        "verdict": replayed.decision.verdict,
        "judge_version": then,
        "equal": comparison.equal if comparison else None,
        "why_not": replayed.why_not,
        # Then and now, where an earlier judge decided again.
        "judge_versions": [then, JUDGE_VERSION] if comparison and then != JUDGE_VERSION else None,
        "limit": dict(comparison.limit) if comparison and comparison.limit else None,
        "differences": [asdict(one) for one in comparison.differences] if comparison else [],
    }
    invocation.answer(
        document, TEMPLATES / "judge_replay", bucket=cloud.services.store.bucket,
        most_shown=MOST_SHOWN,
        value=lambda value: shortened(json.dumps(value)),
    )  # fmt: skip
    if comparison is None:
        return NOT_REPLAYABLE
    return 0 if comparison.equal else INVALID_EVIDENCE
