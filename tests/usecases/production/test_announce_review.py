"""What the pages of a workload are made from, and what the message after a review holds."""

from __future__ import annotations

import json
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from compilegate.domain import naming
from compilegate.domain.console import s3_object
from compilegate.domain.errors import NotFoundError
from compilegate.domain.flag import Flag
from compilegate.domain.production.registration import FAULT_VARIABLE, Registration
from compilegate.domain.reasons import Reason
from compilegate.domain.records.flags import Author
from compilegate.domain.records.production import BegunRun, PlannedTransition, Review
from compilegate.domain.records.trials import TrialDecided
from compilegate.report.history.view import HistoryView
from compilegate.report.notifications.review import ReviewNews
from compilegate.usecases.flag.change_flag import Changed
from compilegate.usecases.production import announce_review as announcing
from compilegate.usecases.production.announce_review import announce_review, history_page
from compilegate.usecases.records import load_decision, to_json
from tests import fakes
from tests.decision_builder import decision_document
from tests.domain.evidence_builder import judge
from tests.domain.production.run_builder import BEGIN
from tests.domain.workload_builder import SOUND, change
from tests.usecases.production_builder import WORKLOAD, promote, say, trial_evidence
from tests.usecases.trial_builder import FLAG, SPEC, TRIAL

PAGE = f"s3://data/reports/bert-docs/{TRIAL}/probation-p1.html"
AT_S3 = {name: s3_object("us-east-1", "data", f"reports/bert-docs/{name}.html") for name in
         ("history", f"{TRIAL}/probation-p1")}  # fmt: skip
REGISTERED = naming.registration_key(WORKLOAD)


def review(number: int, action: str | None = None, **more: Any) -> Review:
    """The review after one run; what it does to the flag, if anything."""
    if action is not None:
        more["transition"] = PlannedTransition(f"review#1#{action}", action, "", "", BEGIN)
    return Review(BEGIN + number, f"r{number}", TRIAL, "compile", **more)


@pytest.fixture
def view(services: Any, monkeypatch: pytest.MonkeyPatch) -> Any:
    """What the page of the promoted workload is made from."""
    promote(services)
    monkeypatch.setattr(announcing, "render_history", lambda made: made)
    return lambda: history_page(WORKLOAD, services)


def test_a_page_is_made_from_all_that_is_recorded(services: Any, view: Any) -> None:
    """The decision is that of the promoted trial; a fault only where a run's spec has one."""
    for name, trial in (("d1", "abc"), ("d2", TRIAL), ("d3", "xyz")):
        services.store.put(name, to_json(decision_document(decision_id=name)))
        services.ledger.append(WORKLOAD, TrialDecided(BEGIN, trial, "promote", name, name))
    fault = {"training": {"environment": {FAULT_VARIABLE: "loss:2"}}}
    specs: dict[str, Any] = {"faulty": {"workload": fault}, "sound": {"workload": {}}, "bare": {}}
    for number, key in enumerate((*specs, "gone")):
        begun = BegunRun(BEGIN, f"r{number}", "e", "baseline", "flag", 1, 1, key, "s")
        services.ledger.append(WORKLOAD, begun)
        if key in specs:
            services.store.put(key, to_json(specs[key]))
    services.store.put("e1", b"[1]")
    services.ledger.append(WORKLOAD, review(1, evidence_key="e1"))

    expected = HistoryView(
        WORKLOAD, services.ledger.history(WORKLOAD), "prod",
        load_decision(services.store, "d2"), [1], SOUND.to_dict(),
        {"faulty": "loss:2"}, "here", "us-east-1", "data",
    )  # fmt: skip
    object.__setattr__(services.settings, "simulated", "here")
    assert expected == view()


@pytest.mark.parametrize("gone", [REGISTERED, SPEC, "flag"])
def test_a_page_shows_neither_the_workload_nor_a_trial_where_there_is_none(
    services: Any, view: Any, gone: str
) -> None:
    if gone == "flag":
        services.ledger.raw.items.clear()
        services.store.put("d1", to_json(decision_document()))
        services.ledger.append(WORKLOAD, TrialDecided(BEGIN, TRIAL, "promote", "d1", "d1"))
    services.store.objects.pop(gone, None)
    made = view()

    assert (None, None, {}) == (made.decision, made.evidence, made.faults)
    assert (gone == "flag") is (made.workload is not None)


