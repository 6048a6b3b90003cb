"""Whether there is memory for the equivalence check, which comes on top of what a run holds.

A GPU that is full raises an error, which the check survives. On a processor the kernel kills the
process. What follows is an estimate from the weights alone: activations are not counted.
"""

import os
from pathlib import Path

from compilegate_runtime.equivalence import reduction
from compilegate_runtime.equivalence.large import is_large, weights_of
from compilegate_runtime.equivalence.unseen import Unseen

MEMINFO = Path("/proc/meminfo")
CGROUP = Path("/sys/fs/cgroup")  # of the container, as it sees itself
# Limit, use and statistics by version (Linux: admin-guide/cgroup-v2, admin-guide/cgroup-v1/memory).
FILES = (
    ("memory.max", "memory.current", "memory.stat"),
    ("memory/memory.limit_in_bytes", "memory/memory.usage_in_bytes", "memory/memory.stat"),
)
DOUBLE, SINGLE = 8, 4
OPTIMIZERS_COPIES = 3  # weights and two moments


def with_room(subject):
    """The subject, or Unseen where any process lacks the memory to examine it."""
    import torch  # noqa: PLC0415 - a run without a graph has none

    device = next(subject.model.parameters()).device
    needed = needed_bytes(subject)
    left = _left_on_gpu(torch, device) if device.type == "cuda" else left_bytes()
    enough = left is None or needed <= left
    if subject.shared is not None:
        enough = reduction.agreed(torch, subject, enough)
    if not enough:
        raise Unseen("out_of_memory", f"needs {needed} bytes, {left} are left in this process")
    return subject


def needed_bytes(subject):
    """A copy of all weights, and those of other precision with their gradients."""
    model, count = subject.model, weights_of(subject.model)
    own = sum(one.numel() * one.element_size() for one in [*model.parameters(), *model.buffers()])
    if is_large(model):
        return own + 2 * SINGLE * count
    needed = own + (2 * DOUBLE + SINGLE) * count
    if subject.compiled_step is not None:
        needed += OPTIMIZERS_COPIES * (own + DOUBLE * count)
    return needed


def left_bytes():
    """What the machine, or the container, has left for each of its processes; None if unknown."""
    figures = [one for one in (_left_on_machine(), *map(_left_in_group, FILES)) if one is not None]
    processes = os.environ.get("LOCAL_WORLD_SIZE") or os.environ.get("OMPI_COMM_WORLD_LOCAL_SIZE")
    return min(figures) // int(processes or 1) if figures else None


def _left_on_gpu(torch, device):
    """What nobody holds, and what this process's allocator holds without using it."""
    idle = torch.cuda.memory_reserved(device) - torch.cuda.memory_allocated(device)
    return torch.cuda.mem_get_info(device)[0] + idle


def _left_on_machine():
    try:
        return _figures(MEMINFO)["MemAvailable:"] * 1024
    except (OSError, KeyError, ValueError):
        return None


def _left_in_group(names):
    """Under its limit; files that it has read, and not lately, are given up first."""
    limit, used, statistics = (CGROUP / name for name in names)
    try:
        spare = _figures(statistics)
        kept = int(used.read_text()) - spare.get("total_inactive_file", spare["inactive_file"])
        return int(limit.read_text()) - kept  # "max" is no number: there is no limit
    except (OSError, KeyError, ValueError):
        return None


def _figures(path):
    """The number behind each name of a file with a line for each."""
    lines = (line.split() for line in path.read_text().splitlines())
    return {words[0]: int(words[1]) for words in lines}
