"""``judge --plan``: how many runs a proof of quality takes, as a table or for one case.

And what so many runs could prove, before any is paid for.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import zip_longest
from pathlib import Path
from typing import Any

from compilegate.adapters.yaml_document import load_yaml
from compilegate.cli.common.output import UNKNOWN, show
from compilegate.domain.codec import read, write
from compilegate.domain.decision import EvaluationFinding, EvaluationSplit
from compilegate.domain.economics import WEEKS_PER_YEAR
from compilegate.domain.errors import InvalidInputError
from compilegate.domain.formats import significant
from compilegate.domain.judging.comparison import Samples
from compilegate.domain.judging.design import (
    LIKELY,
    SCHEDULE,
    VERY_LIKELY,
    Design,
    design_for,
    looks,
    runs_for_one_look,
)
from compilegate.domain.judging.equivalence import rho_of
from compilegate.domain.judging.evidence import metrics
from compilegate.domain.judging.evidence_file import read_evidence
from compilegate.domain.judging.judge import judge
from compilegate.domain.judging.quality import ENOUGH_HISTORY
from compilegate.domain.planning.estimate import possible_rho
from compilegate.domain.workload.file import parse_workload
from compilegate.domain.workload.model import Candidate, Policy
from compilegate.domain.workload.quality import Quality
from compilegate.facts import load_facts
from compilegate.report.statements import evaluation_words
from compilegate_judge import TEMPLATES
from compilegate_judge.command import PLAN_OPTIONS, STANDARD_INPUT, read_json

# Rows and columns of the planning table: spread of a run over the margin, length of the history.
RELATIVE_SPREADS = (0.2, 0.4, 0.6, 0.8, 1.0, 1.5, 2.0)
HISTORIES = (0, 5, 20)


@dataclass(frozen=True)
class Question:
    """One case: may a loss of ``margin`` be ruled out where runs differ by ``spread``?

    ``rho`` is of a candidate that passes the equivalence check.
    """

    spread: float
    margin: float
    history: int
    candidates: int
    policies: Sequence[Policy]
    runs_remaining: float | None = None
    label: str | None = None  # in place of the policy's mode
    rho: float = 1.0


def plan(file: str | None, options: Mapping[str, Any]) -> dict[str, Any]:
    """The table, or the answer for the case that the options, by name, or the file describe."""
    for name, value in options.items():
        low, high = PLAN_OPTIONS[name]
        if not low <= value <= high:
            raise InvalidInputError(
                "is out of range", field=name, value=value, fix=f"use {low:g} to {high:g}"
            )
    if file is not None:
        question, evaluation = _recorded(file)
        answered = _answer(_changed(question, options, file))
        return {**answered, "evaluation": write(evaluation)} if evaluation else answered
    if not {"--spread", "--margin"} & options.keys():
        for name in ("--history", "--max-runs"):
            if name in options:
                raise InvalidInputError(
                    "requires --spread and --margin, or a FILE", field=name, value=options[name],
                    fix="add them, or name a FILE that has them",
                )  # fmt: skip
        return _table(options.get("--alpha", Policy().alpha), options.get("--candidates", 1))
    for name in ("--spread", "--margin"):
        if name not in options:
            fix = "use both --spread and --margin"
            raise InvalidInputError("is missing", field=name, fix=fix)
    question = Question(0.0, 0.0, 0, 1, _both_modes(Policy().alpha))
    return _answer(_changed(question, options, file))


def _both_modes(alpha: float) -> list[Policy]:
    return [Policy(alpha=alpha, quality_runs=mode) for mode in ("shadow", "hybrid")]


def _changed(question: Question, options: Mapping[str, Any], file: str | None) -> Question:
    """The case with the options in place of its values."""
    named = {name: f"--{name}" for name in ("spread", "margin", "history", "candidates")}
    values = {name: options[option] for name, option in named.items() if option in options}
    policies = list(question.policies)
    if "--alpha" in options:
        policies = [replace(policy, alpha=options["--alpha"]) for policy in policies]
    if "--max-runs" in options:
        most = options["--max-runs"]
        policies = [replace(policies[-1], quality_runs="hybrid", max_quality_runs=most)]
        values["label"] = "allowed"  # the user's own limit is not a policy's mode
    changed = replace(question, policies=policies, **values)
    if file is not None and not changed.spread:
        raise InvalidInputError(
            "has no spread: at least two different past results are needed", file=file,
            field="quality.history", fix="add past results of the baseline, or use --spread",
        )  # fmt: skip
    return changed


def _recorded(file: str) -> tuple[Question, EvaluationFinding | None]:
    """The case of a workload file, in its modes, or of an evidence document.

    Of evidence also the judge's split of the spread.
    """
    if file != STANDARD_INPUT and Path(file).suffix in (".yaml", ".yml"):
        try:
            workload = parse_workload(load_yaml(Path(file)))
        except InvalidInputError as error:
            raise error if error.file else error.in_file(file) from error
        # Besides its own mode extra runs only, which need no production.
        shadow = replace(workload.policy, quality_runs="shadow")
        policies = list(dict.fromkeys((shadow, workload.policy)))
        candidates = max(1, len(workload.candidates))
        remaining = workload.schedule.runs_per_week * WEEKS_PER_YEAR
        proposed = workload.candidates or (Candidate(name="compile", compiler="torch_compile"),)
        rho = possible_rho(workload, proposed, load_facts())
        case = _case(workload.quality, (), candidates, policies, remaining)
        return replace(case, rho=rho), None
    evidence = read_evidence(read_json(file))
    runs, candidates = metrics(evidence.baseline.full_runs), len(evidence.candidates)
    quality = judge(evidence).quality
    question = _case(evidence.quality, runs, candidates, [evidence.policy], evidence.runs_left())
    question = replace(question, rho=min(rho_of(arm, evidence) for arm in evidence.candidates))
    return question, quality.evaluation if quality else None


def _case(
    quality: Quality, runs: Sequence[float], candidates: int, policies: Sequence[Policy],
    runs_remaining: float | None,
) -> Question:  # fmt: skip
    """The spread, pooled over history and baseline as the judge does, is 0 where it is unknown."""
    spread = math.sqrt(Samples((), runs, quality.history).pooled_variance or 0.0)
    history = len(quality.history)
    return Question(spread, quality.margin, history, candidates, policies, runs_remaining)


def _table(alpha: float, candidates: int) -> dict[str, Any]:
    """Runs needed by spread, mode and history, and the smallest provable margin by runs."""
    cells, margins = [], []
    for policy in _both_modes(alpha):
        for history in HISTORIES:
            design = design_for(policy, history=history, candidates=candidates, runs_remaining=None)
            if design is None:
                raise ValueError(f"a policy of {policy.max_quality_runs} runs proves nothing")
            place = {"mode": policy.quality_runs, "max_runs": design.n_max, "history": history}
            cells += [
                {**place, "spread_per_margin": relative, **_runs(design, relative)}
                for relative in RELATIVE_SPREADS
            ]
            margins += [
                {**place, "runs": n, "margin_per_spread": design.provable_margin(n)}
                for n in looks(design.n_max)
            ]
    return {
        "alpha": alpha, "candidates": candidates,
        "runs_needed": cells, "provable_margin": margins,
    }  # fmt: skip


def _answer(question: Question) -> dict[str, Any]:
    """The case as it stands, then what each policy's runs can prove."""
    return {
        "spread": question.spread,
        "margin": question.margin,
        "spread_per_margin": question.spread / question.margin,
        "history": question.history,
        "candidates": question.candidates,
        "alpha": question.policies[0].alpha,
        "rho": question.rho,
        "designs": [_design(question, policy) for policy in question.policies],
    }


