"""EVALUATE: one execution takes one trial of one workload to its verdict.

Input: ``{"workload", "trial", "spec_key"}``. Documents travel through S3; states carry keys.
"""

from __future__ import annotations

from collections.abc import Mapping

from constructs import Construct

from compilegate.domain.naming import REFUSED
from compilegate.domain.planning.rounds import MACHINE_SECONDS
from stacks.evaluate.after_decision import after_decision
from stacks.evaluate.canary import canary_round
from stacks.evaluate.runs import quality_round, speed_round
from stacks.evaluate.tasks import ABORT, CATCH_ALL, TRIAL
from stacks.machine import MachineContext, TrainingMachine
from stacks.permissions import REQUESTS
from stacks.states import EXECUTION, State, answer, call, choice, jsonata


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
            **after_decision(functions, topic_arn),
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
    settle = functions["settle_run"]
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
        "SpeedGate": speed_round(settle, bucket=bucket, then="JudgeArms"),
        "QualityRuns": quality_round(settle, bucket=bucket, then="JudgeArms"),
        "CanaryRuns": canary_round(functions["open_canary"], then="JudgeArms"),
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
        # Not a failure, which would raise an alarm: nothing went wrong and nothing was started.
        "AlreadyRunning": {
            "Type": "Succeed",
            "Output": {REFUSED: jsonata(f"$states.input.{REFUSED}")},
        },
    }


class Evaluate(TrainingMachine):
    """``machine`` runs trials; an execution that ends badly is cleaned up after."""

    def __init__(self, scope: Construct, construct_id: str, *, around: MachineContext) -> None:
        bucket, topic = around.storage.bucket, around.topic
        super().__init__(
            scope,
            construct_id,
            around=around,
            document=definition(around.arns, bucket=bucket.bucket_name, topic_arn=topic.topic_arn),
            requests=REQUESTS,
            clean_up=around.live["abort_trial"],
            what="a trial",
        )
