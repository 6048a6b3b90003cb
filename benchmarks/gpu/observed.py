"""Runs a training script as it is and looks into some of its steps.

    python observed.py flops OUT.json training/causal_lm.py --model gpt2 --max_steps 3
    python observed.py profile OUT.json training/causal_lm.py --model gpt2 --max_steps 40

``flops`` counts the second step's floating-point operations (torch.utils.flop_counter: matrix
multiplications, convolutions and attention, forward and backward) of the eager model. ``profile``
traces the last steps and says what the device did in them.
"""

from __future__ import annotations

import json
import runpy
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
COUNTED = 2
PROFILED = (30, 40)  # after compilation and warm-up


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
        found = {
            "flops": counter.get_total_flops(),
            "parameters": sum(p.numel() for p in training.model.parameters()),
            "by_operator": {str(name): count for name, count in operators.items()},
        }
        self._out.write_text(json.dumps(found) + "\n")
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
        sys.path.insert(0, str(ROOT))
        from benchmarks.gpu.trace import summary  # noqa: PLC0415 — found through ROOT

        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "trace.json"
            self._profiler.export_chrome_trace(str(path))
            events = json.loads(path.read_text())["traceEvents"]
        found = summary(events, PROFILED[1] - PROFILED[0])
        self._out.write_text(json.dumps(found, indent=1) + "\n")


def main(what: str, out: str, program: str, *arguments: str) -> None:
    """Run the script with its steps watched."""
    sys.path.insert(0, str(Path(program).parent))
    from families import optimisation  # noqa: PLC0415 — found through the line above

    watch = {"flops": Flops, "profile": Profile}[what](Path(out))
    step = optimisation.Training.step
    optimisation.Training.step = lambda self, batch: watch(self, lambda: step(self, batch))
    sys.argv = [program, *arguments]
    runpy.run_path(program, run_name="__main__")


if __name__ == "__main__":
    main(*sys.argv[1:])
