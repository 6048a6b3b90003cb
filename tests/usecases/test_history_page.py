"""The history page of real ledgers: what it holds in each state, and what it says of each event."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from compilegate.domain import naming
from compilegate.domain.codec import read, write
from compilegate.domain.console import s3_object
from compilegate.domain.decision import Decision
from compilegate.domain.errors import NotFoundError
from compilegate.domain.formats import percent
from compilegate.domain.production.registration import FAULT_VARIABLE, Registration
from compilegate.domain.records.production import (
    BegunRun,
    IgnoredJob,
    RegistrationChange,
)
from compilegate.domain.records.trials import TrialDecided
from compilegate.domain.utc import day, minute
from compilegate.report import statements
from compilegate.report.render import render
from compilegate.usecases.production.announce_review import history_page, write_history
from compilegate.usecases.records import Trial, to_json
from compilegate.usecases.reports import trial_report
from tests.domain.evidence_builder import CENTRE, judge
from tests.domain.production.run_builder import BEGIN, DAY
from tests.domain.workload_builder import SOUND
from tests.report.browser import CHROMIUM, assert_readable, browser, saved
from tests.usecases.production_builder import (
    TWO_MARGINS,
    WORKLOAD,
    follow,
    promote,
    record,
    run_and_watch,
    trial_evidence,
    watch,
)
from tests.usecases.trial_builder import FLAG, TRIAL

FAULT = "learning_rate:0.2"
PLACE = "reports/bert-docs/history"


def promoted(services: Any, count: int) -> None:
    """So many sound runs of a promotion, every sixth of them the baseline's."""
    promote(services)
    for number in range(1, 1 + count):
        run_and_watch(services, number, "compile" if number % 6 else "baseline")


def reverted(services: Any) -> None:
    """Promoted, six sound runs, then the candidate loses quality."""
    promoted(services, 6)
    follow(services, range(7, 40), metric=CENTRE - TWO_MARGINS)


def without_a_flag(services: Any) -> None:
    for number in range(1, 4):
        record(services, number, "baseline")


def registered(services: Any, *, active: bool = True, revision: int = 1, **more: Any) -> None:
    document = Registration(WORKLOAD, naming.spec_key(WORKLOAD, "x"), "x", owner="ada")
    change = RegistrationChange(
        revision=revision, active=active, at=services.clock.now() + 1, by="human:ada",
        document=write(replace(document, active=active, revision=revision)), **more,
    )  # fmt: skip
    services.ledger.append(WORKLOAD, change)


def retired(services: Any) -> None:
    without_a_flag(services)
    registered(services, active=False, revision=2)


def page_of(services: Any) -> tuple[Any, Any]:
    """The page and its document."""
    page = history_page(WORKLOAD, services)
    return page, json.loads(page.json)


def test_the_trials_own_page_is_written_again_with_what_followed(services: Any) -> None:
    decided(services)
    reverted(services)
    flags = services.ledger.history(WORKLOAD).flags
    told = f"Since {day(flags[-1].at)} it is off (state reverted), by the review of production:"
    then, now = (
        render(trial_report(Trial(WORKLOAD, TRIAL, ""), services, changes)).markdown
        for changes in (flags[:1], flags)
    )
    written = services.store.get(naming.report_key(WORKLOAD, TRIAL, "md")).decode()

    assert told not in then
    assert told in now
    assert told in written
    assert f"as of {minute(flags[-1].at)}" in written


def decided(services: Any) -> None:
    """The records of the trial behind the promotion."""
    key = naming.record_key(WORKLOAD, TRIAL, "decision")
    services.store.put(key, to_json(judge(trial_evidence()).to_dict(FLAG)))
    services.ledger.append(WORKLOAD, TrialDecided(BEGIN, TRIAL, "promote", key, "d1", "compile"))


def share_of_estimate(document: Any) -> str:
    return percent(document["savings"]["saved_usd"] / document["savings"]["expected_usd"])


def test_what_sound_runs_saved_is_a_share_of_what_was_expected(services: Any) -> None:
    decided(services)
    promoted(services, 16)
    page, document = page_of(services)

    assert share_of_estimate(document) in page.markdown


def test_history_and_report_of_a_revert_have_one_figure(services: Any) -> None:
    decided(services)
    reverted(services)
    (last,) = (one for one in services.ledger.history(WORKLOAD).reviews if one.action == "revert")
    figures = read(Decision, json.loads(services.store.get(str(last.decision_key)))).quality
    page, document = page_of(services)
    key = naming.probation_report_key(WORKLOAD, TRIAL, str(last.decision_id), "md")
    assert figures is not None
    delta = statements.delta(figures.delta)

    assert f"{statements.OF_ALL}{delta}" in services.store.get(key).decode()
    assert {delta} == {*re.findall(r"Δ [^ |<]*\d", page.html)}
    assert document["sums"]["quality"]["points"][-1][0] >= len(document["runs"]) - 1


