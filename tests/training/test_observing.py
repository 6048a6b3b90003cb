"""The observer sees an unchanged script's steps, arguments, data and metrics."""

from __future__ import annotations

import json
import subprocess

import pytest

from tests.training.jobs import PYTHON, TRAINING

pytestmark = [pytest.mark.training, pytest.mark.slow, pytest.mark.timeout(600)]
# By script: its kind of parser, one of its options, samples of its loader, a metric that it logs.
SEEN = {
    "images": ("argparse.ArgumentParser", "data-dir", 64, None),
    "loop": (None, None, 96, None),
    "hf_trainer": ("transformers.HfArgumentParser", "per_device_train_batch_size", 64, "eval_loss"),
}


def observed(code, script, *words, **settings):
    out = code / "seen.json"
    asked = {"out": str(out), "steps": 6, "seconds": 60, "seed": 17, "shift": 0, "compiler": "none"}
    command = [PYTHON, TRAINING / "observe.py", json.dumps({**asked, **settings}), script, *words]
    ended = subprocess.run(command, cwd=code, capture_output=True, text=True, check=False)
    assert out.exists(), ended.stderr
    return json.loads(out.read_text())


@pytest.mark.parametrize("name", SEEN)
def test_what_a_script_does_is_seen(name, code):
    reader, option, samples, metric = SEEN[name]
    words = ("--do_eval",) if name == "hf_trainer" else ()
    seen = observed(code, f"{name}.py", *words)

    # accelerate asks for a batch ahead.
    assert len(seen["steps"]) in (6, 7), seen["ended"]
    assert "torch" == seen["packages"]["torch"][0]
    parsers = seen.get("parsers") or []
    assert reader == (parsers[0]["reader"] if parsers else None)
    assert option is None or option in [one["name"] for one in parsers[0]["options"]]
    assert samples == (seen["loader"] or {}).get("samples")
    assert metric is None or metric in seen["metrics"]
    assert ["float32"] == seen["weights"]
    assert seen["initial_weights"]
    assert len(seen["shapes"][0][1])


def test_a_script_without_a_loader_has_a_few_seconds_to_report(code):
    seen = observed(code, "nano.py", "--max_iters=1000000", steps=3)

    assert 1000000 == seen["globals"]["max_iters"]
    assert "enough" == seen["ended"]["how"]
    assert seen["loader"] is None
    assert seen["lines"][-1][0] >= 3


@pytest.mark.parametrize(("backward", "steps"), [(".backward()", 6), ("", 0)])
def test_a_script_without_an_optimizer_trains_by_hand_or_is_not_waited_for(code, backward, steps):
    (code / "own.py").write_text(
        "import torch\nmodel = torch.nn.Linear(2, 1)\nwhile True:\n"
        f"    model(torch.ones(4, 2)).sum(){backward}\n"
    )
    seen = observed(code, "own.py")

    assert ("enough", True) == (seen["ended"]["how"], seen["calls"] > 0)
    assert len(seen["steps"]) >= steps
    assert bool(seen["steps"]) == bool(steps)


def test_a_compiled_run_says_which_steps_compiled(code):
    seen = observed(code, "images.py", compiler="torch_compile")

    assert seen["steps"][0]["compiled"]
    assert not seen["steps"][-1]["compiled"]
    assert seen["compiler"]["graphs"] > 0


def test_an_error_is_kept_with_its_place(code):
    (code / "broken.py").write_text("import torch\nraise ValueError('no')\n")
    ended = observed(code, "broken.py")["ended"]

    assert ("error", "ValueError", "no", "broken.py:2", False) == (
        ended["how"], ended["error"], ended["message"], ended["at"], ended["by_compiler"],
    )  # fmt: skip


def test_an_error_of_the_compiler_names_the_line_that_it_has_read(code):
    (code / "typed.py").write_text(
        "import numpy, torch\n"
        "class Net(torch.nn.Module):\n"
        "    def __init__(self):\n"
        "        super().__init__()\n"
        "        self.rows = torch.nn.Embedding(9, 4)\n"
        "    def forward(self, rows):\n"
        "        return self.rows(torch.LongTensor(rows)).sum()\n"
        "net = Net()\n"
        "optimizer = torch.optim.SGD(net.parameters(), 0.1)\n"
        "for _ in range(9):\n"
        "    net(numpy.arange(4, dtype=numpy.int32)).backward()\n"
        "    optimizer.step()\n"
    )

    assert observed(code, "typed.py")["ended"]["how"] == "finished"
    ended = observed(code, "typed.py", compiler="torch_compile")["ended"]
    assert ("error", "typed.py:7", True) == (ended["how"], ended["at"], ended["by_compiler"]), ended
