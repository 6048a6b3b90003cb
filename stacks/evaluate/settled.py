"""The end of a trial: decision, approval where it is asked for, flag, report, message, lease.

Until the flag is applied any error aborts the trial. From then on the decision stands in the
ledger and the flag; what fails afterwards is told in the execution's output and holds nothing up.
"""

from __future__ import annotations

from collections.abc import Mapping

from stacks.evaluate.approval import approval
from stacks.evaluate.tasks import CATCH_ALL, TRIAL
from stacks.notify import notify
from stacks.states import EXECUTION, FAILURE, NULL, State, answer, call, jsonata, retry

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


def settled(functions: Mapping[str, str], topic_arn: str) -> State:
    """The states from RecordDecision to the end."""
    return {
        "RecordDecision": call(
            functions["record_decision"],
            DECISION,
            assign={name: answer(name) for name in ("verdict", "decision_id", "approval_needed")},
            catches=CATCH_ALL,
            then="NeedsApproval",
        ),
        **approval(functions, topic_arn, DECISION, then="ApplyFlag"),
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
        "ReleaseModels": {
            **call(
                functions["release_models"],
                {**DECISION, "flag_enabled": jsonata("$flag_enabled")},
                catches=[_go_on("WriteReport", "models_failed")],
                then="WriteReport",
            ),
            "Output": {},
        },
        "WriteReport": call(
            functions["write_report"],
            {**DECISION, "flag_enabled": jsonata("$flag_enabled")},
            assign={"report_key": answer("report_key")},
            catches=[_go_on("Notify", "report_failed", _without_report())],
            then="Notify",
        ),
        "Notify": notify(
            topic_arn, then="ReleaseLock", catches=[_go_on("ReleaseLock", "notify_failed")]
        ),
        "ReleaseLock": _release_lock(functions["release_lock"], then="Done"),
        "Done": {"Type": "Succeed", "Output": {name: jsonata(f"${name}") for name in OUTPUT}},
    }


def _release_lock(function_arn: str, *, then: str) -> State:
    """Tried again after any error, because a lease left behind keeps the workload waiting."""
    state = call(
        function_arn,
        {**TRIAL, **EXECUTION},
        catches=[_go_on(then, "release_failed")],
        then=then,
    )
    again = retry(["States.ALL"], seconds=2, attempts=3)
    return {**state, "Retry": [*state["Retry"], again]}


def _go_on(target: str, variable: str, output: Mapping[str, str] | None = None) -> State:
    """Write the failure down and go on: the decision stands."""
    return {
        "ErrorEquals": ["States.ALL"],
        "Next": target,
        "Assign": {variable: FAILURE},
        "Output": dict(output or {}),
    }


def _without_report() -> dict[str, str]:
    """What the topic is told when there is no report to take the words from."""
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
