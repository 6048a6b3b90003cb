"""After every production run: is the promotion still right, and what follows if it is not?

A look is settled by its ledger entry, which is written before the flag is touched and says what
is done to it: a repeated call finds the entry and does the same again, which changes nothing.
Two looks at once read the same ledger and want the same change of the same version of the flag,
which is made once (usecases/change_flag.py).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from compilegate.domain import ledger_keys, naming
from compilegate.domain.decision import JUDGE_VERSION
from compilegate.domain.flag import parse_flag
from compilegate.domain.flag_change import REVERT, TRAIN, FlagChange, flag_entries
from compilegate.domain.judging.judge import judge as ask_judge
from compilegate.domain.production.consequence import PERMANENT
from compilegate.domain.production.promotion import standing_promotion
from compilegate.domain.production.runs import production_runs
from compilegate.ports import Services
from compilegate.usecases.change_flag import Changed, change_flag
from compilegate.usecases.production.look import KIND, Judge, Look, settle
from compilegate.usecases.production.watch_notice import notice, quiet

FINAL_KIND = "probation"
# Changes of the flag by which the judge's word on a promotion is its last.
FINAL = (REVERT, PERMANENT)


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
        look = Look(workload, run, promotion, entries, production_runs(entries), services)
        found = services.ledger.put_once(
            workload, ledger_keys.watch_entry(run), settle(look, judge)
        )
    made = _act(workload, found, services)
    _note_final(workload, found, services)
    return notice(workload, found, made, services)


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
