"""Whole jobs are compared at equal work: on other data at equal steps, else not at all."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from compilegate.domain.decision import Verdict
from compilegate.domain.judging.evidence_file import read_evidence
from compilegate.domain.judging.run_work import ComparableWalls
from compilegate.domain.judging.validity import unequal_work
from tests.domain.evidence_builder import GOOD, arm, codes, document, full_runs, judge, runs
from tests.domain.work_builder import PLANNED, Document, recorded


@pytest.fixture
def good() -> Document:
    return recorded(document(metrics=GOOD))


def on_own_data(run: Document, steps: int, *, scale: float = 1.0, mode: str = "canary") -> None:
    """A run of production on data of its own, of so many steps, timed by them."""
    inside = (run["wall_seconds"] - 5) * steps / PLANNED * scale
    run.update(mode=mode, steps=steps, wall_seconds=5 + inside, seconds=inside)
    run.update(job_seconds=45 + inside, work={**run["work"], "steps": steps, "seconds": inside})
    run["fingerprint"] = {**run["fingerprint"], "data_sha256": f"d{run['order']}"}


def in_turn(doc: Document) -> list[Document]:
    """All full runs in the order of time."""
    return sorted(full_runs(doc), key=lambda run: run["order"])


@pytest.mark.parametrize("recorded_data", [True, False])
@pytest.mark.parametrize("growth", [0.9, 1.0, 1.04, 1.12])
def test_on_other_data_jobs_are_compared_at_equal_steps(good, growth, recorded_data):
    """Production's data grow or shrink with every run: the arms' steps with them."""
    before = judge(good)
    for number, run in enumerate(in_turn(good)):
        on_own_data(run, round(PLANNED * growth**number))
        if not recorded_data:
            del run["fingerprint"]["data_sha256"]
    decision = judge(good)

    assert Verdict.PROMOTE is decision.verdict
    assert decision.speedup.estimate == pytest.approx(before.speedup.estimate, rel=0.02)


@pytest.mark.parametrize(("share", "data"), [(0.9, True), (0.9, False)])
def test_a_candidate_that_does_less_on_other_data_is_not_faster(good, share, data):
    before = judge(good)
    for run in in_turn(good):
        on_own_data(run, PLANNED)
    for run in runs(good):
        on_own_data(run, round(PLANNED * share), scale=1.0)
        if not data:
            del run["fingerprint"]["data_sha256"]
    decision = judge(good)

    assert decision.speedup.estimate == pytest.approx(before.speedup.estimate, rel=0.02)


def test_more_steps_than_the_runs_beside_it_make_nothing_faster(good):
    before = judge(good)
    for run in in_turn(good):
        on_own_data(run, PLANNED)
    for run in runs(good):  # claims twice the steps in the same time
        run.update(steps=2 * PLANNED, work={**run["work"], "steps": 2 * PLANNED})
    decision = judge(good)

    assert decision.speedup.estimate <= 1.03 * before.speedup.estimate


@pytest.mark.parametrize(
    ("lines", "said", "inside"),
    [
        (42.0, 42.0, 42.0),
        (42.0, 42.9, 42.0),
        (0.0, 42.0, 42.0),
        (0.0, None, 50.0),
        # All but the 25 s that one baseline run took outside its steps and 5 % of its own clock.
        (4.0, 4.0, 22.5),
    ],
)
def test_seconds_within_steps_are_scaled_and_no_others(good, lines, said, inside):
    for run in in_turn(good):
        on_own_data(run, PLANNED)
    usual, *others = runs(good, "baseline")
    usual["mode"] = "shadow"  # the others are production's
    for run in others:
        on_own_data(run, round(1.05 * PLANNED))
    others[0]["wall_seconds"] += 20
    run = runs(good)[0]
    run.update(wall_seconds=50.0, job_seconds=90.0, steps=1820, seconds=said)
    run["work"].update(steps=1820, seconds=lines)
    evidence = read_evidence(good)
    mine = evidence.candidates[0]

    (seconds, *_) = ComparableWalls(mine, evidence).of(mine.quality)
    assert seconds == pytest.approx(50 - inside + inside / 0.91)


@pytest.mark.parametrize(("lines", "inside"), [(4.0, 47.5), (None, 50.0)])
def test_before_the_baseline_has_run_all_but_a_twentieth_is_within_steps(good, lines, inside):
    """Of a script that stops early: half of the plan is taken for half of the work."""
    good["quality"]["early_stopping"] = True
    for run in runs(good, "baseline"):
        arm(good, "baseline")["runs"].remove(run)
    run = runs(good)[0]
    run.update(wall_seconds=50.0, job_seconds=90.0, steps=PLANNED // 2, seconds=lines)
    run["work"] = lines and {**run["work"], "steps": PLANNED // 2, "seconds": lines}
    evidence = read_evidence(good)
    mine = evidence.candidates[0]

    assert ComparableWalls(mine, evidence).seconds(mine.quality[0]) == 50.0 + inside


@pytest.mark.parametrize("share", [0.5, 0.89])
def test_a_candidate_that_does_much_less_on_other_data_is_not_judged(good, share):
    for run in in_turn(good):
        on_own_data(run, PLANNED)
    for run in runs(good):
        on_own_data(run, round(PLANNED * share))

    assert {"unequal_work"} == codes(judge(good))


def in_block(doc: Document, number: int, name: str = "compile", **keys: Any) -> None:
    runs(doc, name, "speed")[number].update(keys)


def unplanned(doc: Document) -> None:
    doc["full_run_steps"], arm(doc, "baseline")["full_run_steps"] = None, 2000
    arm(doc)["runs"] = runs(doc)


UNEQUAL: dict[str, tuple[str, Callable[[Document], object]]] = {
    "other plans in blocks of the candidate": (
        "the speed blocks of compile plan from 1,000 to 1,030", lambda d: [
            in_block(d, 0, full_run_steps=1030), in_block(d, 1, full_run_steps=1000)]),
    "in those of the baseline": (
        "the speed blocks of baseline plan", lambda d: [
            in_block(d, 0, "baseline", full_run_steps=1030),
            in_block(d, 2, "baseline", full_run_steps=1000)]),
    "within 2 %": ("", lambda d: [
        in_block(d, 0, full_run_steps=1020), in_block(d, 1, full_run_steps=1000)]),
    "another plan": (
        "it plans 1,000 steps for a whole run and the baseline 2,000",
        lambda d: arm(d).update(full_run_steps=1000)),
    "of as many samples": ("", lambda d: [
        arm(d).update(full_run_steps=1000),
        *(in_block(d, n, samples_per_step=64) for n in range(3))]),
    "of unknown samples": (
        "it plans 1,000", lambda d: [
            arm(d).update(full_run_steps=1000),
            *(in_block(d, n, name, samples_per_step=None)
              for n in range(3) for name in ("compile", "baseline"))]),
    "a plan that is not known": ("", unplanned),
    "samples of one arm": (
        "in block 1 only one of the arms recorded its samples",
        lambda d: in_block(d, 1, samples_per_step=None)),
    "tokens of one arm": (
        "in block 1 only one of the arms recorded its tokens",
        lambda d: in_block(d, 1, "baseline", tokens_per_step=64)),
    "other tokens": (
        "block 2 took 72 tokens a step and the baseline's 64", lambda d: [
            in_block(d, 2, tokens_per_step=72), in_block(d, 2, "baseline", tokens_per_step=64)]),
    "tokens within 10 %": ("", lambda d: [
        in_block(d, 2, tokens_per_step=71), in_block(d, 2, "baseline", tokens_per_step=64)]),
    "in a block that failed": ("", lambda d: in_block(d, 1, tokens_per_step=64, finished=False)),
    "in one whose baseline failed": ("", lambda d: [
        in_block(d, 1, tokens_per_step=64), in_block(d, 1, "baseline", finished=False)]),
    "behind one that failed": ("in block 2", lambda d: [
        in_block(d, 1, finished=False), in_block(d, 2, tokens_per_step=64)]),
    "a plan before a block": ("it plans 1,000", lambda d: [
        arm(d).update(full_run_steps=1000), in_block(d, 1, tokens_per_step=64)]),
}  # fmt: skip


@pytest.mark.parametrize("what", UNEQUAL)
def test_the_first_sign_of_other_work_is_said(what):
    good = document(metrics=GOOD)
    expected, change = UNEQUAL[what]
    change(good)
    evidence = read_evidence(good)
    messages = [reason.message for reason in unequal_work(evidence.arms[1], evidence)]

    assert bool(expected) == len(messages)
    assert all(message.startswith(f"compile: {expected}") for message in messages)
