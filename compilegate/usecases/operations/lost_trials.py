"""Ends trials that have begun and have no end, though their execution has ended badly.

The event of its end was lost, or the clean-up failed each time. No lease and no job need be left
of it: a clean-up writes the start of a trial that was stopped before its first step, and may fail
right after.
"""

from __future__ import annotations

from compilegate.domain import ledger_keys
from compilegate.domain.production.orphans import is_over, lacks_clean_up
from compilegate.domain.records.trials import TrialStarted
from compilegate.ports import Services
from compilegate.usecases.registered import for_each_workload, try_each
from compilegate.usecases.trial.abort_trial import abort_trial


def end_lost_trials(services: Services, *, grace_seconds: float) -> int:
    """Clean up after them as the event would have; returns after how many.

    An execution that ended less than ``grace_seconds`` ago is left to its event. Raises the last
    failure once all were tried.
    """
    by_workload = for_each_workload(lambda name: _without_end(name, services), services.store)
    lost = (
        (f"{workload}: trial {started.trial} was not ended", started)
        for workload, trials in by_workload
        for started in trials
    )
    return try_each(lost, lambda started: _end(started, services, grace_seconds))


def _without_end(workload: str, services: Services) -> tuple[str, list[TrialStarted]]:
    past = services.ledger.history(workload, ledger_keys.TRIAL_ENTRIES)
    return workload, [one for one in past.started if one.trial not in past.ended_trials]


def _end(started: TrialStarted, services: Services, grace_seconds: float) -> bool:
    end = services.ends.end_of(started.execution)
    if end is None or not lacks_clean_up(started.execution, end, services.settings.stage):
        return False
    if not is_over(end, services.clock.now(), grace_seconds):
        return False
    abort_trial({"detail": end.detail}, services=services)
    return True
