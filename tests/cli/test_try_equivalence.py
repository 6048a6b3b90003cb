"""``try --equivalence`` judges the check of an arm, and says where its error is from."""

import json

import pytest

from tests.cli.test_try import project, tried
from tests.usecases.equivalence_table import shipped

__all__ = ["project", "tried"]  # fixtures

TABLE = {
    "check": "0123456789ab",
    "bounds": {"cpu.gradients.single": 64.0},
    "shares": {},
    "classes": [
        {"framework": "pytorch 2.13", "device": "cpu", "precision": "fp32", "faults": 62,
         "missed": 0, "date": "2026-11-26", "sound": 300, "false_alarms": 1},
    ],
}  # fmt: skip
PART = {"part": "gradients", "arithmetic": "single", "compared": 8, "ratio": 1.3e7,
        "where": "layers.1.act.weight", "step": 2}  # fmt: skip
FIGURES = {
    "schema": 1, "check": "0123456789ab", "weights": "first", "parts": [PART], "unseen": [],
    "class": {"framework": "pytorch 2.13", "device": "cpu", "precision": "fp32"},
}  # fmt: skip
GROUP = {"part": "gradients", "arithmetic": "single", "bound": 64.0, "group": "layers.*.act",
         "tensors": 2, "where": "layers.1.act.weight", "error": 3.2, "eager_error": 2.1e-7,
         "ratio": 1.5e7}  # fmt: skip
DIAGNOSIS = {
    "schema": 1, "groups": [GROUP, {**GROUP, "group": "head", "ratio": None}],
    "failing": {key: PART[key] for key in ("part", "arithmetic", "where", "step", "ratio")}
    | {"bound": 64.0},
    "stages": {"eager": 1.0, "own": 1.5e7}, "stage": "own", "graphs": 3,
    "graph": {"number": 2, "ratio": 1.5e7, "at": "model.py:12 in forward",
              "modules": ["layers.0.act", "layers.1.act"], "operators": 16},
    "operators": [
        {"operator": "torch.nn.functional.relu", "at": "model.py:8 in forward",
         "module": "layers.0.act"},
    ],
    "subsystem": {"name": "lowerings", "detail": "relu"},
    "remedies": [
        {"remedy": "torch_compile_strict", "modules": [], "ratio": 1.5e7, "helps": False},
        {"remedy": "exclude", "modules": ["layers.0.act", "layers.1.act"], "ratio": 1.4,
         "helps": True},
    ],
    "reproducer": {"file": "reproducer.py", "shows": True}, "ended": None, "seconds": 50.1,
}  # fmt: skip
FOUND_NOTHING = {**DIAGNOSIS, "failing": None, "stages": {}, "stage": None, "graph": None,
         "operators": [], "subsystem": None, "remedies": [], "reproducer": None}  # fmt: skip
OTHER_CHECK = {**FIGURES, "check": "f"}
OTHER_CLASS = {**FIGURES, "class": {**FIGURES["class"], "device": "cuda 9.0"}}
ROUNDING = {
    **DIAGNOSIS, "reproducer": {"file": "reproducer.py", "shows": False},
    "remedies": [{"remedy": "torch_compile_strict", "modules": [], "ratio": 1.1, "helps": True}],
}  # fmt: skip
NOTHING_HELPS = {**DIAGNOSIS, "remedies": [], "reproducer": None}


@pytest.fixture(autouse=True)
def _table():
    with shipped(TABLE):
        yield


def left(figures=FIGURES, diagnosis=DIAGNOSIS, **more):
    """What an arm's process leaves."""
    return {"summary": {"equivalence": figures, "diagnosis": diagnosis}, **more}


SOUND = left({**FIGURES, "parts": [{**PART, "ratio": 1.1}]}, FOUND_NOTHING)
WRONG = left(leaves={"reproducer.py": "code", "reproducer.pt": "numbers"})


@pytest.fixture
def judged(tried):
    """Exit code and compiled arm of a try with the check."""

    def call(plan, *options):
        result = tried("--equivalence", *options, "--json", compile=plan)
        baseline, compiled = json.loads(result.stdout)["arms"]
        assert ("ok", None) == (baseline["outcome"], baseline["equivalence"])
        return result.exit_code, compiled

    return call


def test_a_check_is_asked_for_and_judged_by_the_table(judged, tmp_path):
    kept = tmp_path / "kept"

    code, arm = judged(SOUND, "--minutes", 2, "--keep", kept)

    found = arm["equivalence"]
    assert (0, "ok", "passed", [], None) == (
        code, arm["outcome"], found["state"], found["advice"], found["reproducer"],
    )  # fmt: skip
    started = kept / "compile" / "ml" / "output" / "data" / "started.json"
    asked = json.loads(started.read_text())["env"]
    assert ("4", "first") == (asked["COMPILEGATE_TRY_STEPS"], asked["COMPILEGATE_EQUIVALENCE"])
    assert {"bounds": {"cpu": {"gradients.single": 64.0}}, "limit_seconds": 120.0} == json.loads(
        asked["COMPILEGATE_DIAGNOSIS"]
    )


MISSING = {
    "no faults": (left(OTHER_CLASS), "unexamined", "not_equivalent", ["exclude", "report"]),
    "no table": (left(OTHER_CHECK), "unexamined", "not_equivalent", ["exclude", "report"]),
    "cut off": (left(diagnosis=None), "failed", "not_equivalent", []),
    "broken diagnosis": (
        left(diagnosis={**DIAGNOSIS, "groups": "many"}), "failed", "not_equivalent", [],
    ),
    "eager rounding helps": (
        left(diagnosis=ROUNDING), "failed", "not_equivalent", ["torch_compile_strict"],
    ),
    "nothing helps": (left(diagnosis=NOTHING_HELPS), "failed", "not_equivalent", ["stay_off"]),
    "broken check": (left("broken", None), "unexamined", "ok", []),
    "no check": ({}, "unexamined", "ok", []),
    "crashed in the check": (
        {"code": -11, "summary": {"finished": True}}, "unexamined", "ok", [],
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", MISSING)
def test_what_is_missing_is_never_a_pass(case, judged):
    plan, state, outcome, advice = MISSING[case]

    _, arm = judged(plan)

    found = arm["equivalence"]
    assert (outcome, state, advice) == (
        arm["outcome"], found["state"], [one["advice"] for one in found["advice"]],
    )  # fmt: skip


def test_the_screen_has_groups_place_and_what_to_do(tried):
    text = tried("--equivalence", compile=WRONG).stdout

    assert "compile: not equivalent" in text
    words = " ".join(text.split())
    for part in (
        "layers.*.act gradients.single 2 3.2 2.1e-07 1.5e+07 64",
        "head gradients.single 2 3.2 2.1e-07 not finite 64",
        "eager 1, own 1.5e+07",
        "2 of 3, 16 operators, from model.py:12 in forward",
        "torch.nn.functional.relu in layers.0.act, model.py:8 in forward",
        "lowerings: relu",
        "Leave layers.*.act uncompiled",
        "reproducer-compile.py",
    ):
        assert part in words
    assert all(len(line) <= 80 for line in text.splitlines())
