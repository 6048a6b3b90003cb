"""A trial's records, read once for page, Markdown and message."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from typing import Any

import pytest

from compilegate.domain import naming
from compilegate.domain.console import s3_object
from compilegate.usecases.planning import plan_trial
from compilegate.usecases.records import to_json
from compilegate.usecases.reports import read_trial_report, write_report
from tests.decision_builder import decision_document, speedup
from tests.domain.workload_builder import SOUND
from tests.report import samples
from tests.usecases.trial_builder import EVENT, FLAG, TRIAL, put_spec


def test_without_a_decision_and_without_a_failure_there_is_nothing_to_report() -> None:
    with pytest.raises(ValueError, match=r"context\.failure"):
        read_trial_report({**samples.ineligible(), "decision": None})


def test_a_candidate_that_left_nothing_is_given_up_by_the_reason_of_its_jobs() -> None:
    source = samples.promote()
    decision, evidence = dict(source["decision"] or {}), dict(source["evidence"] or {})
    decision["reasons"] = [{"code": "speed_needs_blocks", "message": "waits", "arm": "compile"}]
    evidence["plan"] = {
        **evidence["plan"], "unmeasured_by_job": {f"job-{n}": ["compile"] for n in range(3)},
    }  # fmt: skip
    report = read_trial_report({**source, "decision": decision, "evidence": evidence})

    assert ["evidence_missing"] == [reason.code for reason in report.reasons]
    assert source["eligibility"] == report.eligibility


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
    reply = answer(services)
    page = services.store.get(reply["report_key"]).decode()

    assert s3_object("us-east-1", "data", reply["report_key"]) == body(reply)["link"]
    assert "<dd>ml-platform</dd>" in page
    assert list("98765432") == list(dict.fromkeys(re.findall(r"0aaaaaa(\d)", page)))
    assert "zzzzzzz9" not in page  # began later


def test_on_this_machine_the_message_names_the_command_and_no_console(services: Any) -> None:
    put_spec(services, SOUND)
    here = replace(services, settings=replace(services.settings, stage="local"))
    reply = answer(here)

    assert body(reply)["link"] is None
    assert "console" not in reply["message"]
