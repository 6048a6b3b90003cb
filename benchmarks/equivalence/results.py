"""What the trials come to: bounds, faults caught and missed, and the table of the judge.

A false alarm is a sound compilation that fails; one that cannot be examined is counted apart, since
it costs an arm nothing but the wider level.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import torch

from benchmarks.equivalence import page
from benchmarks.equivalence.bounds import HEADROOM, bounds_of, write_facts
from benchmarks.equivalence.faults import Fault, catalogue
from benchmarks.equivalence.page import KEPT
from benchmarks.equivalence.trials import UNSOUND, equivalence
from compilegate.domain.codec import write as encoded
from compilegate.domain.faults import FaultClass, FaultTable
from compilegate.domain.judging.checks import read_check
from compilegate.domain.judging.equivalence import (
    EquivalenceFinding,
    State,
    examined,
    upper_bound,
)


class Records:
    """One line for each trial that was made, by its key, in a file that a run goes on from.

    What is harmful, which no version of the check changes, is also read from the kept results.
    """

    def __init__(self, file: Path) -> None:
        self._file = file
        file.parent.mkdir(parents=True, exist_ok=True)
        lines = file.read_text(encoding="utf-8").splitlines() if file.exists() else []
        known = _kept().get(file.stem, {}).get("harm", ())
        self.all = {one["key"]: one for one in (*known, *map(json.loads, lines))}

    def add(self, key: str, **record: Any) -> None:
        """Keep a trial's record."""
        self.all[key] = {"key": key, **record}
        with self._file.open("a", encoding="utf-8") as lines:
            lines.write(json.dumps(self.all[key]) + "\n")

    def of(self, kind: str, check: str | None = None) -> list[dict[str, Any]]:
        """Records of a kind; where a digest is given, those of this version of the check."""
        return [
            one
            for key, one in self.all.items()
            if key.startswith(f"{kind} ") and check in {None, one.get("check")}
        ]


def summary(records: Records, check: str, device: str) -> dict[str, Any]:
    """The results of one version of the check on one kind of device."""
    sound = [
        one
        for one in records.of("sound", check)
        if (device, one["family"], one["mode"]) not in UNSOUND
    ]
    bounds = bounds_of(sound)
    precisions = sorted({one["precision"] for one in sound})
    framework = "pytorch " + ".".join(torch.__version__.split(".")[:2])
    place = sound[0]["document"]["class"]["device"] if sound else device
    empty = [_class(framework, place, one, 0, 0, 0, 0) for one in precisions]
    table = FaultTable(check, bounds, {}, tuple(empty))
    faults = [_fault(one, records, table) for one in catalogue() if one.version is None]
    older = [_fault(one, records, table) for one in catalogue() if one.version is not None]
    classes = []
    for precision in precisions:
        harmful = page.harmful_in(faults, precision)
        mine = [one for one in sound if one["precision"] == precision]
        alarms = sum(_seen(one, table).state is State.FAILED for one in mine)
        missed = sum(not one["caught"] for one in harmful)
        classes.append(_class(framework, place, precision, len(harmful), missed, len(mine), alarms))
    return {
        "check": check,
        "torch": torch.__version__,
        "device": place,
        "date": datetime.now(UTC).date().isoformat(),
        "headroom": HEADROOM,
        "table": encoded(FaultTable(check, bounds, {}, tuple(classes))),
        "faults": faults,
        "older": older,
        "sound": _sound(sound, table),
        "harm": [*records.of("harm"), *records.of("runs")],
    }


def _class(framework: str, device: str, precision: str, *figures: int) -> FaultClass:
    faults, missed, sound, alarms = figures
    date = datetime.now(UTC).date().isoformat()
    return FaultClass(framework, device, precision, faults, missed, date, sound, alarms)


def _seen(record: Mapping[str, Any], table: FaultTable) -> EquivalenceFinding:
    return examined(read_check(record["document"]), table)


