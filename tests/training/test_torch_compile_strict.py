"""torch_compile_strict: eager rounding in compiled training, from file to kernels."""

import pytest

from compilegate.domain.compilers import COMPILERS, NAMES
from compilegate.domain.workload.model import Candidate, Framework
from tests.domain.workload_builder import SOUND, change, check, severities

NAME = "torch_compile_strict"
STRICT = Candidate(name="strict", compiler=NAME)

# Several bf16 operations that TorchInductor fuses into one kernel.
JOB = """
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


@pytest.mark.parametrize(("compiler", "as_eager"), [("torch_compile", False), (NAME, True)])
def test_bf16_is_rounded_as_eager_rounds_it(jobs, compiler, as_eager):
    result = jobs.run_code(JOB, compiler)
    evidence = result["evidence"]

    assert as_eager is (result["difference"] == 0.0)
    assert (compiler, True, 1) == (
        evidence["requested"], evidence["applied"], evidence["graphs"],
    )  # fmt: skip
    assert as_eager is ("emulate_precision_casts True" in evidence["proof"])


def test_a_workload_file_may_name_it_and_its_assumptions_are_torch_compiles():
    assert NAME in NAMES
    assert ("torch_compile", ()) == (COMPILERS[NAME].base, COMPILERS[NAME].modes)
    assert COMPILERS["torch_compile"].overheads == COMPILERS[NAME].overheads


@pytest.mark.parametrize(("version", "refused"), [("2.13.0", False), ("2.5.1", True)])
def test_it_needs_a_pytorch_that_has_it(version, refused):
    workload = change(SOUND, framework=Framework("pytorch", version), candidates=(STRICT,))

    assert refused is ("version_unsupported" in severities(check(workload)))
