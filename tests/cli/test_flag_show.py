"""``flag show`` and ``repair``: what stands, whose word was set aside, what does not fit."""

from __future__ import annotations

import getpass
import json
from dataclasses import replace
from typing import Any

import pytest

from compilegate.cli.common.cloud import Cloud
from compilegate.domain.flag import Flag
from compilegate.usecases.flag.change_flag import change_flag
from tests.cli.conftest import Invoke
from tests.cli.flags import FLAG, WHY, entries, revert
from tests.usecases.flag_changes import wanted

OTHER = Flag(True, "permanent", "mine", {"batch_size": 48})
DEEP = "[" * 4000


def test_show_tells_a_persons_word_also_after_the_machine_overruled_it(
    invoke: Invoke, promoted: Cloud
) -> None:
    revert(invoke, "--yes")
    change = wanted("enable", "later", decided_at=promoted.services.clock.now() + 1)
    change_flag("bert-docs", change, services=promoted.services)

    shown = " ".join(invoke("flag", "show", "bert-docs").stdout.split())
    document = json.loads(invoke("flag", "show", "bert-docs", "--json").stdout)

    assert f"overrides: {getpass.getuser()} on 2026-09-21 14:13 UTC: {WHY}" in shown
    assert f"last override revert by {getpass.getuser()}, 2026-09-21 14:13 UTC {WHY}" in shown
    assert ("revert", WHY) == (document["human"]["action"], document["human"]["reason"])
    assert document["change"]["overrode"]["reason"] == WHY


def test_who_agreed_to_a_promotion_is_shown_beside_it(invoke: Invoke, promoted: Cloud) -> None:
    change = replace(wanted("enable"), details={"trial": "t", "approved_by": "human:bo"})
    change_flag("bert-docs", wanted("revert"), services=promoted.services)
    change_flag("bert-docs", change, services=promoted.services)

    assert "by a trial (EVALUATE), approved by bo" in " ".join(
        invoke("flag", "show", "bert-docs").stdout.split()
    )
    history = " ".join(invoke("flag", "history", "bert-docs").stdout.split())
    assert "enable by a trial (EVALUATE), approved by bo" in history


def test_show_says_why_a_flag_is_stale(invoke: Invoke, promoted: Cloud) -> None:
    change_flag("bert-docs", wanted("stale"), services=promoted.services)

    shown = " ".join(invoke("flag", "show", "bert-docs").stdout.split())

    assert shown.startswith("bert-docs: off (stale, candidate compile)")
    assert "stale because of stale" in shown


@pytest.mark.parametrize(
    ("raw", "told"),
    [
        (None, "The parameter is not there"),
        ("{", "The parameter cannot be read"),
        (Flag(False, "off").to_json(), "The parameter says something else"),
    ],
)
def test_a_parameter_that_differs_from_the_ledger_is_said_and_repaired(
    raw: str | None, told: str, invoke: Invoke, promoted: Cloud
) -> None:
    flags: Any = promoted.services.flags
    del flags.values[FLAG]
    if raw is not None:
        flags.write(FLAG, raw)

    shown = invoke("flag", "show", "bert-docs").stdout
    document = json.loads(invoke("flag", "show", "bert-docs", "--json").stdout)
    repaired = invoke("flag", "repair", "bert-docs")
    again = json.loads(invoke("flag", "repair", "bert-docs", "--json").stdout)

    assert told in shown
    words = " ".join(shown.split())
    assert "the ledger's latest change says on (probation). It was lost" in words
    assert "off -> on (probation), candidate compile, enable by a trial (EVALUATE)" in words
    assert "since" not in words
    assert "  compilegate flag repair bert-docs\n" in shown
    assert (False, False) == (document["agrees"], document["enabled"])
    assert "was restored from the ledger: on (probation)" in repaired.stdout
    assert (False, True) == (again["repaired"], again["enabled"])
    assert entries(promoted)[-1]["to"] == flags.read(FLAG)


@pytest.mark.parametrize(
    ("raw", "headline", "problem"),
    [
        (OTHER.to_json(), "off (not what the ledger says; production's next run trains",
         "it says on (mine), but no recorded change turned it on"),
        ("on", "off (unreadable; production's next run trains", "flag: is not JSON (got"),
        (DEEP, "off (unreadable; production's next run trains", "flag: is not JSON (got"),
    ],
    ids=["on by hand", "a word", "deeply nested"],
)  # fmt: skip
def test_a_parameter_that_train_will_not_follow_is_not_the_headline(
    raw: str, headline: str, problem: str, invoke: Invoke, promoted: Cloud
) -> None:
    promoted.services.flags.write(FLAG, raw)

    shown = " ".join(invoke("flag", "show", "bert-docs").stdout.split())
    document = json.loads(invoke("flag", "show", "bert-docs", "--json").stdout)

    assert shown.startswith(f"bert-docs: {headline}")
    assert problem in shown
    assert ("A pipeline that reads the parameter follows it" in shown) is (raw == OTHER.to_json())
    assert (False, False) == (document["enabled"], document["agrees"])
    assert document["problem"].startswith(problem)


def test_a_value_that_fills_the_parameter_is_cut_on_the_screen(
    invoke: Invoke, promoted: Cloud
) -> None:
    long = Flag(True, "probation", "compile", {"entry_point": "x" * 3000})
    change_flag(
        "bert-docs", replace(wanted("enable", "long"), flag=long), services=promoted.services
    )

    assert max(map(len, invoke("flag", "show", "bert-docs").stdout.splitlines())) < 200
    document = json.loads(invoke("flag", "show", "bert-docs", "--json").stdout)
    assert long.overrides == document["overrides"]
