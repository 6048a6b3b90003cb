"""One round of training jobs, a Map over the runs that JudgeArms asked for."""

from __future__ import annotations

from collections.abc import Mapping

from compilegate.domain import naming
from stacks.evaluate.tasks import CATCH_ALL, TRIAL
from stacks.states import NULL, State, call, catch, choice, jsonata
from stacks.training_job import job_caught, load_request, train

RUN = {"run": jsonata("$run.run"), "job": jsonata("$job")}


def speed_round(settle_arn: str, *, bucket: str, then: str) -> State:
    """Run the speed jobs of ``$runs``: one, or one per block and kind of node side by side."""
    completed = {"SpeedRunCompleted": _outcome()}
    state = _round("Speed", completed, settle_arn, bucket=bucket, then=then)
    states = state["ItemProcessor"]["States"]
    # A control decides nothing: one that never gets its nodes must not fail the trial.
    states["SpeedTrain"]["Catch"].append(job_caught("States.Timeout", "SpeedRunOverdue"))
    states |= {
        "SpeedRunOverdue": {
            "Type": "Choice",
            "Choices": [
                {"Condition": jsonata("$exists($run.control)"), "Next": "SpeedRunUnexplained"}
            ],
            "Default": "SpeedRoundOverdue",
        },
        "SpeedRoundOverdue": {
            "Type": "Fail",
            "Error": jsonata("$states.input.error"),
            "Cause": jsonata("$states.input.cause"),
        },
    }
    return state


def quality_round(settle_arn: str, *, bucket: str, then: str) -> State:
    """Run the full runs of ``$runs``; each that completes may end what is settled by it."""
    outcome_alone = "QualityRunNotLookedAt"
    completed = {
        "QualityRunCompleted": _look_early(settle_arn, otherwise=outcome_alone),
        outcome_alone: _outcome(),
    }
    return _round("Quality", completed, settle_arn, bucket=bucket, then=then)


def _round(
    stage: str, completed: Mapping[str, State], settle_arn: str, *, bucket: str, then: str
) -> State:
    """Run every item of ``$runs`` ({run, request_key, job_base}); outcomes go to ``then``.

    Jobs that the quota does not hold at once wait for their turn, or to be withdrawn.
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
                f"{stage}RunEnded": _run_ended(
                    completed=f"{stage}RunCompleted", otherwise=f"{stage}RunStopped"
                ),
                **completed,
                f"{stage}RunStopped": _run_stopped(then=f"{stage}RunFailed"),
                f"{stage}RunFailed": _run_failed(settle_arn, otherwise=f"{stage}RunUnexplained"),
                f"{stage}RunUnexplained": _outcome("Unknown"),
            },
        },
        "Assign": {"outcomes": jsonata("$states.result")},
        "Output": {},
        "Catch": CATCH_ALL,
        "Next": then,
    }


def _run_ended(*, completed: str, otherwise: str) -> State:
    """A job that reached its time limit, or was stopped, may come back without an error."""
    return {
        "Type": "Choice",
        "Choices": [
            {
                "Condition": jsonata("$states.input.TrainingJobStatus = 'Completed'"),
                "Next": completed,
            }
        ],
        "Default": otherwise,
    }


def _outcome(status: str = "Completed") -> State:
    return {"Type": "Pass", "Output": {**RUN, "status": status, "reason": NULL}, "End": True}


def _withdrawn() -> State:
    """A run whose turn came after settle_run had ended what it was asked for."""
    job = jsonata(f"$run.job_base & '{naming.FIRST_TRY}'")
    output = {"run": jsonata("$run.run"), "job": job, "status": "Stopped", "reason": NULL}
    return {"Type": "Pass", "Output": output, "End": True}


def _look_early(settle_arn: str, *, otherwise: str) -> State:
    """Judge what there is so far; that this fails must not cost the run that completed."""
    payload = {**TRIAL, **RUN, "status": "Completed", "runs": jsonata("$runs")}
    return call(settle_arn, payload, then=None, catches=[catch(["States.ALL"], otherwise)])


def _run_stopped(*, then: str) -> State:
    """What an error would have brought: a name, and the job's description as text."""
    return {
        "Type": "Pass",
        "Output": {"error": "States.TaskFailed", "cause": jsonata("$string($states.input)")},
        "Next": then,
    }


def _run_failed(settle_arn: str, *, otherwise: str) -> State:
    """Say why the run ended, and judge what there is so far; else JudgeArms looks it up."""
    payload = {
        **TRIAL,
        **RUN,
        "runs": jsonata("$runs"),
        "error": jsonata("$states.input.error"),
        "cause": jsonata("$states.input.cause"),
    }
    return call(settle_arn, payload, then=None, catches=[catch(["States.ALL"], otherwise)])
