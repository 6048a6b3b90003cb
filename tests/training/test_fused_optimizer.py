"""fused_optimizer: fused steps of torch's own optimizers, from file to proof."""

import dataclasses

import pytest

from compilegate.domain.eligibility.job import CandidateJob
from compilegate.domain.planning.plan import expected_usd
from compilegate.domain.workload.model import Candidate, Framework, Profile, Shapes
from compilegate.facts import load_facts
from tests.domain.workload_builder import SOUND, XGBOOST, change, check, severities
from tests.training.test_launch import PLAIN

NAME = "fused_optimizer"
FUSED = Candidate(name="fused", compiler=NAME)

# Three steps of each optimizer, written as Python, in one process per compiler.
JOB = """
import json, sys
import torch
from compilegate_runtime.compilers import compiler_for
from compilegate_runtime.errors import TrainingError

class Plain(torch.optim.Adam):
    def step(self, closure=None):
        self.param_groups[0]["params"][0].data.sub_(0.1)

class Own(torch.optim.SGD):
    def __init__(self, params, lr):
        super().__init__(params, lr=lr, momentum=0.9)

def trained(make):
    torch.manual_seed(0)
    model, failure = torch.nn.Linear(8, 8), ""
    compiler = compiler_for(sys.argv[1])
    try:
        optimizer = make(model.parameters())
        for _ in range(3):
            model(torch.randn(4, 8)).square().mean().backward()
            optimizer.step()
            optimizer.zero_grad()
        compiler.verify()
    except TrainingError as error:
        failure = str(error)
    weight = model.weight.sum().item()
    return {"failure": failure, "weight": weight, "evidence": compiler.evidence()}

print(json.dumps(trained(eval("lambda weights: " + sys.argv[2]))))
"""


@pytest.fixture(scope="module")
def train(jobs):
    return lambda made, compiler=NAME: jobs.run_code(JOB, compiler, made)


@pytest.mark.training
@pytest.mark.parametrize(
    "made",
    [
        "torch.optim.AdamW(weights, lr=0.01)",
        "torch.optim.AdamW(weights, lr=0.01, fused=False, foreach=True)",
        "Own(weights, 0.01)",
    ],
)
def test_steps_are_fused_and_train_as_the_others_but_for_rounding(train, made):
    fused, usual = train(made), train(made, "none")
    evidence = fused["evidence"]

    assert ("", True, 0) == (fused["failure"], evidence["applied"], evidence["graphs"])
    assert "fused steps of" in evidence["proof"]
    assert usual["weight"] == pytest.approx(fused["weight"], rel=1e-5)


@pytest.mark.training
@pytest.mark.parametrize(
    ("made", "why"),
    [
        ("torch.optim.RMSprop(weights)", "steps of RMSprop were not fused"),
        ("Plain(weights)", "steps of Plain were not fused"),
        ("torch.optim.AdamW(weights, fused=True)", "fused as written"),
        ("torch.optim.Adam(weights, differentiable=True)", "Adam: `fused` does not support"),
    ],
)
def test_steps_that_are_not_fused_by_the_arm_are_named_and_not_applied(train, made, why):
    failed = train(made)

    assert f"compiler {NAME} was requested but not applied" in failed["failure"]
    assert why in failed["failure"]
    assert failed["evidence"]["applied"] is False


@pytest.mark.training
def test_a_script_of_its_own_trains_with_it(jobs):
    done = jobs.run("launch.py", compiler=NAME, **{**PLAIN, "full_run_samples": 64}, max_steps=2)

    assert 0 == done.status, done.output
    assert (True, True) == (done.summary()["finished"], done.summary()["compiler"]["applied"])


@pytest.mark.parametrize(
    ("workload", "code"),
    [
        (SOUND, None),
        (change(SOUND, shapes=Shapes(static=False)), None),
        (change(SOUND, framework=Framework("pytorch", "2.0.1")), "version_unsupported"),
        (change(SOUND, framework=Framework("tensorflow", "2.19.0")), "framework_unsupported"),
        (XGBOOST, "framework_unsupported"),
    ],
)
def test_it_is_for_pytorch_of_any_shape(workload, code):
    found = check(dataclasses.replace(workload, candidates=(FUSED,)))
    refused = {one for one, severity in severities(found).items() if severity == "block"}

    assert (refused == set()) is (code is None), refused
    assert code is None or code in refused
    assert "dynamic_shapes" not in severities(found)


def test_a_profiles_compile_seconds_are_not_its_own():
    profile = Profile(compile_seconds=900.0, compile_seconds_cold=900.0)
    job = CandidateJob(
        change(SOUND, profile=profile, candidates=(FUSED,)), FUSED, 0, load_facts(), ""
    )

    assert job.overhead is None


def test_its_trial_pays_for_no_compilation():
    other = Candidate(name="other", hyperparameters={"workers": 4})
    fused, plain = (
        expected_usd(SOUND, [one], load_facts(), region="us-east-1") for one in (FUSED, other)
    )

    assert plain == fused
