"""Repeated blocks compiled alone, graphs for any size, eager rounding: from file to graphs."""

import dataclasses

import pytest

from compilegate.domain.compilers import COMPILERS
from compilegate.domain.workload.model import Candidate, Framework, Model, Shapes
from tests.domain.workload_builder import SOUND, change, check, severities

REGIONS, DYNAMIC = "torch_compile_regions", "torch_compile_dynamic"
STRICT = "torch_compile_strict"

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


@pytest.mark.training
def test_equal_blocks_are_compiled_once_for_all_of_them(train):
    two, four = (train(REGIONS, blocks)["evidence"] for blocks in (2, 4))

    assert (REGIONS, True) == (four["requested"], four["applied"])
    # Of the first length and of any, each for an input without gradients and for one with them.
    assert two["graphs"] == four["graphs"] == 4
    assert "4 repeated blocks" in four["proof"]


@pytest.mark.training
def test_a_model_without_repeated_blocks_is_not_applied(train):
    failed = train(REGIONS, 1)

    assert "requested but not applied" in failed["failure"]
    assert (False, 0) == (failed["evidence"]["applied"], failed["evidence"]["graphs"])


@pytest.mark.training
def test_one_graph_serves_every_size_and_is_the_proof_of_that(train):
    trained = train(DYNAMIC, blocks=1)
    evidence = trained["evidence"]

    assert ("", 1, 0) == (trained["failure"], evidence["graphs"], evidence["recompiles"])
    assert "1 graphs of any size" in evidence["proof"]


@pytest.mark.training
def test_graphs_for_fixed_sizes_alone_are_not_what_was_asked_for(train):
    assert (
        "no graph has a size that may change" in train(DYNAMIC, blocks=1, sizes="static")["failure"]
    )


# Several bf16 operations that TorchInductor fuses into one kernel.
ROUNDING = """
import json, sys
import torch
from compilegate_runtime.compilers import compiler_for
from torch import nn

class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(256))

    def forward(self, rows):
        rows, weight = rows.bfloat16(), self.weight.bfloat16()
        product = rows * weight
        return ((product * 1.7 + rows) * 0.3 - product).float()

torch.manual_seed(0)
model, rows = Model(), torch.randn(64, 256)
eager = model(rows)
compiler = compiler_for(sys.argv[1])
compiled = compiler.apply(model)(rows)
compiled.sum().backward()
compiler.verify()
difference = (compiled - eager).abs().max().item()
print(json.dumps({"difference": difference, "evidence": compiler.evidence()}))
"""


@pytest.mark.training
@pytest.mark.parametrize(("compiler", "as_eager"), [("torch_compile", False), (STRICT, True)])
def test_bf16_is_rounded_as_eager_rounds_it(jobs, compiler, as_eager):
    result = jobs.run_code(ROUNDING, compiler)
    evidence = result["evidence"]

    assert as_eager is (result["difference"] == 0.0)
    assert (compiler, True, 1) == (
        evidence["requested"], evidence["applied"], evidence["graphs"],
    )  # fmt: skip
    assert as_eager is ("emulate_precision_casts True" in evidence["proof"])


@pytest.mark.parametrize("name", [REGIONS, DYNAMIC])
def test_what_is_assumed_of_them_is_torch_compiles(name):
    usual = COMPILERS["torch_compile"]

    assert (usual.name, usual.modes) == (COMPILERS[name].base, COMPILERS[name].modes)
    assert usual.overheads == COMPILERS[name].overheads
    assert ("torch_compile", ()) == (COMPILERS[STRICT].base, COMPILERS[STRICT].modes)


@pytest.mark.parametrize(("version", "refused"), [("2.13.0", False), ("2.5.1", True)])
def test_eager_rounding_needs_a_pytorch_that_has_it(version, refused):
    strict = Candidate(name="strict", compiler=STRICT)
    workload = change(SOUND, framework=Framework("pytorch", version), candidates=(strict,))

    assert refused is ("version_unsupported" in severities(check(workload)))


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
