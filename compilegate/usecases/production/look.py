"""One look at a promotion: what production has run since, what the judge says, what follows.

Nothing is changed here. What is found is one entry of the ledger, which watch_production.py
writes before it acts on it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from compilegate.domain import naming
from compilegate.domain.decision import JUDGE_VERSION, Decision, Reason, Verdict
from compilegate.domain.errors import InvalidEvidenceError, InvalidInputError, NotFoundError
from compilegate.domain.production.consequence import (
    PERMANENT,
    STALE,
    TREATMENT,
    WATCHED,
    Consequence,
    Findings,
    consequence,
)
from compilegate.domain.production.promotion import Promotion
from compilegate.domain.production.runs import ProductionRun
from compilegate.domain.production.unwatched import blind_spots, not_watched, unmeasured
from compilegate.domain.production.watch import (
    probation_document,
    row_at_the_end,
    unseen_at_the_end,
    watched_runs,
)
from compilegate.domain.workload.model import Policy
from compilegate.ports import Services
from compilegate.usecases.production.production_job import load_registered
from compilegate.usecases.production.staleness import Comparison, compare_with_proven
from compilegate.usecases.production.watch_notice import told_kind
from compilegate.usecases.trial import Spec, Trial, load_record, save_record

KIND = "watch"

Judge = Callable[[Mapping[str, Any]], Decision]
Entries = Sequence[Mapping[str, Any]]


@dataclass(frozen=True)
class Look:
    """What one look at a promotion starts from."""

    workload: str
    run: str
    promotion: Promotion
    entries: Entries
    runs: Sequence[ProductionRun]
    services: Services

    @property
    def trial(self) -> Trial:
        """The trial behind the promotion."""
        return Trial(self.workload, self.promotion.trial, "")


def settle(look: Look, judge: Judge) -> dict[str, Any]:
    """The look's ledger entry: what was found and what it does to the flag.

    Raises NotFoundError where the records of the trial behind the promotion are gone.
    """
    evidence = _evidence(look)
    found = _unmeasured(look) if evidence is None else _measured(look, evidence, judge)
    entry = {
        "kind": KIND,
        "at": _seen_until(look),
        "run": look.run,
        "trial": look.promotion.trial,
        "candidate": look.promotion.candidate,
        "by_human": look.promotion.by_human,
        **found,
    }
    return {**entry, "tell": told_kind(entry, _before(look))}


def _evidence(look: Look) -> Mapping[str, Any] | None:
    """The trial's, None where a person turned on what it has planned and not measured."""
    try:
        found: Mapping[str, Any] = load_record(look.services.store, look.trial, "evidence")
    except NotFoundError:
        if not look.promotion.by_human:
            raise
        return None
    measured = look.promotion.candidate in [arm["name"] for arm in found["arms"]]
    return None if look.promotion.by_human and not measured else found


def _unmeasured(look: Look) -> dict[str, Any]:
    return {
        "verdict": None,
        "next": None,
        "reasons": [],
        "notes": _told([unmeasured(look.promotion)]),
        "changed": [],
        "differs": [],
        "not_compared": [],
        "runs": 0,
        "unseen": 0,
        "launched_by": [],
        "cooldown_days": Policy().cooldown_days,
        "change": None,
        **_keep(look, None, None),
    }


def _measured(look: Look, evidence: Mapping[str, Any], judge: Judge) -> dict[str, Any]:
    promotion, runs = look.promotion, look.runs
    watched = watched_runs(runs, promotion)
    document = _document(look, evidence, watched)
    decision = _judged(document, judge, promotion) if document else None
    spec = _registered(look)
    today = [run for run in watched if run.run == look.run]
    compared = compare_with_proven(
        promotion, look.workload, spec, look.services, evidence=evidence, runs=today
    )
    found = Findings(
        decision,
        compared.changed,
        restored=_is_restored(look, compared, today),
        untreated=sum(run.result.get("applied") is False for run in watched),
        unwatched=not_watched(runs, promotion),
    )
    agreed = asdict(spec.workload.policy) if spec else {**asdict(Policy()), **evidence["policy"]}
    follows = consequence(promotion, found, agreed["on_stale"])
    over = promotion.flag.state == PERMANENT
    return {
        "verdict": str(decision.verdict) if decision else None,
        "next": decision.next if decision else None,
        "reasons": _told(decision.reasons if decision else ()),
        "notes": [] if over else _told(blind_spots(runs, promotion)),
        "changed": _told(compared.changed),
        "differs": _differs(compared, found),
        "not_compared": list(compared.unknown),
        "runs": len(watched),
        "unseen": len(unseen_at_the_end(runs, promotion)),
        "launched_by": sorted({run.launched_by for run in watched}),
        "cooldown_days": agreed["cooldown_days"],
        "change": _change(promotion, follows),
        **_keep(look, document, decision),
    }


