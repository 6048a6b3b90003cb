"""The flag transition that follows from a review of production.

Nothing here turns a compiler on that was off. In the order of weight: a proven regression turns it
off; production that is no longer what was proven is stale, and off or left on as the team's policy
says; a probation that held becomes permanent. Whatever proves nothing leaves the flag alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from compilegate.domain.decision import Decision, Verdict
from compilegate.domain.flag import Flag
from compilegate.domain.flag_change import REVERT
from compilegate.domain.production.promotion import Promotion
from compilegate.domain.reasons import Reason
from compilegate.domain.workload.model import KEEP

STALE, PERMANENT, RESUME = "stale", "permanent", "resume"
PROBATION, REVERTED = "probation", "reverted"
# What makes a promotion stale beside the fields that differ, and can be restored like them.
TREATMENT, WATCHED = "the change is applied", "runs can be judged"
# A single run without the change may have been unlucky, though it be all that was run.
UNTREATED = 2


@dataclass(frozen=True)
class FlagTransition:
    """A change of the flag: its action, the new flag and why."""

    action: str
    flag: Flag
    reasons: tuple[Reason, ...]


@dataclass(frozen=True)
class Findings:
    """What is known after a run: the judge's decision, None without one, and what has changed.

    ``restored`` says that all that made a promotion stale was compared again and is as it was,
    ``untreated`` how many runs of the candidate did without the change, ``unwatched`` why its
    probation sees nothing.
    """

    decision: Decision | None = None
    changed: Sequence[Reason] = ()
    restored: bool = False
    untreated: int = 0
    unwatched: Sequence[Reason] = ()

    @property
    def verdict(self) -> Verdict | None:
        """The judge's verdict."""
        return self.decision.verdict if self.decision else None

    @property
    def without_change(self) -> bool:
        """Whether most runs do without it: what production trains is not what was proven."""
        return self.verdict is Verdict.INVALID and self.untreated >= UNTREATED


def flag_transition(
    promotion: Promotion, findings: Findings, on_stale: str
) -> FlagTransition | None:
    """The change that follows, None where the flag stays as it is."""
    flag, decision = promotion.flag, findings.decision
    decision_id = decision.decision_id if decision else flag.decision_id
    if decision and findings.verdict is Verdict.REVERT:
        off = _off(flag, REVERTED, decision_id)
        return FlagTransition(REVERT, off, decision.reasons)
    gone = tuple(findings.changed)
    if decision and findings.without_change:
        gone = (*gone, *decision.reasons)
    if flag.state != PERMANENT:
        gone = (*gone, *findings.unwatched)
    if gone:
        return None if flag.state == STALE else FlagTransition(STALE, _stale(flag, on_stale), gone)
    if flag.state == STALE:
        same = (Reason("as_proven", "production again trains what was proven"),)
        again = replace(flag, state=PROBATION, since=None)
        return FlagTransition(RESUME, again, same) if findings.restored else None
    if decision and findings.verdict is Verdict.PERMANENT and flag.state == PROBATION:
        kept = replace(flag, state=PERMANENT, decision_id=decision_id, since=None)
        return FlagTransition(PERMANENT, kept, decision.reasons)
    return None


def _stale(flag: Flag, on_stale: str) -> Flag:
    if on_stale == KEEP:
        return replace(flag, state=STALE, since=None)
    return _off(flag, STALE, flag.decision_id)


def _off(flag: Flag, state: str, decision_id: str | None) -> Flag:
    """Off; the candidate's name is kept."""
    return Flag(enabled=False, state=state, candidate=flag.candidate, decision_id=decision_id)
