"""``facts refresh``: what an account tells is shown, kept, and never more than was read."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from click.testing import Result
from typer.testing import CliRunner

from compilegate.cli.common.session import Session
from compilegate.cli.main import app
from compilegate.facts import laid_over, load_facts, read_refreshed
from compilegate_facts.refresh import image_uris
from tests.facts.answers import StubbedClients, product, quota
from tests.fake_clouds import FakeProviders

REGION = "eu-west-1"
URIS = image_uris(load_facts(), REGION)
GONE = next(uri for uri in URIS if "pytorch-trcomp-training:1.13.1" in uri)


@dataclass
class AwsDoors(FakeProviders):
    """Providers whose AWS clients have their answers written."""

    clients: StubbedClients = field(default_factory=StubbedClients)

    def client(self, service: str, region: str) -> Any:
        return self.clients(service, region)


@pytest.fixture
def clients() -> StubbedClients:
    return StubbedClients()


@pytest.fixture
def refresh(clients: StubbedClients, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("COMPILEGATE_DEBUG", raising=False)

    def call(*words: str) -> Result:
        every = ["facts", "refresh", "--region", REGION, "--out", "found.json", *words]
        return CliRunner().invoke(app, every, obj=Session(providers=AwsDoors(clients=clients)))

    return call


def answer_everything(clients: StubbedClients) -> None:
    clients.prices([product("ml.g5.xlarge", "1.5710000000"), product("ml.g7.xlarge", "2.0")])
    clients.images(URIS, missing=lambda uri: uri == GONE)
    clients.quotas([quota("ml.g5.xlarge", 0.0)], [quota("ml.g5.xlarge", 4.0)])


def test_changes_are_shown_old_and_new_and_the_file_is_written(clients, refresh, tmp_path):
    answer_everything(clients)

    result = refresh()

    text = " ".join(result.stdout.split())
    assert 0 == result.exit_code, result.stderr
    assert f"Read for eu-west-1: 2 prices, {len(URIS)} images, 1 quota." in text
    assert "price of ml.g5.xlarge before 1.408 now 1.571" in text
    assert "before there now not there" in text
    assert "New: 1 price, 1 quota; --json lists them." in text
    assert "its authors have not run it against AWS" in text
    long = [line for line in result.stdout.splitlines() if len(line) > 80]
    assert [] == [line for line in long if len(line.split()) > 1]  # an image's name stays whole
    clients.done()
    facts = laid_over(load_facts(), read_refreshed(tmp_path / "found.json"), REGION)
    assert (4, 1.571) == (facts.quota("ml.g5.xlarge"), facts.prices["ml.g5.xlarge"].usd_per_hour)
    assert {GONE} == set(facts.absent_images)


def test_a_second_reading_of_the_same_changes_nothing(clients, refresh):
    answer_everything(clients)
    refresh()
    answer_everything(clients)

    result = refresh()

    assert "Nothing changed." in result.stdout


def test_a_dry_run_shows_the_same_and_writes_nothing(clients, refresh, tmp_path):
    answer_everything(clients)

    result = refresh("--dry-run")

    assert "1.571" in result.stdout
    assert "Dry run: nothing was written." in result.stdout
    assert not (tmp_path / "found.json").exists()


def test_parts_that_were_not_asked_for_are_left_alone(clients, refresh, tmp_path):
    answer_everything(clients)
    refresh()
    clients.prices([product("ml.g5.xlarge", "1.6000000000")])

    document = json.loads(refresh("--only", "prices", "--json").stdout)

    assert {"prices": 1} == document["read"]
    facts = laid_over(load_facts(), read_refreshed(tmp_path / "found.json"), REGION)
    assert (4, 1.6) == (facts.quota("ml.g5.xlarge"), facts.prices["ml.g5.xlarge"].usd_per_hour)


def test_a_price_that_cdk_json_gives_is_reported_to_stay_in_force(clients, refresh, tmp_path):
    context = {"stage": "dev", "region": REGION, "price_overrides": {"ml.g5.xlarge": 1.0}}
    (tmp_path / "cdk.json").write_text(json.dumps({"context": context}))
    clients.prices([product("ml.g5.xlarge", "1.6000000000"), product("ml.g7.xlarge")])

    result = refresh("--only", "prices")

    text = " ".join(result.stdout.split())
    assert "cdk.json's own price overrides the list's: ml.g5.xlarge." in text


def test_programs_get_every_change_and_what_was_not_read(clients, refresh):
    clients.refuse("pricing", "get_products", "AccessDeniedException", "not pricing:GetProducts")
    clients.quotas([quota("ml.g5.xlarge", 0.0)], [quota("ml.p4d.24xlarge", 2.0, spot=True)])

    document = json.loads(refresh("--only", "prices", "--only", "quotas", "--json").stdout)

    assert [
        {"part": "quota", "what": "ml.g5.xlarge", "old": None, "new": 0},
        {"part": "spot quota", "what": "ml.p4d.24xlarge", "old": None, "new": 2},
    ] == document["changes"]
    assert "not pricing:GetProducts" in document["not_read"]["prices"]
    assert "have not run it against AWS" in " ".join(document["untried"].split())


def test_when_nothing_could_be_read_it_fails_and_writes_nothing(clients, refresh, tmp_path):
    clients.refuse("pricing", "get_products", "AccessDeniedException", "not pricing:GetProducts")

    result = refresh("--only", "prices")

    assert (1, "") == (result.exit_code, result.stdout)
    assert "nothing could be read: prices: not allowed" in result.stderr
    assert not (tmp_path / "found.json").exists()


def test_a_part_that_does_not_exist_is_bad_input(refresh):
    result = refresh("--only", "moods")

    assert (2, "") == (result.exit_code, result.stdout)
    assert "use one of prices, images, quotas" in result.stderr
