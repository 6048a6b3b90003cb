"""What a device did in a traced window: shares of its time by kind of work, and its idle time."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import Any

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


def summary(events: Iterable[Mapping[str, Any]], steps: int) -> dict[str, Any]:
    """Shares of the window by kind of work; without a GPU, the processor's outermost operators.

    ``idle`` is the share in which the device had nothing to do: gaps between launches and
    waiting for data. Seconds are those of the window.
    """
    timed = [event for event in events if event.get("ph") == "X" and event.get("dur")]
    found = [event for event in timed if event.get("cat") in DEVICE]
    on_gpu = bool(found)
    if not on_gpu:
        found = _outermost([event for event in timed if event.get("cat") == "cpu_op"])
    if not found:
        return {"device": None, "steps": steps, "reason": "the trace holds no work"}
    begin = min(event["ts"] for event in found)
    window = max(event["ts"] + event["dur"] for event in found) - begin
    kinds: dict[str, float] = defaultdict(float)
    names: dict[str, list[float]] = defaultdict(list)
    for event in found:
        kinds[kind(event["name"])] += event["dur"]
        names[event["name"]].append(event["dur"])
    top = sorted(names.items(), key=lambda item: -sum(item[1]))[:TOP]
    return {
        "device": "gpu" if on_gpu else "cpu",
        "steps": steps,
        "seconds_per_step": window / 1e6 / steps,
        "idle": 1 - _covered(found) / window,
        "kinds": {name: value / window for name, value in sorted(kinds.items(), key=_falling)},
        "launches_per_step": len(found) / steps,
        "top": [
            {"name": name[:120], "share": sum(durations) / window, "calls": len(durations)}
            for name, durations in top
        ],
    }


def kind(name: str) -> str:
    """Kind of work of a kernel, by its name."""
    low = name.lower()
    return next((known for known, words in KINDS if re.search(words, low)), "other")


def _falling(item: tuple[str, float]) -> float:
    return -item[1]


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
    found, until = [], defaultdict(lambda: float("-inf"))
    for event in sorted(events, key=lambda one: (one["ts"], -one["dur"])):
        if event["ts"] >= until[event.get("tid")]:
            found.append(event)
            until[event.get("tid")] = event["ts"] + event["dur"]
    return found
