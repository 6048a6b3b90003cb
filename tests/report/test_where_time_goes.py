"""Where a step's time goes: page, comment, JSON and terminal show the same five rows."""

import json

from compilegate.report.tables import times_table
from compilegate.usecases.reports import read_trial_report
from tests.report import samples
from tests.report.samples import rendered


def test_segments_without_a_profile_are_named_and_trials_without_any_say_nothing():
    source = samples.profiled(theirs={"schema": 1, "absent": "time_exceeded"})
    table = times_table(read_trial_report(source))

    assert [] == table.rows
    assert "(time_exceeded)" in table.note
    assert table.note in rendered(source).html
    assert times_table(read_trial_report(samples.promote())) is None
    assert "where_time_goes" not in json.loads(rendered(samples.promote()).json)
