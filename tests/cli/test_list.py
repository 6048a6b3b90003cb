"""``list``: rows of a stage on a screen, as JSON and as CSV."""

import csv
import io
import itertools
import json
import time
from dataclasses import replace

import pytest

from compilegate.domain.codec import write
from compilegate.domain.records.trials import TrialFailed
from compilegate.usecases.fleet import project as read_rows
from compilegate_operating import listing as command
from tests.domain.fleet.test_listing import FLEET, NOW, URGENT, row
from tests.fake_clouds import cloud


def stage_of(providers, rows):
    """A deployed stage that has these rows."""
    stage = providers.aws_cloud = cloud("prod")
    for one in rows:
        stage.services.fleet.put(one, "")
        stage.services.store.put(f"workloads/{one.workload}/registration.json", b"{}")
    return stage


@pytest.fixture
def stage(providers):
    return stage_of(providers, FLEET)


def test_a_program_gets_every_row_that_is_chosen_with_counts_and_sums_of_all(invoke, stage):
    document = json.loads(invoke("list", "--json").stdout)
    limited = json.loads(invoke("list", "--owner", "nlp", "--limit", "1", "--json").stdout)

    assert URGENT == [one["workload"] for one in document["rows"]]
    assert {**write(FLEET[3]), "state": "reverted", "due": ["reverted", "failed"]} == (
        document["rows"][2]
    )
    assert ("prod", NOW, 9, 0, 0, []) == tuple(
        document[key] for key in ("stage", "at", "workloads", "more", "building", "unread")
    )
    assert (["gpt"], 2, 3, 9) == (
        [one["workload"] for one in limited["rows"]], limited["more"],
        limited["counts"]["workloads"], limited["workloads"],
    )  # fmt: skip
    assert ["nlp"] == limited["filters"]["owner"]
    low, high = document["totals"]["saved_90_micro_usd"]
    assert 24_000_000 == low + high == 2 * document["totals"]["saved"]["micro_usd"]


def test_a_screen_has_the_first_twenty_and_says_how_many_more_and_what_helps(invoke, providers):
    stage_of(providers, [*FLEET, *(row(f"more-{number:03}") for number in range(391))])

    lines = invoke("list").stdout.splitlines()

    assert "Stage prod: 400 workloads, 4 need a person" == lines[0]
    assert ["workload", "owner", "state", "phase", "failed", "saved", "needs", "for"] == next(
        line.split() for line in lines if line.startswith("workload")
    )
    assert [*URGENT[:7], "more-000"] == [
        line.split()[0] for line in lines if line.startswith((*URGENT, "more-000"))
    ]
    assert "and 380 more: `compilegate list` with --limit" in " ".join(lines)
    assert "  approve  compilegate flag approve" in "\n".join(lines)
    assert [] == [line for line in lines if len(line) > 80]


def test_a_long_text_does_not_take_the_room_of_other_columns(invoke, providers):
    owners = ("o" * 19 + "12", "p" * 20)
    of_long = [replace(one, owner=owner) for one, owner in zip(FLEET, owners, strict=False)]
    stage_of(providers, [*of_long, *FLEET[2:]])

    shown = invoke("list").stdout
    asked = invoke("list", "--columns", "owner").stdout

    assert [True, False, True] == [
        text in shown for text in ("o" * 19 + "… ", owners[0], f"{owners[1]} ")
    ]
    assert owners[0] in asked


def damage(stage, *names):
    """Rows that cannot be read."""
    for name in names:
        stage.services.fleet.raw.texts["fleet", name] = "{"


def test_a_row_that_is_missing_or_damaged_is_folded_from_the_ledger(invoke, stage):
    damage(stage, "lm")
    for name in ("lm", "new", "uploaded"):
        stage.services.store.put(f"workloads/{name}/specs/1.json", b"{}")
        failed = TrialFailed(NOW, "0mabc123", reason="x", error="y")
        if name != "uploaded":
            stage.services.ledger.append(name, failed)
    stage.services.store.put("workloads/broken/specs/1.json", b"{}")
    stage.services.ledger.raw.put_once("broken", "flag#1", ["no entry"])

    document = json.loads(invoke("list", "--sort", "workload", "--json").stdout)

    rows = {one["workload"]: one for one in document["rows"]}
    assert sorted([*URGENT, "broken", "new"]) == [*rows]
    assert (["failed"], ["failed"], ["unreadable"]) == (
        rows["lm"]["due"], rows["new"]["due"], rows["broken"]["due"],
    )  # fmt: skip
    assert (0, []) == (document["building"], document["unread"])


