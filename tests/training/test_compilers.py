"""torch.compile in the training environment, and fp8 layers by stand-ins."""

import sys
from types import ModuleType, SimpleNamespace

import pytest
from compilegate_runtime.compilers import fp8
from compilegate_runtime.errors import NotAppliedError

from tests.training.test_jobs import LANGUAGE_MODEL


def a_gpu(capability):
    return SimpleNamespace(
        cuda=SimpleNamespace(
            is_available=lambda: capability is not None, get_device_capability=lambda: capability
        )
    )


@pytest.mark.parametrize("capability", [None, (8, 0)])
def test_fp8_is_refused_where_no_tensor_core_multiplies_it(capability):
    with pytest.raises(NotAppliedError, match="fp8 was requested but not applied: it needs a GPU"):
        fp8.check(a_gpu(capability))


def test_fp8_is_refused_where_torchao_is_missing():
    with pytest.raises(NotAppliedError, match="torchao is not installed"):
        fp8.check(a_gpu((9, 0)))


class Linear:
    def __init__(self, inputs, outputs):
        self.in_features, self.out_features = inputs, outputs


class Float8Linear(Linear):
    pass


class Model:
    def __init__(self, *layers):
        self.layers = layers

    def modules(self):
        return self.layers


@pytest.fixture
def torchao(monkeypatch):
    module, inner = ModuleType("torchao"), ModuleType("torchao.float8")

    def convert(model, config, module_filter_fn):
        model.config = config
        model.layers = tuple(
            Float8Linear(one.in_features, one.out_features) if module_filter_fn(one, "") else one
            for one in model.layers
        )

    inner.Float8LinearConfig = SimpleNamespace(from_recipe_name=lambda name: name)
    inner.convert_to_float8_training = convert
    module.float8 = inner
    monkeypatch.setitem(sys.modules, "torchao", module)
    monkeypatch.setitem(sys.modules, "torchao.float8", inner)


def test_fp8_takes_the_layers_whose_sizes_it_can_multiply(torchao):
    model = Model(Linear(64, 256), Linear(64, 3))

    assert (1, "tensorwise") == (fp8.convert(model), model.config)
    with pytest.raises(NotAppliedError, match="multiple of 16"):
        fp8.convert(Model(Linear(64, 3)))


BREAKS = """
import json, sys, torch
from compilegate_runtime.compilers import compiler_for
class Breaks(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = torch.nn.Linear(4, 4)
    def forward(self, x):
        x = self.inner(x)
        torch._dynamo.graph_break()
        return self.inner(x)
compiler = compiler_for("torch_compile", dynamic="false")
model = compiler.apply(Breaks())
before = compiler.compilations()
for rows in (4, 5):
    model(torch.randn(rows, 4)).sum().backward()
evidence = compiler.evidence()
steady = compiler.compilations()
model(torch.randn(5, 4)).sum().backward()
moved = {"moved": steady > before, "steady": steady == compiler.compilations()}
print(json.dumps({**evidence, **moved}))
"""


@pytest.fixture(scope="module")
def broken(jobs):
    return jobs.run_code(BREAKS)


@pytest.mark.training
def test_a_graph_break_is_reported_with_its_place(broken):
    assert 2 == broken["graph_breaks"]
    (place,) = broken["graph_break_places"]
    assert ("<string>:10", 2) == (place["place"], place["count"])
    assert "graph_break()" in place["reason"]


@pytest.mark.training
def test_a_recompilation_is_reported_with_the_guard_that_failed(broken):
    assert broken["recompiles"] >= 1
    assert "size mismatch at index 0. expected 4, actual 5" in broken["recompile_reasons"][0]
    assert broken["recompile_reasons"][0].startswith("<string>:8: ")


@pytest.mark.training
def test_asking_whether_something_was_compiled_is_true_only_when_it_was(broken):
    assert (True, True) == (broken["moved"], broken["steady"])


@pytest.mark.training
def test_a_region_that_the_model_lacks_fails_the_run(jobs):
    done = jobs.run(
        "causal_lm.py", compiler="torch_compile", compile_regions="towers", **LANGUAGE_MODEL
    )

    assert 1 == done.status
    assert "compile_regions towers was requested but not applied" in done.failure
