"""The history page of real ledgers: what it holds in each state, and what it says of each event."""

from __future__ import annotations

import base64
import json
import random
import re
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from compilegate.domain import naming
from compilegate.domain.codec import read, write
from compilegate.domain.console import s3_object
from compilegate.domain.decision import Decision, Speedup
from compilegate.domain.errors import NotFoundError
from compilegate.domain.flag import parse_flag
from compilegate.domain.flag_change import Override
from compilegate.domain.formats import percent
from compilegate.domain.judging.evidence_file import read_evidence
from compilegate.domain.judging.probation import replay_probation
from compilegate.domain.production.registration import FAULT_VARIABLE, Registration
from compilegate.domain.records.production import (
    BegunRun,
    IgnoredJob,
    ProductionRun,
    RegistrationChange,
)
from compilegate.domain.records.trials import TrialDecided
from compilegate.domain.utc import day, minute
from compilegate.report import statements
from compilegate.report.render import render
from compilegate.usecases.flag.change_flag import revert_by_hand
from compilegate.usecases.production.announce_review import history_page, write_history
from compilegate.usecases.records import Trial, to_json
from compilegate.usecases.reports import trial_report
from tests.domain.evidence_builder import BASE_WALL, CENTRE, MINE_WALL, judge
from tests.domain.production.run_builder import BEGIN, DAY, production_run
from tests.domain.workload_builder import SOUND
from tests.report.browser import CHROMIUM, assert_readable, browser, saved
from tests.usecases.production_builder import WORKLOAD, promote, record, trial_evidence, watch
from tests.usecases.trial_builder import FLAG, TRIAL

LOSS, SPREAD = 0.045, 0.002
FAULT = "learning_rate:0.2"
WALLS = {"baseline": BASE_WALL, "compile": MINE_WALL}
PLACE = "reports/bert-docs/history"


def runs(services: Any, numbers: range, *, loss: float = 0.0, drift: float = 0.0) -> None:
    """Production runs as the judge asks for them; the candidate's lose ``loss``, all ``drift``."""
    chance = random.Random(numbers.start)
    for number in numbers:
        arm, confirm = next_arm(services)
        figures = {
            "metric": chance.gauss(CENTRE + drift, SPREAD) - (loss if arm == "compile" else 0.0),
            "wall_seconds": WALLS[arm] * chance.gauss(1, 0.01),
        }
        watch(services, record(services, number, arm, confirm=confirm, **figures).run)


def next_arm(services: Any) -> tuple[str, bool]:
    """Which arm is next, and whether it checks an alarm; every sixth run is the baseline's."""
    if not parse_flag(services.flags.read(FLAG)).enabled:
        return "baseline", False
    entries, looks = services.ledger.raw.entries(WORKLOAD), reviews(services)
    step = max(looks, key=lambda entry: entry["at"])["next"] if looks else None
    run = (step or {"runs": [{"arm": "compile", "confirm": False}]})["runs"][0]
    count = sum(entry["kind"] == "run" for entry in entries)
    if not run["confirm"] and count % 6 == 5:
        return "baseline", False
    return run["arm"], run["confirm"]


def reverted(services: Any) -> None:
    """Promoted, five sound runs, then one arm loses quality, and two runs after the revert."""
    promoted(services, 5)
    number = 6
    while parse_flag(services.flags.read(FLAG)).enabled:
        runs(services, range(number, number + 1), loss=LOSS)
        number += 1
    runs(services, range(number, number + 2))


def promoted(services: Any, count: int) -> None:
    """So many sound runs of a promotion."""
    promote(services)
    runs(services, range(1, 1 + count))


def alarmed(services: Any) -> None:
    promoted(services, 3)
    runs(services, range(4, 6), loss=LOSS)


def by_hand(services: Any) -> None:
    promoted(services, 3)
    revert_by_hand(WORKLOAD, Override("ada", "price went up; see 12"), services=services)


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


def half_a_thousand(services: Any) -> None:
    promote(services)
    for number in range(1, 501):
        arm = "baseline" if number % 6 == 0 else "compile"
        record(services, number, arm, metric_name=SOUND.quality.metric)


