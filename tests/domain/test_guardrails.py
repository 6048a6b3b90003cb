"""Guardrails and signals: a promotion needs every guardrail, and a signal asks a person."""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import pytest

from compilegate.domain.decision import SIGNAL, Decision, Verdict
from compilegate.domain.errors import InvalidEvidenceError
from compilegate.domain.judging.evidence_file import read_evidence
from compilegate.domain.judging.measured import confirmed_fall
from compilegate.domain.judging.monitor import FALSE_ALARM, cusum_threshold
from compilegate.domain.judging.probation import judge_probation
from tests.domain.evidence_builder import (
    codes,
    document,
    judge,
    probation_document,
    runs,
    sample,
    speed_run,
    watch,
)
from tests.domain.test_equivalence import FIRST, LAST, examined

MARGIN, SD = 0.02, 0.001
TOP5 = {"metric": "top5", "goal": "maximize", "margin": MARGIN}
# Of a metric: its value in the run of that arm and number.
Values = Callable[[bool, int], float | None]


def steady(loss: float = 0.0) -> Values:
    values = sample(12, 0.9, SD)
    return lambda candidate, number: values[number] - loss * candidate


def recorded(doc: dict[str, Any], name: str, values: Values) -> dict[str, Any]:
    """The document with this metric in every full run."""
    for one in doc["arms"]:
        for number, run in enumerate(runs(doc, one["name"])):
            own = values(one["name"] != "baseline", number)
            run["metrics"] = {**run.get("metrics", {}), name: own}
    return doc


def trial(
    values: Values, *, first: float = 0.0, many: int = 5, kind: str = "guardrails"
) -> dict[str, Any]:
    """A fast candidate whose first metric loses ``first``, with one guardrail or signal."""
    own = sample(many, 2.5, SD)
    metrics = {"baseline": own, "compile": [value + first for value in own]}
    doc = document(metrics=metrics, margin=MARGIN)
    doc["quality"][kind] = [TOP5]
    return recorded(doc, "top5", values)


def states(decision: Decision) -> list[tuple[str, str | None]]:
    return [(one.metric, one.outcome) for one in decision.quality.guardrails]


@pytest.mark.parametrize(
    ("values", "first", "verdict", "code", "outcome"),
    [
        (steady(), 0.0, "promote", "speedup_proven", "held"),
        (steady(2 * MARGIN), 0.0, "stay_off", "guardrail_worse", "worse"),
        # A gain is no loss, and a loss of the first metric is not outweighed by it.
        (steady(-MARGIN), 0.0, "promote", "speedup_proven", "held"),
        (steady(-MARGIN), 2 * MARGIN, "stay_off", "quality_worse", "held"),
        # It varies by a margin from run to run: five runs say nothing.
        (lambda mine, n: 0.9 + MARGIN * (-1) ** (n + mine), 0.0, "continue", "guardrail_needs_runs",
         "more_runs"),
        (lambda mine, n: 0.9, 0.0, "inconclusive", "guardrail_inconclusive", "inconclusive"),
        (lambda mine, n: None, 0.0, "inconclusive", "guardrail_unreported", "unreported"),
        (lambda mine, n: float("nan") if mine and n == 4 else 0.9 + n / 1000, 0.0, "inconclusive",
         "guardrail_unreported", "unreported"),
        (lambda mine, n: 1e300 if mine and n == 4 else 0.9 + n / 1000, 0.0, "inconclusive",
         "guardrail_unreported", "unreported"),
    ],
)  # fmt: skip
def test_a_promotion_needs_the_first_metric_and_every_guardrail(
    values, first, verdict, code, outcome
):
    decision = judge(trial(values, first=first))

    assert (verdict, code) == (decision.verdict, decision.codes[0])
    assert len(set(decision.messages)) == len(decision.messages)
    assert 2 == sum(one.startswith(("quality_", "guardrail_")) for one in decision.codes)
    assert [("top5", outcome)] == states(decision)
    assert code == "speedup_proven" or verdict != "promote"


def test_of_several_guardrails_the_one_that_failed_is_named():
    doc = recorded(trial(steady()), "recall", steady(2 * MARGIN))
    doc["quality"]["guardrails"].append({**TOP5, "metric": "recall"})

    decision = judge(doc)

    assert [("top5", "held"), ("recall", "worse")] == states(decision)
    assert decision.messages[0].startswith("compile: recall: ")


@pytest.mark.parametrize("count", [0, 8])
def test_a_guardrail_is_judged_as_the_first_metric_is_that_stands_alone(count):
    """Its own past counts for it, not the first metric's."""
    doc, past = trial(lambda mine, n: 0.9 + n / 500), sample(count, 0.9, 0.004)
    doc["quality"] |= {"history": sample(20, 2.5, SD), "guardrails": [{**TOP5, "history": past}]}
    alone = copy.deepcopy(doc)
    alone["quality"] = {**TOP5, "history": past}
    for one in alone["arms"]:
        for run in runs(alone, one["name"]):
            run["metric"] = run.pop("metrics")["top5"]

    guarded, own = judge(doc).quality, judge(alone).quality
    assert own == replace(guarded.guardrails[0], outcome=None)


