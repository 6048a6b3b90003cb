"""Realistic trials: evidence made from a seed, decided by the real judge."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from dataclasses import replace
from functools import cache, wraps
from typing import Any

from compilegate.domain.trial.plan import read_plan
from compilegate.report.render import Report, render
from compilegate.report.trial_report import ReportInput
from compilegate.usecases.reports import read_trial_report
from tests.domain.evidence_builder import judge
from tests.domain.outcome_builder import scored
from tests.domain.test_equivalence import FIRST, LAST, TABLE, figures, part
from tests.domain.test_where_time_goes import COMPILED, EAGER
from tests.report.trials import STEPS, add_control, run_probation, run_trial

FLAG = "/compilegate/local/workloads/{}/compiler"
COMPILES = {"baseline": 0.060, "compile": 0.042}  # seconds per step
SIMULATED = (
    "Ran on this laptop's CPU (2 cores), standing in for ml.g5.xlarge: speed-up is this "
    "machine's; dollars are what the same minutes would cost on ml.g5.xlarge."
)


def rendered(source: ReportInput) -> Report:
    """The report of these records."""
    return render(read_trial_report(source))


def _made_once(make: Callable[[], ReportInput]) -> Callable[[], ReportInput]:
    """Simulated and judged once; everybody gets a copy to change."""

    @cache
    def packed() -> bytes:
        return pickle.dumps(make())

    @wraps(make)
    def copied() -> ReportInput:
        made: ReportInput = pickle.loads(packed())
        return made

    return copied


@_made_once
def promote() -> ReportInput:
    """A candidate that wins, and a second one that does not."""
    slow = {"compile-b48": 0.168}
    return _trial("albert-docs", COMPILES | slow, spread=0.004, margin=0.05)


@_made_once
def with_history() -> ReportInput:
    """Past runs stand beside the baseline's full runs."""
    return _trial("gpt-history", COMPILES, spread=0.002, margin=0.02, past=8)


@_made_once
def second_wins() -> ReportInput:
    """The faster candidate loses quality, so the next one is tried."""
    arms = COMPILES | {"compile-b48": 0.135}
    return _trial("bert-two", arms, spread=0.006, margin=0.02, lost={"compile": 0.05})


@_made_once
def stay_off() -> ReportInput:
    """Dynamic shapes: hardly any gain, decided by short blocks alone."""
    arms = {"baseline": 0.050, "compile": 0.0492}
    return _trial("gpt-ragged", arms, spread=0.004, margin=0.05, recompiles=8)


@_made_once
def inconclusive() -> ReportInput:
    """Fast, but the metric varies far more than the margin."""
    of_metric = {"metric": "eval_accuracy", "goal": "maximize"}
    return _trial("bert-docs", COMPILES, **of_metric, spread=0.04, margin=0.005)


@_made_once
def invalid() -> ReportInput:
    """The compiler was requested but not applied."""
    arms = {"baseline": 0.06, "compile": 0.06}
    return _trial("bert-silent", arms, spread=0.004, margin=0.05, applied=False)


@_made_once
def cheaper_cluster() -> ReportInput:
    """Hardly faster on another instance, at half the price an hour."""
    arms = {"baseline": 0.060, "g5-2x": 0.059}
    return _trial("gpt-cheap", arms, spread=0.0004, margin=0.05, prices={"g5-2x": 0.5})


@_made_once
def with_control() -> ReportInput:
    """The same versions without the compiler, measured beside it."""
    document = run_trial("gpt-older", COMPILES, spread=0.004, margin=0.05)
    add_control(document, "compile-native", 0.066)
    return as_input(document)


@_made_once
def underpowered() -> ReportInput:
    """Past runs vary so much that no trial could prove the margin: nothing is started."""
    return _trial("bert-noisy", COMPILES, spread=0.03, margin=0.02, past=6)


