"""Which evidence documents are read, and what is read of one that is not valid."""

from __future__ import annotations

import hashlib
import json
import struct
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from compilegate.domain.errors import InvalidEvidenceError
from compilegate.domain.judging.evidence import (
    Arm,
    FullRun,
    SpeedRun,
    TrialPlan,
    Work,
)
from compilegate.domain.judging.evidence_file import (
    content_of,
    read_evidence,
    read_run,
    read_speed_run,
    recorded_spend,
)
from tests.domain.evidence_builder import (
    GOOD,
    arm,
    codes,
    document,
    judge,
    runs,
    speed_run,
)
from tests.domain.outcome_builder import SET, packed_bits

ANOTHER = hashlib.sha256(b"another set").hexdigest()
SPEED_RUN = {"stage": "speed", "block": 0, "job": "s0", "step_seconds": [0.1]}
FULL_RUN = {"stage": "quality", "order": 3, "metric": 0.5, "finished": True}


@pytest.mark.parametrize("steps", ["2000", 2000.0, -1, True])
def test_in_a_jobs_own_output_it_must_be_a_number_of_steps(steps):
    with pytest.raises(InvalidEvidenceError, match=r"s0\.full_run_steps: "):
        read_speed_run({**SPEED_RUN, "full_run_steps": steps}, "s0")

    assert 2000 == read_speed_run({**SPEED_RUN, "full_run_steps": 2000}).full_run_steps
    assert read_run({**SPEED_RUN, "full_run_steps": steps}).full_run_steps is None
    assert read_run(SPEED_RUN).full_run_steps is None


@pytest.mark.parametrize(
    ("text", "spent"),
    [
        ('{"plan": {"spent_usd": 3.5}}', 3.5),
        ('{"plan": {"spent_usd": null}}', None),
        ('{"plan": {"spent_usd": "3.5"}}', None),
        ('{"plan": {"spent_usd": true}}', None),
        ('{"plan": null}', None),
        ('{"plan": []}', None),
        ("{}", None),
    ],
)
def test_what_a_trial_had_spent_is_read_of_any_document(text, spent):
    assert spent == recorded_spend(json.loads(text))


# Of figures by where they stand: the unit, one that is read, and one just too little or too much.
RUN = "arms[1].runs[3]"
BOUNDS = {
    (0.5, 0): {
        "usd_per_hour": "USD", "arms[1].usd_per_hour": "USD", "runs_per_week": "runs",
        "run_hours": "hours", "quality.margin": "the metric's own unit",
        "arms[1].runs[0].samples_per_step": "samples",
        "arms[1].runs[0].tokens_per_step": "tokens",
        f"{RUN}.work.samples_per_step": "samples", f"{RUN}.work.tokens_per_step": "tokens",
    },
    (1, 0): {
        "full_run_steps": "steps", "arms[1].full_run_steps": "steps", "devices": "devices",
        "arms[1].devices": "devices", "plan.speed_steps": "steps",
        "plan.blocks_per_round": "blocks", "plan.max_blocks": "blocks",
    },
    (0, -1): {
        "runs_remaining": "runs", "plan.usd_per_block": "USD", "plan.usd_per_quality_run": "USD",
        "plan.spent_usd": "USD", "plan.runs_at_start": "runs",
        "arms[1].runs[0].block": "block number", "arms[1].runs[0].compile_seconds": "seconds",
        f"{RUN}.order": "position in time", f"{RUN}.wall_seconds": "seconds",
        f"{RUN}.job_seconds": "seconds", f"{RUN}.work.steps": "steps",
        f"{RUN}.work.seconds": "seconds",
    },
    (10**9, 10**9 + 1): {
        "plan.speed_steps": "steps", "plan.blocks_per_round": "blocks", "plan.max_blocks": "blocks",
        f"{RUN}.work.steps": "steps",
    },
    (2**63, 2**63 + 1): {f"{RUN}.seed": "seed"},
}  # fmt: skip


@pytest.mark.parametrize(
    ("path", "unit", "sound", "wrong"),
    [(path, unit, *both) for both, units in BOUNDS.items() for path, unit in units.items()],
)
def test_a_figure_out_of_its_range_is_refused_where_it_stands(path, unit, sound, wrong):
    doc = document(metrics=GOOD)
    doc["plan"], runs(doc)[0]["work"] = {}, {"steps": 2000}
    *parents, key = path.replace("[", ".").replace("]", "").split(".")
    place: Any = doc
    for name in parents:
        place = place[int(name) if name.isdigit() else name]
    place[key] = sound
    read_evidence(doc)
    place[key] = wrong

    with pytest.raises(InvalidEvidenceError) as refused:
        read_evidence(doc)
    assert f"{path}: is out of range for {unit} " in str(refused.value)


