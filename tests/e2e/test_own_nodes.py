"""Arms on other instances, images, launchers and scripts: measured apart, judged by dollars."""

from __future__ import annotations

import pytest

from compilegate.domain import naming

pytestmark = pytest.mark.e2e
BASELINE_USD = 1.408
CHEAP = {"name": "cheap", "instance_type": "ml.g5.2xlarge"}
TWO = {"name": "two", "instance_count": 2, "distribution": "torch_distributed"}
HALF_PRICE = {"prices": {"ml.g5.2xlarge": BASELINE_USD / 2, "ml.g5.xlarge": BASELINE_USD}}


def speed_jobs(running):
    runs = [naming.parse_run(job.rpartition("-r")[0]) for job in running.jobs()]
    return {run.text for run in runs if run.is_speed}


def test_dollars_decide_between_clusters_of_other_prices(trial):
    """At half the price and hardly faster; on two machines 1.6 times as fast."""
    running = trial(candidates=[TWO, CHEAP], facts=HALF_PRICE, speeds="cheap=1.05,two=1.6")
    decision = running.decision()

    assert ("promote", "cheap") == (decision["verdict"], decision["candidate"])
    assert 1.0 < decision["speedup"]["estimate"] < 1.1
    assert decision["saving"]["usd_per_run"] > 0
    assert {"s0a0", "s0b0", "s0c0"} < speed_jobs(running)
    request = running.request("s0b0")["ResourceConfig"]
    assert ("ml.g5.xlarge", 2) == (request["InstanceType"], request["InstanceCount"])
    assert {"instance_type": "ml.g5.2xlarge"} == running.flag()["overrides"]