def reviews(services: Any) -> list[Any]:
    return [one for one in services.ledger.raw.entries(WORKLOAD) if one["kind"] == "review"]


def page_of(services: Any) -> tuple[Any, Any]:
    """The page and its document."""
    page = history_page(WORKLOAD, services)
    return page, json.loads(page.json)


STATES: dict[str, tuple[Callable[[Any], None], str, str, bool]] = {
    "reverted": (reverted, "Turned back off", "automatically: compile: eval_loss is worse", True),
    "probation": (
        partial(promoted, count=4), "On probation",
        "run by run: compile: 4 of 12 production runs", False),
    "alarm": (alarmed, "Alarm being checked", "an alarm is being checked", True),
    "permanent": (
        partial(promoted, count=16), "On permanently",
        "The candidate is on permanently: compile: ", True),
    "by hand": (by_hand, "Turned off by hand", "by hand: price went up; see 12", False),
    "retired": (retired, "Retired", "Retired; before that: bert-docs has trained", False),
}  # fmt: skip


def test_the_page_shows_the_speed_up_and_the_saving_of_the_trials_report(services: Any) -> None:
    promote(services)
    decision = judge(trial_evidence()).to_dict(FLAG)
    key = naming.record_key(WORKLOAD, TRIAL, "decision")
    services.store.put(key, to_json(decision))
    decided = TrialDecided(BEGIN, TRIAL, "promote", key, "d1", "compile")
    services.ledger.append(WORKLOAD, decided)
    for number, arm in enumerate(("baseline", "compile", "compile"), 1):
        record(services, number, arm, wall_seconds=WALLS[arm])
    page, document = page_of(services)
    speed = statements.speedup(read(Speedup, decision["speedup"]))
    saving = decision["saving"]["usd_per_run"] * document["savings"]["compared_runs"]

    assert f": whole jobs are {speed}." in " ".join(document["lede"])
    assert f"trial {speed}" in page.markdown
    assert saving == pytest.approx(document["savings"]["expected_usd"])


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


def test_the_trials_own_page_says_that_a_person_turned_it_on(services: Any) -> None:
    decided(services)
    promoted(services, 0)
    (flag,) = services.ledger.history(WORKLOAD).flags
    by_hand = replace(flag, by="human:ada", reason="for the demo")

    report = render(trial_report(Trial(WORKLOAD, TRIAL, ""), services, [by_hand]))

    assert "it is on (state probation), by ada: “for the demo”" in report.markdown


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


@pytest.mark.parametrize("loss", [0.02, LOSS, 0.1])
def test_history_report_and_reason_have_one_figure_of_the_same_runs(
    services: Any, loss: float
) -> None:
    decided(services)
    promoted(services, 5)
    runs(services, range(6, 40), loss=loss, drift=0.01)
    (last,) = (one for one in services.ledger.history(WORKLOAD).reviews if one.action == "revert")
    figures = read(Decision, json.loads(services.store.get(str(last.decision_key)))).quality
    page, document = page_of(services)
    report = services.store.get(
        naming.probation_report_key(WORKLOAD, TRIAL, str(last.decision_id), "md")
    ).decode()
    assert figures is not None
    delta = statements.delta(figures.delta)
    (checked,) = re.findall("is worse by ([0-9.]+), confirmed", page.headline)

    assert f"{statements.OF_ALL}{delta}" in report
    assert {delta} == {*re.findall(r"Δ [^ |<]*\d", page.html)}
    assert checked in re.findall(r"Δ .([0-9.]+) in the \d+ runs", report)
    # What was saved with worse models is no share of what was promised.
    assert share_of_estimate(document) not in page.markdown


@pytest.mark.parametrize(("happens", "label", "words", "saves"), STATES.values(), ids=STATES)
def test_each_state_has_its_label_and_headline(
    happens: Any, label: str, words: str, saves: bool, services: Any
) -> None:
    happens(services)

    page, document = page_of(services)

    assert label == document["label"]
    assert words in page.headline
    assert page.headline in page.html
    assert saves is bool(document["savings"] and document["savings"]["saved_usd"])


