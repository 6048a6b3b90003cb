"""``digest`` prints what the weekly message says, of everyone or of one owner."""

from __future__ import annotations

import json

import pytest

from compilegate.cli.common.cloud import Cloud
from tests.cli.conftest import Invoke
from tests.fakes import FakeProviders, cloud
from tests.usecases.production_ledger import DAY, NOW, ran, register


@pytest.fixture
def week(providers: FakeProviders) -> Cloud:
    providers.aws_cloud = cloud()
    services = providers.aws_cloud.services
    for name, owner in (("bert", "ml"), ("ads", "ads"), ("idle", "idle")):
        register(services, name, owner)
    for name in ("bert", "ads"):
        ran(services, name, NOW - DAY, "baseline")
    return providers.aws_cloud


def test_every_owner_is_shown_quiet_ones_too(invoke: Invoke, week: Cloud) -> None:
    shown = invoke("digest")

    assert 0 == shown.exit_code
    heads = [line for line in shown.stdout.splitlines() if line.startswith("Compilegate ")]
    assert [": ads", ": idle", ": ml"] == [line[line.rindex(":") :] for line in heads]
    assert "Nothing ran and nothing changed (1 workload)." in shown.stdout


def test_one_owner_as_json_is_the_body_of_the_message(invoke: Invoke, week: Cloud) -> None:
    (found,) = json.loads(invoke("digest", "--owner", "ml", "--json").stdout)

    assert ("digest", "ml", {"baseline": 1}) == (
        found["kind"], found["owner"], found["figures"]["runs"],
    )  # fmt: skip


def test_where_nothing_is_registered_it_says_how_to_begin(
    invoke: Invoke, providers: FakeProviders
) -> None:
    providers.aws_cloud = cloud()

    assert "compilegate register" in invoke("digest").stdout