@pytest.mark.parametrize(
    ("reviews", "shown"),
    [
        ([("a", None), (None, None)], "a"),
        ([("a", "stale"), ("b", None)], "b"),
        ([("a", None), ("b", "permanent"), ("c", None)], "b"),
        ([("a", None), (None, "permanent"), ("c", None)], "c"),
    ],
)
def test_a_pages_evidence_is_that_up_to_the_end_of_the_probation(
    services: Any, view: Any, reviews: Any, shown: str
) -> None:
    for number, (key, action) in enumerate(reviews, 1):
        services.store.put(str(key), to_json(key))
        services.ledger.append(WORKLOAD, review(number, action, evidence_key=key))

    assert shown == view().evidence


@pytest.fixture
def heard(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """What each message's paragraphs were made from; the paragraphs are two."""
    made: list[Any] = []
    monkeypatch.setattr(announcing, "paragraphs", lambda *of: made.append(of) or ["One.", "Two."])
    return made


def body(answer: Any) -> Any:
    return json.loads(json.loads(answer["notification"]["message"])["default"])


OFF, ON = Flag(False, "reverted"), Flag(True, "probation", "b48", {"batch_size": 48}, "d9")
HISTORY = "compilegate flag history bert-docs"
TRAIN = "compilegate run workloads/bert-docs.yaml"


@pytest.mark.parametrize(
    ("of", "flag", "act", "priced"),
    [
        (review(1, message_kind="alarm"), ON, HISTORY, False),
        (review(1, "stale", message_kind="stale"), OFF, TRAIN, True),
        (review(1, "resume", message_kind="stale"), ON, HISTORY, False),
        (review(1, message_kind="slower"), ON, TRAIN, True),
    ],
)
@pytest.mark.parametrize(("stage", "at"), [("prod", "--stage prod"), ("local", "--local")])
def test_a_message_has_all_that_is_known_of_review_and_flag(
    heard: list[Any], *, of: Review, flag: Flag, act: str, priced: bool, stage: str, at: str
) -> None:
    services = fakes.services(stage)
    promote(services, change(SOUND, owner="ada"))
    authors = [Author(f"human:{name}", 1, "r") for name in ("ann", "ben", "cid")]
    answer = announce_review(WORKLOAD, of, Changed(False, flag, 7, *authors), services)

    ((news, report, price),) = heard
    overrode, held_by, superseded_by = authors
    assert ReviewNews(WORKLOAD, stage, of, flag, held_by, superseded_by, overrode) == news
    assert (None, priced) == (report, price is not None)
    page = AT_S3["history"] if stage == "prod" else "s3://data/reports/bert-docs/history.html"
    said = body(answer)
    assert f"One.\n\nTwo.\n\nThe whole history: {page}\n" == said["text"]
    assert {
        "kind": of.message_kind, "stage": stage, "workload": WORKLOAD, "owner": "ada",
        "flag": {"name": None, "action": None, "enabled": flag.enabled, "state": flag.state},
        "report": None, "link": None, "act": f"{act} {at}", "verdict": None,
    }.items() <= said.items()  # fmt: skip
    # An address that is not ours would be broken up.
    assert page in json.loads(answer["notification"]["message"])["email"]


def judged(services: Any, **more: Any) -> Review:
    """A review with a decision of the judge, whose records are stored."""
    decision = replace(judge(trial_evidence()), decision_id="p1")
    services.store.put("said", to_json(decision.to_dict(FLAG)))
    services.store.put("shown", to_json(trial_evidence()))
    return review(
        2, decision_id="p1", decision_key="said", evidence_key="shown", verdict="promote", **more
    )


@pytest.mark.parametrize(
    ("stage", "link"), [("prod", AT_S3[f"{TRIAL}/probation-p1"]), ("local", None)]
)
def test_the_report_of_a_decision_lies_where_the_message_says(
    heard: list[Any], stage: str, link: str | None
) -> None:
    services: Any = fakes.services(stage)
    promote(services)
    said = body(announce_review(WORKLOAD, judged(services, message_kind="alarm"), None, services))

    ((_, report, _),) = heard
    key = PAGE.removeprefix("s3://data/").removesuffix("html")
    stored = (services.store.objects[f"{key}{ending}"].decode() for ending in ("html", "md"))
    assert (report.html, report.markdown) == tuple(stored)
    assert (link or PAGE) in report.message
    assert (PAGE, link, "promote", "p1") == (
        said["report"], said["link"], said["verdict"], said["decision_id"],
    )  # fmt: skip
    assert report.subject == said["subject"]
    assert (True, "probation") == (said["flag"]["enabled"], said["flag"]["state"])


def test_a_stale_promotion_has_no_report_of_the_judge(services: Any, heard: list[Any]) -> None:
    promote(services)
    answer = announce_review(WORKLOAD, judged(services, message_kind="stale"), None, services)

    assert (None, None) == (heard[0][1], body(answer)["report"])


def test_pages_that_cannot_be_written_hold_no_message_up(
    services: Any, heard: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    promote(services)
    monkeypatch.setattr(announcing, "write_history", None)
    answer = announce_review(WORKLOAD, review(1, message_kind="alarm"), None, services)

    assert "One.\n\nTwo.\n" == answer["message"]


@pytest.mark.parametrize("changed", [True, False, None])
def test_the_trials_page_is_written_again_where_the_flag_was_changed(
    services: Any, changed: bool | None
) -> None:
    promote(services)
    say(services, OFF)
    key = naming.record_key(WORKLOAD, TRIAL, "decision")
    services.store.put(key, to_json(judge(trial_evidence()).to_dict(FLAG)))
    made = None if changed is None else Changed(changed, OFF, 2)
    announce_review(WORKLOAD, review(1, message_kind="alarm"), made, services)

    assert bool(changed) is services.store.has(naming.report_key(WORKLOAD, TRIAL, "html"))


OWN = f"{TRAIN} --stage prod"


@pytest.mark.parametrize(
    ("origin", "plan", "act", "words"),
    [
        ("", None, OWN, "A new trial would cost about $30.00 ($20.00 to $45.00). "
         f"Start it with: {OWN}"),
        ("jobs/b.yaml", Reason("small", "It is too small", fix="try it"),
         "compilegate run jobs/b.yaml --stage prod",
         "A new trial would currently be refused: It is too small. Fix: try it"),
        (None, None, OWN, "The cost of a new trial is unknown: bert-docs is not registered. Fix: "
         f"register its file with `compilegate register`.\nStart it with: {OWN}"),
    ],
)  # fmt: skip
def test_a_stale_promotion_says_what_a_new_trial_costs_by_what_earlier_ones_measured(
    services: Any, heard: list[Any], monkeypatch: pytest.MonkeyPatch, *,
    origin: str | None, plan: Any, act: str, words: str,
) -> None:  # fmt: skip
    """``origin`` is the registered file, None without a registration."""
    promote(services)
    document = {**vars(Registration(WORKLOAD, SPEC, "x")), "origin": origin, "schema": 1}
    services.store.put(REGISTERED, to_json(document))
    if origin is None:
        del services.store.objects[REGISTERED]
    asked: list[Any] = []

    def planned(*of: Any, **more: Any) -> Any:
        asked.append((*of, more))
        return plan or SimpleNamespace(estimate=SimpleNamespace(usd=30, low_usd=20, high_usd=45))

    monkeypatch.setattr(announcing, "plan_for", planned)
    monkeypatch.setattr(announcing, "past_overheads", lambda *of: of)
    answer = announce_review(WORKLOAD, review(1, "stale", message_kind="stale"), None, services)

    assert (words, act) == (heard[-1][2], body(answer)["act"])
    measured = (WORKLOAD, services.ledger.history(WORKLOAD), services.store)
    registered = (SOUND, services.settings, {"measured": measured})
    assert [registered] * (origin is not None) == asked


def test_a_workload_without_any_record_has_no_page(services: Any) -> None:
    with pytest.raises(NotFoundError, match="another has no history") as refused:
        history_page("another", services)
    assert "compilegate register" in str(refused.value)
