"""What quality rests on: both numbers and their assumption on every surface, or why full runs."""

import pytest

from compilegate.cli.common.outcome import decision_rows
from compilegate.report.statements import ASSUMED
from compilegate.usecases.reports import read_trial_report
from tests.domain.test_equivalence import FIRST, LAST, figures, with_class
from tests.report.samples import as_input, examined, rendered

UNSEEN = {"part": "randomness", "code": "random_numbers", "share": 1.0}


def surfaces(source):
    """The page, the comment, the message and the terminal, each in one line."""
    report, trial = rendered(source), read_trial_report(source)
    rows = "\n".join(text for _, text in decision_rows(trial.judged))
    texts = (report.html, report.markdown, report.message, rows)
    return trial, [" ".join(text.split()) for text in texts]


@pytest.mark.parametrize(
    ("source", "why"),
    [
        (examined(figures(unseen=[UNSEEN]), LAST), "randomness"),
        (examined(FIRST, LAST, with_class(revoked_at="2026-11-20T10:00:00Z")), "alarm"),
        (examined(None), "weights"),
    ],
    ids=["unseen", "revoked", "no check"],
)
def test_where_full_runs_alone_prove_quality_it_is_said_why(source, why):
    trial, texts = surfaces(source)

    assert "promote" == trial.verdict
    for text in texts:
        assert why in text.partition("full runs alone")[2]
        assert ASSUMED not in text


def test_a_loss_that_is_proven_rests_on_no_two_proofs():
    source = examined(FIRST, LAST)
    for run in source["evidence"]["arms"][1]["runs"]:
        run["metric"] = run.get("metric") and run["metric"] + 1.0
    trial, texts = surfaces(as_input(source["evidence"]))

    assert ["quality_worse"] == [code for code in trial.codes if code.startswith("quality")]
    assert [] == [text for text in texts if "rests on" in text or ASSUMED in text]
