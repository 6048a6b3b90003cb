"""What every state of EVALUATE says of itself: its trial, and where an error leads."""

from __future__ import annotations

from stacks.states import catch, jsonata

ABORT = "AbortTrial"
# Read from the execution rather than from a variable: there in every state, even the first.
TRIAL = {
    key: jsonata(f"$states.context.Execution.Input.{key}")
    for key in ("workload", "trial", "spec_key")
}
CATCH_ALL = [catch(["States.ALL"], ABORT)]