def _fault(fault: Fault, records: Records, table: FaultTable) -> dict[str, Any]:
    """One fault: what it is, and each family and precision that it was tried on."""
    trials = []
    for family in fault.families:
        for precision in fault.precisions:
            trial = f"{fault.name} {family} {precision}"
            harm, runs = (records.all.get(f"{kind} {trial}") for kind in ("harm", "runs"))
            first, last = (records.all.get(f"{kind} {trial}") for kind in ("first", "last"))
            if harm is None or first is None or first["check"] != table.check:
                continue
            how = [
                kind
                for kind, one in (("runs", runs), ("gradients", harm))
                if one and one["harmful"]
            ]
            checks = [_seen(one, table) for one in (first, last) if one]
            failed = [one for one in checks if one.state is State.FAILED]
            seen = (failed or checks)[0]
            trials.append({
                "family": family, "precision": precision, "harmful": bool(how), "by": how,
                "effect": harm["effect"], "where": harm["where"], "caught": bool(failed),
                "weights": seen.weights, "state": str(seen.state), "reason": seen.reason,
                "part": seen.worst.part if seen.worst else None,
                "ratio": seen.worst.ratio if seen.worst else None,
            })  # fmt: skip
    stated = {
        "name": fault.name, "half": fault.half, "kind": fault.kind, "issue": fault.issue,
        "title": fault.title, "defect": fault.defect, "same": fault.same, "live": fault.live,
        "version": fault.version,
    }  # fmt: skip
    return {**stated, "trials": trials}


def _sound(sound: list[dict[str, Any]], table: FaultTable) -> list[dict[str, Any]]:
    """Sound compilations by family, precision and mode: how many, the largest ratios, alarms."""
    groups: dict[tuple[str, str, str], list[dict[str, Any]]] = {}
    for one in sound:
        groups.setdefault((one["family"], one["precision"], one["mode"]), []).append(one)
    rows = []
    for (family, precision, mode), members in sorted(groups.items()):
        ratios: Counter[str] = Counter()
        for part in (part for one in members for part in one["document"]["parts"]):
            name = f"{part['part']}.{part['arithmetic']}"
            ratios[name] = max(ratios[name], round(part["ratio"] or 0.0, 2))
        alarms = [one for one in members if _seen(one, table).state is State.FAILED]
        odd = [one for one in alarms if one["seed"] % 2]
        reasons = [
            seen.reason
            for seen in (_seen(one, table) for one in members)
            if seen.state is State.UNEXAMINED
        ]
        rows.append({
            "family": family, "precision": precision, "mode": mode, "count": len(members),
            "false_alarms": len(alarms), "of_odd_seeds": len(odd), "unexamined": len(reasons),
            "why": sorted(set(reasons)), "largest": dict(ratios),
        })  # fmt: skip
    return rows


def _kept() -> dict[str, Any]:
    found: dict[str, Any] = json.loads(KEPT.read_text(encoding="utf-8")) if KEPT.exists() else {}
    return found


def write(summaries: Mapping[str, Any], device: str, *, facts: bool) -> None:
    """Keep the results of a device beside those of others; ``facts``: and the table."""
    kept = _kept()
    kept[device] = summaries
    KEPT.write_text(json.dumps(kept, indent=1) + "\n", encoding="utf-8")
    page.write()
    if facts:
        write_facts(kept.values(), equivalence.digest())


def lines(found: Mapping[str, Any]) -> list[str]:
    """A result for a person: the classes, what was missed, the sound compilations."""
    made = [f"check {found['check']}, torch {found['torch']}, {found['device']}"]
    for row in found["table"]["classes"]:
        bound = upper_bound(row["missed"], row["faults"]) if row["faults"] else 1.0
        made.append(
            f"{row['precision']}: {row['missed']} of {row['faults']} harmful faults missed, "
            f"at most {bound:.3f} (95 %); "
            f"{row['false_alarms']} alarms in {row['sound']} sound compilations"
        )
    for fault in found["faults"]:
        for trial in fault["trials"]:
            if trial["harmful"] and not trial["caught"]:
                made.append(
                    f"missed: {fault['name']} {trial['family']} {trial['precision']}, "
                    f"{trial['state']}: {trial['reason']}; effect {trial['effect']:.1e}"
                )
    return made
