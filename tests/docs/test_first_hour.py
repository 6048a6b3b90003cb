"""The page on the first hour: its commands exist, and its errors are those that one sees."""

from __future__ import annotations

import re
import shlex
from typing import Any

import pytest
from botocore.exceptions import ClientError, NoCredentialsError

from compilegate.cli.common.connect import stack_outputs
from compilegate.cli.common.error_handling import explain
from compilegate.cli.common.output import error_text
from compilegate.domain.errors import NotDeployedError
from compilegate_checkup.rules import Demand, examine_quotas, reason
from distributions.discover.tests.cloud import AccountInMemory
from distributions.discover.tests.conftest import invoke
from distributions.discover.tests.jobs import REGION
from distributions.discover.tests.test_command import bert
from tests.cli.test_connect import cloudformation
from tests.docs.test_docs import ROOT
from tests.docs.test_tutorial import parse

__all__ = ["invoke"]
PAGE = (ROOT / "docs" / "first-hour.md").read_text()
BLOCKS = re.findall(r"^```(\w+)\n(.*?)^```$", PAGE, re.M | re.S)
SAID = [" ".join(text.split()) for kind, text in BLOCKS if kind == "text"]


def test_every_command_is_one_of_today_s():
    commands = "\n".join(text for kind, text in BLOCKS if kind in ("sh", "console"))
    called = re.findall(r"^(?:\$ )?compilegate ([^|#\n]+)", commands, re.M)

    assert len(called) > 6
    for words in called:
        parse(shlex.split(words))


def said(error: Exception) -> str:
    return error_text(str(explain(error)))


def refused(code: str, operation: str, message: str = "not allowed") -> str:
    return said(ClientError({"Error": {"Code": code, "Message": message}}, operation))


def without_stack(**stack: Any) -> str:
    with pytest.raises(NotDeployedError) as raised:
        stack_outputs(cloudformation(region=REGION, **stack), "prod")
    return said(raised.value)


def test_every_error_is_what_one_sees(invoke, monkeypatch):
    monkeypatch.setenv("COLUMNS", "200")
    account = AccountInMemory({REGION: bert()})
    account.denied = {"Search", "GetMetricData", "GetCostAndUsage"}
    notes = invoke(account, "discover").stdout.splitlines()[1:4]
    todo = invoke(account, "check", "jobs").stderr
    account.denied.add("ListTrainingJobs")
    denied = invoke(account, "discover").stderr
    empty = invoke(AccountInMemory({}), "discover", "--to", "empty").stdout.splitlines()[-1]
    account.unreached = {"eu-west-9"}
    unreached = invoke(account, "discover", "--region", "eu-west-9").stderr
    fresh = reason("bootstrap_missing", place=REGION).message
    (quota,) = examine_quotas({"ml.g5.xlarge": 0}, [Demand("bert-docs", "ml.g5.xlarge", 1)])

    assert f'"{empty}"' in PAGE
    assert SAID == [
        " ".join(text.split())
        for text in (
            said(NoCredentialsError()), refused("ExpiredTokenException", "Search"),
            *notes, denied, unreached, todo,
            f"blocks: {fresh}", quota.message,
            without_stack(outputs=None), without_stack(outputs={}, status="ROLLBACK_COMPLETE"),
            refused("AccessDeniedException", "StartExecution"),
        )
    ]  # fmt: skip
