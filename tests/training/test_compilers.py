"""The compilers' backends: torch.compile in the training environment, the others by stand-ins."""

import sys
from types import ModuleType, SimpleNamespace

import pytest
from compilegate_runtime.compilers import compiler_for, fp8
from compilegate_runtime.compilers.xla import XlaCompiler, identify_process
from compilegate_runtime.device import XlaDevice
from compilegate_runtime.errors import CompilerUnavailableError, NotAppliedError

from tests.training.jobs import run_code
from tests.training.stand_ins import COMPILER_KEYS
from tests.training.test_jobs import LANGUAGE_MODEL

MANAGED = "sagemaker_training_compiler"


class Xla:
    """PyTorch/XLA's modules; a graph is compiled when the first step is marked."""

    def __init__(self):
        self.graphs, self.calls = 0, []

    def mark_step(self):
        self.calls.append("mark_step")
        self.graphs = 1

    def reduce_gradients(self, optimizer):
        self.calls.append("reduce_gradients")

    def save(self, state, path, *, global_master):
        assert global_master
        self.calls.append(("save", state, path))

    def metric_data(self, name):
        assert name == "CompileTime"
        return (self.graphs, 2.5e9, []) if self.graphs else None

    def counter_names(self):
        return ["aten::nonzero", "UncachedCompile"]

    def counter_value(self, name):
        return 3

    def get_ordinal(self):
        return 2

    def xrt_world_size(self):
        return 8

    def xla_device(self):
        return "xla:0"

    def xla_device_hw(self, device):
        return "GPU"

    def wait_device_ops(self):
        self.calls.append("wait_device_ops")

    def get_memory_info(self, device):
        return {"kb_total": 4 * 2**20, "kb_free": 1 * 2**20}


@pytest.fixture
def xla(monkeypatch):
    stand_in = Xla()
    torch = ModuleType("torch")
    torch.__version__, torch.version = "1.13.1", SimpleNamespace(cuda="11.7")
    modules = {"torch": torch}
    for name in ("torch_xla", "torch_xla.core", "torch_xla.debug"):
        modules[name] = ModuleType(name)
    modules["torch_xla.core"].xla_model = modules["torch_xla.core.xla_model"] = stand_in
    modules["torch_xla.debug"].metrics = modules["torch_xla.debug.metrics"] = stand_in
    for name, module in modules.items():
        monkeypatch.setitem(sys.modules, name, module)
    monkeypatch.setattr("compilegate_runtime.compilers.xla._has", lambda name: name == "torch")
    return stand_in


@pytest.mark.parametrize("reduced", [False, True], ids=["by-the-step", "before-clipping"])
@pytest.mark.parametrize("scaled", [False, True], ids=["fp32", "fp16"])
def test_the_managed_compilers_step_reduces_steps_and_marks_in_this_order(xla, reduced, scaled):
    compiler = compiler_for(MANAGED)
    optimizer = SimpleNamespace(step=lambda: xla.calls.append("step"))
    scaler = SimpleNamespace(
        step=lambda optimizer: optimizer.step(), update=lambda: xla.calls.append("update")
    )
    for _ in range(2):
        if reduced:
            compiler.reduce(optimizer)
            xla.calls.append("clip")
        compiler.step(optimizer, scaler if scaled else None)
    compiler.save({"w": 1}, "model.pt")

    clip, update = ["clip"] * reduced, ["update"] * scaled
    whole_step = ["reduce_gradients", *clip, "step", *update, "mark_step"]
    assert [*whole_step * 2, ("save", {"w": 1}, "model.pt")] == xla.calls


def test_the_managed_compiler_proves_itself_by_its_compiled_graphs(xla):
    compiler = compiler_for(MANAGED)
    with pytest.raises(NotAppliedError, match="compiled no graph"):
        compiler.verify()
    compiler.step(SimpleNamespace(step=lambda: None))
    compiler.verify()

    evidence = compiler.evidence()
    assert COMPILER_KEYS <= evidence.keys()
    keys = ("applied", "compile_seconds", "graphs", "graph_breaks")
    assert (True, 2.5, 1, 3) == tuple(evidence[key] for key in keys)


def test_the_managed_compilers_device_is_the_one_that_xla_gives(xla):
    device = XlaDevice("fp32")
    device.synchronize()

    assert ("xla:0", 3.0, "1.13.1") == (
        device.kind, device.peak_memory_gib(), device.torch_version,
    )  # fmt: skip
    assert ["wait_device_ops"] == xla.calls
    with pytest.raises(NotAppliedError, match="precision fp8"):
        XlaDevice("fp8")


def test_each_of_the_managed_compilers_processes_knows_which_it_is(xla, monkeypatch):
    variables = {}
    monkeypatch.setattr("compilegate_runtime.compilers.xla.os.environ", variables)
    identify_process()

    assert {"RANK": "2", "WORLD_SIZE": "8"} == variables


def test_without_xla_the_managed_compiler_names_its_images():
    with pytest.raises(CompilerUnavailableError, match="AWS training images"):
        XlaCompiler()


