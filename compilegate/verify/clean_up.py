"""Removes what a verification has created: whatever happened, in whatever state it is."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

from botocore.exceptions import BotoCoreError, ClientError

from compilegate.domain import naming
from compilegate.ports import ObjectStore
from compilegate.verify.account import Account
from compilegate.verify.jobs import WORKLOAD
from compilegate.verify.temporary import stack_name

AWS_ERRORS = (BotoCoreError, ClientError, OSError)
PREFIXES = (
    f"{naming.EXPERIMENTS_PREFIX}{WORKLOAD}/",
    f"{naming.WORKLOADS_PREFIX}{WORKLOAD}/",
    naming.compile_cache_prefix(WORKLOAD),
)


def clean_up(
    account: Account,
    store: ObjectStore,
    trial: str,
    executions: Sequence[str],
    *,
    stop_seconds: float,
) -> list[str]:
    """Stop executions and jobs, then remove stack and objects; one failure stops nothing else.

    Returns what could not be removed. ``stop_seconds`` is how long jobs may take to stop.
    """
    name, jobs = stack_name(trial), naming.trial_job_prefix(WORKLOAD, trial)
    steps: list[tuple[str, Callable[[], bool]]] = [
        *((f"execution {arn}", partial(_stop_execution, account, arn)) for arn in executions),
        (f"training jobs {jobs}*", partial(_stop_jobs, account, jobs, stop_seconds)),
        (f"stack {name}", partial(account.delete_stack, name)),
        *(
            (f"s3://{store.bucket}/{prefix}", partial(account.delete, store.bucket, prefix))
            for prefix in PREFIXES
        ),
    ]
    left = []
    for what, remove in steps:
        try:
            if not remove():
                left.append(what)
        except AWS_ERRORS as error:
            left.append(f"{what} ({error})")
    return left


def _stop_execution(account: Account, arn: str) -> bool:
    if account.execution(arn).status == "RUNNING":
        account.stop_execution(arn)
    return True


def _stop_jobs(account: Account, prefix: str, seconds: float) -> bool:
    """Whether no job is in progress any more."""

    def stopped() -> bool:
        active = account.active_jobs(prefix)
        for name in active:
            account.stop_job(name)
        return not active

    return account.wait_for(stopped, seconds)
