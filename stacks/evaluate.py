"""EVALUATE: one execution takes one trial of one workload to its verdict.

Input: ``{"workload", "trial", "spec_key"}``. Documents travel through S3; states carry keys. The
definition is plain data made from ARNs, so that it can be read, checked and run without the CDK.

Until the flag is applied any error aborts the trial. From then on the decision stands in the
ledger and the flag; what fails afterwards is in the execution's output and delays nothing.
"""

from __future__ import annotations

from collections.abc import Mapping

from constructs import Construct

from compilegate.domain.naming import REFUSED
from compilegate.domain.planning.rounds import MACHINE_SECONDS
from compilegate.domain.records.trials import WAIT_SECONDS
from stacks.machine import MachineContext, TrainingMachine
from stacks.permissions import REQUESTS
from stacks.rounds import ABORT, CATCH_ALL, TOKEN, TRIAL, canary_round, quality_round, speed_round
from stacks.states import (
    CAUGHT,
    EXECUTION,
    NULL,
    State,
    answer,
    call,
    choice,
    go_on,
    jsonata,
    notify,
    retry,
    words,
)

DECISION = {**TRIAL, "decision_key": jsonata("$decision_key")}
# What may fail after the flag, null while it has not; each is {error, cause}.
FAILURES = ("models_failed", "report_failed", "notify_failed", "release_failed")
OUTPUT = (
    "verdict",
    "decision_id",
    "decision_key",
    "report_key",
    "flag_changed",
    "flag_enabled",
    "approval",
    *FAILURES,
)


def definition(functions: Mapping[str, str], *, bucket: str, topic_arn: str) -> State:
    """The machine; ``functions`` maps a step's name to its function's ARN."""
    return {
        "Comment": "Evaluates one workload: eligibility, speed gate, full runs, verdict, flag",
        "QueryLanguage": "JSONata",
        "StartAt": "AcquireLock",
        "TimeoutSeconds": MACHINE_SECONDS,
        "States": {
            **_before_spending(functions),
            **_rounds(functions, bucket),
            **_after_decision(functions, topic_arn),
            **_failed(functions),
        },
    }


def _before_spending(functions: Mapping[str, str]) -> State:
    return {
        "AcquireLock": call(
            functions["acquire_lock"],
            {**TRIAL, **EXECUTION},
            assign={"round_number": 0, "outcomes": []},
            catches=CATCH_ALL,
            then="HoldsLock",
        ),
        "HoldsLock": choice(
            {f"$exists($states.input.{REFUSED})": "AlreadyRunning"}, "CheckEligibility"
        ),
        "CheckEligibility": call(
            functions["check_eligibility"],
            TRIAL,
            assign={"verdict": answer("verdict"), "decision_key": answer("decision_key")},
            catches=CATCH_ALL,
            then="IsEligible",
        ),
        "IsEligible": choice({"$verdict = 'ineligible'": "RecordDecision"}, "PlanTrial"),
        "PlanTrial": call(
            functions["plan_trial"],
            {**TRIAL, **EXECUTION},
            assign={"verdict": answer("verdict"), "decision_key": answer("decision_key")},
            catches=CATCH_ALL,
            then="IsPlanned",
        ),
        "IsPlanned": choice({"$verdict = 'continue'": "JudgeArms"}, "RecordDecision"),
    }


def _rounds(functions: Mapping[str, str], bucket: str) -> State:
    on_job_ended = functions["on_job_ended"]
    rounds = {
        "$next_stage = 'speed'": "SpeedGate",
        "$next_stage = 'quality'": "QualityRuns",
        "$next_stage = 'canary'": "CanaryRuns",
    }
    return {
        "JudgeArms": call(
            functions["judge_arms"],
            {
                **TRIAL,
                **EXECUTION,
                "round": jsonata("$round_number"),
                "runs": jsonata("$outcomes"),
            },
            assign={
                "verdict": answer("verdict"),
                "next_stage": answer("next_stage"),
                "round_number": answer("round"),
                # In brackets because JSONata unwraps a list of one.
                "runs": jsonata("[$states.result.Payload.runs]"),
                "max_concurrency": answer("max_concurrency"),
                "canary": answer("canary"),
                "decision_key": answer("decision_key"),
            },
            catches=CATCH_ALL,
            then="NextStep",
        ),
        "NextStep": choice(rounds, "RecordDecision"),
        "SpeedGate": speed_round(on_job_ended, bucket=bucket, then="JudgeArms"),
        "QualityRuns": quality_round(on_job_ended, bucket=bucket, then="JudgeArms"),
        "CanaryRuns": canary_round(functions["open_canary"], then="JudgeArms"),
    }


