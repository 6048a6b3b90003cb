"""A promotion that a person has to agree to: ask, tell the topic, wait, take the answer.

The ledger keeps question and answer; the token only ends the wait. Whatever the wait ended with,
CloseApproval reads what was answered, and silence is a no.
"""

from __future__ import annotations

from collections.abc import Mapping

from compilegate.domain.approval import WAIT_SECONDS
from stacks.evaluate.tasks import CATCH_ALL, TRIAL
from stacks.notify import notify
from stacks.states import EXECUTION, State, call, choice, jsonata

TOKEN = jsonata("$states.context.Task.Token")


def approval(
    functions: Mapping[str, str], topic_arn: str, decision: Mapping[str, str], *, then: str
) -> State:
    """The states from NeedsApproval to ``then``; ``$approval_needed`` says whether to ask."""
    close = "CloseApproval"
    over = {"ErrorEquals": ["States.Timeout"], "Next": close, "Output": {}}
    # The question stands in the ledger, and `status` shows it.
    untold = {"ErrorEquals": ["States.ALL"], "Next": "AwaitApproval", "Output": {}}
    wait = call(
        functions["await_approval"],
        {**TRIAL, "token": TOKEN},
        catches=[over, *CATCH_ALL],
        then=close,
    )
    return {
        "NeedsApproval": choice({"$approval_needed": "AskApproval"}, then),
        "AskApproval": call(
            functions["ask_approval"],
            {**decision, **EXECUTION},
            catches=CATCH_ALL,
            then="TellApproval",
        ),
        "TellApproval": notify(topic_arn, then="AwaitApproval", catches=[untold]),
        "AwaitApproval": {
            **wait,
            "Resource": "arn:aws:states:::lambda:invoke.waitForTaskToken",
            "TimeoutSeconds": WAIT_SECONDS,
            "Output": {},
        },
        close: call(functions["close_approval"], TRIAL, catches=CATCH_ALL, then=then),
    }
