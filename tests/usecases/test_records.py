"""What use cases read and keep: documents of a trial, registrations, pages."""

from __future__ import annotations

import json
import logging
import threading
from dataclasses import replace
from types import SimpleNamespace
from typing import Any
from unittest.mock import Mock, patch

import pytest

from compilegate.domain import naming
from compilegate.domain.codec import DocumentError, write
from compilegate.domain.decision import Decision, FlagAction
from compilegate.domain.errors import InvalidInputError, NotFoundError, UnreadableRecordError
from compilegate.domain.production.registration import TrainedJob
from compilegate.domain.records.trials import FlagOutcome
from compilegate.domain.trial.plan import RecordedPlan
from compilegate.usecases import records
from compilegate.usecases.records import Trial, to_json
from tests.decision_builder import decision_document
from tests.domain.workload_builder import SOUND
from tests.usecases.canary_builder import register
from tests.usecases.trial_builder import FLAG, SPEC, put_spec

ON = Trial("bert-docs", "t1", SPEC)
KEY = "decisions/bert-docs/t1/decision.json"
OTHER = "workloads/other/specs/x.json"
PLAN: Any = SimpleNamespace(spec_key="of the plan")


def put(services: Any, key: str, value: object) -> None:
    services.store.put(key, value if isinstance(value, bytes) else to_json(value))


def test_the_same_value_is_the_same_bytes_without_spaces() -> None:
    assert b'{"a":[1,2],"b":null}' == to_json({"b": None, "a": [1, 2]})


@pytest.mark.parametrize(
    ("own", "plan", "spec"),
    [("own", PLAN, "own"), ("own", None, "own"), ("", PLAN, "of the plan"), ("", None, "")],
)
def test_a_trial_that_names_no_spec_has_that_of_its_plan(
    own: str, plan: RecordedPlan | None, spec: str
) -> None:
    assert Trial("w", "t", spec) == records.of_plan(Trial("w", "t", own), plan)


SAID = {"name": FLAG, "action": "disable"}


@pytest.mark.parametrize(
    ("changes", "action"),
    [
        ({"flag": {**SAID, "action": "enable"}}, "enable"),
        ({"flag": SAID}, "disable"),
        ({"flag": None}, "keep"),
        ({"flag": SAID, "arms": 3}, "disable"),
        ({"flag": {**SAID, "action": "keep"}, "arms": 3}, "keep"),
    ],
)
def test_a_decision_says_what_to_do_with_the_flag_also_where_its_figures_are_damaged(
    changes: dict[str, Any], action: str, services: Any
) -> None:
    document = {**decision_document("stay_off"), **changes}
    put(services, KEY, document)
    decision = records.load_decision(services.store, KEY)

    assert decision == records.find_decision(services.store, KEY)
    assert decision.flag is not None
    assert FlagAction(action) == decision.flag.action
    for name in ("workload", "decision_id", "stage", "verdict", "candidate"):
        assert document[name] == getattr(decision, name)


@pytest.mark.parametrize("flag", [{**SAID, "action": "enable"}, None])
def test_a_damaged_decision_turns_nothing_on(
    flag: Any, services: Any, caplog: pytest.LogCaptureFixture
) -> None:
    put(services, KEY, {**decision_document(), "flag": flag, "arms": 3})

    with pytest.raises(DocumentError):
        records.load_decision(services.store, KEY)
    with caplog.at_level(logging.WARNING):
        assert records.find_decision(services.store, KEY) is None
    assert KEY in caplog.text


def test_what_is_not_there_is_none_and_not_logged(
    services: Any, caplog: pytest.LogCaptureFixture
) -> None:
    nothing = [
        records.find_decision(services.store, KEY), records.find_plan(services.store, ON),
        records.find_record(services.store, ON, "evidence"),
        records.find_flag_outcome(services.store, ON), records.find_json(services.store, KEY),
    ]  # fmt: skip

    assert ([None] * 5, "") == (nothing, caplog.text)


@pytest.mark.parametrize("error", records.UNREADABLE)
def test_a_plan_that_cannot_be_read_is_none_and_logged(
    error: type[Exception], services: Any, caplog: pytest.LogCaptureFixture
) -> None:
    read = Mock(side_effect=error("a reason"))
    with caplog.at_level(logging.WARNING), patch.object(records, "load_plan", read):
        assert records.find_plan(services.store, ON) is None
    assert "the plan of trial t1 cannot be read" in caplog.text


def test_an_outcome_for_the_flag_is_read_as_it_was_kept(services: Any) -> None:
    outcome = FlagOutcome(changed=True, enabled=True, state="probation")
    records.save_record(services.store, ON, "flag", write(outcome))

    assert outcome == records.find_flag_outcome(services.store, ON)


@pytest.mark.parametrize(
    ("body", "value"), [(b'{"a": 1}', {"a": 1}), (b"[]", []), (b"{", None), (b"\xff", None)]
)
def test_an_object_that_is_no_json_is_none(body: bytes, value: object, services: Any) -> None:
    put(services, KEY, body)

    assert value == records.find_json(services.store, KEY)


