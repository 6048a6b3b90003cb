"""torch.compile itself is asked about every script that a graph rule speaks up about."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from distributions.doctor.tests.cases import graph
from distributions.doctor.tests.scripts import model

pytestmark = pytest.mark.training
PYTHON = Path(__file__).resolve().parents[3] / ".venv-training" / "bin" / "python"

# Counts the graphs that a model's forward becomes over calls of one and the same shape.
ASK = """
import gc, json, sys, warnings
gc.disable()
warnings.filterwarnings("ignore")
import torch
from torch._dynamo.testing import CompileCounter
torch._dynamo.config.recompile_limit = 2  # more prove nothing else
# It empties the processor's cache, to say how long guards take: a third of the time.
torch._dynamo.guards.profile_guard_manager = lambda *_: 0.0
counts = []
for script in json.load(sys.stdin):
    torch._dynamo.reset()
    names = {}
    exec(script, names)
    counter = CompileCounter()
    torch.manual_seed(3)  # also of the weights: a branch must be met both ways
    net = torch.compile(names["Net"]().train(), backend=counter)
    reasons = torch._dynamo.utils.counters["graph_break"]
    reasons.clear()
    ended = 0
    for _ in range(12):
        try:
            net(torch.randn(4, 4))
        except IndexError:  # what a branch left of the tensor does not fit the next line
            ended += 1
    counts.append([counter.frame_count, sum(reasons.values()), ended])
print(json.dumps(counts))
"""
REPORTED = [script for reported, _ in graph.CASES.values() for script in reported]
QUIET = [script for _, quiet in graph.CASES.values() for script in quiet
         if "class Net" in script]  # fmt: skip


@pytest.fixture(scope="module")
def graphs() -> dict[str, tuple[int, int]]:
    scripts = [*REPORTED, *QUIET, model("pass")]
    answer = subprocess.run(
        [PYTHON, "-c", ASK], input=json.dumps(scripts), capture_output=True, text=True, check=True
    )
    counts = json.loads(answer.stdout.splitlines()[-1])
    return {script: tuple(count[:2]) for script, count in zip(scripts, counts, strict=True)}


def test_a_plain_model_is_one_graph(graphs) -> None:
    assert (1, 0) == graphs[model("pass")]


@pytest.mark.parametrize("script", REPORTED)
def test_what_is_found_is_no_single_graph(script: str, graphs) -> None:
    graph_count, breaks = graphs[script]

    assert graph_count > 1 or breaks > 0


@pytest.mark.parametrize("script", QUIET)
def test_what_is_left_alone_is_one_graph(script: str, graphs) -> None:
    assert (1, 0) == graphs[script]