@pytest.fixture
def tensorflow(monkeypatch):
    module = ModuleType("tensorflow")
    module.__version__ = "2.11.0"
    module.jit = ""
    module.config = SimpleNamespace(optimizer=SimpleNamespace(get_jit=lambda: module.jit))

    def function(step):
        def traced(*arguments):
            traced.count = 1
            return step(*arguments)

        traced.count = 0
        traced.experimental_get_tracing_count = lambda: traced.count
        return traced

    module.function = function
    monkeypatch.setitem(sys.modules, "tensorflow", module)
    monkeypatch.setattr("compilegate_runtime.compilers.xla._has", lambda name: name == "tensorflow")
    return module


def test_tensorflow_proves_itself_by_xla_being_on_and_a_traced_step(tensorflow):
    compiler = compiler_for(MANAGED)
    step = compiler.apply(lambda x: x + 1)
    with pytest.raises(NotAppliedError, match="XLA is off, 0 graphs"):
        compiler.verify()
    tensorflow.jit = "autoclustering"
    with pytest.raises(NotAppliedError, match="XLA is on, 0 graphs"):
        compiler.verify()

    assert 3 == step(2)
    compiler.verify()
    assert (True, 1) == (compiler.evidence()["applied"], compiler.evidence()["graphs"])


def test_a_keras_model_is_left_as_it_is_and_its_own_step_is_the_proof(tensorflow):
    tensorflow.jit = True
    model = SimpleNamespace(make_train_function=None, train_function=None)
    compiler = compiler_for(MANAGED)

    assert model is compiler.apply(model)
    with pytest.raises(NotAppliedError):
        compiler.verify()
    model.train_function = SimpleNamespace(experimental_get_tracing_count=lambda: 2)
    compiler.verify()


def a_gpu(capability):
    return SimpleNamespace(
        cuda=SimpleNamespace(
            is_available=lambda: capability is not None, get_device_capability=lambda: capability
        )
    )


@pytest.mark.parametrize("capability", [None, (8, 0)])
def test_fp8_is_refused_where_no_tensor_core_multiplies_it(capability):
    with pytest.raises(NotAppliedError, match="fp8 was asked for and not applied: it needs a GPU"):
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
def broken():
    return run_code(BREAKS)


@pytest.mark.training
def test_a_graph_break_is_told_with_its_place(broken):
    assert 2 == broken["graph_breaks"]
    (place,) = broken["graph_break_places"]
    assert ("<string>:10", 2) == (place["place"], place["count"])
    assert "graph_break()" in place["reason"]


@pytest.mark.training
def test_a_recompilation_is_told_with_the_guard_that_failed(broken):
    assert broken["recompiles"] >= 1
    assert "size mismatch at index 0. expected 4, actual 5" in broken["recompile_reasons"][0]
    assert broken["recompile_reasons"][0].startswith("<string>:8: ")


@pytest.mark.training
def test_asking_whether_something_was_compiled_is_true_only_when_it_was(broken):
    assert (True, True) == (broken["moved"], broken["steady"])


@pytest.mark.training
@pytest.mark.slow  # test_proof.py has each of them on a tiny model
def test_blocks_optimizer_and_dynamic_shapes_are_compiled_and_proven(jobs):
    done = jobs.run(
        "causal_lm.py",
        compiler="torch_compile", compile_regions="layers", compile_optimizer=True,
        compile_dynamic="true", **{**LANGUAGE_MODEL, "layers": 2},
    )  # fmt: skip
    assert 0 == done.status, done.output
    proof = done.summary()["compiler"]["proof"]

    assert "mode default, dynamic true, 2 repeated blocks" in proof
    assert ", 0 optimizer graphs" not in proof
    assert "optimizer graphs" in proof


@pytest.mark.training
def test_a_region_that_the_model_lacks_fails_the_run(jobs):
    done = jobs.run(
        "causal_lm.py", compiler="torch_compile", compile_regions="towers", **LANGUAGE_MODEL
    )

    assert 1 == done.status
    assert "compile_regions towers was asked for and not applied" in done.failure


@pytest.mark.training
@pytest.mark.slow
def test_a_second_run_with_the_same_cache_does_not_pay_again(jobs, tmp_path):
    kept = tmp_path / "checkpoints" / "inductor"

    def run(machine):
        (tmp_path / machine).mkdir()
        where = {"COMPILEGATE_COMPILE_CACHE": str(kept), "TMPDIR": str(tmp_path / machine)}
        return jobs.run("causal_lm.py", where, compiler="torch_compile", **LANGUAGE_MODEL)

    cold, warm = (run(machine).summary() for machine in ("first", "second"))

    assert (0, 0) == (cold["compiler"]["cache_hits"], warm["compiler"]["cache_misses"])
    assert warm["compiler"]["cache_hits"] > 0
    assert warm["compiler"]["compile_seconds"] < 0.5 * cold["compiler"]["compile_seconds"]
