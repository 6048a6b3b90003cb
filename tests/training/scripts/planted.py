"""Segments of two arms by seed, one of them with a slow kernel: prints the profiles of both.

The seed decides the kernel, the arm that has it, and the model.
"""

import json
import os
import random
import sys
import tempfile
import time
from pathlib import Path

import torch

sys.path.insert(0, str(Path(__file__).parents[3] / "training"))

from compilegate_runtime import profiled
from compilegate_runtime.compilers import compiler_for
from compilegate_runtime.device import TorchDevice
from compilegate_runtime.recorder import Recorder

os.environ[profiled.VARIABLE] = profiled.ASKED
SLOW_SECONDS = 0.4  # of a step; other programs interrupt one for a tenth of that
COMPILED = (0, 5)  # seeds whose candidate is compiled
KERNELS = {
    "planted::slow": lambda x: time.sleep(0.01),
    "aten::mm": lambda x: x.mm(x),
    "aten::bmm": lambda x: torch.bmm(x[None], x[None]),
    "aten::sort": torch.sort,
    "aten::cumsum": lambda x: torch.cumsum(x, 0),
    "aten::exp": lambda x: x.exp(),
    "aten::tanh": lambda x: x.tanh(),
    "aten::_softmax": lambda x: x.softmax(1),
    "aten::native_layer_norm": lambda x: torch.layer_norm(x, x.shape[1:]),
    "aten::cat": lambda x: torch.cat([x, x]),
}


@torch.library.custom_op("planted::slow", mutates_args=())
def slow(rows: torch.Tensor, number: int) -> torch.Tensor:
    """Compute the same thing until its time is over."""
    kernel, square = list(KERNELS.values())[number], torch.randn(512, 512)
    until = time.perf_counter() + SLOW_SECONDS
    while time.perf_counter() < until:
        kernel(square)
    return rows.clone()


@slow.register_fake
def _(rows, number):
    return torch.empty_like(rows)


class Model(torch.nn.Module):
    """Convolution, normalization and multiplications; ``planted`` is a kernel's number."""

    def __init__(self, width, planted):
        super().__init__()
        self.planted = planted
        self.convolution = torch.nn.Conv1d(width, width, 3, padding=1)
        self.norm = torch.nn.LayerNorm(width)
        self.hidden, self.head = torch.nn.Linear(width, width), torch.nn.Linear(width, 1)

    def forward(self, rows):
        rows = self.norm(self.convolution(rows.transpose(1, 2)).transpose(1, 2))
        if self.planted is not None:
            rows = rows + 1e-6 * slow(rows.detach(), self.planted)  # 0 * is compiled away
        return self.head(self.hidden(rows).relu()).square().mean()


def profile_of(compiler, width, planted, folder):
    """The profile that a segment of one measured step leaves."""
    model, device = Model(width, planted), TorchDevice("fp32")
    forward = compiler.apply(model)
    recorder = Recorder(folder, {"arm": "x"}, steps=1, compiler=compiler, device=device)
    optimizer = torch.optim.AdamW(model.parameters())
    batches = (torch.randn(4, 16, width) for _ in range(9))
    with recorder.training():
        for batch in recorder.steps(batches):
            loss = forward(batch)
            loss.backward()
            optimizer.step()
            optimizer.zero_grad()
            recorder.end_step(loss, len(batch))
    recorder.finish()
    recorder.close()
    return json.loads((Path(folder) / "summary.json").read_text())["profile"]


def main(seeds):
    torch.set_num_threads(1)
    made = []
    for seed in range(seeds):
        torch.manual_seed(seed)
        chance = random.Random(seed)
        number, width, in_candidate = seed % len(KERNELS), 16 * chance.randint(1, 4), seed % 4 < 2
        arms = {}
        for arm in ("baseline", "candidate"):
            compiles = arm == "candidate" and seed in COMPILED
            has_it = in_candidate == (arm == "candidate")
            with tempfile.TemporaryDirectory() as folder:
                arms[arm] = profile_of(
                    compiler_for("torch_compile" if compiles else "none"), width,
                    number if has_it else None, folder,
                )  # fmt: skip
        planted = {"kernel": list(KERNELS)[number], "in_candidate": in_candidate}
        made.append({**planted, "compiled": seed in COMPILED, **arms})
    print(json.dumps(made))


main(int(sys.argv[2]))
