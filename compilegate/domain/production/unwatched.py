"""What a watch does not see, so that nobody takes its silence for proof."""

from __future__ import annotations

from collections.abc import Sequence

from compilegate.domain.decision import Reason
from compilegate.domain.production.promotion import Promotion
from compilegate.domain.production.runs import ProductionRun
from compilegate.domain.production.watch import unreadable_runs, unseen_at_the_end

# So many runs of the candidate in a row that leave nothing to judge are told.
UNSEEN = 3
# So many of them that trained to their end: nobody has seen what production is made of since.
UNWATCHED = 6
COMPLETED = "Completed"


def blind_spots(runs: Sequence[ProductionRun], promotion: Promotion) -> tuple[Reason, ...]:
    """What people are told of runs that could not be judged."""
    found = []
    broken = unreadable_runs(runs, promotion)
    if broken:
        run, problem = broken[-1]
        text = (
            f"Left out, because the judge cannot read what they recorded: {len(broken)} "
            f"production runs, at last job {run.job}: {problem}"
        )
        found.append(Reason("run_unreadable", text))
    row = unseen_at_the_end(runs, promotion)
    if len(row) >= UNSEEN:
        text = f"The last {len(row)} runs of {promotion.candidate} left nothing to judge"
        found.append(Reason("nothing_to_judge", text))
    return tuple(found)


def not_watched(runs: Sequence[ProductionRun], promotion: Promotion) -> tuple[Reason, ...]:
    """Why a promotion on probation may not stay on: it is used, and nobody sees what it does.

    A job that was stopped or lost made nothing that could be used, so that it is told only.
    """
    row = unseen_at_the_end(runs, promotion)
    used = sum(run.status == COMPLETED for run in row)
    if used < UNWATCHED:
        return ()
    text = (
        f"the last {len(row)} runs of {promotion.candidate} left nothing to judge, although "
        f"{used} of them trained to their end: nobody sees what the change does"
    )
    return (Reason("not_watched", text),)


def unmeasured(promotion: Promotion) -> Reason:
    """Why a promotion by a person is not watched at all."""
    return Reason(
        "not_measured",
        f"Trial {promotion.trial} has planned {promotion.candidate} and measured nothing of it: "
        "there is nothing to hold production against, and its runs are not watched",
    )