def _differs(compared: Comparison, found: Findings) -> list[str]:
    """All that makes the promotion stale, by name."""
    treatment = [TREATMENT] if found.without_the_change else []
    return sorted([*compared.differs, *treatment, *([WATCHED] if found.unwatched else [])])


def _is_restored(look: Look, compared: Comparison, today: Sequence[ProductionRun]) -> bool:
    """Whether all that has been amiss since the promotion became stale was seen to be mended.

    By a run that is evidence: silence mends nothing.
    """
    looks = _looks(look)
    begun = [place for place, entry in enumerate(looks) if _made_stale(entry)]
    if not begun or not today:
        return False
    amiss = {name for entry in looks[begun[-1] :] for name in entry["differs"]}
    mine = [run.result for run in today if run.arm == look.promotion.candidate]
    seen = set(compared.same) | ({WATCHED} if mine else set())
    if any(result.get("finished") and result.get("applied") is True for result in mine):
        seen.add(TREATMENT)
    return amiss <= seen


def _made_stale(entry: Mapping[str, Any]) -> bool:
    return entry["change"] is not None and entry["change"]["action"] == STALE


def _seen_until(look: Look) -> int:
    """Now, and not before the end of any run that was looked at: the clock counts whole seconds.

    The next run goes by it in telling what the judge knows from what it does not.
    """
    ends = [math.ceil(run.ended_at) for run in look.runs]
    return max([look.services.clock.now(), *ends])


def _document(
    look: Look, evidence: Mapping[str, Any], watched: Sequence[ProductionRun]
) -> dict[str, Any] | None:
    """What is put before the judge; once permanent only a row of runs that went wrong."""
    promotion = look.promotion
    if promotion.flag.state == PERMANENT:
        watched = row_at_the_end(watched, promotion)
        if not watched:
            return None
    earlier = [run for run in look.runs if run.started_at < promotion.at]
    return probation_document(evidence, promotion, watched, earlier)


def _judged(document: Mapping[str, Any], judge: Judge, promotion: Promotion) -> Decision:
    """The judge's word; evidence that cannot be read proves nothing, and the flag stays."""
    try:
        return judge(document)
    except InvalidEvidenceError as error:
        return Decision(
            workload=str(document["workload"]),
            decision_id=f"{promotion.trial}-unreadable",
            judge_version=JUDGE_VERSION,
            stage="probation",
            verdict=Verdict.INCONCLUSIVE,
            candidate=promotion.candidate,
            reasons=(Reason("evidence_invalid", str(error)),),
        )


def _registered(look: Look) -> Spec | None:
    """What production trains by its registration; None where a team trains without one."""
    try:
        return load_registered(look.workload, look.services).spec
    except (NotFoundError, InvalidInputError):
        return None


def _keep(
    look: Look, document: Mapping[str, Any] | None, decision: Decision | None
) -> dict[str, Any]:
    """Evidence and decision under the decision's id, so that it can be replayed."""
    if document is None or decision is None:
        return {"decision_id": None, "decision_key": None, "evidence_key": None}
    name, store = decision.decision_id, look.services.store
    flag = naming.flag_parameter(look.services.settings.stage, look.workload)
    shown = {**decision.to_dict(flag), "trial": look.promotion.trial}
    evidence = save_record(store, look.trial, naming.probation_evidence_record(name), document)
    key = save_record(store, look.trial, naming.probation_record(name), shown)
    return {"decision_id": name, "decision_key": key, "evidence_key": evidence}


def _before(look: Look) -> Mapping[str, Any] | None:
    """The look before this one at the same promotion."""
    return next(reversed(_looks(look)), None)


def _looks(look: Look) -> list[Mapping[str, Any]]:
    """All looks at this promotion, oldest first."""
    earlier = [
        entry
        for entry in look.entries
        if entry.get("kind") == KIND
        and entry["trial"] == look.promotion.trial
        and entry["at"] >= look.promotion.at
    ]
    return sorted(earlier, key=lambda entry: (entry["at"], entry["run"]))


def _change(promotion: Promotion, follows: Consequence | None) -> dict[str, Any] | None:
    """The change of the flag as the entry keeps it; its id is that of the flag's version."""
    if follows is None:
        return None
    return {
        "change_id": f"watch#{promotion.version}#{follows.action}",
        "action": follows.action,
        "to": follows.flag.to_json(),
        "reason": "; ".join(reason.message for reason in follows.reasons),
        "decided_at": _decided_at(promotion, follows),
    }


def _decided_at(promotion: Promotion, follows: Consequence) -> int:
    """Whatever a person has said from then on stands, but for a proven regression.

    A person who turned something on knew what production trains: that it is not what was measured
    is told to them, and left to them.
    """
    theirs = promotion.by_human and follows.action == STALE
    return promotion.at if theirs else promotion.at + 1


def _told(reasons: Sequence[Reason]) -> list[dict[str, str]]:
    return [{"code": reason.code, "message": reason.message} for reason in reasons]
