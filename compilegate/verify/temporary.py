"""The temporary stack of a verification: everything that it needs besides the deployed stage.

One stack, so that one call removes all of it.
"""

from __future__ import annotations

import json
from typing import Any

from compilegate.verify.jobs import WORKLOAD
from stacks.training_job import load_request, train

SECONDS_TO_ANSWER = 300
Document = dict[str, Any]


def stack_name(trial: str) -> str:
    """Name of the stack, and of the state machine in it."""
    return f"compilegate-verify-{trial}"


def template(*, trial: str, bucket: str, role_arn: str) -> str:
    """The CloudFormation template; ``role_arn`` is the deployed trial machine's own role."""
    name = stack_name(trial)
    resources = {
        "Queue": {"Type": "AWS::SQS::Queue", "Properties": {"QueueName": name}},
        "QueuePolicy": {"Type": "AWS::SQS::QueuePolicy", "Properties": _queue_policy()},
        "Machine": _machine(name, _training(bucket), role_arn),
        "SenderRole": {"Type": "AWS::IAM::Role", "Properties": _sender()},
        "TokenMachine": _machine(f"{name}-token", _token(), _arn("SenderRole")),
        "JobEvents": _rule("aws.sagemaker", "SageMaker Training Job State Change", {
            "TrainingJobName": [{"prefix": f"cg-{WORKLOAD}-{trial}-"}],
            "TrainingJobStatus": ["Completed", "Failed", "Stopped"],
        }),
        "ExecutionEvents": _rule("aws.states", "Step Functions Execution Status Change", {
            "stateMachineArn": [{"Ref": "Machine"}], "status": ["FAILED"],
        }),
        # Last, because a role takes a moment until it can be assumed.
        "Schedule": {"Type": "AWS::Scheduler::Schedule", "Properties": _schedule(name),
                     "DependsOn": ["TokenMachine", "JobEvents", "ExecutionEvents"]},
    }  # fmt: skip
    outputs = {"Machine": {"Ref": "Machine"}, "TokenMachine": {"Ref": "TokenMachine"},
               "Queue": {"Ref": "Queue"}}  # fmt: skip
    return json.dumps(
        {
            "Description": "Compilegate: temporary resources of verify-aws, safe to delete",
            "Resources": resources,
            "Outputs": {key: {"Value": value} for key, value in outputs.items()},
        }
    )


def _arn(resource: str) -> Document:
    return {"Fn::GetAtt": [resource, "Arn"]}


def _training(bucket: str) -> Document:
    """The two states that every deployed machine starts its jobs with, without their retries."""
    state = train(then="Done", catches=[])
    return {
        "QueryLanguage": "JSONata",
        "StartAt": "LoadRequest",
        "States": {
            "LoadRequest": load_request(bucket, then="Train"),
            "Train": {key: value for key, value in state.items() if key not in ("Retry", "Catch")},
            "Done": {"Type": "Succeed"},
        },
    }


def _token() -> Document:
    return {
        "QueryLanguage": "JSONata",
        "StartAt": "Wait",
        "States": {
            "Wait": {
                "Type": "Task",
                "Resource": "arn:aws:states:::sqs:sendMessage.waitForTaskToken",
                "Arguments": {
                    "QueueUrl": "${Queue}",
                    "MessageBody": {"token": "{% $states.context.Task.Token %}"},
                },
                "TimeoutSeconds": SECONDS_TO_ANSWER,
                "End": True,
            }
        },
    }


def _machine(name: str, definition: Document, role: object) -> Document:
    return {
        "Type": "AWS::StepFunctions::StateMachine",
        "Properties": {
            "StateMachineName": name,
            "RoleArn": role,
            "DefinitionString": {"Fn::Sub": json.dumps(definition)},
        },
    }


def _queue_policy() -> Document:
    statement = {
        "Effect": "Allow",
        "Principal": {"Service": "events.amazonaws.com"},
        "Action": "sqs:SendMessage",
        "Resource": _arn("Queue"),
        "Condition": {"ArnEquals": {"aws:SourceArn": [_arn("JobEvents"), _arn("ExecutionEvents")]}},
    }
    document = {"Version": "2012-10-17", "Statement": [statement]}
    return {"Queues": [{"Ref": "Queue"}], "PolicyDocument": document}


def _sender() -> Document:
    """May send to the queue, for the schedule and for the state that hands out its token."""
    services = ["scheduler.amazonaws.com", "states.amazonaws.com"]
    trust = {"Effect": "Allow", "Principal": {"Service": services}, "Action": "sts:AssumeRole"}
    queue = _arn("Queue")
    send = {"Effect": "Allow", "Action": "sqs:SendMessage", "Resource": queue}
    return {
        "AssumeRolePolicyDocument": {"Version": "2012-10-17", "Statement": [trust]},
        "Policies": [
            {
                "PolicyName": "send",
                "PolicyDocument": {"Version": "2012-10-17", "Statement": [send]},
            }
        ],
    }


def _rule(source: str, kind: str, detail: Document) -> Document:
    pattern = {"source": [source], "detail-type": [kind], "detail": detail}
    target = {"Id": "queue", "Arn": _arn("Queue")}
    return {
        "Type": "AWS::Events::Rule",
        "Properties": {"EventPattern": pattern, "Targets": [target]},
    }


def _schedule(name: str) -> Document:
    return {
        "Name": name,
        "ScheduleExpression": "rate(1 minutes)",
        "FlexibleTimeWindow": {"Mode": "OFF"},
        "Target": {
            "Arn": _arn("Queue"),
            "RoleArn": _arn("SenderRole"),
            "Input": json.dumps({"scheduled": "<aws.scheduler.scheduled-time>"}),
        },
    }
