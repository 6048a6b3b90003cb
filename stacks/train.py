"""TRAIN: one execution takes one production run to its record, or records a team's own job.

Input: ``{"workload"}``, with ``"scheduled"`` (ISO time) where a schedule started it and
``"wait_seconds"`` where its first wait for capacity has another length than usual; or
``{"workload", "job"}``, or SageMaker's own event of a job that a team has started.
Documents travel through S3 and the ledger; states carry keys.
"""

from __future__ import annotations

from collections.abc import Mapping

from aws_cdk import aws_events as events
from aws_cdk import aws_events_targets as targets
from constructs import Construct

from compilegate.domain import naming
from compilegate.domain.production.attempts import RUN_SECONDS
from stacks.machine import MachineContext, TrainingMachine
from stacks.permissions import PRODUCTION_REQUESTS
from stacks.states import (
    EXECUTION,
    FAILURE,
    NULL,
    State,
    answer,
    call,
    catch,
    choice,
    go_on,
    job_caught,
    jsonata,
    load_request,
    notify,
    train,
    words,
)

INPUT = "$states.context.Execution.Input"
EVENT = f"{INPUT}.detail"
BROKEN = "TrainBroke"
# Step Functions takes 32,768 characters of a cause; a message needs far fewer.
CAUSE_SHOWN = 2000
# The variable that records that a message could not be sent, which delays nothing.
NOT_SENT = "notify_failed"
CATCH_ALL = [catch(["States.ALL"], BROKEN)]
RUN = {"workload": jsonata("$workload"), "run": jsonata("$run_id")}
# The fields of the output, null until they have a value.
EVENT_FIELDS = (
    "run_id", "arm", "why", "status", "reason", "counts", "verdict", "flag_changed",
    "review_failed", "notify_failed",
)  # fmt: skip


def definition(functions: Mapping[str, str], *, bucket: str, topic_arn: str) -> State:
    """The machine; ``functions`` maps a step's name to its function's ARN."""
    return {
        "Comment": "Trains one production run as the flag says, and records what came of it",
        "QueryLanguage": "JSONata",
        "StartAt": "Begin",
        "TimeoutSeconds": RUN_SECONDS,
        "States": {
            **_beginning(functions),
            **_attempt(functions, bucket),
            **_recorded(functions, topic_arn),
            **_reviewed(functions, topic_arn),
            **_endings(topic_arn),
            **_broken(topic_arn),
        },
    }


def _from_input(name: str) -> str:
    """A field of the input, null where it is not there."""
    return jsonata(f"$exists({INPUT}.{name}) ? {INPUT}.{name} : null")


def _from_event_or_input(expression: str, name: str) -> str:
    """From the event, else from the input, else null: a run may be started by either."""
    field = f"{INPUT}.{name}"
    return jsonata(f"$exists({expression}) ? {expression} : $exists({field}) ? {field} : null")


def tag_of_event(key: str) -> str:
    """A tag's value: AWS's guide shows the event's tags as a mapping, its schema as a list."""
    tags = f"{EVENT}.Tags"
    return f"[$lookup({tags}, '{key}'), {tags}[Key = '{key}'].Value][0]"


def _beginning(functions: Mapping[str, str]) -> State:
    return {
        "Begin": {
            "Type": "Pass",
            "Assign": {
                **dict.fromkeys((*EVENT_FIELDS, "owner"), NULL),
                "workload": _from_event_or_input(tag_of_event(naming.TAG_WORKLOAD), "workload"),
                "team_job": _from_event_or_input(f"{EVENT}.TrainingJobName", "job"),
                "scheduled": _from_input("scheduled"),
                "first_wait": _from_input("wait_seconds"),
            },
            "Output": {},
            "Next": "WhoTrains",
        },
        "WhoTrains": choice({"$team_job != null": "RecordTeamRun"}, "BeginRun"),
        "BeginRun": call(
            functions["begin_run"],
            {
                "workload": jsonata("$workload"),
                **EXECUTION,
                "started": jsonata("$states.context.Execution.StartTime"),
                "scheduled": jsonata("$scheduled"),
            },
            assign={
                "run_id": answer("run"),
                "arm": answer("arm"),
                "why": answer("why"),
                "attempt": answer("attempt"),
                "owner": answer("owner"),
            },
            catches=CATCH_ALL,
            then="IsOwnRun",
        ),
        "IsOwnRun": choice({"$states.input.duplicate": "Duplicate"}, "BuildRequest"),
        "Duplicate": {
            "Type": "Succeed",
            "Output": {"duplicate": True, "run_id": jsonata("$run_id")},
        },
    }


def _attempt(functions: Mapping[str, str], bucket: str) -> State:
    caught = [
        job_caught("States.TaskFailed", "RecordRun"),
        job_caught("States.Timeout", "RecordRun"),
        *CATCH_ALL,
    ]
    return {
        "BuildRequest": call(
            functions["build_request"],
            {**RUN, "attempt": jsonata("$attempt")},
            catches=CATCH_ALL,
            then="LoadRequest",
        ),
        "LoadRequest": load_request(bucket, then="Train", catches=CATCH_ALL),
        "Train": train(then="RecordRun", catches=caught),
    }


