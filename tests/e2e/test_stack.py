"""Small wins: a trial on top of a permanent promotion, through the deployed state machine."""

from __future__ import annotations

import json
import os

import pytest

from tests.domain.evidence_builder import judge
from tests.e2e.conftest import COMPILE_CANDIDATE
from tests.e2e.production import Promoted

pytestmark = pytest.mark.e2e
LAYER = {"name": "tuned", "batch_size": 48}
POLICY = {"small_wins": 1.005, "probation_runs": 2}


def test_a_layer_is_tried_and_turned_on_once_what_is_below_it_is_permanent(app, trial):
    name = f"stack-{os.getpid() % 1000}"

    def run(speeds, *candidates):
        running = trial(name=name, policy=POLICY, speeds=speeds, candidates=candidates)
        running.output()
        return running

    first = run("compile=1.3", COMPILE_CANDIDATE)
    assert "promote" == first.record("decision")["verdict"]
    early = run("compile=1.3,tuned=1.45", COMPILE_CANDIDATE, LAYER)
    assert ["stack_waits"] == [one["code"] for one in early.record("decision")["reasons"]]
    assert {} == early.jobs()
    production = Promoted(app, name, running=first)
    for _ in range(6):  # a baseline run may come first
        if production.run()["output"]["verdict"] == "permanent":
            break
    assert "permanent" == first.flag()["state"]

    second = run("compile=1.3,tuned=1.45", COMPILE_CANDIDATE, LAYER)
    decision, evidence = second.record("decision"), second.record("evidence")

    assert ("promote", "tuned") == (decision["verdict"], decision["candidate"]), decision["reasons"]
    assert ["baseline", "compile", "tuned"] == [arm["name"] for arm in evidence["arms"]]
    assert 1.05 < decision["layer"]["estimate"] < 1.2 < decision["speedup"]["estimate"] < 1.6
    flag = second.flag()
    assert {"compiler": "torch_compile", "batch_size": 48}.items() <= flag["overrides"].items()
    assert ["compile", "tuned"] == [layer["candidate"] for layer in flag["layers"]]
    again = judge(evidence).to_dict(decision["flag"]["name"])
    assert json.loads(json.dumps(again)) == {k: v for k, v in decision.items() if k != "trial"}