@_made_once
def over_time() -> ReportInput:
    """The state machine's limit ends an open trial."""
    source = _trial("bert-slow", COMPILES, spread=0.02, margin=0.03, rounds=3)
    message = "one more round of up to 60 hours (training.max_runtime_hours) might not end in time"
    return ended_by(source, "trial_over_time", message)


def ended_by(source: ReportInput, code: str, message: str) -> ReportInput:
    """An open trial that a limit ended: the limit comes first, what was open stays below."""
    reasons = [{"code": code, "message": message}, *source["decision"]["reasons"]]
    return with_decision(source, verdict="inconclusive", reasons=reasons, next=None)


def with_decision(source: ReportInput, **changes: Any) -> ReportInput:
    """The same records with another decision."""
    return {**source, "decision": {**source["decision"], **changes}}


def rename_candidate(source: ReportInput, name: str) -> None:
    """Give the first candidate another name, in every record."""
    for record in (source["evidence"], source["decision"]):
        record["arms"][1]["name"] = name
    source["decision"]["candidate"] = name
    baseline, candidate, *others = source["plan"].arms
    arms = (baseline, replace(candidate, name=name), *others)
    source["plan"] = replace(source["plan"], arms=arms)


@_made_once
def passed_probation() -> ReportInput:
    """Production runs hold what the trial proved."""
    return _probation(with_history(), lost=0.0)


@_made_once
def reverted() -> ReportInput:
    """Production runs lose quality, and runs of both arms confirm it."""
    return _probation(with_history(), lost=0.06)


@_made_once
def ineligible() -> ReportInput:
    """Nothing was started."""
    reasons = [
        _reason("framework_unsupported", "block", "No compiler exists for xgboost training.",
                "Use tree_method=hist or a larger instance instead."),
        _reason("not_gpu", "info", "ml.m5.xlarge has no GPU.", ""),
    ]  # fmt: skip
    eligibility = _eligibility("xgb-churn", "ineligible", reasons, compile_reasons=reasons)
    decision = {
        "schema": 1, "workload": "xgb-churn", "decision_id": "m2k4t7xz-ineligible",
        "judge_version": "1.0.0", "stage": "eligibility", "verdict": "ineligible",
        "candidate": None, "speedup": None, "quality": None, "arms": [], "saving": None,
        "next": None, "trial": "m2k4t7xz",
        "reasons": [{"code": "framework_unsupported", "message": reasons[0]["message"]}],
        "flag": {"name": FLAG.format("xgb-churn"), "action": "disable"},
    }  # fmt: skip
    return {
        "decision": decision, "evidence": None, "eligibility": eligibility, "plan": None,
        "context": {"stage": "local", "trial": "m2k4t7xz", "simulated": SIMULATED},
    }  # fmt: skip


@_made_once
def failed() -> ReportInput:
    """The trial ended without a decision."""
    source = promote()
    return {
        **source, "decision": None,
        "context": {**source["context"], "failure": "ResourceLimitExceeded: the account may use "
                    "0 ml.g5.xlarge for training. Ask for a quota increase."},
    }  # fmt: skip


@_made_once
def scored_per_example() -> ReportInput:
    """Runs that recorded their outcomes per example: most of the spread is the evaluation's."""
    document = scored(0.0005, runs=5)
    for arm in document["arms"]:
        arm["usd_per_hour"] = document["usd_per_hour"]
    return as_input(document)


@_made_once
def two_proofs() -> ReportInput:
    """The candidate passed the equivalence check, so its full runs may err more often."""
    return examined(FIRST, LAST)


@_made_once
def not_equivalent() -> ReportInput:
    """One gradient is further from the truth than any rounding makes it."""
    wrong = part("gradients", 445.0, "single", where="layers.3.attention.weight")
    return examined(figures("first", wrong), LAST)


SAMPLES = {
    one.__name__: one
    for one in (
        promote, stay_off, inconclusive, ineligible, invalid, with_history, second_wins,
        underpowered, over_time, passed_probation, reverted, cheaper_cluster, with_control,
        scored_per_example, two_proofs, not_equivalent,
    )
}  # fmt: skip