def _recorded(functions: Mapping[str, str], topic_arn: str) -> State:
    # Empty after a job that completed.
    failure = {
        name: jsonata(f"$exists($states.input.{name}) ? $states.input.{name} : ''")
        for name in FAILURE
    }
    own = {**RUN, "attempt": jsonata("$attempt"), "job": jsonata("$job"), **failure}
    team = {"workload": jsonata("$workload"), "job": jsonata("$team_job")}
    waits = "$next_step = 'wait'"
    after = {
        f"{waits} and $telling": "TellOfWaiting",
        waits: "WaitForCapacity",
        "$next_step = 'rerun'": "BuildRequest",
        "$next_step = 'end'": "Done",
    }
    return {
        "RecordRun": _record(functions, {**own, "wait_seconds": jsonata("$first_wait")}),
        "RecordTeamRun": _record(functions, team),
        "WhatNext": choice(after, "ReviewProduction"),
        "TellOfWaiting": notify(
            topic_arn, then="WaitForCapacity", catches=[go_on("WaitForCapacity", NOT_SENT)]
        ),
        "WaitForCapacity": {
            "Type": "Wait",
            "Seconds": jsonata("$wait_seconds"),
            "Output": {},
            "Next": "BuildRequest",
        },
    }


def _record(functions: Mapping[str, str], payload: Mapping[str, str]) -> State:
    """The output is the message to send, null for none."""
    state = call(
        functions["record_run"],
        {**payload, **EXECUTION},
        assign={
            "run_id": answer("run"),
            "arm": answer("arm"),
            "status": answer("status"),
            "reason": answer("reason"),
            "counts": answer("counts"),
            "next_step": answer("next"),
            "attempt": answer("attempt"),
            "wait_seconds": answer("wait_seconds"),
            "owner": answer("owner"),
            "tell": answer("tell"),
            "telling": jsonata("$states.result.Payload.tell != null"),
        },
        catches=CATCH_ALL,
        then="WhatNext",
    )
    return {**state, "Output": answer("tell")}


def _reviewed(functions: Mapping[str, str], topic_arn: str) -> State:
    """Judge what was recorded; a failure of this must not hide the run."""
    payload = {
        "subject": jsonata("'[compilegate] ' & $workload & ': a production run was not judged'"),
        "message": jsonata(
            "'Production run ' & $run_id & ' of ' & $workload & ' is recorded, but it could not"
            " be judged (' & $states.errorOutput.Error & '). The next run will judge both.'"
        ),
        "owner": jsonata("$owner"),
    }
    review = call(
        functions["review_production"],
        {**RUN, **EXECUTION},
        assign={"verdict": answer("verdict"), "flag_changed": answer("flag_changed")},
        catches=[go_on("TellOfReview", "review_failed", payload)],
        then="HasNews",
    )
    return {
        "ReviewProduction": review,
        "HasNews": choice({"$states.input.tell": "TellOfReview"}, "HasModel"),
        "TellOfReview": notify(topic_arn, then="HasModel", catches=[go_on("HasModel", NOT_SENT)]),
        "HasModel": choice({"$next_step = 'failed'": "TellOfFailure"}, "Done"),
    }


def _endings(topic_arn: str) -> State:
    """How a run ends: with a model, or without one."""
    return {
        "TellOfFailure": {
            "Type": "Pass",
            "Output": jsonata("$tell"),
            "Next": "NotifyFailure",
        },
        "NotifyFailure": notify(
            topic_arn, then="RunFailed", catches=[go_on("RunFailed", NOT_SENT)]
        ),
        "RunFailed": {
            "Type": "Fail",
            "Error": "RunFailed",
            "Cause": jsonata("$string($status) & ': ' & $string($reason)"),
        },
        "Done": {"Type": "Succeed", "Output": {name: jsonata(f"${name}") for name in EVENT_FIELDS}},
    }


def _broken(topic_arn: str) -> State:
    """The end of an execution whose own step failed; its input is ``{error, cause}``.

    The event of its end then invokes record_run.
    """
    return {
        BROKEN: {
            "Type": "Pass",
            "Assign": {
                "error": jsonata("$states.input.error"),
                "cause": jsonata(f"$substring($states.input.cause, 0, {CAUSE_SHOWN})"),
            },
            "Output": {
                "subject": jsonata("'[compilegate] ' & $workload & ': TRAIN broke'"),
                "message": jsonata(
                    "'A step of the production run of ' & $workload & ' failed ('"
                    f" & $states.input.error & '): ' & ({words('$states.input.cause')})"
                    " & '. Unless a schedule does, start it again: compilegate train '"
                    " & $workload"
                ),
                "owner": jsonata("$owner"),
            },
            "Next": "NotifyBroken",
        },
        "NotifyBroken": notify(topic_arn, then="Broken", catches=[go_on("Broken", NOT_SENT)]),
        "Broken": {"Type": "Fail", "Error": jsonata("$error"), "Cause": jsonata("$cause")},
    }


class Train(TrainingMachine):
    """``machine`` makes production runs, and records those that teams make themselves."""

    def __init__(self, scope: Construct, construct_id: str, *, around: MachineContext) -> None:
        super().__init__(
            scope,
            construct_id,
            around=around,
            definition=definition,
            requests=PRODUCTION_REQUESTS,
            clean_up=around.live["record_run"],
            what="a production run",
        )
        events.Rule(
            self,
            "TeamJobEnded",
            description="Records a training job that a team's own pipeline has started",
            event_pattern=events.EventPattern(
                source=["aws.sagemaker"],
                detail_type=["SageMaker Training Job State Change"],
                detail={
                    "TrainingJobStatus": ["Completed", "Failed", "Stopped"],
                    # Not the jobs of this machine, which records them itself.
                    "$or": [
                        {
                            "Tags": {
                                naming.TAG_STAGE: [naming.TEAM_STAGE],
                                # Without it the workload is not known.
                                naming.TAG_WORKLOAD: [{"exists": True}],
                            }
                        },
                        # Of a list one element must be this; that another names the workload
                        # cannot be asked.
                        {"Tags": {"Key": [naming.TAG_STAGE], "Value": [naming.TEAM_STAGE]}},
                    ],
                },
            ),
            targets=[targets.SfnStateMachine(self.machine, dead_letter_queue=around.dead_letters)],
        )
