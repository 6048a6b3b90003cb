"""Runs a training script whose graphs become one C++ file each, compiled without optimisation.

    few_files.py --program causal_lm.py --model gpt2 ...

Inductor by itself compiles a file for every kernel: forty for a small UNet, most of its test's
time. What is traced and fused is the same; what calls the kernels is C++ instead of Python, and
no kernel is optimised. Other tests, a family among them, compile as inductor does.
"""

import os
import runpy
import sys
from pathlib import Path

from torch._inductor import config

config.cpp_wrapper = True
os.environ["TORCHINDUCTOR_DEBUG_COMPILE"] = "1"  # read when a file is compiled
program = sys.argv[2]
sys.argv[:3] = [program]
os.chdir(os.environ.get("PWD", "."))  # a job has none unless it names one
sys.path.insert(0, str(Path(program).parent))
runpy.run_path(program, run_name="__main__")
