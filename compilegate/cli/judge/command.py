"""``compilegate judge``: decide on evidence one already has; no AWS."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any

import typer

from compilegate.cli.common import project
from compilegate.cli.common.figures import flag_words, quality_words, saving_words, speedup_words
from compilegate.cli.common.options import JsonOption, LocalOption, StageOption
from compilegate.cli.common.output import emit_json, reason_lines, say, say_verdict
from compilegate.cli.judge.documents import judged, read_json
from compilegate.cli.judge.stream import stream
from compilegate.domain import naming
from compilegate.domain.decision import EXIT_CODES, Decision
from compilegate.domain.errors import InvalidInputError
from compilegate.domain.formats import UNKNOWN, money, number, plural
from compilegate.report.words import control_sentences

REFUSED = 11

FileArgument = Annotated[
    str | None,
    typer.Argument(
        metavar="FILE", help="An evidence document (JSON), - reads it; with --plan a workload too."
    ),
]
JsonlOption = Annotated[
    str | None,
    typer.Option(metavar="FILE", help="Many documents, one per line; - is standard input."),
]
ExplainOption = Annotated[
    bool, typer.Option("--explain", help="Every number with formula, inputs and plain words.")
]
PlanOption = Annotated[
    bool, typer.Option("--plan", help="How many full runs a proof of quality takes.")
]
SpreadOption = Annotated[
    float | None, typer.Option(help="With --plan: how much the metric differs from run to run.")
]
MarginOption = Annotated[
    float | None, typer.Option(help="With --plan: the loss that must be ruled out, same unit.")
]
HistoryOption = Annotated[int | None, typer.Option(help="With --plan: past baseline runs known.")]
MaxRunsOption = Annotated[
    int | None, typer.Option(help="With --plan: full runs allowed per candidate.")
]
CandidatesOption = Annotated[
    int | None, typer.Option(help="With --plan: candidates that share the error.")
]
AlphaOption = Annotated[
    float | None, typer.Option(help="With --plan: chance of promoting a bad one, 0.05 if not said.")
]
ReplayOption = Annotated[
    str | None,
    typer.Option(metavar="DECISION_ID", help="Decide again on a recorded decision's evidence."),
]
WorkloadOption = Annotated[
    str | None,
    typer.Option(metavar="NAME", help="With --replay: whose decision, to search no others."),
]


def judge(
    ctx: typer.Context,
    file: FileArgument = None,
    *,
    jsonl: JsonlOption = None,
    explain: ExplainOption = False,
    plan: PlanOption = False,
    spread: SpreadOption = None,
    margin: MarginOption = None,
    history: HistoryOption = None,
    max_runs: MaxRunsOption = None,
    candidates: CandidatesOption = None,
    alpha: AlphaOption = None,
    replay: ReplayOption = None,
    workload: WorkloadOption = None,
    local: LocalOption = False,
    stage: StageOption = None,
    as_json: JsonOption = False,
) -> None:
    """Decide on an evidence document one already has, or plan what a proof takes.

    It is the judge that the state machine asks; no AWS is needed.

    \b
    compilegate judge evidence.json
    compilegate judge evidence.json --explain
    cat many.jsonl | compilegate judge --jsonl - > decisions.jsonl
    compilegate judge --plan --spread 0.003 --margin 0.005 --history 10
    compilegate judge --replay 2053da26888173a1 --local

    --jsonl writes one decision per line, in order, as it goes, and nothing else to standard
    output. A document that breaks the contract is decided as invalid; a line that is not JSON
    as well, and the exit code is then 2, else 0.

    --plan exits with 11 when no allowed number of runs would prove the margin.

    --replay finds a recorded decision, decides again on its stored evidence and exits with 0 when
    every field is the same, 13 when one is not, 11 when there is no evidence to decide on.
    """
    plan_options = {"spread": spread, "margin": margin, "history": history, "max_runs": max_runs,
             "candidates": candidates, "alpha": alpha}  # fmt: skip
    if replay is not None:
        _alone(file, jsonl, plan_options, explain=explain, plan=plan)
        raise typer.Exit(
            _replay(ctx, replay, workload=workload, local=local, stage=stage, as_json=as_json)
        )
    if local or workload is not None:
        option = "--local" if local else "--workload"
        raise InvalidInputError("goes with a recorded decision", field=option, fix="add --replay")
    _check_combination(file, jsonl, plan_options, explain=explain, plan=plan)
    if plan:
        raise typer.Exit(_plan(file, plan_options, as_json=as_json))
    name = project.stage_name(stage)
    if jsonl is not None:
        raise typer.Exit(stream(jsonl, name))
    raise typer.Exit(_one(str(file), name, explain=explain, as_json=as_json))


def _alone(
    file: str | None,
    jsonl: str | None,
    plan_options: Mapping[str, Any],
    *,
    explain: bool,
    plan: bool,
) -> None:
    """What is replayed brings its evidence along."""
    others = {"FILE": file, "--jsonl": jsonl, "--explain": explain, "--plan": plan} | {
        f"--{name.replace('_', '-')}": value for name, value in plan_options.items()
    }
    for name, value in others.items():
        if value is not None and value is not False:
            raise InvalidInputError(
                "does not go with --replay, which reads a recorded decision", field=name,
                fix="leave one of them out",
            )  # fmt: skip


def _replay(ctx: typer.Context, decision_id: str, **given: Any) -> int:
    from compilegate.cli.judge.replay import replay_decision  # noqa: PLC0415 - needs a cloud

    return replay_decision(
        ctx, decision_id, **{**given, "stage": project.stage_name(given["stage"])}
    )


def _check_combination(
    file: str | None,
    jsonl: str | None,
    plan_options: Mapping[str, Any],
    *,
    explain: bool,
    plan: bool,
) -> None:
    """Options that contradict each other, by name."""
    for name, value in plan_options.items():
        if value is not None and not plan:
            option = f"--{name.replace('_', '-')}"
            raise InvalidInputError("plans a proof", field=option, value=value, fix="add --plan")
    if plan and explain:
        raise InvalidInputError("explains a decision, and --plan makes none", field="--explain",
                                fix="leave one of them out")  # fmt: skip
    if jsonl is not None and explain:
        raise InvalidInputError("explains one document", field="--explain",
                                fix="judge FILE --explain, one document at a time")  # fmt: skip
    if jsonl is not None and plan:
        raise InvalidInputError("is for decisions, and --plan makes none", field="--jsonl",
                                value=jsonl, fix="leave one of them out")  # fmt: skip
    if not plan and (file is None) == (jsonl is None):
        raise InvalidInputError("give either FILE or --jsonl FILE", fix="see judge --help")


def _one(file: str, stage: str, *, explain: bool, as_json: bool) -> int:
    document = read_json(file)
    decision = judged(document)
    shown = decision.to_dict(naming.flag_parameter(stage, decision.workload))
    items = _explained(document, decision) if explain else None
    if as_json and items is not None:
        emit_json({"decision": shown, "explanation": [item.to_dict() for item in items]})
    elif as_json:
        emit_json(shown)
    else:
        show_decision(shown)
        if items is not None:
            from compilegate.cli.judge.explanation import (  # noqa: PLC0415 - only if asked
                show_explanation,
            )

            show_explanation(items)
    return EXIT_CODES[decision.verdict]


def _explained(document: object, decision: Decision) -> Sequence[Any]:
    from compilegate.explain.explain import explain  # noqa: PLC0415 - a stream must not pay for it

    return explain(document, decision)


def _plan(file: str | None, plan_options: Mapping[str, Any], *, as_json: bool) -> int:
    from compilegate.cli.judge import plan as judge_plan  # noqa: PLC0415 - as above
    from compilegate.cli.judge import plan_screen  # noqa: PLC0415 - as above

    answer = judge_plan.plan(file, judge_plan.PlanOptions(**plan_options))
    case = "designs" in answer
    if as_json:
        emit_json(answer)
    elif case:
        plan_screen.show_case(answer)
    else:
        plan_screen.show_table(answer)
    return REFUSED if case and all(design["refused"] for design in answer["designs"]) else 0


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
    for text in control_sentences(decision):
        say(f"{'control':<10} {text}", indent=2, hang=11)
    step = decision.get("next")
    if step:
        say(f"{'next':<10} {next_words(step)}", indent=2, hang=11)


def next_words(step: Mapping[str, Any]) -> str:
    """``2 runs (compile seed 17, baseline seed 17), about $480: why``."""
    if step["stage"] == "speed":
        what = f"{plural(step['blocks'], 'block')} from {step['block']} on"
        who = ", ".join(step["arms"])
    else:
        mode = f"{step['mode']} " if step.get("mode") else ""
        what = plural(len(step["runs"]), f"{mode}run")
        who = ", ".join(_run_words(run) for run in step["runs"])
    usd = number(step.get("usd"))
    price = "" if usd is None else f", about {money(usd)}" if usd else ", nothing extra to pay"
    return f"{what} ({who}){price}: {step.get('why') or ''}"


def _run_words(run: Mapping[str, Any]) -> str:
    seed = f" seed {run['seed']}" if run.get("seed") is not None else ""
    return f"{run['arm']}{seed}"
