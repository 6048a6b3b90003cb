"""Splits the resolved training lock: torch and its CUDA packages apart from the rest.

The general build of torch brings several gigabytes of CUDA packages on Linux; a machine that
offers a CPU-only build should not download them. So torch is installed on its own, from
torch-cpu.lock where that build is offered and from torch.lock elsewhere.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

HERE = Path(__file__).parent
ACCELERATED = re.compile(r"(torch|triton|nvidia-[a-z0-9-]+|cuda-[a-z0-9-]+)==")


def main() -> None:
    """Write training.lock and torch.lock beside this file."""
    requirements = re.split(r"\n(?=[a-z])", Path(sys.argv[1]).read_text())
    torch = [text for text in requirements if ACCELERATED.match(text)]
    rest = [text for text in requirements if not ACCELERATED.match(text)]
    header = "# The general build and, on Linux, the CUDA packages it is built for.\n"
    (HERE / "torch.lock").write_text(header + "\n".join(torch).rstrip() + "\n")
    (HERE / "training.lock").write_text("\n".join(rest).rstrip() + "\n")


if __name__ == "__main__":
    main()
