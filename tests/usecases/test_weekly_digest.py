"""The weekly digest: one message per owner, from every registered workload, whatever breaks."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from compilegate.domain import naming
from compilegate.domain.flag import Flag
from compilegate.domain.production.savings import Savings
from compilegate.domain.records.production import CanaryRound, Review
from compilegate.domain.records.trials import ApprovalRequested
from compilegate.ports import Ledger
from compilegate.usecases.fleet.project import fold_workload
from compilegate.usecases.operations.weekly_digest import digests, fleet, send_digests
from compilegate.usecases.records import to_json
from tests.decision_builder import decision_document, saving
from tests.fakes import FixedClock, MemoryTopic
from tests.fakes import services as made
from tests.usecases.production_ledger import (
    DAY,
    NOW,
    OFF,
    ON,
    TRIAL,
    body,
    flag_entry,
    promote,
    ran,
    register,
    started,
    write,
)


@pytest.fixture
def cloud() -> Any:
    return replace(made("prod"), clock=FixedClock(NOW))


def only(cloud: Any, owner: str | None = "ml") -> Any:
    (digest,) = digests(cloud, owner=owner) if owner else digests(cloud)
    return digest.notification


@pytest.mark.parametrize("state", [None, "reverted", "stale"])
def test_savings_are_reported_against_what_the_trial_expected_also_after_its_end(
    state: str | None, cloud: Any
) -> None:
    register(cloud, "bert", "ml")
    promote(cloud, "bert", NOW - 30 * DAY, usd_per_run=4.0)
    ran(cloud, "bert", NOW - 31 * DAY, "baseline", usd=10.0)
    for day in (20, 10, 3):
        ran(cloud, "bert", NOW - day * DAY, "compile", usd=7.0)
    if state is not None:
        flag_entry(cloud, "bert", 2, NOW - 2 * DAY, Flag(False, state, "compile"), ON)

    text = only(cloud).text

    assert "Saved so far by promoted candidates: $9.00 over 3 runs; the trials had" in text
    assert "the trials had expected $12.00 (75%" in text


def test_what_is_open_is_reported_probation_trial_canary_approval_stale_and_changes(
    cloud: Any,
) -> None:
    for name in ("probing", "trying", "carried", "asking", "stale", "reverted"):
        register(cloud, name, "ml")
    promote(cloud, "probing", NOW - 6 * DAY)
    write(cloud, "probing", Review(NOW - DAY, "r", TRIAL, "compile", runs=5))
    for name in ("trying", "carried", "asking"):
        write(cloud, name, started(name, TRIAL, NOW - DAY))
    opened = CanaryRound(TRIAL, 1, (), {}, "job", NOW + DAY, 600, hold=True, at=NOW - DAY)
    write(cloud, "carried", opened)
    asked = ApprovalRequested(NOW - DAY, NOW + DAY, TRIAL, "e", "d1", "decision.json", "compile")
    write(cloud, "asking", asked)
    stale = Flag(True, "stale", "compile", {"compiler": "torch_compile"}, "d1")
    flag_entry(cloud, "stale", 1, NOW - 40 * DAY, stale, OFF)
    flag_entry(cloud, "reverted", 1, NOW - 40 * DAY, ON, OFF)
    flag_entry(cloud, "reverted", 2, NOW - DAY, Flag(False, "reverted"), ON)

    lines = only(cloud).text.splitlines()

    assert "Waits for approval: asking" in lines
    assert "On probation: probing (compile, 5 of 9 runs)" in lines
    assert "In a trial: carried (with canary runs), trying" in lines
    assert "Changed since the proof: stale" in lines
    assert "Flag changed: probing (enable), reverted (revert)" in lines


def test_every_owner_gets_their_own_and_never_those_of_others(cloud: Any) -> None:
    for name, owner in (("a", "ml"), ("b", "ads"), ("c", None)):
        register(cloud, name, owner)
        ran(cloud, name, NOW - DAY, "baseline")
    topic = MemoryTopic()

    answer = send_digests({}, services=cloud, topic=topic)

    assert {"sent": 3, "quiet": 0} == answer
    owners = [one.attributes().get("owner", {}).get("StringValue") for one in topic.sent]
    assert [None, "ads", "ml"] == owners
    assert ["c", "b", "a"] == [one.figures["active"][0]["workload"] for one in topic.sent]
    asked = [one for owner in ("ads", "nobody") for one in digests(cloud, owner=owner)]
    assert [("ads", False), ("nobody", True)] == [(d.notification.owner, d.quiet) for d in asked]


def test_a_week_without_anything_is_not_sent_but_shown(cloud: Any) -> None:
    register(cloud, "bert", "ml")
    ran(cloud, "bert", NOW - 20 * DAY, "baseline")
    topic = MemoryTopic()

    assert {"sent": 0, "quiet": 1} == send_digests({}, services=cloud, topic=topic)
    assert "Nothing ran and nothing changed (1 workload)." in only(cloud).text


@pytest.mark.parametrize(("days", "reported"), [(1, True), (8, False)])
def test_what_production_does_not_train_is_left_out_unless_it_did_this_week(
    cloud: Any, days: int, reported: bool
) -> None:
    register(cloud, "retired", "ml", active=False)
    cloud.store.put(naming.spec_key("tried-once", "d1"), b"{}")
    ran(cloud, "retired", NOW - days * DAY, "baseline")

    assert reported is bool(digests(cloud))
    assert not reported or "1 production run of 1 workload" in only(cloud).text


@pytest.mark.parametrize("breaks", ["registration", "ledger"])
def test_one_broken_workload_is_named_and_the_others_are_reported(cloud: Any, breaks: str) -> None:
    for name in ("good", "broken"):
        register(cloud, name, "ml")
        ran(cloud, name, NOW - DAY, "baseline")
    if breaks == "registration":
        cloud.store.put(naming.registration_key("broken"), b"{")
    else:
        cloud.ledger.raw.put_once("broken", "flag#00000001", {"kind": "flag", "at": NOW})
    topic = MemoryTopic()

    send_digests({}, services=cloud, topic=topic)

    message = {one.owner: one for one in topic.sent}
    # Whose it is stands in the registration.
    named = message[None if breaks == "registration" else "ml"]
    assert ["broken"] == body(named)["figures"]["unread"]
    assert "Could not be read" in named.text
    assert "1 production run of 1 workload" in message["ml"].text


@pytest.mark.parametrize("content", [None, b'{"schema": 2}', b'{"verdict": "x"}', b"[]", b"{"])
@pytest.mark.parametrize(
    "key", [naming.record_key("bert", TRIAL, "decision"), naming.spec_key("bert", "d1")]
)
def test_a_record_that_is_gone_or_cannot_be_read_does_not_keep_back_the_week(
    cloud: Any, key: str, content: bytes | None
) -> None:
    register(cloud, "bert", "ml")
    promote(cloud, "bert", NOW - 6 * DAY)
    ran(cloud, "bert", NOW - DAY, "compile", usd=7.0)
    del cloud.store.objects[key]
    if content is not None:
        cloud.store.put(key, content)

    message = only(cloud)
    assert "1 production run of 1 workload" in message.text
    assert "On probation: bert (compile, 0 of" in message.text or "decision" not in key
    assert [] == body(message)["figures"]["unread"]


@pytest.mark.parametrize(
    ("owner", "names", "unread"),
    [(None, "abc", ["broken"]), ("ads", "b", []), ("nobody", "", [])],
)
def test_the_fleet_is_everyones_or_one_owners_with_its_last_seven_days(
    cloud: Any, owner: str | None, names: str, unread: list[str]
) -> None:
    owners = {"a": "ml", "b": "ads", "c": None}
    for name, whose in owners.items():
        register(cloud, name, whose)
        ran(cloud, name, NOW - 7 * DAY - 1, "baseline")
        ran(cloud, name, NOW - 7 * DAY + 1, "baseline")
    fold_workload("b", cloud)
    cloud.store.put(naming.registration_key("broken"), b"{")
    simulated = replace(cloud, settings=replace(cloud.settings, simulated="here"))

    shown = fleet(simulated, owner=owner)

    listed = {one.workload: one.owner for one in shown.summaries}
    assert {name: owners[name] for name in names} == listed
    assert all(one.runs == {"baseline": 1} for one in shown.summaries)
    assert (unread, "prod", "here") == (shown.unread, shown.stage, shown.simulated)
    assert (NOW - 7 * DAY, NOW) == (shown.window.since, shown.window.until)


def test_beside_a_row_the_runs_of_the_week_are_read_and_those_that_may_have_ended_in_it(
    cloud: Any,
) -> None:
    register(cloud, "bert", "ml")
    promote(cloud, "bert", NOW - 500 * DAY, usd_per_run=4.0)
    for day in range(500, 0, -1):
        arm, usd = ("compile", 6.0) if day % 5 else ("baseline", 7.0)
        ran(cloud, "bert", NOW - day * DAY, arm, usd=usd)
    run = naming.trial_id((NOW - DAY) * 1000)
    write(cloud, "bert", Review(NOW - DAY, run, TRIAL, "compile", runs=400))
    by_ledger = only(cloud)
    fold_workload("bert", cloud)
    read: list[int] = []
    entries = cloud.ledger.raw.entries

    def counted(*place: str) -> Any:
        found = entries(*place)
        read.append(len(found))
        return found

    cloud.ledger.raw.entries = counted
    by_row = only(cloud)
    assert (by_ledger.text, by_ledger.figures) == (by_row.text, by_row.figures)
    assert "$400.00 over 400 runs" in by_ledger.text
    assert 97 <= sum(read) <= 102


def test_runs_that_a_review_has_counted_are_known_however_long_ago_it_was(
    cloud: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    register(cloud, "bert", "ml")
    promote(cloud, "bert", NOW - 400 * DAY)
    ran(cloud, "bert", NOW - 300 * DAY, "compile")
    run = naming.trial_id((NOW - 300 * DAY) * 1000)
    write(cloud, "bert", Review(NOW - 300 * DAY, run, TRIAL, "compile", runs=1))
    fold_workload("bert", cloud)

    assert "bert (compile, 1" in only(cloud).text
    flag_entry(cloud, "bert", 2, NOW - 300 * DAY + 1, Flag(False, "reverted"), ON)
    since, history = list[float](), Ledger.history

    def read(*of: Any, **more: Any) -> Any:
        since.append(more.get("since", 0))
        return history(*of, **more)

    monkeypatch.setattr(Ledger, "history", read)
    only(cloud)
    assert [NOW - 7 * DAY - 90 * DAY] == since


def test_what_trials_expected_differently_and_the_spec_of_another_say_nothing(cloud: Any) -> None:
    register(cloud, "bert", "ml")
    register(cloud, "other", None)
    promote(cloud, "bert", NOW - 30 * DAY, usd_per_run=4.0)
    flag_entry(cloud, "bert", 2, NOW - 20 * DAY, ON, ON, by="evaluate", trial="0mabc999")
    decision = to_json(decision_document(saving=saving(5.0)))
    cloud.store.put(naming.record_key("bert", "0mabc999", "decision"), decision)
    for day, arm in ((60, "compile"), (31, "baseline"), (29, "compile"), (28, "baseline")):
        ran(cloud, "bert", NOW - day * DAY, arm, usd=7.0 if arm == "compile" else 10.0)
    fold_workload("bert", cloud)
    key = naming.registration_key("bert")
    another = json.loads(cloud.store.get(key)) | {"spec_key": naming.spec_key("other", "d1")}
    cloud.store.put(key, to_json(another))

    (week,) = (one for one in fleet(cloud).summaries if one.workload == "bert")
    # The first run was two months before any baseline.
    savings = Savings(2, 1, 0, 1, 1, micro_usd=3_000_000, baseline_at=NOW - 28 * DAY)
    assert (savings, None) == (week.savings, week.probation_runs)