def test_a_guardrail_whose_past_says_that_no_run_could_prove_it_is_refused_before_spending():
    doc = document(blocks=0)
    noisy = {**TOP5, "history": sample(12, 0.9, 10 * MARGIN)}
    doc["quality"] |= {"history": sample(12, 2.5, SD), "guardrails": [noisy]}

    decision = judge(doc)

    assert (Verdict.INCONCLUSIVE, {"underpowered"}) == (decision.verdict, codes(decision))
    assert decision.messages[0].startswith("top5: ")
    doc["arms"][0]["runs"] = [speed_run(0, 0.03)]
    assert {"speed_needs_blocks"} == codes(judge(doc))


@pytest.mark.parametrize(
    ("values", "asks"),
    [(steady(), False), (steady(2 * MARGIN), True), (lambda mine, n: None, True),
     (lambda mine, n: 0.9 + MARGIN * (-1) ** (n + mine), True)],
)  # fmt: skip
def test_a_signal_that_does_not_hold_promotes_and_asks_a_person(values, asks):
    decision = judge(trial(values, kind="signals"))

    assert (Verdict.PROMOTE, asks) == (decision.verdict, SIGNAL in decision.codes)
    assert 1 == len(decision.quality.signals)


def test_a_signal_says_nothing_of_what_is_not_promoted():
    decision = judge(trial(steady(2 * MARGIN), first=2 * MARGIN, kind="signals"))

    assert (Verdict.STAY_OFF, False) == (decision.verdict, SIGNAL in decision.codes)


@pytest.mark.parametrize("name", ["eval_loss", "top5"])
@pytest.mark.parametrize("kind", ["guardrails", "signals"])
def test_a_metric_that_stands_there_twice_is_refused(name, kind):
    doc = trial(steady())
    doc["quality"][kind] = [*doc["quality"].get(kind, []), {**TOP5, "metric": name}]

    with pytest.raises(InvalidEvidenceError, match=f"{name}', which quality names before"):
        judge(doc)


def production(values: Sequence[float | None], doc: Any = None) -> dict[str, Any]:
    """A probation whose candidate's runs have these values of the guardrail."""
    doc = recorded(doc or probation_document(), "top5", steady())
    doc["quality"]["guardrails"] = [{**TOP5, "history": sample(20, 0.9, SD)}]
    for value in values:
        watch(doc, metrics={"top5": value})
    return {**doc, "phase": "probation", "promoted": "compile"}


def fallen(doc: Any = None) -> dict[str, Any]:
    """One whose guardrail falls by two margins, and falls in the check of the alarm too."""
    doc = production([0.9 - 2 * MARGIN] * 3, doc)
    for name in ("baseline", "compile", "compile", "baseline", "baseline", "compile"):
        value = 0.9 - 2 * MARGIN * (name != "baseline")
        watch(doc, name, metrics={"top5": value}, confirm=True)
    return doc


def test_a_guardrail_that_falls_in_production_is_checked_and_turned_off():
    alarm, decision = judge(production([0.9 - 2 * MARGIN] * 3)), judge(fallen())

    assert "alarm" in codes(alarm)
    assert (Verdict.REVERT, {"guardrail_regressed"}) == (decision.verdict, codes(decision))
    assert "top5 is worse by 0.04" in decision.messages[0]
    assert -MARGIN > (decision.quality.guardrails[0].estimate or 0.0)
    assert confirmed_fall(decision, read_evidence(fallen())) is None  # of the first metric


def test_the_loss_of_a_guardrail_refutes_the_equivalence_check_as_well():
    decision = judge(fallen(examined(FIRST, LAST)))

    assert {"guardrail_regressed", "equivalence_revoked"} <= codes(decision)


def test_a_probation_does_not_end_on_runs_that_did_not_report_a_guardrail():
    held, silent = judge(production([0.9] * 12)), judge(production([None] * 12))

    assert Verdict.PERMANENT is held.verdict
    assert Verdict.CONTINUE is silent.verdict
    assert "guardrail_not_watched" in codes(silent)


def test_the_metrics_share_the_chance_of_a_false_alarm_and_speed_keeps_its_own():
    evidence = read_evidence(production([]))
    monitors = judge_probation(evidence, 1.4).monitors
    error = FALSE_ALARM / 2

    assert [error, error, FALSE_ALARM] == [one.error for one in monitors.values()]
    for one in monitors.values():
        h = cusum_threshold(one.shift, one.spread, runs=one.runs, error=one.error)
        assert pytest.approx(h * one.spread) == one.limit
