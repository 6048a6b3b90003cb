"""One round of a trial: take in what the last jobs left, judge, ask for the next jobs.

Returns ``next_stage`` ``none`` once the trial is settled; the decision is then recorded.
``canary`` is a round that production carries: nothing is started for it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from compilegate.domain.decision import Decision, Verdict
from compilegate.domain.judging.judge import judge as ask_judge
from compilegate.domain.production.canary import OVERDUE
from compilegate.ports import Services
from compilegate.usecases.account import charge_round, settle_strays
from compilegate.usecases.control_jobs import deciding
from compilegate.usecases.decide import save_decision
from compilegate.usecases.job_limits import CANARY, is_carried
from compilegate.usecases.judging import Judge, judge_with, load_evidence
from compilegate.usecases.no_result import note_lost_round, refuse_foreign_stops, refuse_lost_rounds
from compilegate.usecases.outcome import UNKNOWN, look_up
from compilegate.usecases.production.canary import close_canary
from compilegate.usecases.production.carried import (
    carried_round,
    take_in_production,
    while_carried,
)
from compilegate.usecases.round_layout import layout_of_runs
from compilegate.usecases.round_requests import write_requests
from compilegate.usecases.trial import Trial, open_trial, save_record
from compilegate.usecases.trial_limits import within_limits


def judge_arms(
    event: Mapping[str, Any], *, services: Services, judge: Judge = ask_judge
) -> dict[str, Any]:
    """Judge the trial so far; ``continue`` comes with the requests of the next round."""
    opened = open_trial(Trial.from_event(event), services)
    outcomes, round_number = _known(event["runs"], services), int(event["round"])
    document = load_evidence(opened)
    last_canary = close_canary(opened.trial, OVERDUE, before=round_number, services=services)
    charge_round(outcomes, document, opened)
    settle_strays(outcomes, document, opened, round_number)
    take_in_production(document, opened)
    # Before it is judged: what is kept must be what the decision was made on.
    note_lost_round(deciding(outcomes, opened.plan), document, round_number)
    decision = judge_with(outcomes, document, opened, judge)
    outcomes = deciding(outcomes, opened.plan)
    save_record(opened.services.store, opened.trial, "evidence", document)
    if decision.verdict is Verdict.CONTINUE:
        refuse_foreign_stops(outcomes, opened)
        refuse_lost_rounds(outcomes, document)
    decision = within_limits(decision, document, opened, round_number, outcomes)
    decision = while_carried(decision, last_canary)
    if decision.verdict is not Verdict.CONTINUE or decision.next is None:
        key = save_decision(services, opened.trial, decision)
        return _answer(decision, "none", round_number, decision_key=key)
    if is_carried(decision.next):
        asked = carried_round(decision.next, opened, round_number)
        return _answer(decision, CANARY, round_number + 1, canary=asked)
    runs = write_requests(decision.next, opened, round_number, document)
    at_once = layout_of_runs(runs, opened.plan).at_once
    return _answer(decision, decision.next["stage"], round_number + 1, runs, at_once=at_once)


def _known(outcomes: Sequence[Mapping[str, Any]], services: Services) -> list[Mapping[str, Any]]:
    """The outcomes, those looked up that no settle_run explained."""
    return [
        look_up(str(outcome["run"]), str(outcome["job"]), services)
        if outcome["status"] == UNKNOWN
        else outcome
        for outcome in outcomes
    ]


def _answer(
    decision: Decision,
    next_stage: str,
    round_number: int,
    runs: Sequence[Mapping[str, Any]] = (),
    *,
    at_once: int | None = None,
    canary: Mapping[str, Any] | None = None,
    decision_key: str | None = None,
) -> dict[str, Any]:
    return {
        "verdict": str(decision.verdict),
        "next_stage": next_stage,
        "round": round_number,
        "runs": list(runs),
        "max_concurrency": at_once,
        "canary": canary,
        "decision_key": decision_key,
    }