def _design(question: Question, policy: Policy) -> dict[str, Any]:
    design = design_for(
        policy, history=question.history, candidates=question.candidates,
        runs_remaining=question.runs_remaining, rho=question.rho,
    )  # fmt: skip
    document: dict[str, Any] = {"mode": question.label or policy.quality_runs}
    if design is None:
        return {**document, "max_runs": None, "refused": True, "runs_80": None, "runs_90": None}
    relative = question.spread / question.margin
    single_80, single_90 = (
        runs_for_one_look(relative, history=question.history, level=design.level, chance=chance)
        for chance in (LIKELY, VERY_LIKELY)
    )
    margins = {n: design.provable_margin(n) for n in looks(design.n_max)}
    return {
        **document,
        "max_runs": design.n_max,
        "level": design.level,
        **_runs(design, relative),
        "single_test_80": single_80,
        "single_test_90": single_90,
        "provable_margin": design.best_margin(LIKELY) * question.spread,
        "provable_margin_by_runs": [
            {"runs": n, "margin": margin and margin * question.spread}
            for n, margin in margins.items()
        ],
        "least_chance": design.least_chance,
        "refused": design.runs_needed(relative, design.least_chance) is None,
        "refused_before_start": question.history >= ENOUGH_HISTORY,
    }


def _runs(design: Design, relative: float) -> dict[str, int | None]:
    """None: no allowed number of runs has that chance."""
    low, high = (design.runs_needed(relative, chance) for chance in (LIKELY, VERY_LIKELY))
    return {"runs_80": low, "runs_90": high}


