"""The kinds of expressions, and what PyTorch's own functions make of them."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from enum import Enum

from compilegate.doctor import torch_words as words
from compilegate.doctor.syntax import called, keyword


class Kind(Enum):
    """What an expression is: on the device, a collection of such, a model, certainly neither."""

    TENSOR = 1
    SEVERAL = 2
    MODEL = 3
    HOST = 4


def joined(parts: Sequence[Kind | None]) -> Kind | None:
    """What an operation on several expressions gives."""
    if Kind.SEVERAL in parts:
        return Kind.SEVERAL
    return Kind.TENSOR if Kind.TENSOR in parts else None


def element(kind: Kind | None) -> Kind | None:
    """What one item of something is."""
    return Kind.TENSOR if kind is Kind.SEVERAL else kind


def of_torch_call(call: ast.Call, meaning: str, arguments: Sequence[Kind | None]) -> Kind | None:
    """What a function of PyTorch returns, from the kinds of its arguments."""
    if meaning in words.MODEL_MAKERS or words.MODULE_CLASS.match(meaning):
        return Kind.MODEL
    if meaning in words.TENSOR_MAKERS:
        device = keyword(call, "device")
        place = device.value if isinstance(device, ast.Constant) else device
        on_host = place is None or place == "cpu"
        return Kind.HOST if on_host and Kind.TENSOR not in arguments else Kind.TENSOR
    if meaning.startswith(words.NO_TENSORS):
        return None
    certain = meaning.startswith("torch.nn.functional.")
    return Kind.TENSOR if certain or joined(arguments) else None


def of_method_call(call: ast.Call, on: Kind | None) -> Kind | None:
    """What a method returns, from what it is called on; None where that says nothing."""
    name = called(call)
    if name in ("to", "cuda"):
        if on is Kind.MODEL:
            return Kind.MODEL
        place = ast.unparse(call.args[0]) if call.args else "cuda" if name == "cuda" else ""
        if place in ("'cpu'", "torch.device('cpu')"):
            return Kind.HOST
        return Kind.TENSOR if on is Kind.TENSOR or words.DEVICE.search(place) else on
    if on is Kind.TENSOR or name in words.ALWAYS_TO_HOST:
        return Kind.HOST if name in words.TO_HOST else Kind.TENSOR if on else None
    if on is Kind.MODEL:
        return Kind.MODEL if name in words.SAME_MODEL else None
    return on
