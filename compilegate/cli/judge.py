"""``compilegate judge``: decide on evidence one already has; no AWS."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any, TextIO

import typer

from compilegate.cli import project
from compilegate.cli.figures import flag_words, quality_words, saving_words, speedup_words
from compilegate.cli.options import JsonOption, StageOption
from compilegate.cli.output import emit_json, reason_lines, say, say_verdict
from compilegate.cli.shell import BAD_INPUT
from compilegate.domain import naming
from compilegate.domain.decision import EXIT_CODES, Decision, Reason, Verdict
from compilegate.domain.errors import InvalidEvidenceError, InvalidInputError
from compilegate.domain.judge import JUDGE_VERSION
from compilegate.domain.judge import judge as decide
from compilegate.report.formats import UNKNOWN

STANDARD = "-"


def judge(
    file: Annotated[
        str | None, typer.Argument(metavar="FILE", help="An evidence document (JSON); - reads it.")
    ] = None,
    *,
    jsonl: Annotated[
        str | None,
        typer.Option(metavar="FILE", help="Many documents, one per line; - is standard input."),
    ] = None,
    stage: StageOption = None,
    as_json: JsonOption = False,
) -> None:
    """Decide on an evidence document one already has.

    It is the judge that the state machine asks; no AWS is needed.

    \b
    compilegate judge evidence.json
    compilegate judge evidence.json --json
    cat many.jsonl | compilegate judge --jsonl - > decisions.jsonl

    --jsonl writes one decision per line, in order, as it goes, and nothing else to standard
    output. A document that breaks the contract is decided as invalid; a line that is not JSON
    as well, and the exit code is then 2, else 0.
    """
    if (file is None) == (jsonl is None):
        raise InvalidInputError("give either FILE or --jsonl FILE", fix="see judge --help")
    name = project.stage_name(stage)
    if jsonl is not None:
        raise typer.Exit(_stream(jsonl, name))
    document = _document(str(file))
    decision = _judged(document)
    shown = decision.to_dict(naming.flag_parameter(name, decision.workload))
    if as_json:
        emit_json(shown)
    else:
        show_decision(shown)
    raise typer.Exit(EXIT_CODES[decision.verdict])


def show_decision(decision: Mapping[str, Any]) -> None:
    """Verdict first, then reasons, figures and the next step."""
    say_verdict(decision["workload"], decision["verdict"], decision["verdict"])
    reason_lines(decision["reasons"])
    rows = [
        ("candidate", str(decision.get("candidate") or UNKNOWN)),
        ("speed-up", speedup_words(decision)),
        ("quality", quality_words(decision)),
        ("saving", saving_words(decision)),
        ("flag", flag_words(decision)),
        ("judge", f"{decision['judge_version']}, decision {decision['decision_id']}"),
    ]
    for name, value in rows:
        say(f"{name:<10} {value}", indent=2)
    if decision.get("next"):
        say(f"next: {decision['next']['stage']}: {decision['next'].get('why') or ''}", indent=2)


def _document(file: str) -> object:
    if file == STANDARD:
        text = sys.stdin.read()
    else:
        path = Path(file)
        if not path.is_file():
            raise InvalidInputError(
                "is not a file", file=file, fix="name an evidence document (JSON)"
            )
        text = path.read_text(encoding="utf-8", errors="replace")
    try:
        return json.loads(text)
    except ValueError as error:
        raise InvalidInputError(
            f"is not JSON: {error}", file=file, fix="many documents, one per line, need --jsonl"
        ) from error


def _judged(document: object) -> Decision:
    if not isinstance(document, Mapping):
        return _invalid(document, "the document must be a JSON object")
    try:
        return decide(document)
    except InvalidEvidenceError as error:
        return _invalid(document, str(error))


def _invalid(document: object, why: str) -> Decision:
    workload = document.get("workload") if isinstance(document, Mapping) else None
    return Decision(
        workload=workload if isinstance(workload, str) and workload else "unknown",
        decision_id="invalid",
        judge_version=JUDGE_VERSION,
        stage="speed",
        verdict=Verdict.INVALID,
        candidate=None,
        reasons=(Reason("evidence_invalid", why),),
    )


def _stream(file: str, stage: str) -> int:
    code = 0
    with _lines(file) as lines:
        for number, line in enumerate(lines, start=1):
            if not line.strip():
                continue
            try:
                decision = _judged(json.loads(line))
            except ValueError as error:
                code = BAD_INPUT
                decision = _invalid(None, f"line {number} is not JSON: {error}")
            flag = naming.flag_parameter(stage, decision.workload)
            typer.echo(json.dumps(decision.to_dict(flag), separators=(",", ":")))
    return code


@contextmanager
def _lines(file: str) -> Iterator[TextIO]:
    if file == STANDARD:
        yield sys.stdin
        return
    path = Path(file)
    if not path.is_file():
        raise InvalidInputError("is not a file", file=file, fix="name a file of JSON lines, or -")
    with path.open(encoding="utf-8", errors="replace") as stream:
        yield stream
