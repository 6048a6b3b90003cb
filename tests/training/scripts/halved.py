"""Runs a training script whose linear layers pass back half of their gradient once compiled.

    halved.py --program launch.py --script train.py ...

A fault as a compiler's would be: eager code is right, and no output of the model differs. Graphs
are compiled to few files.
"""

import runpy
from pathlib import Path

import torch


def halving(torch):
    """A linear layer's forward pass; of compiled code's gradient a half is passed back."""

    def forward(self, rows):
        values = torch.nn.functional.linear(rows, self.weight, self.bias)
        return values / 2 + values.detach() / 2 if torch.compiler.is_compiling() else values

    return forward


torch.nn.Linear.forward = halving(torch)  # that knows no global name: __main__ is the program's
runpy.run_path(str(Path(__file__).with_name("few_files.py")), run_name="__main__")
