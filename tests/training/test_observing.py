"""The observer sees an unchanged script's steps, arguments, data and metrics."""

from __future__ import annotations

import json

import pytest

from tests.training.jobs import SCRIPTS, TRAINING
from tests.training.test_launch import TRAINERS

pytestmark = [pytest.mark.training, pytest.mark.slow, pytest.mark.timeout(600)]
WATCHED = [SCRIPTS / "few_files.py", "--program", TRAINING / "observe.py"]


@pytest.fixture
def observed(jobs, code):
    def observed(script, *words, start=jobs._start_words, **settings):
        out = code / "seen.json"
        asked = {"out": str(out), "steps": 6, "seconds": 60, "seed": 17, "shift": 0}
        asked = {**asked, "compiler": "none", **settings}
        command = [*map(str, WATCHED), json.dumps(asked), script, *words]
        ended = jobs._ended(*start(command, {"PWD": str(code)}))
        assert out.exists(), ended.output
        return json.loads(out.read_text())

    jobs.warm(*TRAINERS)
    return observed


def test_what_a_compiled_script_does_is_seen(observed):
    seen = observed("accelerate_loop.py", compiler="torch_compile")

    assert len(seen["steps"]) in (6, 7), seen["ended"]  # accelerate asks for a batch ahead
    assert "torch" == seen["packages"]["torch"][0]
    (parser,) = seen["parsers"]
    assert "argparse.ArgumentParser" == parser["reader"]
    assert "max_train_steps" in [one["name"] for one in parser["options"]]
    assert (64, ["float32"]) == (seen["loader"]["samples"], seen["weights"])
    assert seen["initial_weights"]
    assert len(seen["shapes"][0][1])
    assert (True, False) == (seen["steps"][0]["compiled"], seen["steps"][-1]["compiled"])
    assert seen["compiler"]["graphs"] > 0


def test_what_a_trainers_script_does_is_seen(observed):
    seen = observed("hf_trainer.py", "--do_eval")

    assert len(seen["steps"]) in (6, 7), seen["ended"]
    assert "transformers.HfArgumentParser" == seen["parsers"][0]["reader"]
    names = [one["name"] for one in seen["parsers"][0]["options"]]
    assert "per_device_train_batch_size" in names
    assert (16, True) == (seen["loader"]["samples"], "eval_loss" in seen["metrics"])


def test_a_script_without_a_loader_has_a_few_seconds_to_report(code, observed):
    with (code / "nano.py").open("r+") as script:
        text = script.read()
        script.seek(0)  # seen for seconds, it waits instead of computing
        script.write(text.replace("  loss.back", "  __import__('time').sleep(0.1)\n    loss.back"))
    seen = observed("nano.py", "--eval_interval=5", "--max_iters=1000000", steps=3)

    assert 1000000 == seen["globals"]["max_iters"]
    assert "enough" == seen["ended"]["how"]
    assert seen["loader"] is None
    assert seen["lines"][-1][0] >= 3


def test_a_script_without_an_optimizer_trains_by_hand(code, observed):
    (code / "own.py").write_text(
        "import time, torch\nmodel = torch.nn.Linear(2, 1)\nwhile True:\n"
        "    model(torch.ones(4, 2)).sum().backward()\n    time.sleep(0.1)\n"
    )
    seen = observed("own.py")

    assert ("enough", True) == (seen["ended"]["how"], seen["calls"] > 0)
    assert len(seen["steps"]) >= 6


def test_an_error_is_kept_with_its_place(code, jobs, observed):
    (code / "broken.py").write_text("import torch\nraise ValueError('no')\n")
    ended = observed("broken.py", start=jobs._start_interpreter)["ended"]

    assert ("error", "ValueError", "no", "broken.py:2", False) == (
        ended["how"], ended["error"], ended["message"], ended["at"], ended["by_compiler"],
    )  # fmt: skip


def test_an_error_of_the_compiler_names_the_line_that_it_has_read(code, observed):
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

    ended = observed("typed.py", compiler="torch_compile")["ended"]
    assert ("error", "typed.py:7", True) == (ended["how"], ended["at"], ended["by_compiler"]), ended
