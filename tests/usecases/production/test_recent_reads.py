"""What the steps of runs decide on a window of the ledger is what they decide on all of it."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from compilegate.domain import ledger_keys, naming
from compilegate.domain.decision import (
    Decision,
    ProbationStep,
    RequestedArm,
    RequestedFullRun,
    Verdict,
)
from compilegate.domain.judging.evidence import Evidence
from compilegate.domain.judging.evidence_file import decision_id
from compilegate.domain.production import canary, probation, recent
from compilegate.domain.production.attempts import longest_run_seconds
from compilegate.domain.production.history import WorkloadHistory
from compilegate.domain.records import ledger
from compilegate.domain.records.production import (
    BegunRun,
    ProductionRun,
    RegistrationChange,
    Review,
)
from compilegate.domain.records.trials import TrialDecided
from compilegate.ports import Ledger
from compilegate.usecases import records
from compilegate.usecases.production import announce_review
from compilegate.usecases.production.begin_run import begin_run
from compilegate.usecases.production.review_production import review_production
from compilegate.usecases.records import load_registered, to_json
from tests import fakes
from tests.domain.evidence_builder import CENTRE, FINGERPRINT
from tests.domain.evidence_builder import judge as tried
from tests.domain.production.run_builder import BEGIN
from tests.domain.workload_builder import SOUND
from tests.usecases.production_builder import (
    TRIAL,
    WORKLOAD,
    flag_of,
    promote,
    say,
    trial_evidence,
)
from tests.usecases.trial_builder import FLAG, SCRIPTED

HOUR, DAY = 3600, 86_400
LONGEST = longest_run_seconds(SOUND)
RESULT = {"metric": CENTRE, "wall_seconds": 9000.0, "finished": True, "applied": True, "seed": 1}


class Everything(Ledger):
    """A ledger that is read as a whole whatever is asked for."""

    def history(
        self, workload: str, prefix: str = "", *, since: float | None = None
    ) -> WorkloadHistory:
        return super().history(workload, prefix)


def judge(evidence: Evidence) -> Decision:
    """Another decision for any other evidence; most often it goes on or becomes permanent."""
    name = decision_id(evidence.content, "1")
    digits = int(name, 16)
    verdict = Verdict.REVERT if digits % 19 == 0 else Verdict.PERMANENT
    verdict = Verdict.CONTINUE if digits % 3 == 1 else verdict
    asked = RequestedArm("baseline" if digits % 5 == 0 else "compile", confirm=digits % 7 == 0)
    following = ProbationStep((asked,), "scripted") if verdict is Verdict.CONTINUE else None
    return Decision.of_this_judge(
        WORKLOAD, name, "probation", verdict, [SCRIPTED], candidate="compile", next=following
    )


@dataclass(frozen=True)
class Event:
    """After ``gap`` seconds a run begins, ends or is a team's, or a person turns the flag on.

    ``which`` picks the run, what it takes and who watches it; ``outcome`` is how it ended.
    """

    gap: int
    kind: str
    which: int
    outcome: Mapping[str, Any]


GAPS = st.one_of(
    *[st.integers(HOUR, DAY)] * 12, *[st.integers(0, 500)] * 3, st.integers(DAY, 12 * DAY),
    st.integers(20 * DAY, 300 * DAY),
)  # fmt: skip
KINDS = (*("begin", "end") * 3, *("team",) * 6, "set", "round")
BAD = ({"finished": False}, {"applied": False}, {"metric": None}, {"metric": "x"})
OUTCOMES = (*({},) * 8, *BAD)
EVENTS = st.builds(
    Event, GAPS, st.sampled_from(KINDS), st.integers(0, 10**6), st.sampled_from(OUTCOMES)
)


def recorded(began: float, now: int, arm: str, event: Event, **fields: Any) -> ProductionRun:
    run = naming.trial_id(int(1000 * began))
    started = max(began, now - 600 * (event.which % 40))
    return ProductionRun(
        run=run, job=f"{run}-{event.which % 3}", arm=arm, started_at=started, ended_at=now + 0.5,
        result={**RESULT, "fingerprint": dict(FINGERPRINT), **event.outcome}, at=now,
        counts=event.which % 13 != 0, why="flag", **fields,
    )  # fmt: skip


class Play:
    """A workload's months on one ledger, and what its steps answered."""

    def __init__(self, kind: type[Ledger], before: Sequence[Event], *, known: bool) -> None:
        """``before`` are runs before the promotion; ``known``: what the ledger need not say."""
        self.services: Any = replace(fakes.services("prod"), ledger=kind(fakes.MemoryLedger()))
        self.answers: list[Any] = []
        self.under_way: list[BegunRun] = []
        self.rounds = 0
        at = BEGIN
        for event in before:  # the latest first
            at -= event.gap + 1
            arm = ("baseline", "compile")[event.which % 4 == 0]
            self.services.ledger.append(WORKLOAD, recorded(at - HOUR, at, arm, event))
        self.on = promote(self.services)
        decided = tried(trial_evidence()).to_dict(FLAG)
        self.services.store.put("decision.json", to_json(decided))
        decision = TrialDecided(at, TRIAL, "promote", "decision.json")
        self.services.ledger.append(WORKLOAD, decision)
        if known:
            first = RegistrationChange(1, True, at=at - 2 * DAY)
            self.services.ledger.append(WORKLOAD, first)
        else:
            key = naming.record_key(WORKLOAD, TRIAL, "evidence")
            evidence = json.loads(self.services.store.get(key))
            del evidence["quality"]["history"]
            self.services.store.put(key, to_json(evidence))

    def goes_on(self, events: Sequence[Event]) -> None:
        late: list[tuple[ProductionRun, Event]] = []
        for event in events:
            self.services.clock.seconds += event.gap
            waiting, late = late, []
            while waiting and event.gap > 400:  # no function needs longer to write its entry
                self.ends(*waiting.pop())
            ended = getattr(self, event.kind)(event, self.services.clock.now())
            if ended is not None:
                late.append((ended, event))
            if event.which % 4:  # else it is recorded after what comes next, if that comes soon
                waiting += late
                late = []
            for one in waiting:
                self.ends(*one)

    def ends(self, run: ProductionRun, event: Event) -> None:
        self.services.ledger.append(WORKLOAD, run)
        if event.which % 7:  # else its watch failed
            look = {"workload": WORKLOAD, "run": run.run}
            self.answers.append(review_production(look, services=self.services, judge=judge))

    def begin(self, event: Event, now: int) -> None:
        times = {"started": now, "scheduled": now - event.which % (6 * HOUR)}
        iso = {name: datetime.fromtimestamp(at, UTC).isoformat() for name, at in times.items()}
        start = {"workload": WORKLOAD, "execution": f"{now}-{event.which}", **iso}
        self.answers.append(begin_run(start, services=self.services))
        run = self.answers[-1]["run"]
        begun = self.services.ledger.history(WORKLOAD, f"{ledger_keys.RUN_ENTRIES}{run}")
        self.under_way.append(begun.begun_run(run))

    def end(self, event: Event, now: int) -> ProductionRun | None:
        lasting = [one for one in self.under_way if naming.time_of(one.run) + LONGEST > now]
        self.under_way = lasting
        if not lasting:
            return None
        one = lasting.pop(event.which % len(lasting))
        run = recorded(one.at, now, one.arm, event, confirm=one.confirm, canary=one.canary)
        return replace(run, run=one.run)

    def team(self, event: Event, now: int) -> ProductionRun:
        arm = "compile" if event.which % 7 else "baseline"
        return recorded(now - 2 * HOUR, now, arm, event, launched_by="team")

    def set(self, event: Event, now: int) -> None:
        if event.which % 5 == 0:
            say(self.services, self.on, at=now)

    def round(self, event: Event, now: int) -> None:
        self.rounds += 1
        asked = [RequestedFullRun(arm, seed) for seed in (1, 2) for arm in ("baseline", "b")]
        opened = canary.requested_round(
            "abcd9999", self.rounds, asked, overrides={"baseline": {}, "b": {"batch_size": 64}},
            measured=load_registered(WORKLOAD, self.services.store).job, now=now,
            until=now + event.which % 90 * DAY,
        )  # fmt: skip
        self.services.ledger.append(WORKLOAD, opened)


