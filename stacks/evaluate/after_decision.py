"""The end of a trial: decision, approval where it is asked for, flag, report, message, lease.

Until the flag is applied any error aborts the trial. From then on the decision stands in the
ledger and the flag; what fails afterwards is told in the execution's output and holds nothing up.
"""

from __future__ import annotations

from collections.abc import Mapping

from stacks.evaluate.approval import approval
from stacks.evaluate.tasks import CATCH_ALL, TRIAL
from stacks.notify import notify
from stacks.states import EXECUTION, NULL, State, answer, call, go_on, jsonata, retry

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


def after_decision(functions: Mapping[str, str], topic_arn: str) -> State:
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
        **_notified(functions, topic_arn),
        "ReleaseLock": _release_lock(functions["release_lock"], then="Done"),
        "Done": {"Type": "Succeed", "Output": {name: jsonata(f"${name}") for name in OUTPUT}},
    }


def _notified(functions: Mapping[str, str], topic_arn: str) -> State:
    """What follows a decision that stands: models, report, message."""
    settled = {**DECISION, "flag_enabled": jsonata("$flag_enabled")}
    release = call(
        functions["release_models"],
        settled,
        catches=[go_on("WriteReport", "models_failed")],
        then="WriteReport",
    )
    return {
        "ReleaseModels": {**release, "Output": {}},
        "WriteReport": call(
            functions["write_report"],
            settled,
            assign={"report_key": answer("report_key")},
            catches=[go_on("Notify", "report_failed", _without_report())],
            then="Notify",
        ),
        "Notify": notify(
            topic_arn, then="ReleaseLock", catches=[go_on("ReleaseLock", "notify_failed")]
        ),
    }


def _release_lock(function_arn: str, *, then: str) -> State:
    """Tried again after any error, because a lease left behind keeps the workload waiting."""
    state = call(
        function_arn,
        {**TRIAL, **EXECUTION},
        catches=[go_on(then, "release_failed")],
        then=then,
    )
    again = retry(["States.ALL"], seconds=2, attempts=3)
    return {**state, "Retry": [*state["Retry"], again]}


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
