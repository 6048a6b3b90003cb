"""A trial's records, read once for page, Markdown and message."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from typing import Any
from unittest.mock import Mock

import pytest

from compilegate.domain import naming
from compilegate.domain.claims import Claims, claims_of
from compilegate.domain.codec import read
from compilegate.domain.console import s3_object
from compilegate.domain.decision import Decision
from compilegate.domain.flag import Flag
from compilegate.domain.records.flags import FlagVersion
from compilegate.report.trial_report import UNDECIDED
from compilegate.usecases import reports
from compilegate.usecases.planning import plan_trial
from compilegate.usecases.records import Trial, to_json
from compilegate.usecases.reports import (
    read_trial_report,
    rewrite_reports,
    silent_arms,
    trial_report,
    write_report,
)
from tests.decision_builder import decision_document, speedup
from tests.domain.workload_builder import SOUND
from tests.report import samples
from tests.usecases.trial_builder import EVENT, FLAG, TRIAL, put_spec


def test_without_a_decision_and_without_a_failure_there_is_nothing_to_report() -> None:
    with pytest.raises(ValueError, match=r"context\.failure"):
        read_trial_report({**samples.ineligible(), "decision": None})


def test_of_a_failure_there_is_a_page_without_a_verdict() -> None:
    source = samples.ineligible()
    context = {**source["context"], "failure": "the job stopped"}
    report = read_trial_report({**source, "decision": None, "context": context})

    assert (None, None, UNDECIDED) == (report.verdict, report.decision, report.judged)


def test_a_candidate_that_left_nothing_is_given_up_by_the_reason_of_its_jobs() -> None:
    source = samples.promote()
    decision, evidence = dict(source["decision"] or {}), dict(source["evidence"] or {})
    decision["reasons"] = [{"code": "speed_needs_blocks", "message": "waits", "arm": "compile"}]
    silent = {f"job-{n}": ["compile"] for n in range(3)} | {"job-3": ["other"], "x": None}
    evidence["plan"] = {**evidence["plan"], "unmeasured_by_job": silent}
    report = read_trial_report({**source, "decision": decision, "evidence": evidence})

    assert ["evidence_missing"] == [reason.code for reason in report.reasons]
    assert ["compile"] == list(silent_arms(evidence))
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

    link = s3_object("us-east-1", "data", reply["report_key"])
    assert {
        "owner": "ml-platform", "link": link, "report": f"s3://data/{reply['report_key']}",
        "act": f"compilegate report bert-docs --trial {TRIAL} --stage prod",
        "subject": reply["subject"], "text": reply["message"], "stage": "prod",
    }.items() <= body(reply).items()  # fmt: skip
    assert reply["message"].endswith(f"\n\nReport: {link}")
    assert "1.40x" in reply["subject"]
    assert "<dd>ml-platform</dd>" in page
    assert f"<dd>{TRIAL}</dd>" in page
    assert list("98765432") == list(dict.fromkeys(re.findall(r"0aaaaaa(\d)", page)))
    assert "zzzzzzz9" not in page  # began later


def test_on_this_machine_the_message_names_the_command_and_no_console(services: Any) -> None:
    put_spec(services, SOUND)
    here = replace(services, settings=replace(services.settings, stage="local"))
    reply = answer(here)

    assert body(reply)["link"] is None
    assert reply["message"].endswith(f"\n\nReport: s3://data/{reply['report_key']}")


@pytest.mark.parametrize("enabled", [True, False, None])
def test_the_message_has_the_flag_as_it_is_after_the_decision(
    enabled: bool | None, services: Any
) -> None:
    assert enabled is body(answer(services, flag_enabled=enabled))["flag"]["enabled"]


ON, OFF = Flag(True, "probation", "compile").to_json(), Flag(False, "reverted").to_json()


def changes(*said: str) -> list[FlagVersion]:
    """Changes of the flag: by whom, then the trial that turns it on, or nothing."""
    return [
        FlagVersion(
            version, version, str(version), by, "a", "because", ON if trial else OFF,
            details={"trial": trial[0]} if trial else {},
        )
        for version, one in enumerate(said, 1)
        for by, *trial in [one.split()]
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("said", "followed"),
    [
        (["evaluate t1"], {}),
        (["evaluate t1", "train"], {"t1": 2}),
        (["evaluate t1", "train", "human:ana", "evaluate t2", "train"], {"t1": 3, "t2": 5}),
        (["human:ana t1"], {"t1": 1}),
        (["evaluate t1", "human:ana", "human:ana t1"], {"t1": 3}),
        (["human:ana t1", "train", "evaluate t1"], {"t1": 2}),
    ],
)  # fmt: skip
def test_a_page_shows_the_last_change_before_another_trials_of_what_its_own_turned_on(
    said: list[str], followed: dict[str, int], services: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = changes(*said)
    for name in ("t1", "t2", "t3"):
        key = naming.record_key("bert-docs", name, "decision")
        services.store.put(key, to_json(DECISION))
        last = trial_report(Trial("bert-docs", name, ""), services, made).source["followed"]
        assert followed.get(name) == (last.version if last else None)
    saved = Mock()
    monkeypatch.setattr(reports, "save_report", saved)
    rewrite_reports("bert-docs", made, services)

    assert [name for name, last in followed.items() if last == len(said)] == [
        call.args[0].trial for call in saved.call_args_list
    ]


def test_each_earlier_trial_has_the_claims_of_its_decision_or_none() -> None:
    before = read(Decision, DECISION)
    report = read_trial_report({**samples.promote(), "earlier": [("a", before), ("b", None)]})

    assert [("a", before, claims_of(before)), ("b", None, Claims())] == report.earlier