def once(read: Callable[[Any], Any], key_of: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """``read``, which is asked once about the same document."""
    kept: dict[Any, Any] = {}

    def asked(document: Any) -> Any:
        key = key_of(document)
        if key not in kept:
            kept[key] = document, read(document)
        return kept[key][1]

    return asked


def _without_counts(play: Play) -> dict[Any, Any]:
    """The ledger without how many runs a review counts, which is shown and decides nothing.

    Once a promotion is permanent it goes on from earlier reviews, so one recorded late may lack.
    """
    items: Mapping[Any, Any] = play.services.ledger.raw.items
    return {
        key: {**entry, "runs": None} if entry["kind"] == Review.kind else entry
        for key, entry in items.items()
    }


@settings(max_examples=settings.default.max_examples // 2)  # each plays months, twice
@given(
    before=st.lists(EVENTS, max_size=12),
    events=st.lists(EVENTS, min_size=40, max_size=60),
    known=st.booleans(),
)
def test_what_is_decided_on_a_window_is_decided_on_everything(
    before: list[Event], events: list[Event], known: bool
) -> None:
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(probation, "HISTORY_RUNS", 3)
        # So short that a play of months has runs on both sides of every edge.
        patched.setattr(recent, "WINDOWS_DAYS", (7, 21, 84))
        for module in (ledger_keys, recent):
            patched.setattr(module, "CLOCKS_APART_SECONDS", 6 * HOUR)
        patched.setattr(announce_review, "write_history", lambda *_: "the page of all")
        # Entries and specs stay as they are: each is read once.
        patched.setattr(ledger, "read", once(ledger.read, id))
        patched.setattr(records, "read_document", once(records.read_document, json.dumps))
        plays = [Play(kind, before, known=known) for kind in (Everything, Ledger)]
        for play in plays:
            play.goes_on(events)

    expected, read = plays
    assert expected.answers == read.answers
    assert _without_counts(expected) == _without_counts(read)
    assert expected.services.store.objects == read.services.store.objects
    assert flag_of(expected.services) == flag_of(read.services)
