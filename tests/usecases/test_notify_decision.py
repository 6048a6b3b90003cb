"""The message about a trial's end: the report's words, the figures, whose it is."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from typing import Any

from compilegate.domain import naming
from compilegate.domain.console import s3_object
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


def test_a_trial_tells_its_figures_owner_report_and_what_became_of_the_flag(services: Any) -> None:
    put_spec(services, replace(SOUND, owner="ml-platform"))

    reply = answer(services, flag_enabled=True)

    key = naming.report_key("bert-docs", TRIAL, "html")
    report, link = f"s3://data/{key}", s3_object("us-east-1", "data", key)
    expected = {
        "kind": "decision", "workload": "bert-docs", "owner": "ml-platform", "verdict": "promote",
        "decision_id": "d1", "report": report, "link": link,
        "act": f"compilegate report bert-docs --trial {TRIAL} --stage prod",
        "flag": {"name": FLAG, "action": "enable", "enabled": True, "state": None},
        "figures": {
            "candidate": "compile", "reasons": ["speedup_proven"], "speedup": speedup(1.4),
            "quality": None, "saving": None,
            "claims": {"speed": "faster", "quality": "open", "money": "saves"},
        },
    }  # fmt: skip
    assert expected == {key: body(reply)[key] for key in expected}
    assert f"Report: {link}\n" in f"{reply['message']}\n"
    assert reply["message"] == body(reply)["text"]
    assert "ml-platform" == reply["notification"]["attributes"]["owner"]["StringValue"]


def test_without_an_owner_or_a_spec_the_message_still_goes_out(services: Any) -> None:
    put_spec(services, replace(SOUND, owner=None))
    plan_trial(EVENT, services=services)
    services.store.put(EVENT["spec_key"], b"{")
    services.store.put(naming.record_key("bert-docs", TRIAL, "decision"), to_json(DECISION))
    answer = write_report(EVENT, services=services)

    assert body(answer)["owner"] is None
    assert "owner" not in answer["notification"]["attributes"]


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
