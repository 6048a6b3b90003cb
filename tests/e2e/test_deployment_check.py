"""The account that the embedded cloud is, examined by the same calls as an account of AWS."""

from __future__ import annotations

import pytest

from compilegate_checkup.account import Account, find_reasons
from compilegate_checkup.reading import deployed_vpc
from compilegate_checkup.rules import Demand
from tests.e2e.conftest import App

pytestmark = pytest.mark.e2e


def test_the_deployed_stage_has_everything_a_trial_needs(app: App) -> None:
    account = Account("local", "us-east-1", app.client, local=True)
    demand = Demand("bert", "ml.g5.xlarge", 1)

    assert [] == [one.code for one in find_reasons(account, [demand])]
    assert deployed_vpc(app.client("lambda"), "local") is None