def _failed(functions: Mapping[str, str]) -> State:
    clean_up_failed = {
        "ErrorEquals": ["States.ALL"],
        "Next": "TrialFailed",
        "Output": {
            "error": "CleanUpFailed",
            "reason": jsonata(
                "'Cleaning up failed as well (' & $states.errorOutput.Error & '). Start a trial"
                " again, which cleans up first. The trial had failed with '"
                f" & $states.input.error & ': ' & ({words('$states.input.cause')})"
            ),
        },
    }
    return {
        ABORT: call(
            functions["abort_trial"],
            {**TRIAL, **EXECUTION, **CAUGHT},
            catches=[clean_up_failed],
            then="TrialFailed",
        ),
        "TrialFailed": {
            "Type": "Fail",
            "Error": jsonata("$states.input.error"),
            "Cause": jsonata("$states.input.reason"),
        },
        # Not a failure, which would raise an alarm: nothing went wrong and nothing was started.
        "AlreadyRunning": {
            "Type": "Succeed",
            "Output": {REFUSED: jsonata(f"$states.input.{REFUSED}")},
        },
    }


def _approval(functions: Mapping[str, str], topic_arn: str) -> State:
    """A promotion that needs approval: ask, notify, wait, take the answer.

    The ledger keeps question and answer; the token only ends the wait. CloseApproval reads the
    answer however the wait ended; no answer is a rejection.
    """
    timeout = {"ErrorEquals": ["States.Timeout"], "Next": "CloseApproval", "Output": {}}
    # The question is in the ledger, and `status` shows it.
    not_sent = {"ErrorEquals": ["States.ALL"], "Next": "AwaitApproval", "Output": {}}
    wait = call(
        functions["await_approval"],
        {**TRIAL, "token": TOKEN},
        catches=[timeout, *CATCH_ALL],
        then="CloseApproval",
    )
    return {
        "NeedsApproval": choice({"$approval_needed": "AskApproval"}, "ApplyFlag"),
        "AskApproval": call(
            functions["ask_approval"],
            {**DECISION, **EXECUTION},
            catches=CATCH_ALL,
            then="TellApproval",
        ),
        "TellApproval": notify(topic_arn, then="AwaitApproval", catches=[not_sent]),
        "AwaitApproval": {
            **wait,
            "Resource": "arn:aws:states:::lambda:invoke.waitForTaskToken",
            "TimeoutSeconds": WAIT_SECONDS,
            "Output": {},
        },
        "CloseApproval": call(
            functions["close_approval"], TRIAL, catches=CATCH_ALL, then="ApplyFlag"
        ),
    }


def _after_decision(functions: Mapping[str, str], topic_arn: str) -> State:
    release_lock = call(
        functions["release_lock"],
        {**TRIAL, **EXECUTION},
        catches=[go_on("Done", "release_failed")],
        then="Done",
    )
    return {
        "RecordDecision": call(
            functions["record_decision"],
            DECISION,
            assign={name: answer(name) for name in ("verdict", "decision_id", "approval_needed")},
            catches=CATCH_ALL,
            then="NeedsApproval",
        ),
        **_approval(functions, topic_arn),
        "ApplyFlag": call(
            functions["apply_flag"],
            DECISION,
            assign={
                "flag_changed": answer("changed"),
                "flag_enabled": answer("enabled"),
                "approval": answer("approval"),
                "report_key": NULL,
                **dict.fromkeys(FAILURES, NULL),
            },
            catches=CATCH_ALL,
            then="ReleaseModels",
        ),
        **_notified(functions, topic_arn),
        # Retried after any error, because a lock left behind blocks the workload.
        "ReleaseLock": {
            **release_lock,
            "Retry": [*release_lock["Retry"], retry(["States.ALL"], seconds=2, attempts=3)],
        },
        "Done": {"Type": "Succeed", "Output": {name: jsonata(f"${name}") for name in OUTPUT}},
    }


def _notified(functions: Mapping[str, str], topic_arn: str) -> State:
    """What follows the flag: models, report, message."""
    decided = {**DECISION, "flag_enabled": jsonata("$flag_enabled")}
    release = call(
        functions["release_models"],
        decided,
        catches=[go_on("WriteReport", "models_failed")],
        then="WriteReport",
    )
    return {
        "ReleaseModels": {**release, "Output": {}},
        "WriteReport": call(
            functions["write_report"],
            decided,
            assign={"report_key": answer("report_key")},
            catches=[go_on("Notify", "report_failed", _without_report())],
            then="Notify",
        ),
        "Notify": notify(
            topic_arn, then="ReleaseLock", catches=[go_on("ReleaseLock", "notify_failed")]
        ),
    }


def _without_report() -> dict[str, str]:
    """The message when there is no report to take it from."""
    workload, trial = (f"$states.context.Execution.Input.{key}" for key in ("workload", "trial"))
    return {
        "subject": jsonata(f"'[compilegate] ' & {workload} & ': ' & $verdict & ', no report'"),
        "message": jsonata(
            f"{workload} & ': ' & $verdict & '.\\n\\nThe decision stands and the flag is '"
            " & ($flag_enabled ? 'on' : 'off') & '. Its report could not be written ('"
            " & $states.errorOutput.Error & '). To write it again:"
            f" compilegate report ' & {workload} & ' --trial ' & {trial}"
        ),
    }


class Evaluate(TrainingMachine):
    """``machine`` runs trials; an execution that ends badly is cleaned up after."""

    def __init__(self, scope: Construct, construct_id: str, *, around: MachineContext) -> None:
        super().__init__(
            scope,
            construct_id,
            around=around,
            definition=definition,
            requests=REQUESTS,
            clean_up=around.live["abort_trial"],
            what="a trial",
        )
