"""Fingerprints of the weights that a run ends with.

Two runs of one seed that end with exactly the same weights have trained the same model: whatever
one of them was compiled with changed nothing. So here every value counts, and buffers as well,
which an evaluation uses too (batch normalisation's means).
"""

import ctypes
import hashlib
import itertools

from compilegate_runtime.fingerprint import InitialWeights

# Bytes that are hashed at a time.
PIECE = 2**24
# What a weight has of which this process holds a part: DTensor's (FSDP 2, tensor parallelism) and
# DeepSpeed's (ZeRO 3). FSDP 1 keeps the parts of a module in a parameter of its own class.
PART_ATTRIBUTES = ("placements", "ds_id")
PART_CLASSES = frozenset({"FlatParameter"})


def fingerprints(models):
    """``final_weights_sha256`` of every value of the models, and ``final_start_sha256``.

    The latter is what ``initial_weights_sha256`` will be of a run that starts from these weights,
    so that it shows which run another one continues from. None where there is no model, or where
    this process does not hold, or cannot read, all of its weights.
    """
    start = InitialWeights()
    for model in models:
        start.add(model)
    return {"final_weights_sha256": _every_value(models), "final_start_sha256": start.sha256()}


def _every_value(models):
    digest = hashlib.sha256()
    try:
        for model in models:
            for weight in itertools.chain(model.parameters(), model.buffers()):
                if _is_a_part(weight):
                    return None
                digest.update(f"{weight.dtype}{tuple(weight.shape)}".encode())
                _add(digest, weight)
    except (AttributeError, RuntimeError, TypeError, ValueError):
        return None  # no values, or of a kind that a processor cannot read
    return digest.hexdigest() if models else None


def _is_a_part(weight):
    own = type(weight).__name__ in PART_CLASSES
    return own or any(hasattr(weight, name) for name in PART_ATTRIBUTES)


def _add(digest, weight):
    """The bytes of a tensor, read where they lie: numpy knows neither bf16 nor fp8."""
    values = weight.detach().cpu().contiguous()
    size = values.numel() * values.element_size()
    if size:
        view = memoryview((ctypes.c_char * size).from_address(values.data_ptr())).cast("B")
        for begin in range(0, size, PIECE):
            digest.update(view[begin : begin + PIECE])
