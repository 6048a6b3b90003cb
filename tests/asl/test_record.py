"""Recording works: the smallest scenario, recorded, gives what the kept recordings give."""

import pytest

from compilegate.localcloud.lifecycle import REPOSITORY
from tests.asl.record import neutral, record
from tests.asl.recordings import evaluations, select
from tests.asl.scenarios import SIDE_BY_SIDE


@pytest.mark.e2e
@pytest.mark.slow
def test_a_scenario_is_recorded(tmp_path, recorded):
    kept = {one.key for one in evaluations(recorded)}
    states = {("evaluate", name, "") for name in recorded["evaluate"]}

    path = record(tmp_path, {"ineligible": SIDE_BY_SIDE["ineligible"]}, {})
    with path.open() as lines:
        chosen = select(lines, kept | states, neutral(str(REPOSITORY), str(tmp_path)))

    assert {"AcquireLock", "RecordDecision", "ApplyFlag", "Done"} < set(chosen["evaluate"])
    assert "PlanTrial" not in chosen["evaluate"]
    for one in evaluations(chosen):
        assert one.key in kept
    assert ["ineligible"] == [
        one.outcome["value"] for one in evaluations(chosen)
        if (one.state, one.expression) == ("Done", "$verdict")
    ]  # fmt: skip
