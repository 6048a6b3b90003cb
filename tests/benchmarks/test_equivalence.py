"""What the catalogue of faults keeps, as far as it can be read without torch."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from benchmarks.equivalence import bounds, page
from compilegate.domain.judging.equivalence import upper_bound
from compilegate.facts import read

TRIAL = {
    "family": "diffusion", "precision": "fp32", "harmful": True, "caught": True, "effect": 0.1,
    "reason": "",
}  # fmt: skip
FAULT = {"name": "one", "half": "first", "kind": "mask", "issue": 7, "live": False}
CLASS = {
    "framework": "pytorch 9", "device": "cpu", "precision": "fp32", "faults": 2, "missed": 1,
    "sound": 3, "false_alarms": 0,
}  # fmt: skip


def results(*trials: dict[str, object]) -> dict[str, Any]:
    found = {"torch": "9", "device": "cpu", "date": "d", "check": "c"}
    faults = [FAULT | {"trials": list(trials)}]
    sound = {"family": "recurrent", "precision": "fp32", "mode": "dynamic", "count": 8}
    sound = [
        sound | {"unexamined": 2, "why": ["no", "none"], "of_odd_seeds": 1},
        sound | {"unexamined": 0, "count": 5, "of_odd_seeds": 0},
        sound | {"unexamined": 0, "precision": "bf16", "of_odd_seeds": 0},
    ]
    of_old = FAULT | {"name": "old", "version": "8"}
    older = [of_old | {"trials": [TRIAL, TRIAL | {"precision": "bf16", "harmful": False}]}]
    tables = {"table": {"classes": [CLASS]}, "faults": faults, "older": older, "sound": sound}
    return {"cpu": found | tables}


@pytest.mark.parametrize("file", [page.PAGE, page.HOW_IT_DECIDES], ids=lambda file: file.name)
def test_the_pages_show_the_kept_results(file: Path) -> None:
    kept = json.loads(page.KEPT.read_text(encoding="utf-8")) if page.KEPT.exists() else {}
    text = file.read_text(encoding="utf-8")

    assert page.BLOCK.search(text)
    assert page.refreshed(text, kept) == text


def test_beside_rho_stand_that_of_the_second_half_and_how_many_could_alarm() -> None:
    found = results(TRIAL)
    missed = {"trials": [TRIAL | {"caught": False}], "half": "second"}
    found["cpu"]["faults"] += [FAULT | missed, FAULT | {"trials": [TRIAL], "half": "second"}]
    figures = [f"{upper_bound(1, tried):.3f}" for tried in (3, 2, 6)]
    row = "| pytorch 9, cpu, fp32 | 3 | 1 | {} | 2 | 1 | {} | 6 | 1 | {} |".format(*figures)

    for file in (page.PAGE, page.HOW_IT_DECIDES):
        assert row in page.refreshed(file.read_text(encoding="utf-8"), found)


def test_the_judges_table_counts_what_the_results_show() -> None:
    kept = json.loads(page.KEPT.read_text(encoding="utf-8")) if page.KEPT.exists() else {}
    current = [one for one in kept.values() if one["check"] == read("equivalence")["check"]]
    counted = []
    for found in current:
        for row in found["table"]["classes"]:
            mine = page.harmful_in(found["faults"], row["precision"])
            counted.append((row["precision"], len(mine), sum(not one["caught"] for one in mine)))
    rows = read("equivalence")["classes"]

    assert [(one["precision"], one["faults"], one["missed"]) for one in rows] == counted


def test_a_bound_is_of_the_sound_compilations_of_its_kind_of_device() -> None:
    def sound(device: str, seed: int, ratio: float | None, part: str = "buffers") -> Any:
        parts = [{"part": part, "arithmetic": "own", "ratio": ratio}]
        return {"seed": seed, "document": {"class": {"device": device}, "parts": parts}}

    seen = [
        sound("cpu x86_64", 0, 2.0), sound("cpu x86_64", 1, 50.0), sound("cpu arm64", 2, 4.0),
        sound("cuda 9.0", 0, 0.5), sound("cuda 9.0", 0, None, "gradients"),
    ]  # fmt: skip
    assert {"cpu.buffers.own": 12.0, "cuda.buffers.own": 3.0} == bounds.bounds_of(seen)


def test_the_table_has_bounds_of_every_device_and_the_larger_of_a_kind() -> None:
    def kept(check: str, date: str, largest: dict[str, float], faults: int = 2) -> Any:
        rows = [CLASS | {"faults": faults, "revoked_at": None}]
        return {"check": check, "date": date, "table": {"bounds": largest, "classes": rows}}

    found = [
        kept("c", "2026-11-25", {"cpu.buffers.own": 3.0, "cpu.gradients.own": 8.0}),
        kept("c", "2026-11-26", {"cuda.buffers.own": 5.0}, faults=0),
        kept("c", "2026-11-24", {"cuda.buffers.own": 4.0}),
        kept("older", "2026-11-27", {"cpu.buffers.own": 99.0}),
    ]
    table = bounds.table_of(found, "c")

    assert {"cpu.buffers.own": 3.0, "cpu.gradients.own": 8.0, "cuda.buffers.own": 5.0} == (
        table["bounds"]
    )
    assert ("2026-11-26", "c", [CLASS, CLASS]) == tuple(
        table[key] for key in ("as_of", "check", "classes")
    )


def test_a_fault_counts_once_and_is_missed_where_any_family_misses_it() -> None:
    missed = TRIAL | {"caught": False, "family": "recurrent"}
    harmless = TRIAL | {"caught": False, "harmful": False}

    def counted(*trials: dict[str, object]) -> list[bool]:
        found = page.harmful_in([FAULT | {"trials": list(trials)}], "fp32")
        return [one["caught"] for one in found]

    assert [True] == counted(TRIAL, harmless, missed | {"precision": "bf16"})
    assert [False] == counted(TRIAL, missed)
    assert [] == counted(harmless)


def test_a_missed_fault_is_named_and_a_harmless_one_is_no_part_of_the_figures() -> None:
    missed = TRIAL | {"caught": False, "family": "recurrent", "reason": "within its bounds"}
    harmless = TRIAL | {"harmful": False, "family": "transformer"}
    text = page.refreshed(page.PAGE.read_text(encoding="utf-8"), results(TRIAL, missed, harmless))

    assert "| pytorch 9, cpu, fp32 | 2 | 1 | 0 | 3 |" in text
    assert "| mask | 1 | 2 | 1 |" in text
    assert "| one | recurrent | fp32 | 1.0e-01 | within its bounds |" in text
    assert 1 == text.count("| old | 7 | 8 |") == text.count("| old | 7 | 8 | fp32 | yes |")
    assert 1 == text.count("| recurrent | fp32 | dynamic | 2 of 8 | no; none |")
    assert "for neither side: one (transformer, fp32)." in text
