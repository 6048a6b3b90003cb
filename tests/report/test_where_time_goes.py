"""Where a step's time goes: page, comment, JSON and terminal show the same five rows."""

import json

from compilegate.cli.common.outcome import Outcome
from compilegate.cli.common.output import show
from compilegate.domain.formats import duration, percent
from compilegate.report.tables import times_table
from compilegate.usecases.reports import read_trial_report
from tests.report import samples
from tests.report.samples import rendered


def test_every_surface_shows_the_differences_that_the_document_has(capsys):
    report = rendered(samples.profiled())
    document = json.loads(report.json)["where_time_goes"]
    outcome = Outcome("x", "t", {"verdict": "promote"}, "x", None, None, where_time_goes=document)
    shown = {**vars(outcome), "decision": document, "verdict": "promote"}
    show("run", shown, outcome=outcome, rows=[], notes=[])
    terminal = capsys.readouterr().out

    assert ["pointwise", "matmul", "idle", "reduction"] == [
        one["kernel_class"] for one in document["differences"]
    ]
    for one in document["differences"]:
        for seconds in (one["baseline_seconds"], one["candidate_seconds"], one["seconds"]):
            for text in (report.html, report.markdown, terminal):
                assert duration(seconds) in text
        for text in (report.html, report.markdown, terminal):
            assert percent(one["share"]) in text
    assert "triton_red_0" in report.html
    assert "triton_red_0" in terminal


def test_segments_without_a_profile_are_named_and_trials_without_any_say_nothing():
    source = samples.profiled(theirs={"schema": 1, "absent": "time_exceeded"})
    table = times_table(read_trial_report(source))

    assert [] == table.rows
    assert "(time_exceeded)" in table.note
    assert table.note in rendered(source).html
    assert times_table(read_trial_report(samples.promote())) is None
    assert "where_time_goes" not in json.loads(rendered(samples.promote()).json)
