"""What the recorder itself costs in a step; run by the training environment's Python.

Each step hands over a loss, a gradient norm and counts as a real one does. Only the recorder's
own calls are timed, in processor time of this thread, so that other programs on the machine count
for nothing; summaries and lines that fall due in a call are part of it.
"""

import json
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "training"))

import torch
from compilegate_runtime.compilers import compiler_for
from compilegate_runtime.device import TorchDevice
from compilegate_runtime.recorder import Recorder

STEP_SECONDS = 0.01


def main(folder: str, steps: int) -> None:
    """Print the recorder's time per step, and its share of the steps."""
    torch.set_num_threads(1)
    compiler = compiler_for("torch_compile")
    model = compiler.apply(torch.nn.Linear(4, 1))
    recorder = Recorder(
        folder,
        {},
        steps=steps,
        compiler=compiler,
        device=TorchDevice("fp32"),
        clock=time.thread_time,  # what falls due by the clock does so as on a machine of its own
    )
    optimizer = torch.optim.SGD(model.parameters(), lr=0.001)
    rows, spent, lasted = torch.randn(8, 4), [], []
    for _ in range(steps):
        start = begin = time.thread_time()
        recorder.begin_step()
        recorder.got_batch()
        before = time.thread_time() - begin
        loss = model(rows).square().mean()
        loss.backward()
        norm = torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad()
        work(rows, begin + STEP_SECONDS)
        begin = time.thread_time()
        recorder.end_step(loss, 8, tokens=512, learning_rate=0.001, gradient_norm=norm)
        spent.append(before + time.thread_time() - begin)
        lasted.append(time.thread_time() - start)
    recorder.finish()
    recorder.close()
    steady, whole = (
        spent[1:],
        sum(lasted[1:]),
    )  # the first step compiles, waits, and writes the first summary
    mean, middle = sum(steady) / len(steady), sorted(steady)[len(steady) // 2]
    print(
        json.dumps(
            {
                "steps": len(steady),
                "mean_us": round(mean * 1e6, 1),
                "median_us": round(middle * 1e6, 1),
                "step_ms": round(whole / len(steady) * 1000, 2),
                "share_of_the_steps": round(sum(steady) / whole, 5),
                "torch": torch.__version__,
            }
        )
    )


def work(rows: torch.Tensor, until: float) -> None:
    """Keep the processor as busy as a step of 10 ms does."""
    while time.thread_time() < until:
        rows.mm(rows.T)


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
