"""Arms of which completed speed jobs left nothing, and the reason why no more are paid for."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence

from compilegate.domain.planning.rounds import MOST_WITHOUT_RESULT
from compilegate.domain.reasons import Reason

MISSING = "evidence_missing"


def missing_evidence(arm: str, jobs: Sequence[str]) -> Reason:
    """Why an arm is measured no more."""
    return Reason(
        MISSING,
        f"{arm}: {len(jobs)} speed jobs completed and left no summary.json of it in any block: "
        f"{', '.join(jobs)}",
        arm,
    )


def silent_arms(evidence: object) -> dict[str, Reason]:
    """The reason of each arm that was given up, by an evidence document, which need not be valid.

    The judge sees its blocks alone: of such an arm there are none, or too few.
    """
    plan = evidence.get("plan") if isinstance(evidence, Mapping) else None
    unmeasured = plan.get("unmeasured_by_job") if isinstance(plan, Mapping) else None
    jobs: dict[str, list[str]] = defaultdict(list)
    for job, arms in unmeasured.items() if isinstance(unmeasured, Mapping) else ():
        for arm in arms if isinstance(arms, list) else ():
            jobs[str(arm)].append(str(job))
    enough = {arm: silent for arm, silent in jobs.items() if len(silent) >= MOST_WITHOUT_RESULT}
    return {arm: missing_evidence(arm, silent) for arm, silent in enough.items()}
