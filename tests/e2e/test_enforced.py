"""Roles grant too little for an attack; that they grant enough, all tests of this folder show."""

from __future__ import annotations

import json

import boto3
import pytest
from botocore.exceptions import ClientError

from compilegate.domain import naming
from tests.e2e.conftest import App
from tests.e2e.production import Production

pytestmark = pytest.mark.e2e
VICTIM, ATTACKER = "victim", "attacker"


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


def test_a_job_cannot_touch_what_another_workloads_jobs_left(app, trial):
    trial(name=VICTIM, speedup=0.9).decision()
    Production(app, ATTACKER).run()
    bucket = app.outputs["DataBucket"]
    listed = app.client("s3").list_objects_v2(Bucket=bucket, Prefix=f"experiments/{VICTIM}/")
    outputs = [one["Key"] for one in listed["Contents"] if one["Key"].endswith("output.tar.gz")]
    places = [*outputs, f"{naming.compile_cache_prefix(VICTIM)}inductor/x"]
    hostile, own = as_job_of(app, ATTACKER), as_job_of(app, VICTIM)

    assert outputs
    for key in places:
        with pytest.raises(ClientError, match="AccessDenied"):
            hostile.put_object(Bucket=bucket, Key=key, Body=b"better")
    own.put_object(Bucket=bucket, Key=places[-1], Body=b"kernel")  # what its own role is for
