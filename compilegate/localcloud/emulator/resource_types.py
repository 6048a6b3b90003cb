"""Resource types that the app uses and the CloudFormation of ministack does not know."""

from __future__ import annotations

import copy
from typing import Any

from ministack.services import budgets

from compilegate.localcloud.emulator.replacements import extend

Properties = dict[str, Any]


def install() -> None:
    """Make the types known."""
    handlers = {"create": _create_budget, "update": _update_budget, "delete": _delete_budget}
    extend(
        "ministack.services.cloudformation.provisioners._RESOURCE_HANDLERS",
        {"AWS::Budgets::Budget": handlers},
    )


def _create_budget(_logical_id: str, properties: Properties, _stack: str) -> tuple[str, Properties]:
    request = copy.deepcopy(properties)
    limit = request["Budget"].get("BudgetLimit")
    if limit:  # a number in a template, text in the API
        limit["Amount"] = str(limit["Amount"])
    status, _, body = budgets._create_budget(request)
    if status >= 400:
        raise ValueError(f"AWS::Budgets::Budget: {body!r}")
    return request["Budget"]["BudgetName"], {}


def _update_budget(
    physical_id: str, _old: Properties, new: Properties, stack: str
) -> tuple[str, Properties]:
    _delete_budget(physical_id, new)
    return _create_budget("", new, stack)


def _delete_budget(physical_id: str, _properties: Properties) -> None:
    budgets._delete_budget({"BudgetName": physical_id})
