"""Arms on other instances, images, launchers and scripts: measured apart, judged by dollars."""

from __future__ import annotations

import json

import pytest

from compilegate.domain import naming
from compilegate.domain.argument_text import decoded_document

pytestmark = pytest.mark.e2e
BASELINE_USD = 1.408
CHEAP = {"name": "cheap", "instance_type": "ml.g5.2xlarge"}
TWO = {"name": "two", "instance_count": 2, "distribution": "torch_distributed"}
HALF_PRICE = {"prices": {"ml.g5.2xlarge": BASELINE_USD / 2, "ml.g5.xlarge": BASELINE_USD}}
REGISTRY = "123456789012.dkr.ecr.us-east-1.amazonaws.com"
OLDER = {"name": "pytorch", "version": "1.13.1", "python": "py39"}
MANAGED = {"name": "managed", "compiler": "sagemaker_training_compiler", "framework": OLDER}
IMAGES = {
    "images": [
        {"framework": "pytorch", "version": "1.13.1", "python": "py39", "uri": f"{REGISTRY}/n:1"},
        {"framework": "pytorch", "version": "1.13.1", "python": "py39", "uri": f"{REGISTRY}/c:1",
         "compiler": "sagemaker_training_compiler"},
    ]
}  # fmt: skip


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
    flag = running.flag()
    assert {"instance_type": "ml.g5.2xlarge"} == flag["overrides"]
    dollars = {arm["name"]: arm["usd_per_1000_samples"] for arm in decision["arms"]}
    assert dollars["cheap"] < dollars["baseline"] < dollars["two"]
    html = running.report("html")
    assert "1,000 samples" in html
    assert "ml.g5.2xlarge" in html


def test_a_cluster_that_is_faster_and_dearer_stays_off(trial):
    running = trial(candidates=[TWO], speeds="two=1.6")
    decision = running.decision()

    assert ("stay_off", "two") == (decision["verdict"], decision["candidate"])
    assert "in dollars (at 2.00 times the price per hour)" in decision["reasons"][0]["message"]
    assert running.flag() is None


def test_another_script_and_launcher_is_measured_on_nodes_of_its_own(trial):
    candidates = [
        {"name": "compile", "compiler": "torch_compile"},
        {"name": "ported", "entry_point": "other.py", "distribution": "torch_distributed"},
    ]
    running = trial(candidates=candidates, speeds="ported=1.7", speedup=1.3)
    decision = running.decision()

    assert ("promote", "ported") == (decision["verdict"], decision["candidate"])
    names = [running.request(run)["HyperParameters"].get("baseline") for run in ("s0a0", "s0b0")]
    assert [None, '"elsewhere"'] == names
    full = next(job for job in running.jobs() if job.startswith("q") and "c" in job[:3])
    program = running.request(full.rpartition("-r")[0])["HyperParameters"]["sagemaker_program"]
    assert '"other.py"' == program
    overrides = running.flag()["overrides"]
    assert {"entry_point": "other.py", "distribution": "torch_distributed"} == overrides


def test_a_job_of_one_candidate_that_fails_is_that_candidates_failure_alone(trial):
    candidates = [
        {"name": "compile", "compiler": "torch_compile"},
        {"name": "absent", "entry_point": "absent.py"},
    ]
    running = trial(candidates=candidates)
    decision = running.decision()

    assert ("promote", "compile") == (decision["verdict"], decision["candidate"])
    assert "Failed" == running.jobs()["s0b0-r0"]
    (run,) = running.record("evidence")["arms"][2]["runs"]
    assert "absent.py" in run["reason"]


def test_a_control_tells_the_older_framework_from_the_compiler(trial):
    running = trial(
        candidates=[MANAGED], facts=IMAGES, precision="fp32", profile={"compile_seconds": 20},
        speeds="managed=1.5,managed-native=0.9",
    )  # fmt: skip
    decision = running.decision()

    assert ("promote", "managed") == (decision["verdict"], decision["candidate"])
    (control,) = decision["controls"]
    assert "managed-native" == control["name"]
    assert 0.85 < control["speedup"] < 0.95
    assert 1.55 < control["compiler_speedup"] < 1.8
    assert [True] * 3 == [
        run["finished"] for run in running.record("evidence")["controls"][0]["runs"]
    ]
    assert {"baseline", "managed"} == {arm["name"] for arm in decision["arms"]}
    for extension in ("html", "md", "json"):
        assert "managed-native" in running.report(extension)
    assert IMAGES["images"][1]["uri"] == running.flag()["overrides"]["image"]


def test_a_compile_mode_and_other_hyperparameters_reach_job_and_flag(trial):
    """They need no nodes of their own: one job measures them beside the baseline."""
    mode = {"name": "mode", "compiler": "torch_compile", "compile_mode": "reduce-overhead"}
    tuned = {"name": "tuned", "hyperparameters": {"speeds": "tuned=1.8"}}
    running = trial(candidates=[mode, tuned], speedup=1.3)
    decision = running.decision()

    assert ("promote", "tuned") == (decision["verdict"], decision["candidate"])
    assert {"hyperparameters": {"speeds": "tuned=1.8"}} == running.flag()["overrides"]
    hyperparameters = running.request("s0")["HyperParameters"]
    values = decoded_document(json.loads(hyperparameters["arm_1"]))["hyperparameters"]
    assert "reduce-overhead" == values["compile_mode"]