@pytest.mark.parametrize(
    ("path", "keys"),
    [
        ("schema", {"schema": 0}), ("schema", {"schema": 2}), ("phase", {"phase": "production"}),
        ("promoted", {"promoted": "compile"}),
        *(("promoted", {"phase": "probation", "promoted": name})
          for name in (None, "baseline", "unknown")),
        *(("arms", {"arms": [{"name": name} for name in names]})
          for names in (["baseline"], ["compile", "b"], ["baseline"] * 2, ["baseline", "b", "b"])),
        ("on_top_of", {"on_top_of": "baseline"}),
        ("on_top_of", {"on_top_of": "other"}), ("on_top_of", {"on_top_of": "compile"}),
        ("quality.goal", {"quality": {"metric": "loss", "goal": "higher", "margin": 1}}),
        ("quality.history_wall_seconds", {
            "quality": {
                "metric": "loss", "goal": "minimize", "margin": 1, "history_wall_seconds": [9, 0],
            },
        }),
        *(("controls", {"controls": [{"name": name}]}) for name in ("baseline", "compile")),
        ("controls", {"controls": [{"name": "a"}, {"name": "a"}]}),
        ("controls", {"controls": [{"name": "a", "runs": [FULL_RUN]}]}),
        ("arms[0].full_run_steps", {"full_run_steps": None}),
    ],
)  # fmt: skip
def test_a_document_that_contradicts_itself_is_refused_by_its_field(path, keys):
    with pytest.raises(InvalidEvidenceError) as refused:
        read_evidence({**document(), **keys})

    assert str(refused.value).startswith(f"{path}: ")


def test_an_arm_goes_by_its_own_price_steps_and_devices_before_those_of_all():
    doc = {**document(), "usd_per_hour": 2.0, "full_run_steps": 1000, "devices": 4}
    arm(doc).update(usd_per_hour=3.0, full_run_steps=500, devices=8)
    doc["controls"] = [{"name": "control"}]
    bare = {"schema": 1, "workload": "lm", "quality": doc["quality"],
            "arms": [{"name": "baseline"}, {"name": "compile"}]}  # fmt: skip

    assert [(2.0, 1000, 4), (3.0, 500, 8), (2.0, 1000, 4)] == _own(doc)
    assert [(None, None, 1)] * 2 == _own(bare)
    assert [1000, 1] == [read_evidence(one).baseline.steps_or_one for one in (doc, bare)]
    assert TrialPlan(speed_steps=320, blocks_per_round=2, max_blocks=6) == read_evidence(bare).plan


def _own(doc: dict[str, Any]) -> list[tuple[float | None, int | None, int]]:
    evidence = read_evidence(doc)
    every: list[Arm] = [*evidence.arms, *evidence.controls]
    return [(one.usd_per_hour, one.full_run_steps, one.devices) for one in every]


def test_a_run_is_what_its_record_says_and_unknown_where_it_says_nothing():
    speed = {
        "stage": "speed", "block": 4, "node": "n", "compile_seconds": 2.0, "step_seconds": [0.5],
        "samples_per_step": 8.0, "tokens_per_step": 64.0, "full_run_steps": 500,
        "finished": False, "applied": True, "job": "j",
    }  # fmt: skip
    full = {
        "stage": "probation", "order": 3, "mode": "canary", "seed": 5, "metric": 0.5,
        "wall_seconds": 7.0, "finished": True, "applied": True, "confirm": True,
        "launched_by": "team", "job_seconds": 9.0, "job": "j",
        "work": {"steps": 11, "seconds": 13.0, "samples_per_step": 17.0, "tokens_per_step": 19.0},
    }  # fmt: skip
    work, none = Work(11, 13.0, 17.0, 19.0), Work(0, 0.0, None, None)
    least = {"stage": "speed", "block": 0, "job": "j"}
    failed = {"stage": "quality", "order": 0, "finished": True, "wall_seconds": 0, "job": "j"}
    watched = {**failed, "stage": "probation", "finished": False, "metric": 1.0}
    failed["work"] = {"steps": 0}

    assert [
        SpeedRun(False, True, speed, 4, "n", 2.0, (0.5,), 8.0, 500, 64.0),
        SpeedRun(True, None, least, 0, None, 0.0, (), None, None),
        FullRun(True, True, full, "probation", 3, "canary", 5, 0.5, 7.0, True, "team", work, 9.0),
        FullRun(False, None, failed, "quality", 0, "shadow", None, None, None, False, None, none),
        FullRun(False, None, watched, "probation", 0, "production", None, 1.0, None, False, None),
    ] == [read_run(one) for one in (speed, least, full, failed, watched)]
    for one in (speed, full):
        del one["job"]
        with pytest.raises(InvalidEvidenceError, match=r"run\.job: is missing"):
            read_run(one)