def show_plan(plan: Mapping[str, Any]) -> None:
    """The answer for one case, or the planning table."""
    if "designs" not in plan:
        needed = _grid(
            plan["runs_needed"], "spread_per_margin", "spread/margin",
            lambda cell: f"{cell['runs_80'] or UNKNOWN}/{cell['runs_90'] or UNKNOWN}",
        )  # fmt: skip
        provable = _grid(
            plan["provable_margin"], "runs", "runs",
            _provable,
        )  # fmt: skip
        show(TEMPLATES / "judge_plan", plan, needed=needed, provable=provable)
        return
    designs = [design for design in plan["designs"] if design["max_runs"]]
    titles = [f"{design['mode']} <= {design['max_runs']}" for design in designs]
    split = plan.get("evaluation", ())
    words = evaluation_words(read(EvaluationSplit, split)) if "larger" in split else ""
    show(
        TEMPLATES / "judge_plan_case", plan,
        titles=["runs of a candidate", *titles], rows=_design_rows(designs) if designs else [],
        evaluation_words=words, schedule=SCHEDULE,
    )  # fmt: skip


def _provable(cell: Mapping[str, Any]) -> str:
    margin = cell["margin_per_spread"]
    return f"{margin:.2f}" if margin else UNKNOWN


def _grid(
    cells: Sequence[Mapping[str, Any]], row: str, title: str, shown: Callable[[Any], str]
) -> dict[str, Any]:
    columns = list(dict.fromkeys((c["mode"], c["max_runs"], c["history"]) for c in cells))
    titles, seen = [title], set[str]()
    for mode, most, history in columns:
        titles.append(f"{'' if mode in seen else f'{mode} <= {most}'}\n{history}")
        seen.add(mode)
    texts = {(c["mode"], c["max_runs"], c["history"], c[row]): shown(c) for c in cells}
    rows = [
        [f"{key:g}", *(texts.get((*column, key), "") for column in columns)]
        for key in dict.fromkeys(c[row] for c in cells)
    ]
    return {"titles": titles, "rows": rows}


def _design_rows(designs: Sequence[Mapping[str, Any]]) -> list[list[str]]:
    rows = [
        [words, *(str(design[key] or UNKNOWN) for design in designs)]
        for words, key in (
            ("for an 80% chance of a proof", "runs_80"),
            ("for a 90% chance", "runs_90"),
            ("one single test, 80%", "single_test_80"),
            ("one single test, 90%", "single_test_90"),
        )
    ]
    rows += [[""], ["margin that they prove, 80%"]]
    for row in zip_longest(*(design["provable_margin_by_runs"] for design in designs)):
        runs = next(look["runs"] for look in row if look)
        rows.append([f"{runs:>4} runs", *map(_margin, row)])
    return rows


def _margin(look: Mapping[str, Any] | None) -> str:
    """What a look proves; a shorter design has no cell in that row."""
    if look is None:
        return ""
    return significant(look["margin"]) if look["margin"] else UNKNOWN
