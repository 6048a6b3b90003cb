"""Says of the models that a trial's candidate made in production whether they may be released.

Until the verdict they are tagged as held back. A tag is the model's own: it stays with the job
whatever becomes of the flag later.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from compilegate.domain import naming
from compilegate.domain.decision import Verdict
from compilegate.domain.production.canary import REJECTED, RELEASED, held_runs
from compilegate.domain.production.history import history
from compilegate.ports import Services
from compilegate.usecases.trial.documents import Trial


def release_models(event: Mapping[str, Any], *, services: Services) -> dict[str, Any]:
    """Tag the models of the trial's candidates by its decision; repeating it changes nothing.

    Released are those of a candidate that was promoted and whose flag is on: what a person did not
    approve of is not. Returns the jobs by their new tag.
    """
    trial = Trial.from_event(event)
    decision = json.loads(services.store.get(event["decision_key"]))
    on = decision["verdict"] == Verdict.PROMOTE and event["flag_enabled"] is True
    tagged: dict[str, Any] = {RELEASED: [], REJECTED: []}
    past = history(services.ledger.entries(trial.workload))
    for run in held_runs(past, trial.trial):
        value = RELEASED if on and run.arm == decision["candidate"] else REJECTED
        services.jobs.tag(run.job, {naming.TAG_RELEASE: value})
        tagged[value].append(run.job)
    return tagged


def reject_models(trial: Trial, *, services: Services) -> list[str]:
    """Tag what the candidates of a trial without a verdict made: nothing vouches for it."""
    past = history(services.ledger.entries(trial.workload))
    jobs = [run.job for run in held_runs(past, trial.trial)]
    for job in jobs:
        services.jobs.tag(job, {naming.TAG_RELEASE: REJECTED})
    return jobs
