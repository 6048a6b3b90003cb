"""The story that a real ledger tells: what stands in it, and what it says of each turn."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from compilegate.domain import ledger_keys, naming
from compilegate.domain.errors import NotFoundError
from compilegate.domain.judging.evidence_file import read_evidence
from compilegate.domain.judging.production import replay_probation
from compilegate.domain.production.registration import VARIABLE, Registration
from compilegate.ports import Services
from compilegate.usecases.flag.override import Override, revert_by_hand
from compilegate.usecases.production.history_page import history_page, write_history
from compilegate.usecases.trial.documents import to_json
from tests.domain.evidence_builder import judge
from tests.domain.production.run_builder import BEGIN, DAY, production_run
from tests.domain.workload_builder import SOUND
from tests.usecases.history_builder import nights, reverted, told
from tests.usecases.production_builder import WORKLOAD, promote, record, watch

LOSS = 0.045
FAULT = "learning_rate:0.2"


def titles(document: Any) -> list[str]:
    return [event["title"] for event in document["events"]]


def test_a_revert_is_told_from_the_promotion_to_the_night_after_it(services: Any) -> None:
    reverted(services, loss=LOSS)

    story, document = told(services)

    assert "“compile” was turned off automatically: eval_loss is worse by 0.0" in story.headline
    assert ("Turned back off", False, "reverted") == (
        document["label"], document["flag"]["enabled"], document["flag"]["state"],
    )  # fmt: skip
    order = [title for title in titles(document) if not title.startswith("Run ")]
    assert ["Turned on: compile", "Alarm", "Turned off automatically: compile"] == order
    last = document["runs"][-1]
    assert ("baseline", "reverted") == (last["arm"], last["flag_state"])
    assert 6 == sum(run["confirm"] for run in document["runs"])
    assert document["savings"]["saved_usd"] > 0
    assert story.headline in story.html


def test_the_sums_are_those_of_the_judge(services: Any) -> None:
    reverted(services, loss=LOSS)

    _, document = told(services)

    quality = document["sums"]["quality"]
    alarms = [place for place, total, _, _ in quality["points"] if total > quality["limit"]]
    alarm = next(event for event in document["events"] if event["kind"] == "alarm")
    assert alarm["place"] == alarms[0] + 0.5
    assert 0.0 == quality["points"][-1][1]  # checked, and begun anew
    assert (
        max(total for _, total, _, _ in document["sums"]["speed"]["points"])
        < (document["sums"]["speed"]["limit"])
    )


def test_hearing_what_the_replay_goes_through_changes_nothing(services: Any) -> None:
    reverted(services, loss=LOSS)
    looks = [e for e in services.ledger.entries(WORKLOAD) if e["kind"] == "watch"]
    evidence = json.loads(services.store.get(looks[-1]["evidence_key"]))
    heard: list[str] = []

    finding = replay_probation(
        read_evidence(evidence), lambda arm, _run, _monitors: heard.append(arm)
    )

    assert judge(evidence).verdict == finding.verdict
    assert {"baseline", "compile"} == set(heard)


def test_before_the_first_run_it_says_what_is_known(services: Any) -> None:
    entry = {
        "kind": "registered", "at": BEGIN, "by": "human:ada", "revision": 1, "changes": [],
        "registration": {**_registration().to_dict()},
    }  # fmt: skip
    services.ledger.put_once(WORKLOAD, ledger_keys.registered_entry(1), entry)

    story, document = told(services)

    assert "bert-docs is registered, and production has not trained it yet" == story.headline
    (event,) = document["events"]
    assert ("Registered", "by ada; the team starts its runs") == (event["title"], event["text"])
    assert "No production run has ended yet." in story.html
    assert len(story.html) < 100_000  # nothing to draw, so the charts' library is not carried


def test_of_a_workload_that_nobody_knows_there_is_no_story(services: Any) -> None:
    with pytest.raises(NotFoundError, match="compilegate register"):
        history_page("nobody", services)


def test_production_that_nothing_was_ever_turned_on_for(services: Any) -> None:
    for number in range(1, 4):
        record(services, number, "baseline")

    story, document = told(services)

    expected = (
        "bert-docs has trained without a compiler so far: no trial has turned one on in 3 runs"
    )
    assert expected == story.headline
    assert document["savings"] is None
    assert {} == document["sums"]
    assert "Nothing has been turned on, so nothing is saved." in story.html


def test_a_trial_that_turned_nothing_on_is_told_with_its_reason(services: Any) -> None:
    record(services, 1, "baseline")
    entry = {
        "kind": "decision", "at": services.clock.now(), "trial": "0mabc123", "decision_id": "d",
        "decision_key": "decisions/x", "verdict": "inconclusive", "candidate": "compile",
        "reasons": ["compile: blocks vary too much."],
    }  # fmt: skip
    services.ledger.put_once(WORKLOAD, "trial#0mabc123#decision", entry)

    _, document = told(services)

    expected = "The latest trial (0mabc123) ended with “not proven: compile: blocks vary too much”."
    assert [expected] == document["lede"]
    assert "Trial 0mabc123 decided: not proven" in titles(document)


def test_on_probation_it_says_how_far(services: Any) -> None:
    promote(services)
    nights(services, range(1, 5))

    story, document = told(services)

    expected = "“compile” is on and watched run by run: 4 of 12 production runs watched, no alarm"
    assert expected == story.headline
    assert "On probation" == document["label"]


def test_while_an_alarm_is_checked_it_says_so(services: Any) -> None:
    promote(services)
    nights(services, range(1, 4))
    nights(services, range(4, 6), loss=LOSS)

    _, document = told(services)

    assert "Alarm being checked" == document["label"]
    assert "an alarm is being checked" in document["headline"]


def test_a_probation_that_held_is_on_for_good(services: Any) -> None:
    promote(services)
    nights(services, range(1, 17))

    _, document = told(services)

    assert "On permanently" == document["label"]
    assert document["headline"].startswith("“compile” is on permanently: ")
    assert "On permanently: compile" in titles(document)


def test_a_persons_word_stands_with_its_reason(services: Any) -> None:
    promote(services)
    nights(services, range(1, 4))
    revert_by_hand(WORKLOAD, Override("ada", "loss spikes since Monday"), services=services)

    _, document = told(services)

    assert "ada turned “compile” off by hand: loss spikes since Monday" == document["headline"]
    assert "Turned off by hand" == document["label"]
    (event,) = [e for e in document["events"] if e["title"] == "Turned off by hand: compile"]
    assert "by ada: loss spikes since Monday." == event["text"]


def test_what_is_retired_keeps_its_story(services: Any) -> None:
    record(services, 1, "baseline")
    entry = {
        "kind": "retired", "at": services.clock.now() + 1, "by": "human:ada", "revision": 2,
        "changes": [], "registration": {**replace(_registration(), active=False).to_dict()},
    }  # fmt: skip
    services.ledger.put_once(WORKLOAD, ledger_keys.registered_entry(2), entry)

    _, document = told(services)

    assert "Retired" == document["label"]
    assert document["headline"].startswith("Retired; before that: bert-docs has trained")


def test_an_injected_fault_is_named_wherever_it_acted(services: Any) -> None:
    promote(services)
    nights(services, range(1, 4))
    faulty = replace(SOUND, training=replace(SOUND.training, environment={VARIABLE: FAULT}))
    key = naming.spec_key(WORKLOAD, "faulty")
    spec = {"workload": faulty.to_dict(), "source_key": naming.source_key(WORKLOAD, "x")}
    services.store.put(key, to_json(spec))
    _register_change(services, VARIABLE)
    for number, arm in ((4, "compile"), (5, "baseline")):
        _begun(services, number, arm, key)
        run = record(services, number, arm, details={"spec_key": key})
        watch(services, run.run)

    _, document = told(services)

    assert [None, None, None, FAULT, None] == [r["injected_fault"] for r in document["runs"]]
    assert "Fault injected on purpose" in titles(document)
    assert f"The fault was injected on purpose ({FAULT})" in " ".join(document["lede"])


def test_runs_that_stand_for_later_nights_are_a_simulated_clock(services: Any) -> None:
    later = "2030-01-01T02:00:00.000Z"
    record(services, 1, "baseline", details={"scheduled": later})

    _, document = told(services)

    assert document["simulated_clock"] is True
    assert "stands for 2030-01-01 02:00" in document["events"][-1]["text"]
    assert any("simulated" in sentence for sentence in document["lede"])


def test_runs_on_time_are_not(services: Any) -> None:
    record(services, 1, "baseline", details={"scheduled": "2020-01-01T02:00:00Z"})

    assert told(services)[1]["simulated_clock"] is False


def test_a_run_without_evidence_and_one_that_failed_are_told_as_that(services: Any) -> None:
    run = production_run(1, result={}, counts=False, reason="it left no evidence")
    services.ledger.put_once(
        WORKLOAD, ledger_keys.run_entry(run.run, run.job), replace(run, at=BEGIN + DAY).to_entry()
    )
    record(services, 2, "baseline", finished=False, metric=None, reason="out of memory")

    story, document = told(services)

    texts = {event["title"]: event["text"] for event in document["events"]}
    assert "no evidence" in texts["Run 1: compile"]
    assert "out of memory" in texts["Run 2: baseline failed"]
    assert [None, None] == [run["metric"] for run in document["runs"]]
    assert "No run has recorded" in story.html


def test_half_a_thousand_runs_make_a_page_that_can_be_read(services: Any) -> None:
    promote(services)
    for number in range(1, 501):
        record(services, number, "baseline" if number % 6 == 0 else "compile")

    story, document = told(services)

    assert 500 == len(document["runs"])
    assert "Runs 1 to 500" in story.html
    assert 1 == story.markdown.count("**Runs 1 to 500** 417 runs of compile")
    assert len(story.markdown) < 10_000


def test_a_text_from_outside_stays_text(services: Any) -> None:
    promote(services)
    word = "<script>alert(1)</script>"
    revert_by_hand(WORKLOAD, Override("ada", word), services=services)

    story, _ = told(services)

    assert word not in story.html
    assert "<script>" not in story.markdown


def _registration() -> Registration:
    return Registration(WORKLOAD, naming.spec_key(WORKLOAD, "x"), "x", owner="ada", revision=1)


def _register_change(services: Any, variable: str) -> None:
    entry = {
        "kind": "registered", "at": services.clock.now() + 1, "by": "demo", "revision": 2,
        "changes": [{"field": f"training.environment.{variable}", "before": None, "after": FAULT}],
        "registration": _registration().to_dict(),
    }  # fmt: skip
    services.ledger.put_once(WORKLOAD, ledger_keys.registered_entry(2), entry)


def _begun(services: Any, number: int, arm: str, spec_key: str) -> None:
    run = f"r{number:07d}"
    entry = {
        "kind": "run_begun", "at": int(BEGIN + number * DAY), "run": run, "execution": "arn",
        "arm": arm, "why": "flag", "seed": 1, "number": number, "spec_key": spec_key,
        "source_key": "s",
    }  # fmt: skip
    services.ledger.put_once(WORKLOAD, ledger_keys.begun_entry(run), entry)


LOSS = 0.045


def test_the_story_is_left_where_the_message_says(services: Any) -> None:
    reverted(services, loss=LOSS)

    place = write_history(WORKLOAD, services)

    assert f"s3://{services.store.bucket}/reports/bert-docs/story.html" == place
    stored = {key for key in services.store.objects if key.startswith("reports/bert-docs/story.")}
    assert {"html", "md", "json"} == {key.rpartition(".")[2] for key in stored}


def test_whoever_hears_of_the_revert_is_led_to_the_story(services: Any) -> None:
    reverted(services, loss=LOSS)
    looks = [e for e in services.ledger.entries(WORKLOAD) if e["kind"] == "watch" and e["change"]]

    answer = watch(services, looks[-1]["run"])

    assert "s3://data/reports/bert-docs/story.html" in answer["message"]


def test_a_story_that_cannot_be_written_holds_no_message_up(
    services: Services, monkeypatch: pytest.MonkeyPatch
) -> None:
    reverted(services, loss=LOSS)
    looks = [e for e in services.ledger.entries(WORKLOAD) if e["kind"] == "watch" and e["change"]]
    put = services.store.put

    def broken(key: str, body: bytes, content_type: str = "application/json") -> None:
        if "/story." in key:
            raise OSError("no space")
        put(key, body, content_type)

    monkeypatch.setattr(services.store, "put", broken)
    answer = watch(services, looks[-1]["run"])

    assert answer["tell"] is True
    assert "The whole history" not in answer["message"]
