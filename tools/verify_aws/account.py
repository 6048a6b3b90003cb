"""The AWS calls of a verification; every one of them also works on the embedded cloud."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

from botocore.exceptions import ClientError

from compilegate.adapters.sagemaker import JobLogs, SageMakerJobs
from compilegate.adapters.state_machines import StepFunctions, StepFunctionsExecutions
from compilegate.adapters.stores import error_code
from compilegate.domain.errors import EnvironmentNotReadyError
from compilegate_discover.account import metric_query, search_request

ClientFactory = Callable[[str], Any]
STACK_SECONDS = 300.0
CAPABILITIES = ["CAPABILITY_IAM"]
DAY_SECONDS = 24 * 3600


class Account:
    """Calls of one account and region; ``client`` makes a client from a service's name."""

    def __init__(self, client: ClientFactory, *, poll_seconds: float) -> None:
        self._client = client
        self._poll_seconds = poll_seconds
        self._logs = JobLogs(client("logs"))
        self.jobs = SageMakerJobs(client("sagemaker"))
        self.since = time.time() - DAY_SECONDS  # every job of this verification is younger

    def wait_for(self, ready: Callable[[], bool], seconds: float) -> bool:
        """Ask until ``ready`` or until the time is up; returns whether it was."""
        deadline = time.monotonic() + seconds
        while not ready():
            if time.monotonic() > deadline:
                return False
            time.sleep(self._poll_seconds)
        return True

    def create_stack(self, name: str, template: str) -> Mapping[str, str]:
        """Create a stack and wait for it; its outputs. EnvironmentNotReadyError where it fails."""
        self._client("cloudformation").create_stack(
            StackName=name, TemplateBody=template, Capabilities=CAPABILITIES
        )
        self.wait_for(lambda: not self._stack(name)["StackStatus"].endswith("IN_PROGRESS"),
                      STACK_SECONDS)  # fmt: skip
        stack = self._stack(name)
        if stack["StackStatus"] != "CREATE_COMPLETE":
            events = self._client("cloudformation").describe_stack_events(StackName=name)
            why = [item.get("ResourceStatusReason") for item in events["StackEvents"]
                   if item["ResourceStatus"] == "CREATE_FAILED"]  # fmt: skip
            raise EnvironmentNotReadyError(
                f"The stack {name} did not come up: {why or stack['StackStatus']}",
                fix="check that your credentials may create roles, queues, rules, schedules "
                "and state machines.",
            )
        return {item["OutputKey"]: item["OutputValue"] for item in stack["Outputs"]}

    def _stack(self, name: str) -> Mapping[str, Any]:
        stack: Mapping[str, Any] = self._client("cloudformation").describe_stacks(StackName=name)[
            "Stacks"
        ][0]
        return stack

    def delete_stack(self, name: str) -> bool:
        """Delete a stack and wait; returns whether it is gone."""
        self._client("cloudformation").delete_stack(StackName=name)
        return self.wait_for(lambda: self._is_gone(name), STACK_SECONDS)

    def _is_gone(self, name: str) -> bool:
        try:
            return bool(self._stack(name)["StackStatus"] == "DELETE_COMPLETE")
        except ClientError as error:
            if error_code(error) != "ValidationError":  # what it says of a stack that is gone
                raise
            return True

    def executions(self, machine: str) -> StepFunctionsExecutions:
        """Executions of one state machine."""
        return StepFunctionsExecutions(self._client("stepfunctions"), machine)

    def answer(self, token: str, output: Mapping[str, Any]) -> bool:
        """SendTaskSuccess; returns whether a state still waited."""
        return StepFunctions(self._client("stepfunctions")).send_success(token, output)

    def machine_called(self, name: str) -> Mapping[str, Any]:
        """DescribeStateMachine by name; EnvironmentNotReadyError where there is none."""
        states = self._client("stepfunctions")
        for page in states.get_paginator("list_state_machines").paginate():
            for machine in page["stateMachines"]:
                if machine["name"] == name:
                    described: Mapping[str, Any] = states.describe_state_machine(
                        stateMachineArn=machine["stateMachineArn"]
                    )
                    return described
        raise EnvironmentNotReadyError(
            f"There is no state machine {name}", fix="deploy the stage again with `make deploy`."
        )

    def validate(self, definition: str) -> str:
        """``OK``, or what ValidateStateMachineDefinition finds wrong."""
        answer = self._client("stepfunctions").validate_state_machine_definition(
            definition=definition, severity="ERROR"
        )
        problems = "; ".join(item["message"] for item in answer["diagnostics"])
        return problems or str(answer["result"])

    def job(self, name: str) -> Mapping[str, Any] | None:
        """DescribeTrainingJob, None for a job that does not exist."""
        return self.jobs.describe(name) or None

    def jobs_created(self, created: datetime) -> Sequence[Mapping[str, Any]]:
        """What Search has of the jobs created in a second, by the request of ``discover``."""
        second = created.replace(microsecond=0)
        request = search_request(second, second + timedelta(seconds=1))
        answer = self._client("sagemaker").search(**request)
        return [result["TrainingJob"] for result in answer["Results"]]

    def gpu_percent(self, name: str, begin: datetime, end: datetime) -> Sequence[float]:
        """How busy the GPUs of a job were, minute by minute, by the query of ``discover``."""
        query = metric_query("u0", "GPUUtilization", name, 60, "Average")
        answer = self._client("cloudwatch").get_metric_data(
            MetricDataQueries=[query], StartTime=begin, EndTime=end
        )
        values: Sequence[float] = answer["MetricDataResults"][0]["Values"]
        return values

    def log(self, name: str) -> Sequence[str]:
        """Every line of a job's log so far."""
        lines: list[str] = []
        token: str | None = None
        while True:
            more, following = self._logs.lines(name, token)
            lines += more
            if following == token or not more:
                return lines
            token = following

    def messages(self, queue: str) -> Iterator[Mapping[str, Any]]:
        """Bodies that lie in the queue, each handed out once."""
        sqs = self._client("sqs")
        while received := sqs.receive_message(
            QueueUrl=queue, MaxNumberOfMessages=10, WaitTimeSeconds=1
        ).get("Messages"):
            for message in received:
                sqs.delete_message(QueueUrl=queue, ReceiptHandle=message["ReceiptHandle"])
                yield json.loads(message["Body"])

    def keys(self, bucket: str, prefix: str) -> Sequence[str]:
        """Every key below a prefix."""
        pages = self._client("s3").get_paginator("list_objects_v2").paginate(
            Bucket=bucket, Prefix=prefix
        )  # fmt: skip
        return [item["Key"] for page in pages for item in page.get("Contents", ())]

    def delete_role(self, name: str) -> bool:
        """Delete a role with what is attached, if there is one; True."""
        iam = self._client("iam")
        try:
            attached = iam.list_attached_role_policies(RoleName=name)["AttachedPolicies"]
        except ClientError as error:
            if error_code(error) != "NoSuchEntity":
                raise
            return True
        for policy in attached:
            iam.detach_role_policy(RoleName=name, PolicyArn=policy["PolicyArn"])
        iam.delete_role(RoleName=name)
        return True

    def delete(self, bucket: str, prefix: str) -> bool:
        """Delete every object below a prefix; True."""
        for key in self.keys(bucket, prefix):
            self._client("s3").delete_object(Bucket=bucket, Key=key)
        return True
