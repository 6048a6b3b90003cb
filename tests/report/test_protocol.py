"""How it was measured: per arm, with history, and what error was allowed."""

from __future__ import annotations

from compilegate.domain.judging.evidence_file import read_evidence
from compilegate.domain.judging.noninferiority import compare
from compilegate.domain.judging.quality import samples_of
from compilegate.report.measured import reference_of
from compilegate.report.metric_cards import metric_cards
from compilegate.report.protocol import protocol
from compilegate.report.trial_report import read_trial_report
from tests.report import stories


def _rows(story):
    return dict(protocol(read_trial_report(story)))


def _card(story, name):
    return next(
        card for card in metric_cards(read_trial_report(story)) if card.name.startswith(name)
    )


def test_blocks_and_full_runs_are_told_per_arm_because_losers_stop_early():
    found = _rows(stories.promote())

    assert (
        found["Speed"]
        == "blocks of 160 steps: baseline 3, compile 3, compile-b48 1; at most 6 per arm"
    )
    assert found["Quality"] == "full runs: baseline 3 (seeds 17 to 19), compile 3 (seeds 17 to 19)"


def test_past_runs_are_told_with_what_they_count_for():
    assert _rows(stories.with_history())["Quality"] == (
        "full runs: baseline 1 (seed 17), compile 2 (seeds 17, 18); 8 past runs worth 2.7"
    )


def test_the_error_is_shared_between_candidates_and_looks():
    assert _rows(stories.promote())["Error rate"] == (
        "at most 0.05 in all: 0.025 per gate for each of 2 candidates, one-sided, shared by all "
        "its looks"
    )
    assert (
        _rows(stories.stay_off())["Error rate"]
        == "at most 0.05 per gate, one-sided, shared by all its looks"
    )


def test_the_reference_is_the_one_that_the_judge_compares_with():
    story = stories.with_history()
    evidence = read_evidence(story["evidence"])
    found = compare(samples_of(evidence.candidates[0], evidence))
    trial = read_trial_report(story)
    reference = reference_of(trial.measured, trial.quality)

    assert (found.history_weight, 8, 1) == (reference.weight, reference.past, reference.today)


def test_the_quality_card_names_level_margin_and_reference():
    note = _card(stories.with_history(), "Quality").note

    assert note.endswith(
        "98.1% interval, holds at every look; margin 0.02; "
        "reference: 8 past runs worth 2.7, 1 of today"
    )


def test_the_cost_card_calls_the_estimate_an_expectation():
    assert _card(stories.promote(), "Cost").note == "expected about $0.42, cap $20.00"
