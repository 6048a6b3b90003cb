"""Runs a training script as it is and looks into some of its steps.

    python observed.py flops OUT.json training/causal_lm.py --model gpt2 --max_steps 3
    python observed.py profile OUT.json training/causal_lm.py --model gpt2 --max_steps 40

``flops`` counts the second step's floating-point operations (torch.utils.flop_counter: matrix
multiplications, convolutions and attention, forward and backward) of the eager model. ``profile``
traces the last steps and says what the device did in them.
"""

from __future__ import annotations

import json
import re
import runpy
import sys
import tempfile
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

COUNTED = 2
PROFILED = (30, 40)  # after compilation and warm-up
DEVICE = ("kernel", "gpu_memcpy", "gpu_memset")
TOP = 15
# The first that matches, by the names that cuBLAS, cuDNN, PyTorch and inductor give to kernels.
KINDS = (
    ("attention", r"flash|fmha|attention|attn"),
    ("convolution", r"conv|fprop|dgrad|wgrad|implicit"),
    (
        "matrix multiplication",
        r"gemm|cutlass|cublas|nvjet|wgmma|xmma|triton_tem|matmul|\bmm\b|linear",
    ),
    ("fused by the compiler", r"triton_|cpp_fused"),
    ("optimizer", r"multi_tensor|adam|foreach"),
    ("copy", r"memcpy|memset|copy"),
    (
        "elementwise and reductions",
        r"elementwise|vectorized|reduce|softmax|norm|gelu|index|embedding|dropout|add|mul|cat|fill"
        r"|sum",
    ),
)


class Flops:
    """Counts one step."""

    def __init__(self, out: Path) -> None:
        self._out, self._step = out, 0

    def __call__(self, training: Any, step: Callable[[], Any]) -> Any:
        """Take a step, counted if its turn has come."""
        from torch.utils.flop_counter import FlopCounterMode  # noqa: PLC0415 — training image only

        self._step += 1
        if self._step != COUNTED:
            return step()
        with FlopCounterMode(display=False) as counter:
            result = step()
        operators = counter.get_flop_counts().get("Global", {})
        work = {
            "flops": counter.get_total_flops(),
            "parameters": sum(p.numel() for p in training.model.parameters()),
            "by_operator": {str(name): count for name, count in operators.items()},
        }
        self._out.write_text(json.dumps(work) + "\n")
        return result


class Profile:
    """Traces some steps and keeps the summary of what the device did."""

    def __init__(self, out: Path) -> None:
        self._out, self._step, self._profiler = out, 0, None

    def __call__(self, _training: Any, step: Callable[[], Any]) -> Any:
        """Take a step, traced if its turn has come."""
        import torch  # noqa: PLC0415 — training image only

        self._step += 1
        if self._step == PROFILED[0]:
            on = torch.profiler.ProfilerActivity  # of the device alone: least disturbance
            gpu = torch.cuda.is_available()
            self._profiler = torch.profiler.profile(activities=[on.CUDA if gpu else on.CPU])
            self._profiler.start()
        result = step()
        if self._step == PROFILED[1] - 1 and self._profiler is not None:
            if torch.cuda.is_available():
                torch.cuda.synchronize()
            self._profiler.stop()
            self._keep()
        return result

    def _keep(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "trace.json"
            self._profiler.export_chrome_trace(str(path))
            events = json.loads(path.read_text())["traceEvents"]
        shares = summary(events, PROFILED[1] - PROFILED[0])
        self._out.write_text(json.dumps(shares, indent=1) + "\n")


def main(what: str, out: str, program: str, *arguments: str) -> None:
    """Run the script with its steps watched."""
    sys.path.insert(0, str(Path(program).parent))
    from families import optimisation  # noqa: PLC0415 — importable by the line above

    watch = {"flops": Flops, "profile": Profile}[what](Path(out))
    step = optimisation.Training.step
    optimisation.Training.step = lambda self, batch: watch(self, lambda: step(self, batch))
    sys.argv = [program, *arguments]
    runpy.run_path(program, run_name="__main__")


def summary(events: Iterable[Mapping[str, Any]], steps: int) -> dict[str, Any]:
    """Shares of the window by kind of work; without a GPU, the processor's outermost operators.

    ``idle`` is the share in which the device had nothing to do: gaps between launches and
    waiting for data. Seconds are those of the window.
    """
    timed = [event for event in events if event.get("ph") == "X" and event.get("dur")]
    work = [event for event in timed if event.get("cat") in DEVICE]
    on_gpu = bool(work)
    if not on_gpu:
        work = _outermost([event for event in timed if event.get("cat") == "cpu_op"])
    if not work:
        return {"device": None, "steps": steps, "reason": "the trace holds no work"}
    begin = min(event["ts"] for event in work)
    window = max(event["ts"] + event["dur"] for event in work) - begin
    kinds: dict[str, float] = defaultdict(float)
    names: dict[str, list[float]] = defaultdict(list)
    for event in work:
        kinds[kind(event["name"])] += event["dur"]
        names[event["name"]].append(event["dur"])
    top = sorted(names.items(), key=lambda item: -sum(item[1]))[:TOP]
    return {
        "device": "gpu" if on_gpu else "cpu",
        "steps": steps,
        "seconds_per_step": window / 1e6 / steps,
        "idle": 1 - _covered(work) / window,
        "kinds": {
            name: value / window for name, value in sorted(kinds.items(), key=lambda item: -item[1])
        },
        "launches_per_step": len(work) / steps,
        "top": [
            {"name": name[:120], "share": sum(durations) / window, "calls": len(durations)}
            for name, durations in top
        ],
    }


def kind(name: str) -> str:
    """Kind of work of a kernel, by its name."""
    low = name.lower()
    return next((one for one, words in KINDS if re.search(words, low)), "other")


def _covered(events: Iterable[Mapping[str, Any]]) -> float:
    """Length of the union of the events, which may overlap on several streams."""
    covered, until = 0.0, float("-inf")
    for event in sorted(events, key=lambda one: one["ts"]):
        end = event["ts"] + event["dur"]
        covered += max(0.0, end - max(until, event["ts"]))
        until = max(until, end)
    return covered


def _outermost(events: list[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """Operators that no other operator of the same thread called."""
    outermost, until = [], defaultdict(lambda: float("-inf"))
    for event in sorted(events, key=lambda one: (one["ts"], -one["dur"])):
        if event["ts"] >= until[event.get("tid")]:
            outermost.append(event)
            until[event.get("tid")] = event["ts"] + event["dur"]
    return outermost


if __name__ == "__main__":
    main(*sys.argv[1:])
