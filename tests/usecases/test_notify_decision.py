"""The message about a trial's end: the report's words, the figures, whose it is."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from typing import Any

from compilegate.domain import naming
from compilegate.usecases.planning import plan_trial
from compilegate.usecases.records import to_json
from compilegate.usecases.reports import write_report
from tests.decision_builder import decision_document, speedup
from tests.domain.workload_builder import SOUND
from tests.usecases.trial_builder import EVENT, FLAG, TRIAL, put_spec

DECISION = decision_document(speedup=speedup(1.4), flag={"name": FLAG, "action": "enable"})


def answer(services: Any, **changes: Any) -> dict[str, Any]:
    plan_trial(EVENT, services=services)
    services.store.put(naming.record_key("bert-docs", TRIAL, "decision"), to_json(DECISION))
    return write_report({**EVENT, **changes}, services=services)


def body(answer: dict[str, Any]) -> dict[str, Any]:
    document: dict[str, Any] = json.loads(json.loads(answer["notification"]["message"])["default"])
    return document


def test_the_page_names_owner_and_earlier_trials(services: Any) -> None:
    put_spec(services, replace(SOUND, owner="ml-platform"))
    for trial in (*(f"0aaaaaa{number}" for number in range(10)), "zzzzzzz9"):
        decision = to_json({**DECISION, "verdict": "stay_off"})
        services.store.put(naming.record_key("bert-docs", trial, "decision"), decision)
    page = services.store.get(answer(services)["report_key"]).decode()

    assert "<dd>ml-platform</dd>" in page
    assert list("98765432") == list(dict.fromkeys(re.findall(r"0aaaaaa(\d)", page)))
    assert "zzzzzzz9" not in page  # began later


def test_on_this_machine_the_message_names_the_command_and_no_console(services: Any) -> None:
    put_spec(services, SOUND)
    here = replace(services, settings=replace(services.settings, stage="local"))
    reply = answer(here)

    assert body(reply)["link"] is None
    assert "console" not in reply["message"]