@pytest.mark.parametrize("document", [{"a": 1}, {"schema": 1}, [], "text"])
def test_a_record_without_a_schema_is_of_the_first(document: object, services: Any) -> None:
    put(services, KEY, document)

    assert document == records.load_record(services.store, ON, "decision")


def test_a_record_of_another_schema_is_refused_with_both(services: Any) -> None:
    put(services, KEY, {"schema": 2})

    with pytest.raises(UnreadableRecordError, match=rf"s3://data/{KEY}: schema 2 is not 1") as it:
        records.find_record(services.store, ON, "decision")
    assert it.value.fix


def test_a_decision_is_kept_with_its_trial_and_the_name_of_its_flag(services: Any) -> None:
    decision = records.read(Decision, {**decision_document(), "flag": {**SAID, "name": "other"}})
    key = records.save_decision(services.store, ON, decision, stage="prod")
    kept = json.loads(services.store.get(key))

    assert (KEY, "t1", FLAG) == (key, kept["trial"], kept["flag"]["name"])


# Production and its registration.


@pytest.mark.parametrize(
    ("state", "error", "words"),
    [
        ({"retired": True}, InvalidInputError, "retired"),
        (b"[]", InvalidInputError, "cannot be read as a registration"),
        (b"{", InvalidInputError, "cannot be read as a registration"),
        (None, NotFoundError, "is not registered"),
        ({"spec_key": OTHER}, InvalidInputError, "not a spec of bert"),
    ],
)
def test_what_production_cannot_train_is_refused_with_a_fix(
    state: Any, error: type[InvalidInputError], words: str, services: Any
) -> None:
    if isinstance(state, bytes):
        put(services, naming.registration_key("bert-docs"), state)
    elif state is not None:
        register(services, **{"active": not state.pop("retired", False), **state})

    with pytest.raises(error, match=words) as it:
        records.load_registered("bert-docs", services.store)
    assert it.value.fix


def test_a_registered_workload_is_its_spec(services: Any) -> None:
    register(services)
    spec = records.load_registered("bert-docs", services.store)

    source = "workloads/bert-docs/s.tgz"
    assert (SOUND, SPEC, source, source) == (
        spec.workload, spec.key, spec.source_key, spec.code,
    )  # fmt: skip
    assert TrainedJob(SOUND, "own") == replace(spec, code_digest="own").job
    assert spec == records.spec_at(services.store, SPEC)
    assert ["bert-docs"] == records.workload_names(services.store)


def test_an_owner_is_that_of_the_trial_or_the_registration_or_none(services: Any) -> None:
    store = services.store
    before = (records.owner_of(ON, store), records.owner_of_workload("bert-docs", store))
    register(services, owner="registered")
    put_spec(services, replace(SOUND, owner="of the trial"))

    assert (None, None) == before
    assert "of the trial" == records.owner_of(ON, store)
    assert "registered" == records.owner_of_workload("bert-docs", store)
    for spec in (b"{}", b"{", b'{"workload": {}}'):
        put(services, SPEC, spec)
        assert records.owner_of(ON, store) is None
    assert records.owner_of(replace(ON, spec_key=""), store) is None
    put(services, OTHER, {"workload": SOUND.to_dict(), "source_key": "s"})
    assert records.owner_of(replace(ON, spec_key=OTHER), store) is None


# Of many.


def test_names_are_read_side_by_side_and_answered_in_their_order() -> None:
    both = threading.Barrier(2, timeout=5)

    def read(name: str) -> str:
        both.wait()
        return name.upper()

    assert ["B", "A", "D", "C"] == records.at_once(read, ["b", "a", "d", "c"], most=2)


def test_each_is_tried_and_the_last_failure_raised(caplog: pytest.LogCaptureFixture) -> None:
    tried: list[Any] = []

    def act(entry: Any) -> Any:
        tried.append(entry)
        if isinstance(entry, Exception):
            raise entry
        return entry

    entries = [("a", True), ("b", ValueError("b")), ("c", None), ("d", KeyError("d")), ("e", True)]

    assert 2 == records.try_each([("a", True), ("b", False), ("c", None), ("d", True)], act)
    with pytest.raises(KeyError, match="d"):
        records.try_each(entries, act)
    assert [entry for _, entry in entries] == tried[4:]
    assert ["b", "d"] == [record.message for record in caplog.records]


# Pages.


@pytest.mark.parametrize("stage", ["prod", "local"])
def test_pages_are_stored_by_their_kind_and_linked_where_there_is_a_console(
    stage: str, services: Any
) -> None:
    here = replace(services, settings=replace(services.settings, stage=stage))
    texts = {"html": "<p>é", "md": "é", "json": "{}"}
    place, link = records.save_pages(texts, lambda ending: f"r.{ending}", here)
    context = records.report_context("w", "t", here)

    assert "s3://data/r.html" == place
    assert (link is None) is (stage == "local")
    assert [text.encode() for text in texts.values()] == [
        services.store.get(f"r.{ending}") for ending in texts
    ]
    assert {
        "stage": stage, "trial": "t", "workload": "w", "simulated": None, "bucket": "data",
        "as_of": services.clock.now(), "region": None if stage == "local" else "us-east-1",
    } == context  # fmt: skip
