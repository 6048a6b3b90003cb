"""Writes a graph that compiles wrongly as a Python file that shows it with PyTorch alone."""

import subprocess
import sys
from pathlib import Path

from compilegate_runtime.diagnosis import comparison, operators

SHOWS = 3  # the file's exit code where compiled code is wrong; 1 is that of any exception
HEADER = '''\
"""Compiled PyTorch is further from double precision than eager PyTorch: {operators}.

    python {name}

The exit code is {shows} where the error of compiled code is more than {bound:g} times eager code's.
Found with PyTorch {version} on {device}.
"""

import contextlib
import sys
from math import inf, nan
from pathlib import Path

import torch
import torch.fx as fx
from torch import device, tensor

'''
MAIN = '''

def made(shape, strides, dtype, low, high, trains):
    """Random numbers between the lowest and the highest that were seen."""
    once = [1 if stride == 0 else size for size, stride in zip(shape, strides)]
    value = torch.empty_strided(once, strides, dtype=dtype, device="{device}")
    value = value.uniform_(low, high) if is_real(value) else value.random_(low, high + 1)
    return value.expand(shape).requires_grad_(trains)


def inputs():
    torch.manual_seed(0)
    return {inputs}


def autocast():
    return {autocast}


def main():
    function, values = Repro(), inputs()
    compiled = torch.compile(Repro(), {how})
    truth = results(function, [doubled(one) for one in values], InDouble())
    eager = results(function, values, autocast())
    other = results(compiled, values, autocast())
    each = ratios(truth, other, eager, {epsilon!r})
    for number, figures in enumerate(zip(errors(truth, eager), errors(truth, other), each)):
        print("result %d: error eager %.2g, compiled %.2g, ratio %.3g" % (number, *figures))
    return {shows} if max(each) > {bound!r} else 0


if __name__ == "__main__":
    sys.exit(main())
'''


def write(torch, path, graph, inputs, *, how, terms, limit_seconds):
    """Write the file; whether it shows the error in a process of its own.

    ``how`` are the arguments of torch.compile. First the inputs are random; where these show
    nothing, what the graph was called with lies beside the file.
    """
    from torch._dynamo.debug_utils import NNModuleToString  # noqa: PLC0415 - loads slowly

    named = [one["operator"] for one in operators.named(graph, {})] or ["a part of a model"]
    words = {
        "name": path.name, "shows": SHOWS, "operators": ", ".join(named), "bound": terms.bound,
        "epsilon": terms.epsilon, "autocast": _written(torch, terms.autocast()),
        "how": ", ".join("{}={!r}".format(*one) for one in how.items()),
        "version": torch.__version__, "device": _device(torch, inputs),
    }  # fmt: skip
    own = Path(comparison.__file__).read_text(encoding="utf-8").partition('"""\n\n')[2]
    code = "\n".join([HEADER.format(**words), NNModuleToString.convert(graph), own])
    drawn = "".join("        {},\n".format(_drawn(torch, one)) for one in inputs)
    path.write_text(code + MAIN.format(inputs="[\n{}    ]".format(drawn), **words))
    if _shows(path, limit_seconds):
        return True
    torch.save(list(inputs), str(path.with_suffix(".pt")))
    loaded = 'torch.load(Path(__file__).with_suffix(".pt"))'
    path.write_text(code + MAIN.format(inputs=loaded, **words))
    return _shows(path, limit_seconds)


def _device(torch, inputs):
    return next((one.device.type for one in inputs if isinstance(one, torch.Tensor)), "cpu")


def _written(torch, context):
    if not isinstance(context, torch.autocast):
        return "contextlib.nullcontext()"
    return "torch.autocast({!r}, dtype={})".format(context.device, context.fast_dtype)


def _drawn(torch, value):
    if not isinstance(value, torch.Tensor):
        return repr(value)
    kind = float if value.is_floating_point() else int
    ends = [kind(one) for one in value.detach().aminmax()] if value.numel() else [0, 0]
    shape = tuple(value.shape), value.stride(), value.dtype, *ends, value.requires_grad
    return "made({})".format(", ".join(map(repr, shape)))


def _shows(path, limit_seconds):
    try:
        ended = subprocess.run(  # noqa: S603 - the file that was just written
            [sys.executable, str(path)], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL, check=False, timeout=limit_seconds,
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        return False
    return ended.returncode == SHOWS