@pytest.mark.parametrize(
    ("happens", "label", "words", "saves"),
    [
        (reverted, "Turned back off", "automatically: compile: eval_loss is worse", True),
        (retired, "Retired", "Retired; before that: bert-docs has trained", False),
    ],
)
def test_each_state_has_its_label_and_headline(
    happens: Any, label: str, words: str, saves: bool, services: Any
) -> None:
    happens(services)

    page, document = page_of(services)

    assert label == document["label"]
    assert words in page.headline
    assert page.headline in page.html
    assert saves is bool(document["savings"] and document["savings"]["saved_usd"])


def test_an_unknown_workload_has_no_page(services: Any) -> None:
    with pytest.raises(NotFoundError, match="compilegate register"):
        history_page("nobody", services)


def test_an_injected_fault_is_named_at_every_run_that_it_affected(services: Any) -> None:
    promoted(services, 3)
    faulty = replace(SOUND, training=replace(SOUND.training, environment={FAULT_VARIABLE: FAULT}))
    key = naming.spec_key(WORKLOAD, "faulty")
    spec = {"workload": faulty.to_dict(), "source_key": naming.source_key(WORKLOAD, "x")}
    services.store.put(key, to_json(spec))
    change = {"field": f"training.environment.{FAULT_VARIABLE}", "before": None, "after": FAULT}
    registered(services, revision=2, changes=(change,))
    for number, arm in ((4, "compile"), (5, "baseline")):
        begun = BegunRun(
            int(BEGIN + number * DAY), f"r{number:07d}", "arn", arm, "flag", 1, number, key, "s"
        )
        services.ledger.append(WORKLOAD, begun)
        watch(services, record(services, number, arm, details={"spec_key": key}).run)

    _, document = page_of(services)

    assert [None, None, None, FAULT, None] == [r["injected_fault"] for r in document["runs"]]
    assert FAULT in " ".join(document["lede"])


def test_a_job_of_another_role_is_in_it_with_what_to_do(services: Any) -> None:
    registered(services)
    ignored = IgnoredJob(services.clock.now(), "nightly-7", "arn:etl", "job_of_another_role")
    services.ledger.append(WORKLOAD, ignored)

    _, document = page_of(services)

    (event,) = [one for one in document["events"] if one["kind"] == ignored.kind]
    assert event["text"].startswith("nightly-7 ran as arn:etl. ")
    assert "schedule.team_role" in event["text"]


def test_the_page_lies_where_the_message_says(
    services: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One that cannot be written holds no message up."""
    reverted(services)
    last = services.ledger.history(WORKLOAD).runs[-1].run
    place = s3_object("us-east-1", "data", f"{PLACE}.html")

    assert place == write_history(WORKLOAD, services)
    assert place in watch(services, last)["message"]
    stored = {key for key in services.store.objects if key.startswith(f"{PLACE}.")}
    assert {f"{PLACE}.{ending}" for ending in ("html", "md", "json")} == stored
    put = services.store.put

    def broken(key: str, body: bytes, content_type: str = "application/json") -> None:
        if key.startswith(PLACE):
            raise OSError("no space")
        put(key, body, content_type)

    monkeypatch.setattr(services.store, "put", broken)
    answer = watch(services, last)
    assert answer["tell"] is True
    assert PLACE not in answer["message"]


@pytest.mark.slow
@pytest.mark.skipif(CHROMIUM is None, reason="no chromium on PATH: the page is not opened")
@pytest.mark.parametrize(
    ("happens", "charts"),
    # Without a baseline run of production nothing can be priced.
    [(reverted, 4), (partial(promoted, count=4), 3), (without_a_flag, 2)],
)
def test_a_browser_draws_every_chart_readably_at_every_size(
    happens: Any, charts: int, services: Any, tmp_path: Path
) -> None:
    happens(services)
    page = saved(history_page(WORKLOAD, services), tmp_path)

    with browser(tmp_path / "profile") as chromium:
        assert_readable(chromium, page)
        assert charts == chromium.run("document.querySelectorAll('figure.chart').length")


def test_a_run_that_is_scheduled_later_than_it_ran_has_a_simulated_clock(services: Any) -> None:
    record(services, 1, "baseline", details={"scheduled": "2030-01-01T02:00:00.000Z"})

    _, document = page_of(services)

    assert document["simulated_clock"]
    assert "2030-01-01 02:00" in document["events"][-1]["text"]
