"""What the catalogue of faults keeps, as far as it can be read without torch."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from benchmarks.equivalence import bounds, page
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


@pytest.mark.parametrize("file", [page.PAGE, page.HOW_IT_DECIDES], ids=lambda file: file.name)
def test_the_pages_show_the_kept_results(file: Path) -> None:
    kept = json.loads(page.KEPT.read_text(encoding="utf-8")) if page.KEPT.exists() else {}
    text = file.read_text(encoding="utf-8")

    assert page.BLOCK.search(text)
    assert page.refreshed(text, kept) == text


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
