"""A flag change on real adapters: a request or its answer is lost; many write at once."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any

import pytest
from botocore.config import Config
from botocore.exceptions import ConnectionClosedError
from botocore.httpsession import URLLib3Session

from compilegate.adapters.stores import DynamoDbTable, SsmFlags
from compilegate.ports import Ledger
from compilegate.usecases.flag.change_flag import change_flag
from compilegate_localcloud.lifecycle import LocalCloud
from tests import fakes
from tests.usecases.flag_changes import assert_sound, flag_change, history

pytestmark = pytest.mark.e2e
TABLE = "flag-ledger"
CALLS = 4  # read the ledger, append, write the parameter, read the ledger


@pytest.fixture(scope="module")
def services_at(cloud: LocalCloud) -> Callable[..., Any]:
    """The real stores of a local cloud; ``sending`` sees each request before it is sent."""
    keys = {"pk": "HASH", "sk": "RANGE"}
    cloud.client("dynamodb").create_table(
        TableName=TABLE,
        KeySchema=[{"AttributeName": name, "KeyType": kind} for name, kind in keys.items()],
        AttributeDefinitions=[{"AttributeName": name, "AttributeType": "S"} for name in keys],
        BillingMode="PAY_PER_REQUEST",
    )

    def make(sending: Callable[..., None] | None = None) -> Any:
        patient = Config(retries={"mode": "standard", "total_max_attempts": 6})
        state = cloud.running_state()
        session = state.session()
        if sending:
            session.events.register("before-send", sending)
        dynamodb, ssm = (
            session.client(service, endpoint_url=state.endpoint, config=patient)
            for service in ("dynamodb", "ssm")
        )
        return replace(
            fakes.services("local"),
            ledger=Ledger(DynamoDbTable(dynamodb, TABLE)), flags=SsmFlags(ssm),
        )  # fmt: skip

    return make


@pytest.mark.parametrize("arrives", [False, True])
@pytest.mark.parametrize("number", range(CALLS))
def test_a_request_that_is_dropped_is_sent_again_and_changes_nothing_twice(
    number: int, arrives: bool, services_at: Callable[..., Any]
) -> None:
    """boto3 repeats a call whose answer was lost: what it had appended is then its own."""
    workload, seen = f"dropped-{arrives}-{number}".lower(), list[str]()

    def drop(request: Any, **_: Any) -> None:
        seen.append(request.url)
        if len(seen) == number + 1:
            if arrives:
                URLLib3Session().send(request)
            raise ConnectionClosedError(endpoint_url=request.url)

    made = change_flag(workload, flag_change("enable"), services=services_at(drop))

    assert (True, 1) == (made.changed, made.version)
    assert len(seen) > CALLS, "nothing was dropped"
    assert_sound(services_at(), workload)
    assert [1] == [entry["version"] for entry in history(services_at(), workload)]


def test_many_writers_at_once_lose_nothing(services_at: Callable[..., Any]) -> None:
    services = services_at()
    kinds = ["human set", "human revert"] * 6
    changes = [flag_change(kind, f"change#{number}") for number, kind in enumerate(kinds)]
    # More at once are refused for longer than a client tries again, at the service's rate.
    with ThreadPoolExecutor(max_workers=3) as pool:
        made = list(pool.map(lambda one: change_flag("many", one, services=services), changes))

    assert set(range(1, len(kinds) + 1)) == {change.version for change in made}
    assert len(kinds) == len(history(services, "many"))
    assert_sound(services, "many")
