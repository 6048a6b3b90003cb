"""How a TRAIN execution ends: with a model, without one, or because something of its own broke."""

from __future__ import annotations

from collections.abc import Sequence

from stacks.notify import notify
from stacks.states import State, go_on, jsonata

# Step Functions takes 32,768 characters of a cause; a message needs far fewer.
CAUSE_SHOWN = 2000
# The variable that says that a message could not be sent, which holds nothing up.
UNTOLD = "notify_failed"


def endings(topic_arn: str, arguments: Sequence[str]) -> State:
    """The ends that a run comes to; ``told`` are variables of the output."""
    return {
        "TellOfFailure": {
            "Type": "Pass",
            "Output": jsonata("$tell"),
            "Next": "NotifyFailure",
        },
        "NotifyFailure": notify(topic_arn, then="RunFailed", catches=[go_on("RunFailed", UNTOLD)]),
        "RunFailed": {
            "Type": "Fail",
            "Error": "RunFailed",
            "Cause": jsonata("$string($status) & ': ' & $string($reason)"),
        },
        "Done": {"Type": "Succeed", "Output": {name: jsonata(f"${name}") for name in arguments}},
    }


def broken(name: str, topic_arn: str) -> State:
    """The end of an execution whose own step failed; its input is ``{error, cause}``.

    The event of its end then has what is known of the run recorded (construct.py).
    """
    return {
        name: {
            "Type": "Pass",
            "Assign": {
                "error": jsonata("$states.input.error"),
                "cause": jsonata(f"$substring($states.input.cause, 0, {CAUSE_SHOWN})"),
            },
            "Output": {
                "subject": jsonata("'[compilegate] ' & $workload & ': TRAIN broke'"),
                "message": jsonata(
                    "'A step of the production run of ' & $workload & ' failed ('"
                    " & $states.input.error & '): '"
                    f" & $substring($states.input.cause, 0, {CAUSE_SHOWN})"
                ),
                "owner": jsonata("$owner"),
            },
            "Next": "NotifyBroken",
        },
        "NotifyBroken": notify(topic_arn, then="Broken", catches=[go_on("Broken", UNTOLD)]),
        "Broken": {"Type": "Fail", "Error": jsonata("$error"), "Cause": jsonata("$cause")},
    }
