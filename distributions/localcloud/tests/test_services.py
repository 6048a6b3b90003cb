"""What a Lambda function sees in the local cloud, and resource types that the emulator adds."""

import json
import os
import signal
import sys
import uuid

import pytest

from compilegate_localcloud import api
from distributions.localcloud.tests.helpers import APP

pytestmark = pytest.mark.e2e

PROBE = """
import importlib, os, sys
def handler(event, context):
    found = []
    for name in event["modules"]:
        try:
            importlib.import_module(name)
            found.append(name)
        except ImportError:
            pass
    return {"found": found, "environment": dict(os.environ), "name": context.function_name}
"""


def invoke(client, arn, payload):
    answer = client("lambda").invoke(FunctionName=arn, Payload=json.dumps(payload))
    return json.loads(answer["Payload"].read())


def test_only_the_runtimes_own_packages_can_be_imported(client, make_function):
    modules = ["json", "sqlite3", "boto3", "botocore", "yaml", "moto", "ministack", "compilegate"]
    modules += ["template"]  # stands beside sitecustomize.py
    answer = invoke(client, make_function(PROBE), {"modules": modules})

    assert answer["found"] == ["json", "sqlite3", "boto3", "botocore"]


@pytest.mark.skipif(sys.platform != "linux", reason="workers are forked on Linux only")
def test_workers_are_forked_from_one_process_unless_the_code_brings_its_own_sdk(
    client, make_function
):
    source = (
        "import botocore, os, random, sys\nfrom pathlib import Path\n"
        "app = sys.modules.get('lambdas.handlers')\n"
        "def handler(e, c):\n"
        "    parent = Path(f'/proc/{os.getppid()}/cmdline').read_text()\n"
        "    return parent, Path('/proc/self/comm').read_text(), random.random(),"
        " getattr(botocore, 'OWN', False), os.getppid(), app and app.RELEASE\n"
    )
    one, other = (invoke(client, make_function(source), {}) for _ in range(2))
    *app, new, broken = (
        invoke(client, make_function(source, files={**APP, **own}), {})
        for own in ({}, {}, {"lambdas/handlers.py": "RELEASE = 2\n"}, {"lambdas/handlers.py": "-"})
    )
    own = make_function(source, files={"botocore/__init__.py": "OWN = True\n"})
    started = invoke(client, own, {})

    assert "template.py" in one[0] and one[0] == other[0]
    assert (one[3], other[3], started[3]) == (False, False, True)
    assert one[1] != other[1], "each has its function's name"
    assert one[2] != other[2], "chance is not forked"
    assert "template.py" not in started[0]
    assert [None, 1, 1, 2, None] == [found[5] for found in (one, *app, new, broken)]
    assert 1 == len({found[4] for found in app}), "one process for each release"
    assert 3 == len({found[4] for found in (one, other, *app, new)})
    assert "template.py" in new[0] and "template.py" not in broken[0]


@pytest.mark.skipif(sys.platform != "linux", reason="workers are forked on Linux only")
def test_workers_start_when_the_process_that_they_are_forked_from_is_killed(client, make_function):
    source = (
        "import os\nfrom pathlib import Path\ndef handler(e, c):\n"
        "    parent = os.getppid()\n"
        "    return parent, Path(f'/proc/{parent}/cmdline').read_text()\n"
    )
    template, command = invoke(client, make_function(source), {})
    assert "template.py" in command
    os.kill(template, signal.SIGKILL)
    after = [invoke(client, make_function(source), {}) for _ in range(2)]

    assert "template.py" in after[1][1], "the second comes from a new one"
    assert template not in [parent for parent, _ in after]


def test_a_function_that_ends_its_process_leaves_its_own_words_alone(client, make_function):
    arn = make_function("import sys\ndef handler(e, c):\n    sys.exit('no data today')\n")
    answer = invoke(client, arn, {})

    assert "Worker process died" == answer["errorMessage"]
    assert "template.py" not in json.dumps(answer)


def test_function_that_cannot_be_imported_says_so_and_logs_it(client, make_function, cloud):
    arn = make_function("import absent_dependency\n")
    answer = invoke(client, arn, {})

    assert answer["errorType"] == "Runtime.ImportModuleError"
    assert "No module named 'absent_dependency'" in answer["errorMessage"]
    log = api.logs(arn.rsplit(":", 1)[1], cloud=cloud)
    assert any("absent_dependency" in line for line in log.lines)


def test_a_stack_makes_changes_and_removes_a_budget(client):
    name = f"budget-{uuid.uuid4().hex[:8]}"
    cloudformation, budgets = client("cloudformation"), client("budgets")

    def template(usd):
        properties = {
            "Budget": {
                "BudgetName": name, "BudgetType": "COST", "TimeUnit": "MONTHLY",
                "BudgetLimit": {"Amount": usd, "Unit": "USD"},
                "CostFilters": {"TagKeyValue": ["user:compilegate:stage$speed"]},
            }
        }  # fmt: skip
        resource = {"Type": "AWS::Budgets::Budget", "Properties": properties}
        return json.dumps({"Resources": {"Monthly": resource}})

    def limit():
        budget = budgets.describe_budget(AccountId="000000000000", BudgetName=name)["Budget"]
        return budget["BudgetLimit"]["Amount"]

    cloudformation.create_stack(StackName=name, TemplateBody=template(100))
    cloudformation.get_waiter("stack_create_complete").wait(StackName=name)
    assert "100" == limit()
    cloudformation.update_stack(StackName=name, TemplateBody=template(200))
    cloudformation.get_waiter("stack_update_complete").wait(StackName=name)
    assert "200" == limit()
    cloudformation.delete_stack(StackName=name)
    cloudformation.get_waiter("stack_delete_complete").wait(StackName=name)
    with pytest.raises(budgets.exceptions.NotFoundException):
        limit()
