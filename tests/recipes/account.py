"""An account that answers in place of AWS: it gives a flag, and keeps what would have been started.

A hook of botocore's, which has by then checked a call's arguments against the service's own
description; nothing leaves the machine.
"""

from __future__ import annotations

import json
import os
import socket
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import botocore.handlers

from compilegate.flags import reading
from tests.recipes.flags import FLAGS, NAME

NUMBER = "123456789012"
ARN = f"arn:aws:sagemaker:us-east-1:{NUMBER}"
# What the SDKs ask besides: who they are, and for a bucket to upload to.
OTHERS: dict[str, Any] = {
    "GetCallerIdentity": {"Account": NUMBER, "Arn": f"arn:aws:iam::{NUMBER}:role/pipeline"},
    "ListBuckets": {"Buckets": []}, "CreateBucket": {}, "HeadBucket": {}, "PutObject": {},
}  # fmt: skip
DENIED = {"Error": {"Code": "AccessDenied", "Message": "not allowed"}, "ResponseMetadata": {}}


class Account:
    """Answers botocore's event ``before-call``."""

    flag: str
    sent: dict[str, Any]

    def __call__(self, model: Any, params: dict[str, Any], **_: Any) -> tuple[Any, dict[str, Any]]:
        """The answer that takes the place of a request."""
        if model.service_model.service_name == "iam":  # a pipeline need not be allowed to ask it
            return SimpleNamespace(status_code=403, headers={}), DENIED
        if model.name == "PutObject" and params["url_path"].endswith("/sourcecode.json"):
            self.sent["started"] = json.loads(params["body"].read())
        answer = self._started(model.name, params["body"]) or OTHERS[model.name]
        return SimpleNamespace(status_code=200, headers={}), answer

    def _started(self, name: str, body: Any) -> dict[str, Any] | None:
        if name == "GetParameter":
            assert json.loads(body)["Name"] == NAME
            return {"Parameter": {"Value": self.flag}}
        if name == "CreateTrainingJob":
            self.sent["job"] = json.loads(body)
            return {"TrainingJobArn": f"{ARN}:training-job/a"}
        if name == "DescribeTrainingJob":
            return {"TrainingJobArn": f"{ARN}:training-job/a", "TrainingJobStatus": "InProgress",
                    **self.sent["job"]}  # fmt: skip
        if name == "CreatePipeline":
            self.sent["definition"] = json.loads(json.loads(body)["PipelineDefinition"])
            return {"PipelineArn": f"{ARN}:pipeline/a"}
        return None


def answers(recipe: Callable[[Account], object], account: Account) -> dict[str, dict[str, Any]]:
    """What a recipe sends with each flag."""
    sent = {}
    for name, flag in FLAGS.items():
        reading.forget()
        account.flag, account.sent = flag, {}
        recipe(account)
        sent[name] = account.sent
    return sent


def opened() -> Account:
    """The account that every session of this process asks, with no other way out of it."""

    def refuse(*_: object, **__: object) -> None:
        raise OSError("this test has no network")

    os.environ |= {
        "AWS_ACCESS_KEY_ID": "none", "AWS_SECRET_ACCESS_KEY": "none",
        "AWS_DEFAULT_REGION": "us-east-1",
    }  # fmt: skip
    socket.socket.connect = refuse  # type: ignore[method-assign,assignment]
    socket.getaddrinfo = refuse  # type: ignore[assignment]
    account = Account()
    botocore.handlers.BUILTIN_HANDLERS.append(("before-call", account))
    return account