def test_a_revert_has_its_events_in_order_and_the_sums_of_the_judge(services: Any) -> None:
    reverted(services)

    page, document = page_of(services)

    turns = [one["kind"] for one in document["events"] if not one["title"].startswith("Run ")]
    assert "alarm" == turns[1]
    assert 3 == len(turns)
    last = document["runs"][-1]
    assert ("baseline", "reverted") == (last["arm"], last["flag_state"])
    assert 6 == sum(run["confirm"] for run in document["runs"])
    quality, speed = document["sums"]["quality"], document["sums"]["speed"]
    alarms = [place for place, total, _, _ in quality["points"] if total > quality["limit"]]
    alarm = next(event for event in document["events"] if event["kind"] == "alarm")
    assert alarm["place"] == alarms[0] + 0.5
    assert 0.0 == quality["points"][-1][1]  # begun anew after the check
    assert max(total for _, total, _, _ in speed["points"]) < speed["limit"]
    # Listening to the replay changes nothing.
    evidence = json.loads(services.store.get(reviews(services)[-1]["evidence_key"]))
    arms: set[str] = set()
    finding = replay_probation(read_evidence(evidence), lambda arm, _run, _monitors: arms.add(arm))
    assert judge(evidence).verdict == finding.verdict
    assert {"baseline", "compile"} == arms
    # What next, links to what it names, and the runs as CSV.
    there = replace(services, settings=replace(services.settings, stage="local"))
    saved_runs = re.search(r'data:text/csv;base64,([^"]+)"', page.html)
    assert "compilegate status bert-docs --stage prod" in re.sub("</?span[^>]*>", "", page.html)
    assert re.search(r'<a href="https://us-east-1\.console[^"]+">s3://data/decisions/', page.html)
    assert "console.aws" not in history_page(WORKLOAD, there).html
    assert saved_runs is not None
    runs_saved = base64.b64decode(saved_runs[1]).decode().splitlines()
    assert 1 + len(services.ledger.history(WORKLOAD).runs) == len(runs_saved)


def test_an_alarm_that_is_not_confirmed_is_one_event_each(services: Any) -> None:
    alarmed(services)
    runs(services, range(6, 15))

    _, document = page_of(services)

    kinds = [one["kind"] for one in document["events"] if one["kind"] in ("alarm", "cleared")]
    assert ["alarm", "cleared"] == kinds


def test_before_the_first_run_there_is_nothing_to_draw(services: Any) -> None:
    registered(services)

    page, document = page_of(services)

    (event,) = document["events"]
    assert "registered" == event["kind"]
    assert len(page.html) < 100_000  # without the charts' library


def test_an_unknown_workload_has_no_page(services: Any) -> None:
    with pytest.raises(NotFoundError, match="compilegate register"):
        history_page("nobody", services)


def test_without_a_promotion_there_are_no_savings_and_no_sums(services: Any) -> None:
    without_a_flag(services)
    decided = TrialDecided(
        services.clock.now(), "0mabc123", "inconclusive", "decisions/x", "d", "compile",
        reasons=("compile: blocks vary too much.",),
    )  # fmt: skip
    services.ledger.append(WORKLOAD, decided)

    _, document = page_of(services)

    assert (None, {}) == (document["savings"], document["sums"])
    (lede,) = document["lede"]
    assert "compile: blocks vary too much" in lede


def test_an_injected_fault_is_named_at_every_run_that_it_affected(services: Any) -> None:
    promote(services)
    runs(services, range(1, 4))
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


@pytest.mark.parametrize(("year", "simulated"), [(2030, True), (2020, False)])
def test_runs_that_are_scheduled_later_than_they_ran_have_a_simulated_clock(
    year: int, simulated: bool, services: Any
) -> None:
    record(services, 1, "baseline", details={"scheduled": f"{year}-01-01T02:00:00.000Z"})

    _, document = page_of(services)

    assert simulated is document["simulated_clock"]
    assert simulated is ("2030-01-01 02:00" in document["events"][-1]["text"])


