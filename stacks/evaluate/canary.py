"""A round that production carries: nothing is started, the trial waits until it is told."""

from __future__ import annotations

from stacks.evaluate.tasks import CATCH_ALL, TRIAL
from stacks.states import EXECUTION, State, call, jsonata

TOKEN = jsonata("$states.context.Task.Token")
# The next look at the ledger tells what came of the round, so nothing travels along.
NO_OUTCOMES: list[str] = []


def canary_round(open_arn: str, *, then: str) -> State:
    """Ask production for the runs of ``$canary`` and wait; too long a wait goes on as well.

    JudgeArms then finds the round unfinished and ends the trial: undecided, and not failed.
    """
    payload = {
        **TRIAL,
        **EXECUTION,
        "token": TOKEN,
        **{name: jsonata(f"$canary.{name}") for name in ("round", "timeout_seconds")},
        # In brackets because JSONata unwraps a list of one.
        "runs": jsonata("[$canary.runs]"),
    }
    overdue = {
        "ErrorEquals": ["States.Timeout"],
        "Next": then,
        "Assign": {"outcomes": NO_OUTCOMES},
        "Output": {},
    }
    state = call(open_arn, payload, then=then, catches=[overdue, *CATCH_ALL])
    return {
        **state,
        "Resource": "arn:aws:states:::lambda:invoke.waitForTaskToken",
        "TimeoutSeconds": jsonata("$canary.timeout_seconds"),
        "Assign": {"outcomes": NO_OUTCOMES},
        "Output": {},
    }
