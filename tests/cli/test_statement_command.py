"""``statement``: one document as screen, JSON, CSV or page."""

import json
from pathlib import Path

import pytest

from compilegate.domain.formats import MINUS
from compilegate.domain.records.production import RegistrationChange
from tests.fake_clouds import cloud
from tests.usecases.production_ledger import NOW, decided, register, write

MONTH = ("statement", "--month", "2026-09")


@pytest.fixture
def stage(providers):
    providers.aws_cloud = cloud()
    services = providers.aws_cloud.services
    for name, owner, usd in (("bert", "ml", 1234.5), ("ads", "ads", 5.0)):
        register(services, name, owner)
        document = {"owner": owner}
        write(services, name, RegistrationChange(1, active=True, at=1, document=document))
        write(services, name, decided("a", NOW - 60, spent_usd=usd))
    return providers.aws_cloud


def test_one_document_as_screen_json_csv_and_page(invoke, stage, tmp_path):
    document = json.loads(invoke(*MONTH, "--json").stdout)
    screen = " ".join(invoke(*MONTH).stdout.split())
    csv = invoke(*MONTH, "--csv", "--owner", "ml").stdout.splitlines()
    page = tmp_path / "pages" / "statement.html"

    assert ("dev", "2026-09", 1_239_500_000) == (
        document["stage"], document["month"], document["total"]["spent"]["micro_usd"],
    )  # fmt: skip
    assert "Statement of 2026-09, stage dev: all workloads" in screen
    assert "spent on trials $1,239.50: $1,239.50 decided, $0.00 failed, $0.00 stopped" in screen
    assert f"net {MINUS}$1,239.50" in screen
    assert "The sums are of 2 entries of the ledger" in screen
    assert ["month", "2026-09"] == [line.split(",")[0] for line in csv]
    assert "bert" == csv[1].split(",")[2]
    assert f"{page}\n" == invoke(*MONTH, "--page", page).stdout
    assert all(f">{name}</th>" in page.read_text() for name in ("ads", "bert"))
    assert {"html": str(page)} == json.loads(invoke(*MONTH, "--page", page, "--json").stdout)


@pytest.mark.parametrize("other", [("--json",), ("--page", "p.html")])
def test_csv_excludes_the_other_forms(invoke, stage, other):
    refused = invoke(*MONTH, "--csv", *other)

    assert 2 == refused.exit_code
    assert "--csv: excludes --json and --page" in refused.stderr
    assert not Path("p.html").exists()