def test_runs_without_evidence_and_failed_ones_say_why(services: Any) -> None:
    run = production_run(1, result={}, counts=False, reason="it left no evidence")
    services.ledger.raw.put_once(
        WORKLOAD,
        ProductionRun.key_of(run=run.run, job=run.job),
        replace(run, at=BEGIN + DAY).to_entry(),
    )
    record(services, 2, "baseline", finished=False, metric=None, reason="out of memory")

    _, document = page_of(services)

    texts = [event["text"] for event in document["events"]]
    assert ["no evidence", "out of memory"] == [
        next(word for word in ("no evidence", "out of memory") if word in text) for text in texts
    ]
    assert [None, None] == [one["metric"] for one in document["runs"]]


def test_a_job_of_another_role_is_in_it_with_what_to_do(services: Any) -> None:
    registered(services)
    ignored = IgnoredJob(services.clock.now(), "nightly-7", "arn:etl", "job_of_another_role")
    services.ledger.append(WORKLOAD, ignored)

    _, document = page_of(services)

    (event,) = [one for one in document["events"] if one["kind"] == ignored.kind]
    assert event["text"].startswith("nightly-7 ran as arn:etl. ")
    assert "schedule.team_role" in event["text"]


def test_half_a_thousand_runs_are_summed_up(services: Any) -> None:
    half_a_thousand(services)

    page, document = page_of(services)

    assert 500 == len(document["runs"])
    assert "Runs 1 to 500" in page.html
    assert len(page.markdown) < 10_000


def test_text_from_outside_stays_text(services: Any) -> None:
    promote(services)
    reason = "<script>alert(1)</script>"
    revert_by_hand(WORKLOAD, Override("ada", reason), services=services)

    page, _ = page_of(services)

    assert reason not in page.html
    assert "<script>" not in page.markdown


def test_the_page_lies_where_the_message_says(
    services: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One that cannot be written holds no message up."""
    reverted(services)
    (revert,) = [one for one in reviews(services) if one["change"]]

    place = write_history(WORKLOAD, services)
    answer = watch(services, revert["run"])

    assert s3_object("us-east-1", "data", f"{PLACE}.html") == place
    assert place in answer["message"]
    stored = {key for key in services.store.objects if key.startswith(f"{PLACE}.")}
    assert {f"{PLACE}.{ending}" for ending in ("html", "md", "json")} == stored
    put = services.store.put

    def broken(key: str, body: bytes, content_type: str = "application/json") -> None:
        if key.startswith(PLACE):
            raise OSError("no space")
        put(key, body, content_type)

    monkeypatch.setattr(services.store, "put", broken)
    answer = watch(services, revert["run"])
    assert answer["tell"] is True
    assert PLACE not in answer["message"]


@pytest.mark.slow
@pytest.mark.skipif(CHROMIUM is None, reason="no chromium on PATH: the page is not opened")
@pytest.mark.parametrize(
    ("happens", "charts"),
    [
        (reverted, 4),
        (
            partial(promoted, count=4),
            3,
        ),  # without a baseline run of production nothing can be priced
        (without_a_flag, 2),
        (half_a_thousand, 3),
    ],
)
def test_a_browser_draws_every_chart_readably_at_every_size(
    happens: Any, charts: int, services: Any, tmp_path: Path
) -> None:
    happens(services)
    page = saved(history_page(WORKLOAD, services), tmp_path)

    with browser(tmp_path / "profile") as chromium:
        assert_readable(chromium, page)
        assert charts == chromium.run("document.querySelectorAll('figure.chart').length")


def test_a_run_that_was_to_restore_compiled_code_and_did_not_says_so(services: Any) -> None:
    promote(services)
    for number, state in enumerate(("restored", "stale"), 1):
        record(services, number, details={"compile_bundle": {"sha256": "a" * 64, "state": state}})
    _, document = page_of(services)
    texts = [one["text"] for one in document["events"] if "compiled anew" in one["text"]]

    assert ["restored", "stale"] == [one["compile_bundle"]["state"] for one in document["runs"]]
    (text,) = texts
    assert "(stale)" in text
