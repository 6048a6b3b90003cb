"""A probation's evidence: which runs are in it, in which order, and what the judge makes of it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from compilegate.domain.decision import Decision, Verdict
from compilegate.domain.errors import UnreadableRecordError
from compilegate.domain.flag import Flag, parse_flag
from compilegate.domain.production.history import Promotion
from compilegate.domain.production.probation import (
    Findings,
    blind_spots,
    flag_transition,
    not_watched,
    probation_document,
    row_at_the_end,
    watched_runs,
)
from compilegate.domain.reasons import Reason
from compilegate.domain.records.ledger import DamagedRecord
from compilegate.domain.records.production import CanarySlot, ProductionRun
from tests.domain.evidence_builder import (
    BASE_WALL,
    CENTRE,
    FINGERPRINT,
    MINE_WALL,
    PROBATION_MARGIN,
    document,
    judge,
    sample,
)
from tests.domain.production.run_builder import BEGIN, DAY, METRIC, production_run

ON = Flag(True, "probation", "compile", {"compiler": "torch_compile"}, "d1")
PROMOTION = Promotion("abcd1234", "compile", BEGIN, BEGIN, ON, 1, metric=METRIC)


def trial(history: tuple[float, ...] = (0.9,) * 20) -> dict[str, Any]:
    doc = document(
        metrics={"baseline": sample(3, CENTRE, 0.004), "compile": sample(3, CENTRE, 0.004)},
        margin=PROBATION_MARGIN,
        goal="maximize",
    )
    doc["quality"]["history"] = list(history)
    return doc


def run_of(number: int, arm: str = "compile", **changed: Any) -> ProductionRun:
    wall = BASE_WALL if arm == "baseline" else MINE_WALL
    usual = {"metric": CENTRE, "wall_seconds": wall, "fingerprint": dict(FINGERPRINT)}
    return production_run(number, arm, **(usual | changed))


def probation(runs: list[ProductionRun]) -> dict[str, Any]:
    return probation_document(trial(), PROMOTION, watched_runs(runs, PROMOTION).runs, ())


def orders(doc: dict[str, Any]) -> list[tuple[int, str, bool]]:
    made = [
        (run["order"], arm["name"], run["confirm"])
        for arm in doc["arms"]
        for run in arm["runs"]
        if run["stage"] == "probation"
    ]
    return sorted(made)


@pytest.mark.parametrize(
    "left_out",
    [
        run_of(1, counts=False),
        run_of(-1),
        run_of(-1, "baseline"),
        run_of(1, "another"),
        run_of(1, canary=CanarySlot("other", 1, 0)),
    ],
)
def test_what_does_not_bear_on_the_promotion_is_left_out(left_out):
    assert probation([run_of(2)]) == probation([left_out, run_of(2)])


@pytest.mark.parametrize(("name", "unseen"), [("f1", 2), (None, 0)], ids=["another", "unnamed"])
def test_a_run_of_another_metric_is_named_and_compared_with_nothing(name, unseen):
    """One without a name, of an earlier release, is no reason to turn the change off."""
    exchanged = [run_of(1, metric_name=name), run_of(2, metric_name=name)]
    crash = run_of(3, "baseline", metric=None, metric_name=None, finished=False)
    watched = watched_runs([*exchanged, crash], PROMOTION)
    earlier = [run_of(-1, "baseline", metric_name=name), run_of(-2, "baseline")]
    doc = probation_document(trial(history=()), PROMOTION, watched.runs, earlier)

    assert ((crash,), unseen) == (watched.runs, len(watched.unseen))
    assert [(6, "baseline", False)] == orders(doc)
    assert 1 == len(doc["quality"]["history"])
    assert all(str(name or "no name") in problem for _, problem in watched.unreadable)
    assert exchanged == [run for run, _ in watched.unreadable]
    assert () == watched_runs(exchanged, replace(PROMOTION, metric="")).runs


BEFORE = run_of(-1, "baseline")
NIGHTS = [run_of(-n, "baseline", metric=CENTRE + n / 1e4) for n in range(1, 27)]
OLDER = {**FINGERPRINT, "code_sha256": "older"}


@pytest.mark.parametrize(
    ("by_team", "earlier", "history", "walls"),
    [
        # The newest 24, the last of them last.
        ({}, NIGHTS, [CENTRE + n / 1e4 for n in range(24, 0, -1)], [BASE_WALL] * 24),
        ({"history": [0.9, 0.8]}, [BEFORE], [0.9, 0.8], []),
        ({"history_wall_seconds": [1.0, 2.0]}, [BEFORE], [CENTRE], [1.0, 2.0]),
        ({}, [run_of(-1, "baseline", counts=False), run_of(-1),
              run_of(-2, "baseline", finished=False)], [], []),
        ({}, [run_of(-1, "baseline", fingerprint=OLDER)], [], []),
        ({}, [run_of(-1, "baseline", job="of the trial")], [], []),
    ],
)  # fmt: skip
def test_the_history_is_the_teams_else_of_earlier_baseline_runs(by_team, earlier, history, walls):
    evidence = trial(history=())
    evidence["quality"] |= by_team
    evidence |= {"controls": ["x"], "on_top_of": ["y"]}
    evidence["arms"][0]["runs"][-1]["job"] = "of the trial"
    doc = probation_document(evidence, PROMOTION, [], earlier)
    quality = doc["quality"]

    assert not {"controls", "on_top_of"} & doc.keys()
    assert (history, walls) == (quality["history"], quality.get("history_wall_seconds", []))
    assert Verdict.CONTINUE == judge(doc).verdict


def test_a_guardrail_takes_its_past_from_productions_runs_as_the_first_metric_does():
    evidence, given = trial(), {"metric": "gap", "goal": "minimize", "margin": 0.1}
    evidence["quality"]["guardrails"] = [{**given, "history": []}, {**given, "metric": "top5",
                                                                    "history": [0.5]}]  # fmt: skip
    values = ({"gap": 0.1, "top5": 0.7}, {"gap": None}, {"gap": 0.3})
    earlier = [run_of(n - 9, "baseline") for n in range(3)]
    earlier = [
        replace(run, result={**run.result, "metrics": metrics})
        for run, metrics in zip(earlier, values, strict=True)
    ]
    quality = probation_document(evidence, PROMOTION, [], earlier)["quality"]

    assert [[0.1, 0.3], [0.5]] == [one["history"] for one in quality["guardrails"]]
    assert [0.9] * 20 == quality["history"]


def crash(number: int) -> ProductionRun:
    return run_of(number, finished=False, metric=None, wall_seconds=None, applied=None)


@pytest.mark.parametrize(
    ("runs", "row"),
    [
        ([run_of(1), crash(2), crash(3)], [2, 3]),
        ([crash(1), run_of(2), crash(3)], []),
        ([crash(1), run_of(2, "baseline"), crash(3)], [1, 3]),
        ([run_of(1), run_of(2, applied=False), run_of(3, applied=False)], [2, 3]),
        ([crash(-2), crash(1)], []),
    ],
)
def test_after_permanence_an_unbroken_row_is_what_counts(runs, row):
    latest = row_at_the_end(runs, PROMOTION)

    assert [BEGIN + number * DAY for number in row] == [run.started_at for run in latest]


def unread(number: int, **changed: Any) -> ProductionRun:
    """A run of the candidate whose record no judge can read."""
    return run_of(number, metric="none", **changed)


@pytest.mark.parametrize(("unseen", "reported"), [(2, False), (3, True)])
def test_a_row_of_runs_that_leave_nothing_to_judge_is_reported(unseen, reported):
    row = [run_of(3 + n, counts=False, finished=n > 0, metric_name=METRIC if n else None)
           for n in range(unseen)]  # fmt: skip
    before = [run_of(1, counts=False), run_of(2)]
    runs = [*row, *before, run_of(20, "baseline", counts=False)]
    notes = blind_spots(watched_runs(runs, PROMOTION), PROMOTION)

    assert ["nothing_to_judge"] * reported == [note.code for note in notes]
    assert all(f"The last {unseen} runs" in note.message for note in notes)


def test_of_records_that_cannot_be_read_the_last_is_named():
    runs = [unread(1, job="first"), unread(2, job="second"), unread(3, job="last"), run_of(4)]
    runs += [unread(5, counts=False, job="no evidence")]
    damaged = [
        DamagedRecord({"kind": kind}, UnreadableRecordError(f"problem {number}"))
        for number, kind in enumerate((*[ProductionRun.kind] * 3, "flag"))
    ]
    lost, broken = blind_spots(watched_runs(runs, PROMOTION), PROMOTION, damaged)

    assert {"run_unreadable"} == {lost.code, broken.code}
    assert ": 3 runs, at last: problem 2" in lost.message
    assert ": 3 production runs, at last job last: " in broken.message


@pytest.mark.parametrize(("completed", "stopped", "ends"), [(5, 4, False), (6, 2, True)])
def test_a_change_that_six_completed_runs_hide_is_not_observed(completed, stopped, ends):
    row = [
        run_of(2 + n, counts=False, status="Completed" if n < completed else "Stopped")
        for n in range(completed + stopped)
    ]
    reasons = not_watched(watched_runs([run_of(1), *row], PROMOTION), PROMOTION)

    assert ["not_watched"] * ends == [reason.code for reason in reasons]
    assert all("the last 8 runs" in reason.message for reason in reasons)
    assert all("6 of them completed" in reason.message for reason in reasons)


def test_runs_of_the_moment_of_the_promotion_are_watched():
    moment = run_of(0)
    assert BEGIN == moment.started_at
    assert (moment,) == watched_runs([moment, run_of(-1)], PROMOTION).runs
    assert [crash(0).started_at, crash(1).started_at] == [
        run.started_at for run in row_at_the_end([crash(0), crash(1)], PROMOTION)
    ]


def test_what_the_judge_never_reads_is_left_out_of_its_evidence():
    large = {"loss_curve": [1], "outcomes": {}, "stage": "quality", "block": 1}
    plain = run_of(1)
    run = replace(plain, result={**plain.result, **large})
    (made,) = [
        run
        for arm in probation([run])["arms"]
        for run in arm["runs"]
        if run["stage"] == "probation"
    ]

    assert not {"loss_curve", "outcomes", "block"} & made.keys()


# What follows from a finding: off beats stale, stale beats permanent, nothing turns on.


CHANGED = (Reason("image_changed", "image: was a, is b"),)
OVERRIDES = {"compiler": "torch_compile"}


def on(state: str = "probation") -> Promotion:
    flag = Flag(True, state, "compile", OVERRIDES, "d1", "2026-01-01T00:00:00Z")
    return Promotion("abcd1234", "compile", at=5, since=6, flag=flag, version=7)


def said(verdict: str) -> Decision:
    why = (Reason("why", verdict),)
    return Decision("w", "d2", "1", "probation", Verdict(verdict), "compile", why)


PERMANENT = Flag(True, "permanent", "compile", OVERRIDES, "d2")
PROBATION = Flag(True, "probation", "compile", OVERRIDES, "d1")
STALE_OFF, STALE_ON = (
    Flag(False, "stale", "compile", {}, "d1"), Flag(True, "stale", "compile", OVERRIDES, "d1"),
)  # fmt: skip
REVERTED = Flag(False, "reverted", "compile", {}, "d2")


@pytest.mark.parametrize(
    ("state", "findings", "policy", "action", "flag"),
    [
        ("probation", Findings(said("revert")), "keep", "revert", REVERTED),
        ("probation", Findings(said("revert"), CHANGED, True), "fall_back", "revert", REVERTED),
        ("probation", Findings(said("permanent"), CHANGED, True), "fall_back", "stale", STALE_OFF),
        ("probation", Findings(said("permanent"), CHANGED, True), "keep", "stale", STALE_ON),
        ("permanent", Findings(None, CHANGED), "keep", "stale", STALE_ON),
        ("probation", Findings(said("invalid"), untreated=2), "fall_back", "stale", STALE_OFF),
        ("probation", Findings(unwatched=CHANGED), "fall_back", "stale", STALE_OFF),
        ("stale", Findings(said("continue"), (), True), "keep", "resume", PROBATION),
        (
            "probation",
            Findings(said("permanent"), holdback=0.04),
            "keep",
            "permanent",
            replace(PERMANENT, holdback=0.04),
        ),
        # Of an earlier release's flag, or where the policy has changed since.
        (
            "permanent",
            Findings(holdback=0.04),
            "keep",
            "holdback",
            replace(PERMANENT, decision_id="d1", since="2026-01-01T00:00:00Z", holdback=0.04),
        ),
    ],
)  # fmt: skip
def test_what_follows_from_a_review(state, findings, policy, action, flag):
    for by_human in (False, True):
        transition = flag_transition(replace(on(state), by_human=by_human), findings, policy)

        assert (action, flag) == (transition.action, parse_flag(transition.value))
        assert (f"review#7#{action}", 5 if by_human and action == "stale" else 6) == (
            transition.change_id, transition.decided_at,
        )  # fmt: skip
        assert transition.reason


@pytest.mark.parametrize(
    ("state", "findings"),
    [
        ("probation", Findings()),
        ("probation", Findings(said("inconclusive"), (), True)),
        ("probation", Findings(said("invalid"), untreated=1)),
        ("permanent", Findings(said("permanent"))),
        ("permanent", Findings(unwatched=CHANGED)),
        ("stale", Findings(said("invalid"), (), True, untreated=2)),
        ("stale", Findings(said("permanent"), (), False)),
        ("stale", Findings(holdback=0.04)),
    ],
)
def test_what_proves_nothing_new_leaves_the_flag_alone(state, findings):
    assert None is flag_transition(on(state), findings, "keep")
