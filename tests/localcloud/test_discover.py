"""``discover --local`` on jobs that ran in the embedded cloud, by the services' own answers."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from typer.testing import CliRunner

from compilegate.adapters.yaml_document import load_yaml
from compilegate.cli.common.session import Session
from compilegate.cli.main import app
from compilegate.facts import load_facts
from distributions.localcloud.tests.helpers import Trainer

pytestmark = pytest.mark.e2e

KIND = "ml.p3.2xlarge"
TAGS = [{"Key": "team", "Value": "nlp"}]


def job(trainer: Trainer, name: str) -> dict[str, Any]:
    """A team's job, which prints its metric."""
    request = trainer.request(
        "print('eval_accuracy=0.9')", name=name, Tags=TAGS,
        hyperparameters={"learning_rate": "0.001", "bf16": "true"},
    )  # fmt: skip
    request["AlgorithmSpecification"] = {
        "TrainingInputMode": "File",
        "TrainingImage": "763104351884.dkr.ecr.us-east-1.amazonaws.com/pytorch-training:2.8.0-gpu",
        "MetricDefinitions": [{"Name": "eval_accuracy", "Regex": "eval_accuracy=([0-9.]+)"}],
    }
    request["ResourceConfig"] |= {"InstanceType": KIND, "InstanceCount": 2}
    trainer.client("sagemaker").create_training_job(**request)
    return dict(trainer.wait(name))


def test_jobs_that_ran_here_are_found_and_priced(
    trainer: Trainer,
    client: Callable[..., Any],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    names = [f"docs-2026-11-2{day}-03-00-01-123" for day in (4, 5, 6)]
    ran = [job(trainer, name) for name in names]
    job(trainer, "cg-docs-0mabc123-q-0")
    settings = SimpleNamespace(simulated="on this machine")
    local = SimpleNamespace(services=SimpleNamespace(settings=settings))
    providers: Any = SimpleNamespace(
        local=lambda: local, client=lambda service, _region: client(service)
    )
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("AWS_REGION", "us-east-1")
    result = CliRunner().invoke(app, ["discover", "--local", "--json"], obj=Session(providers))

    assert result.exit_code == 0, result.output
    document = json.loads(result.stdout)
    (row,) = [one for one in document["workloads"] if one["name"] == "docs"]
    usd = 2 * load_facts().prices[KIND].usd_per_hour / 3600
    listed = usd * sum(one["BillableTimeInSeconds"] for one in ran)
    everything = listed + usd * trainer.describe("cg-docs-0mabc123-q-0")["BillableTimeInSeconds"]
    (billed,) = [one for one in document["billed"] if one["instance_type"] == KIND]
    file = load_yaml(tmp_path / row["file"])

    assert (row["jobs"], row["runs"], row["gpu_utilization"]) == (3, 3, None)
    assert row["usd_seen"] == pytest.approx(listed)
    assert billed["billed_usd"] == pytest.approx(everything)
    assert (file["owner"], file["quality"]["metric"]) == ("nlp", "eval_accuracy")
    assert document["simulated"] == "on this machine"
    assert not [one for one in document["notes"] if "failed in" in one or "denied" in one]
