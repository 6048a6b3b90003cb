"""``list``: rows of a stage on a screen, as JSON and as CSV."""

import json
import time
from dataclasses import replace

import pytest

from compilegate.usecases.fleet import project as read_rows
from compilegate_operating import listing as command
from tests.domain.fleet.test_listing import FLEET
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


def damage(stage, *names):
    """Rows that cannot be read."""
    for name in names:
        stage.services.fleet.raw.texts["fleet", name] = "{"


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
    [([], 0), (["--need", "any", "--exit-code"], 11),
     (["--need", "no_baseline", "--exit-code"], 0), ],
)  # fmt: skip
def test_the_exit_code_is_of_what_was_chosen(words, code, invoke, stage):
    assert code == invoke("list", *words).exit_code


@pytest.mark.parametrize(
    ("words", "field"),
    [
        (["--json", "--csv"], "--json, --csv and --watch"),
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
