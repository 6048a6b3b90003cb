"""What a check changes around the model, and restores: random numbers and number formats."""

import contextlib
import gc
import random
import sys

IN_DOUBLE = ((6, 0), (7, 0), (8, 0), (9, 0), (10, 0))


@contextlib.contextmanager
def untouched(torch):
    """Random numbers, threads and number formats are afterwards what they were before."""
    device = torch.cuda.is_available() and torch.cuda.is_initialized()
    devices = torch.cuda.get_rng_state_all() if device else []
    numpy, state, drawn = sys.modules.get("numpy"), torch.get_rng_state(), random.getstate()
    drawn_by_numpy = numpy.random.get_state() if numpy else None
    threads = torch.get_num_threads()
    try:
        yield
    finally:
        torch.set_rng_state(state)
        if devices:
            torch.cuda.set_rng_state_all(devices)
        random.setstate(drawn)
        if numpy:
            numpy.random.set_state(drawn_by_numpy)
        if torch.get_num_threads() != threads:
            torch.set_num_threads(threads)


def seed(torch, number):
    """Let every generator begin anew, as in the same step of every other side."""
    torch.manual_seed(number)
    random.seed(number)
    if "numpy" in sys.modules:
        sys.modules["numpy"].random.seed(number)


def random_state(torch):
    """How far torch's generators have come."""
    states = [torch.get_rng_state()]
    if torch.cuda.is_available() and torch.cuda.is_initialized():
        states.append(torch.cuda.get_rng_state())
    return states


@contextlib.contextmanager
def precise(torch):
    """Float32 products of float32 numbers: without TF32, and without autocast."""
    precision, cudnn = torch.get_float32_matmul_precision(), torch.backends.cudnn.allow_tf32
    with contextlib.ExitStack() as stack:
        stack.callback(torch.set_float32_matmul_precision, precision)
        stack.callback(setattr, torch.backends.cudnn, "allow_tf32", cudnn)
        torch.set_float32_matmul_precision("highest")
        torch.backends.cudnn.allow_tf32 = False
        kept = [one for one in gc.get_objects() if type(one) is torch.autocast]
        for one in [one for one in kept if one._enabled]:  # by a wrapper of the model's forward
            stack.callback(setattr, one, "_enabled", True)
            one._enabled = False
        for device in ("cpu", "cuda"):
            stack.enter_context(torch.autocast(device, enabled=False))
        yield


def is_precise(torch, subject_device):
    """Whether float32 products are already computed as in ``precise``."""
    highest = torch.get_float32_matmul_precision() == "highest"
    return highest and (subject_device == "cpu" or not torch.backends.cudnn.allow_tf32)


def is_slow_in_double(torch, device):
    """Whether double precision takes many times as long as single precision.

    Of the graphics cards only those for data centres have as many units for it: the table of
    throughputs by compute capability in the CUDA C++ Programming Guide.
    """
    if device.type != "cuda":
        return False
    return torch.cuda.get_device_capability(device) not in IN_DOUBLE


@contextlib.contextmanager
def other_kernels(torch):
    """Convolutions by those of cuDNN's kernels that add up in one order, or by all of them."""
    before = torch.backends.cudnn.deterministic
    torch.backends.cudnn.deterministic = not before
    try:
        yield
    finally:
        torch.backends.cudnn.deterministic = before


@contextlib.contextmanager
def threads(torch, count):
    """Fewer threads, whose sums come in another order."""
    before = torch.get_num_threads()
    torch.set_num_threads(count)
    try:
        yield
    finally:
        torch.set_num_threads(before)
