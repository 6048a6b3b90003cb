"""What a check changes around the model, and restores: random numbers and number formats."""

import contextlib
import gc
import random
import sys

IN_DOUBLE = ((6, 0), (7, 0), (8, 0), (9, 0), (10, 0))


@contextlib.contextmanager
def untouched(torch):
    """With gradients; all that computes is afterwards as it was before."""
    device = torch.cuda.is_available() and torch.cuda.is_initialized()
    devices = torch.cuda.get_rng_state_all() if device else []
    numpy, state, drawn = sys.modules.get("numpy"), torch.get_rng_state(), random.getstate()
    drawn_by_numpy = numpy.random.get_state() if numpy else None
    threads = torch.get_num_threads()
    try:
        with torch.enable_grad():  # which a script may have ended without
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
    cudnn = torch.backends.cudnn
    older = [
        (_read(torch.get_float32_matmul_precision), torch.set_float32_matmul_precision, "highest"),
        (_read(lambda: cudnn.allow_tf32), lambda value: setattr(cudnn, "allow_tf32", value), False),
    ]
    wide, narrow = _products(torch)
    with contextlib.ExitStack() as stack:
        for of in (*wide, *narrow):  # the wider ones first: where nothing is chosen, theirs holds
            stack.callback(setattr, of, "fp32_precision", of.fp32_precision)
            of.fp32_precision = "none"
        for before, write, single in older:
            if before is not None:
                stack.callback(write, before)
                write(single)
        for of in narrow:
            of.fp32_precision = "ieee"
        kept = [one for one in gc.get_objects() if issubclass(type(one), torch.autocast)]
        for one in [one for one in kept if one._enabled]:  # by a wrapper of the model's forward
            stack.callback(setattr, one, "_enabled", True)
            one._enabled = False
        for device in ("cpu", "cuda"):
            stack.enter_context(torch.autocast(device, enabled=False))
        yield


def _products(torch):
    """Where PyTorch 2.9 and later choose the format of products: for all kinds, and for one."""
    backends = torch.backends
    of_kinds = [backends.cuda.matmul, *_kinds(backends.cudnn), *_kinds(backends.mkldnn)]
    wide = (backends, backends.cudnn, backends.mkldnn)
    return _with_precision(wide), _with_precision(of_kinds)


def _kinds(backend):
    return [getattr(backend, kind, None) for kind in ("matmul", "conv", "rnn")]


def _with_precision(places):
    return [one for one in places if hasattr(one, "fp32_precision")]


def _read(read):
    """A number format chosen the older way; None where the newer one was used beside it."""
    try:
        return read()
    except RuntimeError:
        return None


def is_precise(torch, subject_device):
    """Whether float32 products are already computed as in ``precise``."""
    backends = torch.backends
    used = _kinds(backends.mkldnn)
    if subject_device != "cpu":
        used = [backends.cuda.matmul, *_kinds(backends.cudnn)]
    used = _with_precision(used)
    if used:
        return all(one.fp32_precision in ("none", "ieee") for one in used)
    highest = torch.get_float32_matmul_precision() == "highest"
    return highest and (subject_device == "cpu" or not backends.cudnn.allow_tf32)


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