@pytest.mark.parametrize(
    ("history_set", "phase", "other", "left_out"),
    [
        (SET[:12], "trial", 0, 0), (None, "trial", 1, 0), (SET[:12], "trial", 1, 3),
        (SET, "trial", 0, 0), (ANOTHER, "trial", None, 0), (ANOTHER[:12], "trial", 0, 3),
        (ANOTHER[:12], "probation", 0, 0),
    ],
)  # fmt: skip
def test_a_history_of_another_set_than_a_trials_runs_were_scored_on_is_left_out(
    history_set, phase, other, left_out
):
    doc = document(metrics=GOOD)
    every = [*runs(doc, "baseline"), *runs(doc)]
    for number, run in enumerate(every if other is not None else ()):
        run["outcomes"] = packed_bits(np.ones(8, bool), ANOTHER if number < other else SET)
    more = {"goal": "maximize", "margin": 0.1, "history": [0.5, 0.6]}
    doc["quality"].update(
        history=[2.5] * 3, history_set=history_set, guardrails=[{"metric": "a", **more}],
        signals=[{"metric": "b", **more}],
    )  # fmt: skip
    doc.update(phase=phase, promoted="compile" if phase == "probation" else None)
    evidence = read_evidence(doc)
    seen = evidence.quality

    assert left_out == evidence.history_left_out
    assert bool(left_out) is ("history_other_set" in codes(judge(doc)))
    kept = [(2.5,) * 3, (0.5, 0.6), (0.5, 0.6)]
    assert ([()] * 3 if left_out else kept) == [
        one.history for one in (seen, *seen.guardrails, *seen.signals)
    ]


def contents() -> dict[str, Any]:
    doc = document(metrics=GOOD)
    doc["controls"] = [
        {"name": name, "runs": [speed_run(block, 0.02) for block in (0, 1)]} for name in "ab"
    ]
    return doc


CHANGED: dict[str, Callable[[dict[str, Any]], object]] = {
    "a key": lambda doc: doc.update(workload="other"),
    "an arm's key": lambda doc: arm(doc).update(devices=2),
    "a run's key": lambda doc: runs(doc)[1].update(seed=99),
    "a step": lambda doc: runs(doc, stage="speed")[1]["step_seconds"].append(0.5),
    "a run less": lambda doc: arm(doc)["runs"].pop(),
    "a control's run": lambda doc: doc["controls"][0]["runs"][1].update(node="other"),
    "a control that is an arm": lambda doc: doc["arms"].append(doc["controls"].pop()),
}


@pytest.mark.parametrize("what", CHANGED)
def test_another_document_has_another_content(what):
    doc = contents()
    CHANGED[what](doc)

    assert content_of(doc) != content_of(contents())


def test_arms_controls_and_runs_in_another_order_are_the_same_content():
    doc = contents()
    for items in (doc["arms"], doc["controls"]):
        items.reverse()
        for one in items:
            one["runs"].reverse()

    assert content_of(contents()) == content_of(doc) == read_evidence(doc).content
    assert content_of({"arms": [{}]}) == content_of({"arms": [{"runs": []}]})


def test_a_content_is_made_of_the_digests_of_arms_which_are_made_of_those_of_runs():
    digest = hashlib.sha256(b'{"b":2,"c":[3]}' + struct.pack("<2d", 0.5, 4)).hexdigest()
    own = hashlib.sha256(f'{{"a":1}}\n{digest}'.encode()).hexdigest()
    run = {"step_seconds": [0.5, 4], "c": [3], "b": 2}

    assert f'{{"d":5}}\n{own}' == content_of({"d": 5, "arms": [{"runs": [run], "a": 1}]})


@pytest.mark.parametrize(
    ("value", "problem"),
    [({1}, "not one that JSON has"), (10**5000, "beyond what can be computed")],
    ids=["a set", "too many digits"],
)
def test_what_cannot_be_written_has_no_content(value, problem):
    with pytest.raises(InvalidEvidenceError, match=problem):
        content_of({"arms": [], "key": value})


def test_the_least_that_is_sound_is_read():
    doc = {**document(), "devices": 1}
    doc["quality"]["history_wall_seconds"] = [0.5]
    arm(doc).update(devices=1, overrides={"hyperparameters": {"optim": "fused"}})
    evidence = read_evidence(doc)

    assert (0.5,) == tuple(evidence.history_wall_seconds)
    (mine,) = evidence.candidates
    assert (1, {"hyperparameters": {"optim": "fused"}}) == (mine.devices, mine.overrides)
