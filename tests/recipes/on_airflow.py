"""Runs the page's DAG with Airflow itself, for every flag, in the AWS of the environment.

Runs in Airflow's own environment: ``.venv-airflow/bin/python -m tests.recipes.on_airflow FOLDER``
writes FOLDER/answers.json: the job that each run of the DAG started.
"""

from __future__ import annotations

import importlib.util
import json
import os
import sys
import time
from pathlib import Path
from typing import Any

from tests.recipes import page
from tests.recipes.flags import FLAGS, NAME

# Airflow reads its settings as it is imported.
HOME = Path(sys.argv[1])
os.environ |= {
    "AIRFLOW_HOME": str(HOME),
    "AIRFLOW__CORE__LOAD_EXAMPLES": "False",
    "AIRFLOW__DATABASE__SQL_ALCHEMY_CONN": f"sqlite:///{HOME}/airflow.db",
    "AIRFLOW__LOGGING__BASE_LOG_FOLDER": str(HOME / "logs"),
}

import boto3  # noqa: E402
from airflow.providers.amazon.aws.hooks import sagemaker as hook  # noqa: E402
from airflow.utils.db import initdb  # noqa: E402

from compilegate.flags import reading  # noqa: E402


class Hurried:
    """The clock of the operator, which asks for a job every 30 seconds; here they take two."""

    ahead = 0.0

    def monotonic(self) -> float:
        """Seconds, with those that were not waited."""
        return time.monotonic() + self.ahead

    def sleep(self, seconds: float) -> None:
        """Wait a moment for them."""
        self.ahead += seconds + 1  # it asks where more than 30 have gone by
        time.sleep(0.2)


def defined() -> Any:
    """The DAG in a file of Airflow's folder, as a team deploys it."""
    file = HOME / "dags" / "bert_docs.py"
    file.parent.mkdir()
    file.write_text(page.block("python", *page.AIRFLOW))
    spec = importlib.util.spec_from_file_location("bert_docs", file)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.dag


def job_of_run(dag: Any, flag: str) -> dict[str, Any]:
    """The training job that the DAG starts, and waits for, when the flag says this."""
    boto3.client("ssm").put_parameter(Name=NAME, Value=flag, Type="String", Overwrite=True)
    reading.forget()
    run = dag.test()
    sagemaker = boto3.client("sagemaker")
    newest = sagemaker.list_training_jobs(SortBy="CreationTime", SortOrder="Descending")
    name = newest["TrainingJobSummaries"][0]["TrainingJobName"]
    described = sagemaker.describe_training_job(TrainingJobName=name)
    tags = sagemaker.list_tags(ResourceArn=described["TrainingJobArn"])["Tags"]
    return {**described, "Tags": tags, "run": str(run.state)}


def main() -> None:
    """Write the jobs by flag."""
    hook.time = Hurried()
    initdb()
    dag = defined()
    jobs = {name: job_of_run(dag, flag) for name, flag in FLAGS.items()}
    (HOME / "answers.json").write_text(json.dumps(jobs, default=str))


if __name__ == "__main__":
    main()
