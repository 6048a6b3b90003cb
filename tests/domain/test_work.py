"""A run that did less than the baseline's is never taken for a fast one."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from compilegate.domain.decision import FlagAction, Verdict
from compilegate.domain.errors import InvalidEvidenceError
from compilegate.domain.judging.evidence import Arm, FullRun, Work
from compilegate.domain.judging.evidence_file import read_evidence
from compilegate.domain.judging.run_work import (
    ComparableWalls,
    Reference,
    RunCheck,
    as_much,
    figure,
    steps_of,
)
from tests.domain.evidence_builder import (
    BASE_WALL,
    GOOD,
    MINE_WALL,
    arm,
    codes,
    document,
    judge,
    probation_document,
    runs,
    watch,
    words,
)
from tests.domain.work_builder import PLANNED, WORK, Document, recorded

CODE = "unequal_work"
Change = Callable[[Document], object]


@pytest.fixture
def good() -> Document:
    return recorded(document(metrics=GOOD))


def less(share: float, *, work: bool = True, summary: bool = True, who: str = "compile") -> Change:
    """Full runs that end after a share of their steps, in a share of the time."""

    def change(doc: Document) -> None:
        for run in runs(doc, who):
            run["wall_seconds"] *= share
            run["seconds"] *= share
            run["work"]["seconds"] = run["seconds"]
            run["job_seconds"] = run["wall_seconds"] + 40
            if work:
                run["work"]["steps"] = max(1, round(PLANNED * share))
            if summary:
                run["steps"] = max(1, round(PLANNED * share))

    return change


def full(key: str, value: float | None, who: str = "compile") -> Change:
    """Full runs whose lines say this of their work."""
    return lambda doc: [run["work"].update({key: value}) for run in runs(doc, who)]


def in_full_runs(who: str, **keys: Any) -> Change:
    return lambda doc: [run.update(keys) for run in runs(doc, who)]


def plan(steps: int, overrides: Document, *, samples: float | None = 32.0) -> Change:
    """Another plan of the candidate's, of so many samples a step, and full runs that follow it."""

    def change(doc: Document) -> None:
        arm(doc).update(full_run_steps=steps, overrides=overrides)
        tokens = 4000.0 * (samples or 32) / 32
        for run in runs(doc, stage="speed"):
            run.update(samples_per_step=samples, tokens_per_step=tokens)
        for run in runs(doc):
            run["work"].update(steps=steps, samples_per_step=samples, tokens_per_step=tokens)
            run["steps"] = steps

    return change


def without(key: str, who: str) -> Change:
    return lambda doc: [run.pop(key) for run in runs(doc, who)]


def both(*changes: Change) -> Change:
    return lambda doc: [change(doc) for change in changes]


def in_both_arms(change: Callable[..., Change], *values: Any, **keys: Any) -> Change:
    return both(*(change(*values, who=who, **keys) for who in ("compile", "baseline")))


def uncounted(doc: Document) -> None:
    """Nobody counts samples or tokens, in blocks or full runs."""
    for item in doc["arms"]:
        for run in item["runs"]:
            run.get("work", run).update(samples_per_step=None, tokens_per_step=None)


def first_of_baseline(**keys: Any) -> Change:
    """Keys of the baseline's first full run; those of its work are named ``work_``."""

    def change(doc: Document) -> None:
        run = runs(doc, "baseline")[0]
        for key, value in keys.items():
            inside, name = (run["work"], key[5:]) if key.startswith("work_") else (run, key)
            inside[name] = value

    return change


def forgotten(key: str) -> Change:
    """The first run of each arm without a key."""
    return lambda doc: [runs(doc, who)[0].pop(key) for who in ("compile", "baseline")]


def unknown_plans(doc: Document) -> None:
    """Of neither arm it is known how many steps a whole run has, which blocks would need."""
    del doc["full_run_steps"]
    for item in doc["arms"]:
        item["runs"] = [run for run in item["runs"] if run["stage"] != "speed"]


