"""With permissions enforced: roles grant enough for the loop, and too little for an attack."""

from __future__ import annotations

import json
from collections.abc import Iterator

import boto3
import pytest
from botocore.exceptions import ClientError

from compilegate.domain import naming
from tests.e2e.conftest import App, deployed, trial_document
from tests.e2e.production import Production

pytestmark = pytest.mark.e2e
VICTIM = "victim"


@pytest.fixture(scope="module")
def strict(tmp_path_factory: pytest.TempPathFactory) -> Iterator[App]:
    with deployed(tmp_path_factory.mktemp("strict"), enforce_iam=True) as app:
        yield app


def as_job_of(app: App, workload: str):
    """An S3 client that may do what a job of this workload may.

    Its role trusts SageMaker alone; the test lets itself in as well.
    """
    arn = app.outputs["JobRoles"] + workload
    account = arn.split(":")[4]
    statement = {
        "Effect": "Allow",
        "Principal": {"AWS": f"arn:aws:iam::{account}:root"},
        "Action": "sts:AssumeRole",
    }
    app.client("iam").update_assume_role_policy(
        RoleName=arn.rpartition("/")[2],
        PolicyDocument=json.dumps({"Version": "2012-10-17", "Statement": [statement]}),
    )
    credentials = app.client("sts").assume_role(RoleArn=arn, RoleSessionName="SageMaker")
    return boto3.client(
        "s3",
        endpoint_url=app.cloud.running_state().endpoint,
        region_name="us-east-1",
        aws_access_key_id=credentials["Credentials"]["AccessKeyId"],
        aws_secret_access_key=credentials["Credentials"]["SecretAccessKey"],
        aws_session_token=credentials["Credentials"]["SessionToken"],
    )


def test_a_trial_and_a_production_run_need_no_more_than_their_roles_grant(strict):
    running = strict.start(trial_document(VICTIM))
    decision = running.decision(240)
    workload = Production(strict, VICTIM)
    workload.run()

    assert "promote" == decision["verdict"], decision["reasons"]
    assert running.flag()["enabled"]
    assert "<html" in running.report("html")
    (run,) = workload.runs()
    assert (True, "compile") == (run.counts, run.arm)


def test_a_job_cannot_touch_what_another_workloads_jobs_left(strict):
    other = Production(strict, "attacker")
    other.run()
    bucket = strict.outputs["DataBucket"]
    listed = strict.client("s3").list_objects_v2(Bucket=bucket, Prefix=f"experiments/{VICTIM}/")
    outputs = [one["Key"] for one in listed["Contents"] if one["Key"].endswith("output.tar.gz")]
    places = [*outputs, f"{naming.compile_cache_prefix(VICTIM)}inductor/x"]
    hostile, own = as_job_of(strict, "attacker"), as_job_of(strict, VICTIM)

    assert outputs
    for key in places:
        with pytest.raises(ClientError, match="AccessDenied"):
            hostile.put_object(Bucket=bucket, Key=key, Body=b"better")
    own.put_object(Bucket=bucket, Key=places[-1], Body=b"kernel")  # what its own role is for
