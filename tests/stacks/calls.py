"""What the deployed app calls, recorded in the embedded cloud with permissions enforced.

``COMPILEGATE_RECORD_CALLS=1 python -m pytest tests/e2e/… -m slow`` adds the calls of that run.
Names are those of the template as tests/stacks/template.py resolves it. Of calls that differ in a
workload, a trial or a job only, one is kept.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from compilegate.domain import naming
from compilegate_localcloud.lifecycle import LocalCloud
from tests.stacks.policies import Call
from tests.stacks.template import ACCOUNT, REGION

FILE = Path(__file__).with_name("calls.json")
LOCAL = "000000000000"
TAG = f"aws:PrincipalTag/{naming.ROLE_TAG_WORKLOAD}"
# Condition keys that the stack's policies name, as IAM writes them.
KEYS = {
    key.lower(): key
    for key in (
        "dynamodb:LeadingKeys", "s3:prefix", "aws:TagKeys", "iam:PermissionsBoundary",
        "iam:PolicyARN", "iam:PassedToService", "cloudwatch:namespace", TAG,
    )
}  # fmt: skip
WORKLOAD, TRIAL = "bert", "m0abc123"
# The embedded deployment's names as the template has them, and what differs from run to run.
PATTERNS = (
    (LOCAL, ACCOUNT), ("-local-", "-prod-"), ("/local/", "/prod/"),
    (r"role/(compilegate/)?local-", r"role/\1prod-"),
    (r"cg-[a-z0-9-]+?-\w{8}-([a-z])\w+-r\w", rf"cg-{WORKLOAD}-{TRIAL}-\1-r0"),
    (r"((?:experiments|production|decisions|reports)/)[a-z0-9-]+/\w{8}(?=/)",
     rf"\g<1>{WORKLOAD}/{TRIAL}"),
    (r"((?:workloads|compile-cache|reports)/)[a-z0-9-]+(?=/)", rf"\g<1>{WORKLOAD}"),
    (r"((?:workload|lock)#)[a-z0-9-]+", rf"\g<1>{WORKLOAD}"),
    (r"(fleet#|month#[\d-]+#)[0-9a-f]", r"\g<1>0"), (r"month#[\d-]+#", "month#2026-11#"),
    (r"(us-east-1-)[a-z0-9-]+", rf"\g<1>{WORKLOAD}"),
    (r"[0-9a-f]{12,64}(?=[./])", "0123456789ab"),
    (r"(execution:[a-z-]+:)[\w-]+", r"\1name"),
    (r"(requests/)\w+(?=\.json)", r"\1name"), (r"(jobs/)(?!checkpoints)[\w-]+(?=/)", r"\1name"),
    (r"(stopped/)[\w-]+(?=\.json)", r"\1name"), (r"(probation[/-])[\w-]+", r"\1name"),
    (r"(compile-cache/bert/)[^\"]+", r"\1name"), (r"(training-job/)(?!cg-)[\w-]+", r"\1nightly"),
    (r"(jobs/checkpoints/)[^\"]+", r"\1name"), (r"(Arn>:)\d+", r"\g<1>1"),
    (r"(algo-1-)\d+", r"\g<1>1"), (r"(cg-bert-m0abc123-)[a-z]", r"\1q"),
)  # fmt: skip
ARN_OF = {  # how the template refers to a resource in an ARN, and the ARN of its physical id
    "AWS::S3::Bucket": ("<{}.Arn>", "arn:aws:s3:::{}"),
    "AWS::DynamoDB::Table": ("<{}.Arn>", f"arn:aws:dynamodb:{REGION}:{LOCAL}:table/{{}}"),
    "AWS::Lambda::Function": ("<{}.Arn>", f"arn:aws:lambda:{REGION}:{LOCAL}:function:{{}}"),
    "AWS::Logs::LogGroup": ("<{}.Arn>", f"arn:aws:logs:{REGION}:{LOCAL}:log-group:{{}}"),
    "AWS::SQS::Queue": ("<{}.Arn>", f"arn:aws:sqs:{REGION}:{LOCAL}:{{}}"),
    "AWS::SNS::Topic": ("<{}>", "{}"),
    "AWS::IAM::ManagedPolicy": ("<{}>", "{}"),
}


def recorded() -> dict[str, list[Call]]:
    """The calls by the logical id of the role that made them, and of training jobs."""
    document = json.loads(FILE.read_text(encoding="utf-8"))
    return {
        owner: [Call(one["action"], one["resource"], one.get("keys", {})) for one in calls]
        for owner, calls in document.items()
    }


def record(cloud: LocalCloud, log: Path) -> None:
    """Add the calls of this run to the file."""
    client = cloud.running_state().client
    (stack,) = (
        one["StackName"]
        for one in client("cloudformation").describe_stacks()["Stacks"]
        if one["StackName"].startswith(naming.STACK_PREFIX)
    )
    answer = client("cloudformation").describe_stack_resources(StackName=stack)
    resources = answer["StackResources"]
    roles = {
        one["PhysicalResourceId"]: one["LogicalResourceId"]
        for one in resources
        if one["ResourceType"] == "AWS::IAM::Role"
    }
    names = {
        ARN_OF[kind][1].format(one["PhysicalResourceId"]): ARN_OF[kind][0].format(
            one["LogicalResourceId"]
        )
        for one in resources
        if (kind := one["ResourceType"]) in ARN_OF
    }
    known = json.loads(FILE.read_text(encoding="utf-8")) if FILE.exists() else {}
    calls = {(owner, json.dumps(one, sort_keys=True)) for owner in known for one in known[owner]}
    for line in log.read_text(encoding="utf-8").splitlines():
        call = json.loads(line)
        owner = roles.get(call["role"], "training")
        calls.add((owner, json.dumps(_neutral(call, names), sort_keys=True)))
    document = {
        owner: [json.loads(text) for one, text in sorted(calls) if one == owner]
        for owner in sorted({owner for owner, _ in calls})
    }
    FILE.write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")


def _neutral(call: Mapping[str, Any], names: Mapping[str, str]) -> dict[str, Any]:
    named = {KEYS.get(name.lower()): value for name, value in call["keys"].items()}
    keys = {name: value for name, value in named.items() if name and value}
    text = json.dumps({"action": call["action"], "resource": call["resource"], "keys": keys})
    for actual, shown in names.items():
        text = re.sub(re.escape(actual) + r"(?=[\"/:])", shown, text)
    if TAG in keys:
        text = text.replace(str(keys[TAG]), WORKLOAD)
    for pattern, replacement in PATTERNS:
        text = re.sub(pattern, replacement, text)
    document: dict[str, Any] = json.loads(text)
    return document