def unknown_data(doc: Document) -> None:
    for who in ("compile", "baseline"):
        for run in arm(doc, who)["runs"]:
            del run["fingerprint"]["data_sha256"]


def longer_baseline(doc: Document) -> None:
    """One of the baseline's runs trains twice as long: the reference, not the candidate, cheats."""
    run = runs(doc, "baseline")[1]
    run["work"]["steps"], run["steps"] = 2 * PLANNED, 2 * PLANNED
    run["wall_seconds"] *= 2


def slow_clock(doc: Document) -> None:
    """The candidate's own clock leaves out most of what its job took."""
    for run in runs(doc):
        run["job_seconds"] = run["wall_seconds"] + 300


LESS: dict[str, Change] = {
    "half the steps": less(0.5),
    "a twentieth fewer steps": less(0.95),
    "half the steps by its lines": less(0.5, summary=False),
    "half the steps by its summary": less(0.5, work=False),
    "half the steps, and no word of them": both(less(0.5), without("steps", "compile")),
    "no word of steps, where the baseline counts": both(
        in_both_arms(without, "work"), without("steps", "compile")
    ),
    "no step recorded by anybody": both(
        in_both_arms(full, "steps", 0), in_both_arms(without, "steps")
    ),
    "no step but by a summary of none": both(
        in_both_arms(full, "steps", 0), in_both_arms(in_full_runs, steps=0)
    ),
    "a twentieth fewer steps, where the baseline says nothing": both(
        less(0.95, work=False),
        in_both_arms(without, "work"),
        without("steps", "baseline"),
    ),
    "no lines, where the baseline has them": full("steps", 0),
    "half the plan by another script": plan(PLANNED // 2, {"entry_point": "other.py"}),
    "half the samples": full("samples_per_step", 16.0),
    "no samples": full("samples_per_step", None),
    "samples that the baseline does not record": full("samples_per_step", None, "baseline"),
    "no tokens": full("tokens_per_step", None),
    "half the plan": lambda doc: arm(doc).update(full_run_steps=PLANNED // 2),
    "a declared plan, of fewer samples than it planned": both(
        plan(PLANNED // 2, {"batch_size": 64}, samples=64.0), full("samples_per_step", 40.0)
    ),
    "a baseline that trains longer once": longer_baseline,
    "half the samples, of plans that nobody knows": both(
        unknown_plans, full("samples_per_step", 16.0)
    ),
    "half the steps, of plans that nobody knows": both(unknown_plans, less(0.5)),
    "a twentieth fewer steps, on data that nobody records": both(less(0.95), unknown_data),
    "a twentieth fewer steps, in production on the same data": both(
        less(0.95), in_both_arms(in_full_runs, mode="canary")
    ),
    "a tenth fewer tokens": full("tokens_per_step", 3560.0),
    "no lines, where one run of the baseline has none either": both(
        full("steps", 0), first_of_baseline(work_steps=0)
    ),
    "more than a second of steps that its lines do not have": both(
        in_full_runs("compile", seconds=40.0), full("seconds", 38.9)
    ),
    "more than a fiftieth of the seconds of steps": both(
        in_full_runs("compile", seconds=100.0), full("seconds", 97.9)
    ),
    "a clock that leaves most of the job out, as one of the baseline's": both(
        slow_clock, first_of_baseline(job_seconds=400.0)
    ),
    "less than a step by its own word": both(
        in_both_arms(full, "steps", 0), in_full_runs("compile", steps=0.5)
    ),
    "a clock that leaves most of the job out": slow_clock,
}  # fmt: skip


def test_equal_work_promotes(good):
    assert Verdict.PROMOTE is judge(good).verdict


@pytest.mark.parametrize("what", LESS)
def test_a_candidate_that_does_less_is_not_judged(good, what):
    LESS[what](good)
    decision = judge(good)

    assert (Verdict.INVALID, FlagAction.KEEP) == (decision.verdict, decision.flag_action)
    assert {CODE} == codes(decision)


EQUAL: dict[str, Change] = {
    "almost a fiftieth fewer steps": less(0.982),
    "the middle of what the baseline did": both(
        first_of_baseline(steps=2038, work_steps=2038), less(0.982, who="compile")
    ),
    "almost a tenth fewer tokens": full("tokens_per_step", 3640.0),
    "plans that nobody knows": unknown_plans,
    "data that nobody records": unknown_data,
    "a word of steps that is no number": in_full_runs("compile", steps=True),
    "a run of the baseline that was not timed": first_of_baseline(
        wall_seconds=None, steps=1000, work_steps=1000
    ),
    "an earlier release's run in both arms": both(forgotten("work"), forgotten("steps")),
    "a run of the baseline that says nothing, where nobody has lines": both(
        in_both_arms(without, "work"), lambda doc: runs(doc, "baseline")[0].pop("steps")
    ),
    "no word of the seconds": without("seconds", "compile"),
    "a second of steps that its lines do not have": both(
        in_full_runs("compile", seconds=40.0), full("seconds", 39.0)
    ),
    "a fiftieth of the seconds of steps": both(
        in_full_runs("compile", seconds=100.0), full("seconds", 98.0)
    ),
    "plans that nobody knows, where the baseline says nothing": both(
        unknown_plans, in_both_arms(without, "work"), without("steps", "baseline")
    ),
    "half the steps that were planned, before the baseline has run": both(
        less(0.5), lambda doc: [arm(doc, "baseline")["runs"].remove(run)
                                 for run in runs(doc, "baseline")],
    ),
    "a job of the baseline's that started slowly": first_of_baseline(job_seconds=400.0),
    "a baseline whose jobs were interrupted": lambda doc: [
        run.update(job_seconds=None) for run in runs(doc, "baseline")
    ],
    **{
        f"the plan of another {key}, one batch size recorded for all arms": plan(
            PLANNED // 2, {key: 64}
        )
        for key in ("batch_size", "instance_type", "instance_count", "distribution")
    },
    "nobody counts samples": uncounted,
    "an earlier release's baseline": without("work", "baseline"),
    "no lines beside an earlier release's baseline": both(
        full("steps", 0), without("work", "baseline")
    ),
    "all jobs counted otherwise": both(
        in_both_arms(less, 1.0), in_both_arms(full, "steps", 1000), in_both_arms(without, "steps")
    ),
    "a plan by the document's own word": plan(PLANNED // 2, {}),
    "fewer steps of more samples": plan(PLANNED // 2, {"compiler": "torch_compile"}, samples=64.0),
    "steps by summaries alone": in_both_arms(full, "steps", 0),
    "a baseline that says nothing": both(
        in_both_arms(without, "work"), without("steps", "baseline")
    ),
    "a slower candidate": lambda doc: [
        run.update(wall_seconds=4 * run["wall_seconds"], job_seconds=4 * run["wall_seconds"] + 40)
        for run in runs(doc)
    ],
    "a block that the baseline lacks": lambda doc: arm(doc, "baseline")["runs"].remove(
        runs(doc, "baseline", "speed")[1]
    ),
    "jobs that took no longer than their runs say": lambda doc: [
        run.update(job_seconds=1.0) for who in ("baseline", "compile") for run in runs(doc, who)
    ],
    "an interrupted job": lambda doc: [run.update(job_seconds=None) for run in runs(doc)],
}  # fmt: skip


# Ratio of the walls, by which all rows but these are compared.
WALLS = (5 + PLANNED * 0.03) / (5 + PLANNED * 0.03 / 1.4)
OTHER_WALLS = {"a slower candidate": WALLS / 4}


@pytest.mark.parametrize("what", EQUAL)
def test_work_that_is_equal_but_for_chance_is_judged(good, what):
    EQUAL[what](good)
    decision = judge(good)

    assert CODE not in codes(decision)
    if runs(good, "baseline"):
        measured = decision.speedup.measured
        assert measured.estimate == pytest.approx(OTHER_WALLS.get(what, WALLS), rel=0.005)


@pytest.mark.parametrize(
    ("change", "equal"),
    [
        (less(0.5), True),
        (less(1.2), True),
        (
            both(less(0.5), in_both_arms(without, "work"), without("steps", "compile")),
            False,
        ),
        (full("samples_per_step", 16.0), False),
    ],
)
def test_only_steps_may_differ_where_a_script_decides_when_to_stop(good, change, equal):
    good["quality"]["early_stopping"] = True
    change(good)
    decision = judge(good)

    assert equal == (CODE not in codes(decision))
    if decision.speedup is not None:  # at equal steps
        assert decision.speedup.measured.estimate == pytest.approx(WALLS, rel=0.1)


def test_whole_jobs_faster_than_the_blocks_leave_possible_do_not_promote(good):
    """All is said to be done, in a third of the time: somebody's word of it is false."""
    for run in runs(good):
        run["wall_seconds"] /= 3
        run["seconds"] = run["work"]["seconds"] = run["wall_seconds"] - 1
        run["job_seconds"] = run["wall_seconds"] + 40
    decision = judge(good)

    assert "full_run_implausible" in codes(decision)
    assert Verdict.PROMOTE is not decision.verdict


@pytest.mark.parametrize(
    ("key", "value"), [("steps", -1), ("steps", 2.5), ("samples_per_step", "many"), ("steps", None)]
)
def test_work_that_is_no_figure_is_refused(good, key, value):
    runs(good)[0]["work"][key] = value

    with pytest.raises(InvalidEvidenceError, match=rf"work\.{key}"):
        read_evidence(good)


def watched(count: int, *, steps: int, wall: float) -> Document:
    doc = recorded(probation_document())
    made = {**WORK, "steps": steps}
    for number in range(count):
        if number % 6 == 5:
            watch(doc, "baseline", wall_seconds=BASE_WALL, work=WORK, steps=PLANNED)
        watch(doc, wall_seconds=wall, work=made, steps=steps)
    return doc


def test_production_runs_that_do_less_are_not_watched_for_speed():
    runs_of_12 = watched(12, steps=PLANNED, wall=MINE_WALL)
    shorter = watched(12, steps=PLANNED // 2, wall=MINE_WALL / 2)
    decision = judge(shorter)
    evidence = read_evidence(shorter)

    assert Verdict.PERMANENT is judge(runs_of_12).verdict
    assert Verdict.CONTINUE is decision.verdict
    assert "speed_not_watched" in codes(decision), words(decision)
    ours, theirs = evidence.promoted_arm, evidence.baseline
    assert [] == ComparableWalls(ours, evidence).of(ours.probation)
    assert 2 == len(ComparableWalls(theirs, evidence).of(theirs.probation))
    assert decision.speedup.estimate == pytest.approx(1.4, rel=0.05)


@pytest.mark.parametrize(
    ("seconds", "allowed"), [(120_000, 6_000), (3_000, 180), (1_200, 120), (400, 60)]
)
@pytest.mark.parametrize("more", [0, 1])
@pytest.mark.parametrize("usual", [40, -5])
def test_a_long_job_may_leave_more_seconds_out(good, seconds, allowed, more, usual):
    """Beyond the baseline's, none at least: 5 %, 180 s, of short jobs a tenth, always a minute."""
    for who, left_out in (("baseline", usual), ("compile", max(usual, 0) + allowed + more)):
        for run in runs(good, who):
            run.update(job_seconds=seconds, wall_seconds=seconds - left_out)
    evidence = read_evidence(good)
    mine = evidence.candidates[0]

    assert (more == 0) is (RunCheck(mine, evidence).problem(mine.quality[0]) is None)


def made(order: int = 0, lines: int | None = None, data: str = "d", **record: Any) -> FullRun:
    """A run with lines of so many steps, of 50 seconds by its clock and 90 of its job."""
    return FullRun(
        finished=True, applied=True, record={"fingerprint": {"data_sha256": data}, **record},
        stage="quality", order=order, mode="shadow", seed=None, metric=0.0, wall_seconds=50.0,
        confirm=False, launched_by=None, work=None if lines is None else Work(steps=lines),
        job_seconds=90.0,
    )  # fmt: skip


def arm_of(*made: FullRun, steps: int | None = PLANNED, **overrides: Any) -> Arm:
    return Arm("baseline", steps, None, 1, (), made, overrides=overrides)


@pytest.mark.parametrize(
    ("lines", "word", "read", "steps"),
    [
        (5, 7, 7, 5), (0, 7, 7, 7), (None, 7, 7, 7), (None, 1, 1, 1), (None, 0.5, 0.5, None),
        *((None, broken, None, None) for broken in (0, -3, True, "9", math.inf, 10**400, None)),
    ],
)  # fmt: skip
def test_steps_are_those_of_the_lines_or_at_least_one_by_the_runs_word(lines, word, read, steps):
    run = made(0, lines, steps=word)

    assert (read, steps) == (figure(run, "steps"), steps_of(run))


@pytest.mark.parametrize(
    ("own", "steps", "overrides", "tolerance", "equal"),
    [
        (64.0, 1000, {"compiler": "x"}, 0.02, True),
        (32.0, 1000, {"compiler": "x"}, 0.02, False),
        (32.0, 1000, {"hyperparameters": "epochs"}, 0.02, False),
        (32.0, 1000, {"hyperparameters": {"fused": 1}}, 0.02, False),
        (32.0, 1000, {"hyperparameters": {"fused": 1, "Epochs": 1}}, 0.02, True),
        (32.0, 1000, {}, 0.02, True),
        (32.0, 1000, {"batch_size": 64}, 0.02, True),
        (34.0, 1000, {"batch_size": 64}, 0.02, False),
        (34.0, 1000, {"batch_size": 64}, 0.1, True),
        (34.0, 2000, {}, 0.1, True),
        # Each is off by a hundredth, which the batch does not explain, and their product by two.
        (32.4, 2030, {"batch_size": 64}, 0.02, False),
    ],
)
def test_another_plan_explains_one_mean_and_as_many_in_all(own, steps, overrides, tolerance, equal):
    """Beside 32 a step and 2,000 steps."""
    ours = arm_of(steps=steps, **overrides)

    assert equal is as_much((own, ours), (32.0, arm_of()), tolerance)


def test_the_figures_beside_a_run_are_those_before_and_after_it_or_of_its_data():
    figures = {1: 10.0, 3: 20.0, 4: None, 5: 40.0}
    runs_of = [made(order, data="d" if order < 5 else "e") for order in figures]
    reference = Reference(arm_of(*runs_of), lambda run: figures.get(run.order))
    near = [reference.near(made(order)) for order in (0, 2, 3, 4, 6)]

    assert [[10.0], [10.0, 20.0], [20.0, 40.0], [20.0, 40.0], [40.0]] == near
    assert [15.0, 40.0, 30.0] == [reference.beside(made(4, data=data)) for data in ("d", "e", "f")]
    assert (4, 3, False) == (reference.runs, reference.known, reference.recorded)
    assert Reference(arm_of(), steps_of).beside(made()) is None


@pytest.mark.parametrize(
    ("changed", "fault", "seconds"),
    [
        ({"wall_seconds": None}, False, False), ({"wall_seconds": 0.0}, False, False),
        ({"finished": False}, False, False), ({"job_seconds": None}, False, True),
        ({"work": Work(PLANNED // 2)}, True, False),
    ],
)  # fmt: skip
def test_only_the_seconds_of_a_run_that_was_timed_and_has_no_fault_count(
    good, changed, fault, seconds
):
    evidence = read_evidence(good)
    mine = evidence.candidates[0]
    run = replace(mine.quality[0], **changed)

    assert fault is (RunCheck(mine, evidence).problem(run) is not None)
    counted = ComparableWalls(mine, evidence).seconds(run)
    assert counted == (run.wall_seconds if seconds else None)
