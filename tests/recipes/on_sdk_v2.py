"""Runs the page's blocks for the SageMaker Python SDK v2 with the SDK itself.

Runs in the SDK's own environment: ``.venv-sdk/bin/python -m tests.recipes.on_sdk_v2 FILE`` writes,
for every flag, the requests that would leave this machine.
"""

from __future__ import annotations

import contextlib
import json
import os
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from sagemaker.local import pipeline as local
from sagemaker.local.entities import _LocalPipelineExecution, _LocalPipelineExecutionStep
from sagemaker.workflow.steps import StepTypeEnum

from tests.conformance.capture import offline
from tests.recipes import page
from tests.recipes.account import Account, answers, opened

NO_TELEMETRY = {
    "SchemaVersion": "1.0", "SageMaker": {"PythonSDK": {"Modules": {"TelemetryOptOut": True}}},
}  # fmt: skip


class Execution(_LocalPipelineExecution):  # type: ignore[misc]
    """The SDK's local execution, which refuses a step that calls Lambda before it begins."""

    def _initialize_step_execution(self, steps: Any) -> None:
        for step in steps:
            described = (step.name, step.step_type, step.description, step.display_name)
            self.step_execution[step.name] = _LocalPipelineExecutionStep(*described)


class Steps(local._StepExecutorFactory):  # type: ignore[misc]
    """The SDK's local executor, with the two steps that it leaves to AWS or to Docker."""

    def __init__(
        self, executor: local.LocalPipelineExecutor, handler: Any, definition: Any
    ) -> None:
        super().__init__(executor)
        self.handler = handler
        self.definition = {step["Name"]: step for step in definition["Steps"]}

    def get(self, step: Any) -> Any:
        """Something with ``execute``, which gives the step's properties."""
        arguments = self.pipeline_executor.evaluate_step_arguments(step)
        run = {StepTypeEnum.LAMBDA: self._lambda, StepTypeEnum.TRAINING: self._train}
        return SimpleNamespace(execute=lambda: run[step.step_type](step, arguments))

    def _lambda(self, step: Any, arguments: dict[str, Any]) -> dict[str, Any]:
        answer = json.loads(json.dumps(self.handler(json.loads(json.dumps(arguments)), None)))
        outputs = self.definition[step.name]["OutputParameters"]
        kinds = {output["OutputName"]: output["OutputType"] for output in outputs}
        assert answer.keys() == kinds.keys(), answer
        assert {"String"} == set(kinds.values())
        assert all(isinstance(value, str) for value in answer.values()), answer
        return {"OutputParameters": answer}

    def _train(self, _: Any, arguments: dict[str, Any]) -> dict[str, Any]:
        client = self.pipeline_executor.local_sagemaker_client
        client.create_training_job(TrainingJobName="pipelines-a-Train-b", **arguments)
        return {"TrainingJobName": "pipelines-a-Train-b"}


def estimator(_: Account) -> None:
    """The estimator of the page starts its job."""
    page.run(*page.ESTIMATOR)


def pipeline(account: Account) -> None:
    """The pipeline of the page is defined, and then executed."""
    handle = page.run(*page.PIPELINE_STEP)["handle"]
    defined = page.run(*page.PIPELINE)["pipeline"]
    assert "job" not in account.sent
    session = defined.sagemaker_session
    execution = Execution("run", defined, local_session=session)
    executor = local.LocalPipelineExecutor(execution, session)
    executor._step_executor_factory = Steps(executor, handle, account.sent["definition"])
    executor.execute()
    assert "Succeeded" == execution.status, execution.failure_reason


def main(path: Path) -> None:
    """Write the requests by recipe and flag."""
    quiet = path.with_suffix(".yaml")
    quiet.write_text(json.dumps(NO_TELEMETRY))
    os.environ["SAGEMAKER_USER_CONFIG_OVERRIDE"] = str(quiet)
    account = opened()
    offline()  # which also lets the SDK read its own files once
    with contextlib.redirect_stdout(sys.stderr):
        sent = {recipe.__name__: answers(recipe, account) for recipe in (estimator, pipeline)}
    path.write_text(json.dumps(sent))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
