"""Repeated blocks compiled alone, and graphs for any size: from file to graphs."""

import dataclasses

import pytest

from compilegate.domain.compilers import COMPILERS
from compilegate.domain.workload.model import Candidate, Model, Shapes
from tests.domain.workload_builder import SOUND, change, check, severities

REGIONS, DYNAMIC = "torch_compile_regions", "torch_compile_dynamic"

# Steps of batches of three lengths; the words are compiler, blocks and whether sizes are static.
JOB = """
import json, sys
import torch
from compilegate_runtime.compilers import compiler_for
from compilegate_runtime.errors import TrainingError
from torch import nn

class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = nn.Linear(16, 16)

    def forward(self, rows):
        return rows + self.inner(rows).relu()

class Model(nn.Module):
    def __init__(self, blocks):
        super().__init__()
        self.blocks = nn.ModuleList(Block() for _ in range(blocks))
        self.head = nn.Linear(16, 1)

    def forward(self, rows):
        for block in self.blocks:
            rows = block(rows)
        return self.head(rows).square().mean()

name, blocks, static = sys.argv[1], int(sys.argv[2]), sys.argv[3] == "static"
model, compiler, failure = Model(blocks), compiler_for(name), ""
try:
    forward = compiler.apply(model)
    for rows in (8, 11, 13):
        batch = torch.randn(rows, 16)
        if static:
            torch._dynamo.mark_static(batch)
        forward(batch).backward()
    compiler.verify()
except TrainingError as error:
    failure = str(error)
print(json.dumps({"failure": failure, "evidence": compiler.evidence()}))
"""


@pytest.fixture(scope="module")
def train(jobs):
    def run(compiler, blocks=4, sizes="moving"):
        return jobs.run_code(JOB, compiler, str(blocks), sizes)

    return run


def test_equal_blocks_are_compiled_once_for_all_of_them(train):
    two, four = (train(REGIONS, blocks)["evidence"] for blocks in (2, 4))

    assert (REGIONS, True) == (four["requested"], four["applied"])
    # Of the first length and of any, each for an input without gradients and for one with them.
    assert two["graphs"] == four["graphs"] == 4
    assert "4 repeated blocks" in four["proof"]


def test_a_model_without_repeated_blocks_is_not_applied(train):
    failed = train(REGIONS, 1)

    assert "requested but not applied" in failed["failure"]
    assert (False, 0) == (failed["evidence"]["applied"], failed["evidence"]["graphs"])


def test_one_graph_serves_every_size_and_is_the_proof_of_that(train):
    trained = train(DYNAMIC)
    evidence = trained["evidence"]

    assert ("", 1, 0) == (trained["failure"], evidence["graphs"], evidence["recompiles"])
    assert "1 graphs of any size" in evidence["proof"]


def test_graphs_for_fixed_sizes_alone_are_not_what_was_asked_for(train):
    assert "no graph has a size that may change" in train(DYNAMIC, sizes="static")["failure"]


@pytest.mark.parametrize("name", [REGIONS, DYNAMIC])
def test_what_is_assumed_of_them_is_torch_compiles(name):
    usual = COMPILERS["torch_compile"]

    assert (usual.name, usual.modes) == (COMPILERS[name].base, COMPILERS[name].modes)
    assert usual.overheads == COMPILERS[name].overheads


@pytest.mark.parametrize(
    ("compiler", "changed", "code", "verdict"),
    [
        (DYNAMIC, {"shapes": Shapes(static=True)}, "shapes_fixed", "ineligible"),
        (DYNAMIC, {"shapes": Shapes(static=False, drop_last=False)}, None, "eligible"),
        (DYNAMIC, {"shapes": Shapes(static=True, padding="longest")}, None, "eligible"),
        (REGIONS, {}, None, "eligible"),
        (REGIONS, {"model": Model("recsys", "dlrm")}, "blocks_unknown", "benchmark"),
    ],
)
def test_each_is_for_scripts_of_its_kind(compiler, changed, code, verdict):
    candidate = Candidate(name="tried", compiler=compiler)
    found = check(dataclasses.replace(change(SOUND, candidates=(candidate,)), **changed))

    assert verdict == found.verdict
    assert [code] * bool(code) == [
        one for one in severities(found) if one in ("shapes_fixed", "blocks_unknown")
    ]
    assert "dynamic_shapes" not in severities(found)
    assert "padding_longest" not in severities(found)
    assert "ragged_last_batch" not in severities(found)