def profiled(ours: Any = EAGER, theirs: Any = COMPILED) -> ReportInput:
    """A trial whose segments recorded these profiles."""
    evidence = promote()["evidence"]
    for arm in evidence["arms"]:
        for run in (one for one in arm["runs"] if one["stage"] == "speed"):
            run["profile"] = ours if arm["name"] == "baseline" else theirs
    return as_input(evidence)


def examined(first: Any, last: Any = None, table: Any = TABLE) -> ReportInput:
    """A trial whose jobs recorded these checks, judged by this table."""
    document = with_history()["evidence"]
    for run in document["arms"][1]["runs"]:
        run["equivalence"] = first if run["stage"] == "speed" else last
    return as_input({**document, "equivalence": table})


def _trial(workload: str, arms: dict[str, float], **figures: Any) -> ReportInput:
    return as_input(run_trial(workload, arms, **figures))


def _probation(source: ReportInput, *, lost: float) -> ReportInput:
    candidate = source["decision"]["candidate"]
    return as_input(run_probation(source["evidence"], candidate, lost=lost))


def as_input(document: dict[str, Any]) -> ReportInput:
    workload = document["workload"]
    decision = {**judge(document).to_dict(FLAG.format(workload)), "trial": "m2k4t7xz"}
    notes = [_reason("batch_may_shrink", "warn", "The compiler needs memory of its own.",
                     "Watch peak memory.")]  # fmt: skip
    return {
        "decision": decision,
        "evidence": document,
        "eligibility": _eligibility(workload, "benchmark", [], compile_reasons=notes),
        "plan": read_plan(_plan(document)),
        "context": {"stage": "local", "trial": "m2k4t7xz", "simulated": SIMULATED},
    }


def _plan(document: dict[str, Any]) -> dict[str, Any]:
    arms = [
        {"name": arm["name"], "compiler": arm["overrides"].get("compiler", "none"),
         "image": "763104351884.dkr.ecr.eu-west-1.amazonaws.com/pytorch-training:2.8-gpu",
         "instance_type": arm["overrides"].get("instance_type", "ml.g5.xlarge"),
         "instance_count": 1, "devices": 1, "usd_per_hour": arm["usd_per_hour"],
         "precision": "fp32", "batch_size": arm["overrides"].get("batch_size", 16),
         "learning_rate": 5e-4,
         "distribution": "none", "overrides": arm["overrides"]}
        for arm in document["arms"]
    ]  # fmt: skip
    return {
        "schema": 1, "workload": document["workload"], "arms": arms, "quality_runs": 3,
        "max_quality_runs": 12, "speed_steps": STEPS, "blocks_per_round": 2, "max_blocks": 6,
        "usd_per_block": 0.02, "usd_per_quality_run": 0.05, "max_trial_usd": 20.0,
        "trial": "m2k4t7xz", "spec_key": "", "execution": "", "started_at": 0, "quotas": [],
        "quality_mode": {"asked": "shadow", "used": "shadow"},
        "estimate": {"usd": 0.42, "hours": 0.3, "speed_usd": 0.12, "quality_usd": 0.3},
    }  # fmt: skip


def _reason(code: str, severity: str, message: str, fix: str) -> dict[str, str]:
    return {"code": code, "severity": severity, "field": "training", "message": message,
            "fix": fix, "source": "facts"}  # fmt: skip


def _eligibility(
    workload: str, verdict: str, reasons: list[Any], *, compile_reasons: list[Any]
) -> dict[str, Any]:
    return {
        "workload": workload, "verdict": verdict, "reasons": reasons,
        "candidates": [{"name": "compile", "compiler": "torch_compile", "verdict": verdict,
                        "reasons": compile_reasons}],
        "economics": {"annual_training_usd": 152.4, "plausible_annual_saving_usd": [0, 50.8],
                      "trial_usd": 0.42, "break_even_run_minutes": None, "payback_days": 9.1,
                      "prices_as_of": "2026-09-01"},
    }  # fmt: skip
