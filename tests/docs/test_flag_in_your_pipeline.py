"""The page's examples run as they stand there; tests/recipes runs them in the tools themselves."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from compilegate.domain import naming
from compilegate.flags import reading
from tests.asl.node import run_script
from tests.flags.ssm import promoted
from tests.recipes import page

SENT: list[dict[str, Any]] = []


@pytest.fixture
def example(monkeypatch: pytest.MonkeyPatch) -> Callable[[str], dict[str, Any]]:
    """Runs a block, with a flag that is on and a client that records."""
    boto3 = ModuleType("boto3")
    vars(boto3)["client"] = lambda service: SimpleNamespace(create_training_job=_create)
    monkeypatch.setitem(sys.modules, "boto3", boto3)
    ssm = promoted(compiler="torch_compile", batch_size=48, instance_type="ml.p4d.24xlarge")
    monkeypatch.setattr(reading, "client_of", lambda _: ssm)
    for variable in (*reading.ARM_VARIABLES, reading.STAGE_VARIABLE, "RANK"):
        monkeypatch.delenv(variable, raising=False)
    reading.forget()
    SENT.clear()

    yield page.run
    reading.forget()


def _create(**request: Any) -> dict[str, Any]:
    SENT.append(request)
    return {}


@pytest.mark.parametrize("words", [page.REQUEST, page.STEP_FUNCTIONS])
def test_a_request_carries_the_flag(example, words):
    namespace = example(*words)
    request = {
        "TrainingJobName": "a", "ResourceConfig": {"InstanceType": "ml.g5.xlarge"},
    }  # fmt: skip

    if words == page.REQUEST:
        namespace["start"](request)
        (sent,) = SENT
    else:
        sent = namespace["handle"]({"workload": "bert-docs", "request": request}, None)
    assert {"InstanceType": "ml.p4d.24xlarge"} == sent["ResourceConfig"]
    assert '"compile"' == sent["HyperParameters"]["arm"]


def test_only_the_first_process_of_a_script_asks(example, monkeypatch):
    assert 48 == example(*page.SCRIPT)["overrides"]["batch_size"]
    monkeypatch.setenv("RANK", "1")
    assert {} == example(*page.SCRIPT)["overrides"]


def test_the_state_machine_passes_both_validators():
    definition = json.loads(page.block("json", "QueryLanguage"))

    assert {"example": []} == run_script("check_definitions.js", {"example": definition})


def test_every_example_has_a_test_that_runs_it():
    recipes = {
        "python": [
            page.ESTIMATOR, page.MODEL_TRAINER, page.REQUEST, page.STEP_FUNCTIONS,
            page.PIPELINE_STEP, page.PIPELINE, page.AIRFLOW, page.SCRIPT,
        ],
        "json": [("QueryLanguage",), ("Effect",)],
        "hcl": [("aws_ssm_parameter",)],
    }  # fmt: skip
    text = page.PAGE.read_text()

    assert sum(map(len, recipes.values())) == text.count("\n```") / 2
    for language, known in recipes.items():
        assert sorted(page.block(language, *words) for words in known) == sorted(
            page.blocks(language)
        )


def test_the_permission_is_for_one_parameter_as_it_is_called():
    resource = json.loads(page.block("json", "Effect"))["Resource"]

    assert resource.endswith(f":parameter{naming.flag_parameter('prod', 'bert-docs')}")
