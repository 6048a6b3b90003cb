"""Which modules of a script are its models, what they are fed, what can be compared."""

import math
from types import SimpleNamespace

import pytest
from compilegate_runtime.equivalence.outputs import Outputs, loss_in
from compilegate_runtime.errors import NotAppliedError
from compilegate_runtime.launching.models import check_precision, size_of

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
def cases(jobs):
    return jobs.run_code(CASES)


@pytest.mark.training
@pytest.mark.parametrize("reentrant", ["True", "False"])
def test_activation_checkpointing_makes_no_models_of_a_models_parts(cases, reentrant):
    none, *compiled = cases["checkpointing"][reentrant]

    assert ["Model"] == none[0]
    assert none[1] is not None
    assert [none, none] == compiled


@pytest.mark.training
@pytest.mark.parametrize(
    ("case", "comparable"), [("plain", True), ("dropout", False), ("measured", True)]
)
def test_a_first_loss_that_any_models_dropout_changes_is_not_compared(cases, case, comparable):
    assert comparable is cases[case]


class Numbers:
    """As much of a tensor as counting what a model is fed needs."""

    def __init__(self, *shape, total=None, whole=True):
        self.shape, self.ndim, self.total, self.whole = shape, len(shape), total, whole

    def dim(self):
        return self.ndim

    def sum(self):
        return self.total

    def numel(self):
        return self.shape[0] * self.shape[1]

    def is_floating_point(self):
        return not self.whole

    def is_complex(self):
        return False


class Array:
    """As much of an array of NumPy."""

    __slots__ = ("ndim", "shape")

    def __init__(self, *shape):
        self.shape, self.ndim = shape, len(shape)


@pytest.mark.parametrize(
    ("args", "kwargs", "expected"),
    [
        ((Array(4, 8),), {}, (4, None)),
        ((), {"labels": Numbers(4), "input_ids": Numbers(4, 8),
              "attention_mask": Numbers(4, 8, total=20)}, (4, 20)),
        ((Numbers(4, 8), Numbers(4, 8)), {}, (4, 32)),
        ((Numbers(4, 3, 8, 8, whole=False),), {}, (4, None)),
        (({"input_ids": Numbers(2, 8)},), {}, (2, 16)),
        ((), {}, (None, None)),
    ],
)  # fmt: skip
def test_samples_and_tokens_that_are_no_padding_are_counted(args, kwargs, expected):
    assert expected == size_of(args, kwargs)


def test_the_loss_is_found_among_a_models_outputs():
    loss = Numbers()

    assert loss is loss_in(SimpleNamespace(loss=loss))
    assert loss is loss_in({"loss": loss, "logits": Numbers(2, 3)})
    assert loss is loss_in((Numbers(2, 3), loss))
    assert loss_in((loss, loss)) is None


@pytest.mark.parametrize(
    ("of_loss", "of_others", "code"),
    [(2.0, 1.0, None), (0.0, 0.0, None), (2.0, math.inf, "eager_not_finite"),
     (0.0, 1.0, "no_gradient"), (math.nan, 1.0, None)],
)  # fmt: skip
def test_outputs_that_cannot_be_weighed_against_the_loss_are_unseen(of_loss, of_others, code):
    outputs = Outputs(None)
    outputs.balance(of_loss, of_others)

    assert code == (outputs.unseen and outputs.unseen.code)


@pytest.mark.parametrize(
    ("named", "fix"),
    [({}, "Name the script's own argument"), ({"precision": "dtype"}, "dtype is set")],
)
def test_a_precision_that_the_script_does_not_train_in_fails_the_run(named, fix):
    settings = SimpleNamespace(precision="bf16", argument_names=named)
    check_precision(settings, {"float32", "bfloat16"})
    with pytest.raises(NotAppliedError, match=f"trains in float32.*{fix}"):
        check_precision(settings, {"float32"})
