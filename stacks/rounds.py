"""One round of a trial: a Map over training jobs, or a wait for production runs."""

from __future__ import annotations

from collections.abc import Mapping

from compilegate.domain import naming
from stacks.states import (
    CAUGHT,
    EXECUTION,
    NULL,
    State,
    call,
    catch,
    choice,
    job_caught,
    jsonata,
    load_request,
    train,
)

ABORT = "AbortTrial"
# Read from the execution rather than from a variable: there in every state, even the first.
TRIAL = {
    key: jsonata(f"$states.context.Execution.Input.{key}")
    for key in ("workload", "trial", "spec_key")
}
TOKEN = jsonata("$states.context.Task.Token")
CATCH_ALL = [catch(["States.ALL"], ABORT)]


RUN = {"run": jsonata("$run.run"), "job": jsonata("$job")}


def speed_round(on_job_ended_arn: str, *, bucket: str, then: str) -> State:
    """Run the speed jobs of ``$runs``: one, or one per block and kind of node side by side."""
    completed = {"SpeedRunCompleted": _outcome()}
    state = _round("Speed", completed, on_job_ended_arn, bucket=bucket, then=then)
    states = state["ItemProcessor"]["States"]
    # A control decides nothing: one that never gets its nodes must not fail the trial.
    states["SpeedTrain"]["Catch"].append(job_caught("States.Timeout", "SpeedRunOverdue"))
    states |= {
        "SpeedRunOverdue": choice(
            {"$exists($run.control)": "SpeedRunUnexplained"}, "SpeedRoundOverdue"
        ),
        "SpeedRoundOverdue": {
            "Type": "Fail",
            "Error": CAUGHT["error"],
            "Cause": CAUGHT["cause"],
        },
    }
    return state


def quality_round(on_job_ended_arn: str, *, bucket: str, then: str) -> State:
    """Run the full runs of ``$runs``; each that completes may end those it makes needless."""
    # Judge what there is so far; a failure of this must not cost the run that completed.
    payload = {**TRIAL, **RUN, "status": "Completed", "runs": jsonata("$runs")}
    completed = {
        "QualityRunCompleted": call(
            on_job_ended_arn,
            payload,
            then=None,
            catches=[catch(["States.ALL"], "QualityRunNotLookedAt")],
        ),
        "QualityRunNotLookedAt": _outcome(),
    }
    return _round("Quality", completed, on_job_ended_arn, bucket=bucket, then=then)


def _round(
    stage: str, completed: Mapping[str, State], on_job_ended_arn: str, *, bucket: str, then: str
) -> State:
    """Run every item of ``$runs`` ({run, request_key, job_base}); outcomes go to ``then``.

    Jobs that exceed the quota wait for their turn, or to be withdrawn.
    A job that fails is an outcome. Anything else fails the round: the other jobs are aborted.
    ``stage`` begins the states' names, which must be unique in the whole machine; ``completed``
    are the states of a job that completed, its first one named ``{stage}RunCompleted``.
    """
    return {
        "Type": "Map",
        "Items": jsonata("$runs"),
        # As many jobs as the account's quotas hold at once.
        "MaxConcurrency": jsonata("$max_concurrency"),
        "ItemProcessor": {
            "ProcessorConfig": {"Mode": "INLINE"},
            "StartAt": f"{stage}LoadRequest",
            "States": {
                f"{stage}LoadRequest": load_request(bucket, then=f"{stage}IsStillWanted"),
                f"{stage}IsStillWanted": choice(
                    {f"$exists($request.{naming.WITHDRAWN})": f"{stage}RunWithdrawn"},
                    f"{stage}Train",
                ),
                f"{stage}RunWithdrawn": _withdrawn(),
                f"{stage}Train": train(
                    then=f"{stage}RunEnded",
                    catches=[job_caught("States.TaskFailed", f"{stage}RunFailed")],
                    waits_for_quota=True,
                ),
                # A job that reached its time limit, or was stopped, may come back without an error.
                f"{stage}RunEnded": choice(
                    {"$states.input.TrainingJobStatus = 'Completed'": f"{stage}RunCompleted"},
                    f"{stage}RunStopped",
                ),
                **completed,
                # What an error would bring: a name, and the job's description as text.
                f"{stage}RunStopped": {
                    "Type": "Pass",
                    "Output": {
                        "error": "States.TaskFailed",
                        "cause": jsonata("$string($states.input)"),
                    },
                    "Next": f"{stage}RunFailed",
                },
                f"{stage}RunFailed": _run_failed(
                    on_job_ended_arn, otherwise=f"{stage}RunUnexplained"
                ),
                f"{stage}RunUnexplained": _outcome("Unknown"),
            },
        },
        "Assign": {"outcomes": jsonata("$states.result")},
        "Output": {},
        "Catch": CATCH_ALL,
        "Next": then,
    }


def _outcome(status: str = "Completed") -> State:
    return {"Type": "Pass", "Output": {**RUN, "status": status, "reason": NULL}, "End": True}


def _withdrawn() -> State:
    """A run that OnJobEnded withdrew before its turn came."""
    job = jsonata(f"$run.job_base & '{naming.FIRST_TRY}'")
    output = {"run": jsonata("$run.run"), "job": job, "status": "Stopped", "reason": NULL}
    return {"Type": "Pass", "Output": output, "End": True}


def _run_failed(on_job_ended_arn: str, *, otherwise: str) -> State:
    """Explain why the run ended, and judge what there is so far; else JudgeArms does."""
    payload = {**TRIAL, **RUN, "runs": jsonata("$runs"), **CAUGHT}
    return call(on_job_ended_arn, payload, then=None, catches=[catch(["States.ALL"], otherwise)])


# JudgeArms reads the runs from the ledger.
NO_OUTCOMES: list[str] = []


def canary_round(open_arn: str, *, then: str) -> State:
    """Request the runs of ``$canary`` from production and wait; a timeout continues as well.

    JudgeArms then finds the round unfinished and ends the trial: inconclusive, not failed.
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
