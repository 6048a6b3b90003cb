"""The managed compiler's backends, on stand-ins for PyTorch/XLA and TensorFlow."""

import importlib.util
import json
import runpy
import sys
from types import ModuleType, SimpleNamespace

import pytest
from compilegate_runtime import compilers
from compilegate_runtime.compilers import compiler_for
from compilegate_runtime.compilers import xla as xla_module
from compilegate_runtime.compilers.xla import TensorFlowXla, XlaCompiler, identify_process
from compilegate_runtime.device import XlaDevice
from compilegate_runtime.errors import CompilerUnavailableError, NotAppliedError

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
    monkeypatch.setitem(compilers._COMPILERS, MANAGED, XlaCompiler)
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
    monkeypatch.setitem(compilers._COMPILERS, MANAGED, TensorFlowXla)
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


@pytest.mark.parametrize(
    ("installed", "expected"),
    [(("tensorflow",), TensorFlowXla), (("torch",), XlaCompiler), ((), XlaCompiler),
     (("torch", "tensorflow"), XlaCompiler)],
)  # fmt: skip
def test_the_managed_compilers_class_is_that_of_the_images_framework(
    installed, expected, monkeypatch
):
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: name in installed or None)

    backend = runpy.run_path(xla_module.__file__)["COMPILER"]

    assert (expected.__name__, expected.on_xla) == (backend.__name__, backend.on_xla)


# ---- a whole job --------------------------------------------------------------------------

MODEL = """
import atexit, collections, json, os, torch

CALLS = []

def noting(name):
    return lambda *a, **k: CALLS.append(name)

xla_device = lambda: torch.device("cpu")
xla_device_hw = lambda device: "GPU"
get_memory_info = lambda device: {"kb_total": 2, "kb_free": 1}
get_ordinal = lambda: 0
xrt_world_size = lambda: 1
wait_device_ops = lambda: None
reduce_gradients, mark_step = noting("reduce"), noting("mark_step")

def save(state, path, *, global_master):
    CALLS.append("save")
    torch.save(state, path)

atexit.register(lambda: open(os.environ["XLA_CALLS"], "w").write(json.dumps(CALLS)))
"""
METRICS = """
from torch_xla.core import xla_model
metric_data = lambda name: (1, 2e9, []) if "mark_step" in xla_model.CALLS else None
counter_names = lambda: []
"""
AMP = """
import contextlib, torch
from torch_xla.core import xla_model
autocast = contextlib.nullcontext

class GradScaler(torch.amp.GradScaler):
    def __init__(self):
        super().__init__("cpu")

    def unscale_(self, optimizer):
        xla_model.CALLS.append("unscale")
        super().unscale_(optimizer)

    def step(self, optimizer):
        xla_model.CALLS.append("step")
        return super().step(optimizer)
"""
PACKAGE = {"core/xla_model.py": MODEL, "debug/metrics.py": METRICS, "amp.py": AMP}


@pytest.mark.training
def test_every_step_in_fp16_reduces_unscales_steps_and_marks(jobs, tmp_path):
    for name, body in {**PACKAGE, "core/__init__.py": "", "debug/__init__.py": ""}.items():
        path = tmp_path / "torch_xla" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(body)
    (tmp_path / "torch_xla" / "__init__.py").write_text("")
    calls, model = tmp_path / "calls.json", tmp_path / "model"
    model.mkdir()
    variables = {"PYTHONPATH": str(tmp_path), "XLA_CALLS": str(calls), "SM_MODEL_DIR": str(model)}
    settings = {**LANGUAGE_MODEL, "compiler": MANAGED, "precision": "fp16"}
    done = jobs.run("causal_lm.py", variables, **{**settings, "steps": 3})

    assert 0 == done.status, done.output
    assert done.summary()["compiler"]["applied"] is True
    one_step = ["reduce", "unscale", "step", "mark_step"]
    assert [*one_step * 3, "save"] == json.loads(calls.read_text())
