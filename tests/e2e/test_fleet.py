"""Rows follow the ledger: the table's stream calls the function, which may do what it has to."""

from __future__ import annotations

import time

import pytest

from compilegate.adapters.stores import DynamoDbFleet
from compilegate.adapters.workload_files import make_bundle
from compilegate.domain import naming
from compilegate.domain.fleet.month import month_at
from compilegate.domain.fleet.row import Row
from compilegate.domain.records.production import RegistrationChange
from compilegate.domain.records.trials import TrialDecided
from compilegate.domain.workload.file import parse_workload
from compilegate.ports import FleetTable
from compilegate.usecases.registration import Package, submit
from distributions.localcloud.tests.helpers import eventually
from tests.e2e.conftest import JOB, App, stand_in

pytestmark = pytest.mark.e2e
NAME = "row-follows"


def test_a_row_and_a_month_appear_after_a_write_and_follow_the_next(app: App) -> None:
    table = FleetTable(DynamoDbFleet(app.client("dynamodb"), app.outputs["LedgerTable"]))
    now, bundle = int(time.time()), make_bundle(JOB)
    package = Package(parse_workload(stand_in(NAME)), bundle.body, bundle.digest, {})
    spec = submit(package, trial=naming.trial_id(now * 1000), store=app.store).spec_key
    document = {"owner": "nlp", "spec_key": spec}

    app.ledger.append(NAME, RegistrationChange(1, active=True, at=now, document=document))

    row: Row = eventually(lambda: table.row(NAME).item, 60, "no row of what was registered")
    assert ("nlp", True, "ml.g5.xlarge", 0) == (
        row.owner, row.active, row.instance, row.trials.micro_usd,
    )  # fmt: skip

    app.ledger.append(NAME, TrialDecided(now, "t1", "promote", spent_usd=1.5))

    def spent() -> bool:
        found = table.row(NAME).item
        return found is not None and found.trials.micro_usd == 1_500_000

    assert eventually(spent, 60, "the row does not follow")
    month = table.month(month_at(now), NAME).item
    assert month is not None
    assert (1, 1_500_000) == (month.figures.decided.entries, month.figures.decided.micro_usd)
