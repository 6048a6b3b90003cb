"""The fingerprints of the weights that a run ends with."""

import pytest

pytestmark = pytest.mark.training

CODE = """
import copy, json
import torch
from compilegate_runtime.final_weights import fingerprints
from compilegate_runtime.fingerprint import InitialWeights

def whole(*models):
    return fingerprints(models)["final_weights_sha256"]

torch.manual_seed(1)
model = torch.nn.Sequential(torch.nn.Linear(200, 300), torch.nn.BatchNorm1d(300))
start = InitialWeights()
start.add(copy.deepcopy(model))
before = {
    "plain": whole(model),
    "wrapped": whole(torch.compile(copy.deepcopy(model))),
    "start": start.sha256(),
    "final_start": fingerprints([model])["final_start_sha256"],
    "nothing": list(fingerprints([]).values()),
}
changed = {}
model[0].weight.data[123, 57] *= 1 + 1e-6
changed["a value"] = whole(model)
model[1].running_mean[299] += 1e-7
changed["a buffer"] = whole(model)
changed["the precision"] = whole(model.to(torch.bfloat16))
model[0].weight.ds_id = 3
print(json.dumps({**before, "changed": changed, "a part": whole(model)}))
"""


@pytest.fixture(scope="module")
def made(jobs):
    return jobs.run_code(CODE)


def test_the_same_weights_have_the_same_fingerprint_however_they_are_wrapped(made):
    assert made["plain"] == made["wrapped"] is not None


def test_every_value_of_every_weight_and_buffer_counts(made):
    assert 4 == len({made["plain"], *made["changed"].values()} - {None})


def test_a_run_that_starts_from_these_weights_shows_it(made):
    assert made["start"] == made["final_start"] is not None


def test_weights_that_are_not_all_here_have_none(made):
    assert made["a part"] is None
    assert [None, None] == made["nothing"]
