"""After every production run: is the promotion still right, and what follows if it is not?

A look is settled by its ledger entry, which is written before the flag is touched and says what
is done to it: a repeated call finds the entry and does the same again, which changes nothing.
Two looks at once read the same ledger and want the same change of the same version of the flag,
which is made once (usecases/change_flag.py).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from compilegate.domain import naming
from compilegate.domain.decision import JUDGE_VERSION, Decision, Reason, Verdict
from compilegate.domain.errors import InvalidEvidenceError, InvalidInputError, NotFoundError
from compilegate.domain.flag import parse_flag
from compilegate.domain.flag_change import REVERT, TRAIN, FlagChange, flag_entries
from compilegate.domain.judging.judge import judge as ask_judge
from compilegate.domain.production.consequence import (
    PERMANENT,
    STALE,
    Consequence,
    Findings,
    consequence,
)
from compilegate.domain.production.promotion import Promotion, standing_promotion
from compilegate.domain.production.runs import ProductionRun, production_runs
from compilegate.domain.production.watch import (
    probation_document,
    row_at_the_end,
    unseen_at_the_end,
    watched_runs,
)
from compilegate.domain.workload.model import Policy
from compilegate.ports import Services
from compilegate.usecases.change_flag import Changed, change_flag
from compilegate.usecases.production.production_job import load_registered
from compilegate.usecases.production.staleness import compare_with_proven
from compilegate.usecases.production.watch_notice import notice, quiet, told_kind
from compilegate.usecases.trial import Spec, Trial, load_record, save_record

KIND, FINAL_KIND = "watch", "probation"
# Changes of the flag by which the judge's word on a promotion is its last.
FINAL = (REVERT, PERMANENT)

Judge = Callable[[Mapping[str, Any]], Decision]
Entries = Sequence[Mapping[str, Any]]


@dataclass(frozen=True)
class _Look:
    """What one look at a promotion starts from."""

    workload: str
    run: str
    promotion: Promotion
    entries: Entries
    runs: Sequence[ProductionRun]
    services: Services

    @property
    def trial(self) -> Trial:
        return Trial(self.workload, self.promotion.trial, "")


def watch_production(
    event: Mapping[str, Any], *, services: Services, judge: Judge = ask_judge
) -> dict[str, Any]:
    """Judge production after a run (``workload``, ``run``) and act on it; safe to repeat.

    The answer has ``verdict`` (None where nothing was there to judge), ``flag_changed``,
    ``decision_key`` and ``tell``: whether people are told, with the message's fields beside it.
    Raises NotFoundError where the records of the trial behind the promotion are gone.
    """
    workload, run = str(event["workload"]), str(event["run"])
    entries = services.ledger.entries(workload)
    found = next((e for e in entries if e.get("kind") == KIND and e["run"] == run), None)
    if found is None:
        promotion = standing_promotion(flag_entries(entries))
        if promotion is None:
            return quiet(None)
        look = _Look(workload, run, promotion, entries, production_runs(entries), services)
        found = services.ledger.put_once(workload, naming.watch_entry(run), _settle(look, judge))
    made = _act(workload, found, services)
    _note_final(workload, found, services)
    return notice(workload, found, made, services)


def _settle(look: _Look, judge: Judge) -> dict[str, Any]:
    """The look's ledger entry: what was found and what it does to the flag."""
    store = look.services.store
    evidence = load_record(store, look.trial, "evidence")
    watched = watched_runs(look.runs, look.promotion)
    document = _document(look, evidence, watched)
    decision = _judged(document, judge, look.promotion) if document else None
    spec = _registered(look)
    today = [run for run in watched if run.run == look.run]
    compared = compare_with_proven(
        look.promotion, look.workload, spec, look.services, evidence=evidence, runs=today
    )
    untreated = sum(run.result.get("applied") is False for run in watched)
    found = Findings(decision, compared.changed, compared.compared > 0, untreated)
    agreed = asdict(spec.workload.policy) if spec else {**asdict(Policy()), **evidence["policy"]}
    follows = consequence(look.promotion, found, agreed["on_stale"])
    entry = {
        "kind": KIND,
        "at": _seen_until(look),
        "run": look.run,
        "trial": look.promotion.trial,
        "candidate": look.promotion.candidate,
        "verdict": str(decision.verdict) if decision else None,
        "next": decision.next if decision else None,
        "reasons": _told(decision.reasons if decision else ()),
        "changed": _told(compared.changed),
        "not_compared": list(compared.unknown),
        "runs": len(watched),
        "unseen": unseen_at_the_end(look.runs, look.promotion),
        "cooldown_days": agreed["cooldown_days"],
        "change": _change(look.promotion, follows),
        **_keep(look, document, decision),
    }
    return {**entry, "tell": told_kind(entry, _before(look))}


def _seen_until(look: _Look) -> int:
    """Now, and not before the end of any run that was looked at: the clock counts whole seconds.

    The next run goes by it in telling what the judge knows from what it does not.
    """
    ends = [math.ceil(run.ended_at) for run in look.runs]
    return max([look.services.clock.now(), *ends])


def _document(
    look: _Look, evidence: Mapping[str, Any], watched: Sequence[ProductionRun]
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


def _registered(look: _Look) -> Spec | None:
    """What production trains by its registration; None where a team trains without one."""
    try:
        return load_registered(look.workload, look.services).spec
    except (NotFoundError, InvalidInputError):
        return None


def _keep(
    look: _Look, document: Mapping[str, Any] | None, decision: Decision | None
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


def _before(look: _Look) -> Mapping[str, Any] | None:
    """The look before this one at the same promotion."""
    earlier = [
        entry
        for entry in look.entries
        if entry.get("kind") == KIND
        and entry["trial"] == look.promotion.trial
        and entry["at"] >= look.promotion.at
    ]
    return max(earlier, key=lambda entry: (entry["at"], entry["run"]), default=None)


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


def _act(workload: str, entry: Mapping[str, Any], services: Services) -> Changed | None:
    change = entry["change"]
    if change is None:
        return None
    keys = ("trial", "run", "decision_key", "evidence_key")
    wanted = FlagChange(
        change_id=change["change_id"],
        by=TRAIN,
        action=change["action"],
        flag=parse_flag(change["to"]),
        reason=change["reason"],
        decided_at=change["decided_at"],
        decision_id=entry["decision_id"],
        based_on=_judged_version(change),
        details={key: entry[key] for key in keys},
    )
    return change_flag(workload, wanted, services=services)


def _judged_version(change: Mapping[str, Any]) -> int:
    """The version of the flag that was looked at, which its change is named after."""
    return int(str(change["change_id"]).split("#")[1])


def _note_final(workload: str, entry: Mapping[str, Any], services: Services) -> None:
    """The last word of a probation stands in the ledger beside the trial's own decision."""
    if entry["change"] is None or entry["change"]["action"] not in FINAL:
        return
    name, trial = str(entry["decision_id"]), str(entry["trial"])
    services.ledger.put_once(
        workload,
        f"trial#{trial}#{naming.probation_record(name)}",
        {
            "kind": FINAL_KIND,
            "at": entry["at"],
            "trial": trial,
            "run": entry["run"],
            "decision_id": name,
            "decision_key": entry["decision_key"],
            "evidence_key": entry["evidence_key"],
            "verdict": entry["verdict"],
            "candidate": entry["candidate"],
            "judge_version": JUDGE_VERSION,
            "reasons": [reason["message"] for reason in entry["reasons"]],
        },
    )


def _told(reasons: Sequence[Reason]) -> list[dict[str, str]]:
    return [{"code": reason.code, "message": reason.message} for reason in reasons]
