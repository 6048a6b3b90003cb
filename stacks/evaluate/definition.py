"""EVALUATE: one execution takes one trial of one workload to its verdict.

Input: ``{"workload", "trial", "spec_key"}``. Documents travel through S3; states carry keys.
"""

from __future__ import annotations

from collections.abc import Mapping

from stacks.evaluate.runs import training_round
from stacks.evaluate.tasks import (
    ABORT,
    CATCH_ALL,
    EXECUTION,
    TRIAL,
    State,
    answer,
    call,
    catch,
    jsonata,
    retry,
)

# The lease of a workload outlives this (compilegate/usecases/acquire_lock.py).
MACHINE_SECONDS = 7 * 24 * 3600
DECISION = {**TRIAL, "decision_key": jsonata("$decision_key")}


def definition(functions: Mapping[str, str], *, bucket: str, topic_arn: str) -> State:
    """The machine; ``functions`` maps a Lambda's folder to its ARN."""
    return {
        "Comment": "Evaluates one workload: eligibility, speed gate, full runs, verdict, flag",
        "QueryLanguage": "JSONata",
        "StartAt": "AcquireLock",
        "TimeoutSeconds": MACHINE_SECONDS,
        "States": {
            **_before_spending(functions),
            **_rounds(functions, bucket),
            **_settled(functions, topic_arn),
            **_failed(functions),
        },
    }


def _before_spending(functions: Mapping[str, str]) -> State:
    locked = catch(["WorkloadLockedError"], "AlreadyRunning")
    return {
        "AcquireLock": call(
            functions["acquire_lock"],
            {**TRIAL, **EXECUTION},
            assign={"round_number": 0, "outcomes": []},
            catches=[locked, *CATCH_ALL],
            then="CheckEligibility",
        ),
        "CheckEligibility": call(
            functions["check_eligibility"],
            TRIAL,
            assign={"verdict": answer("verdict"), "decision_key": answer("decision_key")},
            catches=CATCH_ALL,
            then="IsEligible",
        ),
        "IsEligible": _choice({"$verdict = 'ineligible'": "RecordDecision"}, "PlanTrial"),
        "PlanTrial": call(
            functions["plan_trial"],
            {**TRIAL, **EXECUTION},
            assign={"verdict": answer("verdict"), "decision_key": answer("decision_key")},
            catches=CATCH_ALL,
            then="IsPlanned",
        ),
        "IsPlanned": _choice({"$verdict = 'continue'": "JudgeArms"}, "RecordDecision"),
    }


def _rounds(functions: Mapping[str, str], bucket: str) -> State:
    settle = functions["settle_failed_run"]
    rounds = {"$next_stage = 'speed'": "SpeedGate", "$next_stage = 'quality'": "QualityRuns"}
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
                "decision_key": answer("decision_key"),
            },
            catches=CATCH_ALL,
            then="NextStep",
        ),
        "NextStep": _choice(rounds, "RecordDecision"),
        "SpeedGate": training_round("Speed", settle, bucket=bucket, then="JudgeArms"),
        "QualityRuns": training_round("Quality", settle, bucket=bucket, then="JudgeArms"),
    }


def _settled(functions: Mapping[str, str], topic_arn: str) -> State:
    return {
        "RecordDecision": call(
            functions["record_decision"],
            DECISION,
            assign={"verdict": answer("verdict"), "decision_id": answer("decision_id")},
            catches=CATCH_ALL,
            then="ApplyFlag",
        ),
        "ApplyFlag": call(
            functions["apply_flag"],
            DECISION,
            assign={"flag_changed": answer("changed"), "flag_enabled": answer("enabled")},
            catches=CATCH_ALL,
            then="WriteReport",
        ),
        "WriteReport": call(
            functions["write_report"],
            DECISION,
            assign={"report_key": answer("report_key")},
            catches=CATCH_ALL,
            then="Notify",
        ),
        "Notify": {
            "Type": "Task",
            "Resource": "arn:aws:states:::sns:publish",
            "Arguments": {
                "TopicArn": topic_arn,
                "Subject": jsonata("$substring($states.input.subject, 0, 100)"),
                "Message": jsonata("$states.input.message"),
            },
            "Output": {},
            "TimeoutSeconds": 60,
            "Retry": [retry(["States.TaskFailed"], seconds=1, attempts=3)],
            "Catch": CATCH_ALL,
            "Next": "ReleaseLock",
        },
        "ReleaseLock": call(
            functions["release_lock"], {**TRIAL, **EXECUTION}, catches=CATCH_ALL, then="Done"
        ),
        "Done": {
            "Type": "Succeed",
            "Output": {
                name: jsonata(f"${name}")
                for name in (
                    "verdict",
                    "decision_id",
                    "decision_key",
                    "report_key",
                    "flag_changed",
                    "flag_enabled",
                )
            },
        },
    }


def _failed(functions: Mapping[str, str]) -> State:
    clean_up_failed = {
        "ErrorEquals": ["States.ALL"],
        "Next": "TrialFailed",
        "Output": {
            "error": "CleanUpFailed",
            "reason": jsonata(
                "'Cleaning up failed as well (' & $states.errorOutput.Error & '). The trial had"
                " failed with ' & $states.input.error & ': ' & $states.input.cause"
            ),
        },
    }
    return {
        ABORT: call(
            functions["abort_trial"],
            {
                **TRIAL,
                **EXECUTION,
                "error": jsonata("$states.input.error"),
                "cause": jsonata("$states.input.cause"),
            },
            catches=[clean_up_failed],
            then="TrialFailed",
        ),
        "TrialFailed": {
            "Type": "Fail",
            "Error": jsonata("$states.input.error"),
            "Cause": jsonata("$states.input.reason"),
        },
        "AlreadyRunning": {
            "Type": "Fail",
            "Error": "WorkloadLockedError",
            "Cause": jsonata("$parse($states.input.cause).errorMessage"),
        },
    }


def _choice(branches: Mapping[str, str], otherwise: str) -> State:
    return {
        "Type": "Choice",
        "Choices": [
            {"Condition": jsonata(condition), "Next": target}
            for condition, target in branches.items()
        ],
        "Default": otherwise,
    }
