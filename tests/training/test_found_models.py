"""Which modules of a script are its models, and when its first loss can be compared."""

import json
import subprocess

import pytest

from tests.training.jobs import PYTHON, TRAINING

CASES = """
import json
import torch
from compilegate_runtime.compilers import compiler_for
from compilegate_runtime.launching.models import Models
from torch import nn
from torch.utils.checkpoint import checkpoint

class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = nn.Linear(4, 4)
    def forward(self, rows):
        return self.inner(rows)

class Model(nn.Module):
    def __init__(self, reentrant):
        super().__init__()
        self.reentrant, self.first = reentrant, nn.Linear(4, 4)
        self.blocks = nn.ModuleList([Block(), Block()])
    def forward(self, rows):
        rows = self.first(rows)
        for block in self.blocks:
            rows = checkpoint(block, rows, use_reentrant=self.reentrant)
        return rows

def one_step(compiler, *models):
    torch._dynamo.reset()
    torch.manual_seed(1)
    watching = Models(torch, compiler, lambda *fed: None)
    watching.watch()
    rows = torch.randn(2, 4)
    for model in models:
        rows = model(rows)
    rows.sum().backward()
    watching.stop_watching()
    compiler.verify()
    names = [type(model).__name__ for model in watching.models]
    return names, watching.initial_weights.sha256(), watching.initial_loss_known

def checkpointing(reentrant, compiler):
    torch.manual_seed(1)
    return one_step(compiler, Model(reentrant))

class WithLoss(nn.Dropout):
    def __init__(self):
        super().__init__()
        self.inner = nn.Linear(4, 4)
    def forward(self, rows):
        return super().forward(self.inner(rows)).sum()

arms = [("none", ""), ("torch_compile", ""), ("torch_compile", "blocks")]
print(json.dumps({
    "checkpointing": {
        str(reentrant): [checkpointing(reentrant, compiler_for(name, regions=regions))
                         for name, regions in arms]
        for reentrant in (True, False)
    },
    "plain": one_step(compiler_for("none"), nn.Linear(4, 4), nn.Linear(4, 4))[2],
    "dropout": one_step(compiler_for("none"), nn.Linear(4, 4),
                        nn.Sequential(nn.Linear(4, 4), nn.Dropout(0.1)))[2],
    "measured": one_step(compiler_for("none"), WithLoss())[2],
}))
"""


@pytest.fixture(scope="module")
def found():
    if not PYTHON.exists():
        pytest.skip("the training environment is not set up; run make setup")
    done = subprocess.run(
        [PYTHON, "-c", CASES], cwd=TRAINING, check=False, capture_output=True, text=True
    )
    assert 0 == done.returncode, done.stderr
    return json.loads(done.stdout)


@pytest.mark.training
@pytest.mark.parametrize("reentrant", ["True", "False"])
def test_activation_checkpointing_makes_no_models_of_a_models_parts(found, reentrant):
    none, *compiled = found["checkpointing"][reentrant]

    assert ["Model"] == none[0]
    assert none[1] is not None
    assert [none, none] == compiled


@pytest.mark.training
@pytest.mark.parametrize(
    ("case", "known"), [("plain", True), ("dropout", False), ("measured", True)]
)
def test_a_first_loss_that_any_models_dropout_changes_is_not_compared(found, case, known):
    assert known is found[case]
