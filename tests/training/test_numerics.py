"""The numerical check of a compiled arm: what an error in its gradients looks like."""

import pytest

from tests.training.test_jobs import LANGUAGE_MODEL
from tests.training.test_launch import PLAIN

pytestmark = pytest.mark.training

CODE = """
import contextlib, functools, json
import torch
from compilegate_runtime import numerics

class Model(torch.nn.Module):
    def __init__(self, fault=None, dropout=0.0):
        super().__init__()
        self.layers = torch.nn.Sequential(
            torch.nn.Linear(32, 64), torch.nn.GELU(), torch.nn.Dropout(dropout),
            torch.nn.Linear(64, 8))
        self.fault = fault

    def forward(self, rows, labels):
        scores = self.layers(rows)
        if torch.compiler.is_compiling():
            if self.fault == "gradient":
                scores = scores + 0.5 * (scores.detach() - scores)
            if self.fault == "nan":
                scores = scores / torch.zeros(())
        return torch.nn.functional.cross_entropy(scores.float(), labels)

class Later:
    # Halves the gradient after the first compiled step; the first call of all is not compiled.
    def __init__(self, forward):
        self.forward, self.calls = forward, 0

    def __call__(self, batch):
        self.calls += 1
        loss = self.forward(*batch)
        return loss / 2 + loss.detach() / 2 if self.calls in (3, 4, 5) else loss

def figures(precision="fp32", steps=numerics.STEPS, later=False, **how):
    torch.manual_seed(0)
    model = Model(**how)
    batches = [(torch.randn(16, 32), torch.randint(0, 8, (16,))) for _ in range(steps)]
    forward = torch.compile(model, backend="aot_eager")
    autocast = contextlib.nullcontext
    if precision == "bf16":
        autocast = functools.partial(torch.autocast, "cpu", torch.bfloat16)
    call = Later(forward) if later else lambda batch: forward(*batch)
    return numerics.examine(model, call, batches, precision, autocast)

print(json.dumps({
    "sound": figures(), "bf16": figures("bf16"), "gradient": figures(fault="gradient"),
    "later": figures(later=True), "nan": figures(fault="nan"),
    "dropout": figures(dropout=0.5), "short": figures(steps=2),
}))
"""


@pytest.fixture(scope="module")
def made(jobs):
    return jobs.run_code(CODE)


def error(figures, side="compiled"):
    return figures["gradient_error"][side]


@pytest.mark.parametrize(("name", "least", "most"), [("sound", 1e-9, 1e-5), ("bf16", 1e-4, 0.1)])
def test_sound_code_is_as_far_from_the_reference_as_eager_is(made, name, least, most):
    assert made[name]["checked"], made[name]
    for side in ("eager", "compiled"):
        assert all(least < one < most for one in error(made[name], side))


def test_a_wrong_gradient_is_far_from_it_in_every_step(made):
    assert all(one > 0.1 for one in error(made["gradient"]))
    assert all(one < 1e-5 for one in error(made["gradient"], "eager"))


def test_what_is_wrong_from_the_second_step_on_is_seen_then(made):
    first, *others = error(made["later"])

    assert first < 1e-5
    assert all(one > 0.1 for one in others)


def test_what_is_no_number_has_no_error(made):
    assert [None] * 4 == error(made["nan"])


def test_dropout_is_off_during_the_check(made):
    assert ("evaluation", "training") == (made["dropout"]["as"], made["sound"]["as"])
    assert all(one < 1e-5 for one in error(made["dropout"]))


def test_a_check_that_was_not_made_says_why(made):
    assert {"checked": False, "reason": "too few steps were made"} == made["short"]


FILLS_THE_CACHE = {"COMPILEGATE_NUMERICS": "1"}
SEGMENT = {"compiler": "torch_compile", "max_steps": 6}


@pytest.fixture(scope="module")
def segments(jobs):
    """Segments that fill a cache, of a family and of a script that knows nothing of it."""
    return jobs.run_all(
        {
            "family": ("causal_lm.py", FILLS_THE_CACHE, {**LANGUAGE_MODEL, **SEGMENT}),
            "script": (
                "launch.py", FILLS_THE_CACHE, {**PLAIN, **SEGMENT, "full_run_samples": 640}
            ),
            "timed": ("causal_lm.py", {}, {**LANGUAGE_MODEL, **SEGMENT}),
        }
    )  # fmt: skip


@pytest.mark.parametrize("name", ["family", "script"])
def test_a_segment_that_fills_the_cache_is_checked(segments, name):
    assert 0 == segments[name].status, segments[name].output
    summary = segments[name].summary()

    assert summary["numerics"]["checked"], summary["numerics"]
    assert all(one < 1e-4 for one in error(summary["numerics"]))
    assert summary["compiler"]["applied"]
    assert 6 == summary["steps"]


def test_what_the_check_compiles_is_no_part_of_the_run(segments):
    ours, timed = (segments[name].summary() for name in ("family", "timed"))

    assert "numerics" not in timed
    assert ours["compiler"]["graphs"] == timed["compiler"]["graphs"]