def test_what_is_not_read_or_not_there_yet_is_no_row_without_need(invoke, stage, monkeypatch):
    monkeypatch.setattr(read_rows, "MOST_FOLDED", 0)
    damage(stage, "lm", "rank", "gpt", "ctr")
    for name in ("new", "newer"):
        stage.services.store.put(f"workloads/{name}/registration.json", b"{}")

    document = json.loads(invoke("list", "--json").stdout)
    shown = invoke("list", "--exit-code")
    refused = invoke("list", "--owner", "nobody")
    csv_of_none = invoke("list", "--state", "off", "--columns", "workload,owner,state", "--csv")

    assert (2, ["ctr", "gpt", "lm", "rank"], 5) == (
        document["building"], document["unread"], document["workloads"],
    )  # fmt: skip
    assert 0 == document["counts"]["need_a_person"]
    assert 11 == shown.exit_code
    assert "Rows of 2 workloads are being built" in shown.stdout
    assert "and 4 that could not be read: ctr, gpt, lm, rank" in shown.stdout
    assert 2 == refused.exit_code
    assert "owns none of the 5 workloads that have a row" in refused.stderr
    unread = [f"{name},,unread" for name in ("ctr", "gpt", "lm", "rank")]
    assert unread == csv_of_none.stdout.splitlines()[-4:]
    assert "Rows of 2 workloads are being built" in csv_of_none.stderr


@pytest.mark.parametrize(
    ("words", "code"),
    [([], 0), (["--exit-code"], 11), (["--need", "any", "--exit-code"], 11),
     (["--need", "no_baseline", "--exit-code"], 0), (["--state", "off", "--exit-code"], 11)],
)  # fmt: skip
def test_the_exit_code_is_of_what_was_chosen(words, code, invoke, stage):
    assert code == invoke("list", *words).exit_code


def test_csv_has_what_was_chosen_of_every_row_in_plain_units(invoke, stage):
    wanted = "workload,owner,saved_usd,needs,needs_since"
    rows = list(csv.DictReader(io.StringIO(invoke("list", "--csv").stdout)))
    few = invoke("list", "--need", "failed", "--columns", wanted, "--csv").stdout

    assert URGENT == [one["workload"] for one in rows]
    assert ("7.0", "", "2026-09-21T14:12:30Z") == (
        rows[5]["saved_usd"], rows[0]["owner"], rows[5]["since"],
    )  # fmt: skip
    assert f"{wanted}\ngpt,nlp,,reverted failed,2026-09-21T14:05:00Z\n" == few
    none = invoke("list", "--phase", "applying", "--columns", wanted, "--csv")
    assert (f"{wanted}\n", "") == (none.stdout, none.stderr)


def test_columns_are_those_that_are_asked_for_or_what_the_order_is_by(invoke, stage):
    asked = invoke("list", "--columns", "workload, image,stale").stdout
    sorted_by = invoke("list", "--sort", "trial_usd").stdout

    assert "workload  image  stale" in asked
    assert "trials" in next(one for one in sorted_by.splitlines() if one.startswith("workload"))


@pytest.mark.parametrize(
    ("words", "field"),
    [
        (["--json", "--csv"], "--json, --csv and --watch"),
        (["--watch", "--json"], "--json, --csv and --watch"),
        (["--watch"], "--watch"),
        (["--columns", "workload,ownr"], "--columns"),
        (["--sort", "ownr"], "--sort"),
        (["--columns", "owner", "--json"], "--columns"),
    ],
)
def test_what_does_not_go_is_refused_with_the_option(words, field, invoke, stage):
    refused = invoke("list", *words)

    assert 2 == refused.exit_code
    assert f"{field}: " in refused.stderr


def test_on_a_terminal_it_can_be_watched(invoke, stage, monkeypatch):
    def later(seconds):
        if stage.services.fleet.row("lm").item != FLEET[4]:
            raise KeyboardInterrupt
        assert 10 == seconds
        stored = stage.services.fleet.row("lm")
        stage.services.fleet.put(replace(FLEET[4], needs=()), stored.version)

    monkeypatch.setattr(command, "moves", lambda _: True)
    monkeypatch.setattr(time, "sleep", later)

    shown = invoke("list", "--watch").stdout

    assert ["4 need a person", "3 need a person"] == [
        line.partition(", ")[2] for line in shown.splitlines() if line.startswith("Stage prod")
    ]


def test_a_mistyped_name_costs_one_listing_that_ends(invoke, stage, monkeypatch):
    listed = []

    def endless(_prefix):
        for number in itertools.count():
            listed.append(f"ads-{number}")
            yield listed[-1]

    monkeypatch.setattr(stage.services.store, "folders", endless)
    refused = invoke("flag", "show", "ads-7x")

    assert 2 == refused.exit_code
    assert "did you mean ads-7" in refused.stderr
    assert 10_000 == len(listed)
