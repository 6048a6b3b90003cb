"""A family under the managed compiler, PyTorch/XLA being a stand-in that records its calls."""

import json

import pytest

from tests.training.test_jobs import LANGUAGE_MODEL

pytestmark = pytest.mark.training

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


def test_every_step_in_fp16_reduces_unscales_steps_and_marks(jobs, tmp_path):
    for name, body in {**PACKAGE, "core/__init__.py": "", "debug/__init__.py": ""}.items():
        path = tmp_path / "torch_xla" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(body)
    (tmp_path / "torch_xla" / "__init__.py").write_text("")
    calls, model = tmp_path / "calls.json", tmp_path / "model"
    model.mkdir()
    variables = {"PYTHONPATH": str(tmp_path), "XLA_CALLS": str(calls), "SM_MODEL_DIR": str(model)}
    settings = {**LANGUAGE_MODEL, "compiler": "sagemaker_training_compiler", "precision": "fp16"}
    done = jobs.run("causal_lm.py", variables, **{**settings, "steps": 3})

    assert 0 == done.status, done.output
    assert done.summary()["compiler"]["applied"] is True
    one_step = ["reduce", "unscale", "step", "mark_step"]
    assert [*one_step * 3, "save"] == json.loads(calls.read_text())
