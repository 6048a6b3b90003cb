"""Resource types that the emulator learns for the app."""

import json
import uuid

import pytest

pytestmark = pytest.mark.e2e


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
        found = budgets.describe_budget(AccountId="000000000000", BudgetName=name)["Budget"]
        return found["BudgetLimit"]["Amount"]

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
