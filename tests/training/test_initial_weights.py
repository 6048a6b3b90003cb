"""The fingerprint of the weights that a run starts from."""

import json
import subprocess

import pytest

from tests.training.jobs import PYTHON, TRAINING

FINGERPRINTS = """
import json
import torch
from compilegate_runtime.fingerprint import InitialWeights
from torch import nn

def of(*models):
    found = InitialWeights()
    for model in models:
        found.add(model)
    return found.sha256()

class Wrapper(nn.Module):
    def __init__(self, module):
        super().__init__()
        self.module = module

def model(seed, width=300):
    torch.manual_seed(seed)
    return nn.Sequential(nn.Linear(width, 300), nn.LayerNorm(300), nn.Linear(300, 2))

changed = model(1)
with torch.no_grad():
    changed[2].bias[0] += 1
pinned = model(1)
with torch.no_grad():
    pinned[0].weight[1:].zero_()
print(json.dumps({
    "same": of(model(1)), "again": of(model(1)),
    "compiled": of(torch.compile(model(1))), "wrapped": of(Wrapper(model(1))),
    "double": of(model(1).double()),
    "seed": of(model(2)), "width": of(model(1, 299)), "half": of(model(1).bfloat16()),
    "bias": of(changed), "most of one": of(pinned), "two": of(model(1), model(1)),
    "none": of(), "lazy": of(nn.LazyLinear(3)), "meta": of(nn.Linear(3, 3, device="meta")),
}))
"""


@pytest.fixture(scope="module")
def found():
    if not PYTHON.exists():
        pytest.skip("the training environment is not set up; run make setup")
    done = subprocess.run(
        [PYTHON, "-c", FINGERPRINTS], cwd=TRAINING, check=True, capture_output=True, text=True
    )
    return json.loads(done.stdout)


@pytest.mark.training
@pytest.mark.parametrize("name", ["again", "compiled", "wrapped", "double"])
def test_what_wraps_a_model_does_not_change_its_weights(found, name):
    assert found["same"] == found[name]


@pytest.mark.training
@pytest.mark.parametrize("name", ["seed", "width", "half", "bias", "most of one", "two"])
def test_other_weights_have_another_fingerprint(found, name):
    assert 64 == len(found[name])
    assert found["same"] != found[name]


@pytest.mark.training
@pytest.mark.parametrize("name", ["none", "lazy", "meta"])
def test_weights_that_cannot_be_read_have_none(found, name):
    assert found[name] is None
