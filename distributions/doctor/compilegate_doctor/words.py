"""The vocabulary of training scripts and of PyTorch; imports resolved to what they name."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterable, Iterator

from compilegate_doctor.syntax import Function, dotted, in_scope, with_defaults

MODEL = re.compile(
    r"(^|_)(model|net|network|module|criterion|loss_fn|loss_func|backbone|encoder|decoder|"
    r"generator|discriminator|critic|policy|net[dg]|unet|vae)(_?\d+)?$",
    re.IGNORECASE,
)
# build_model() gives a model, is_model() does not; neither is one that is called.
MAKES_MODEL = re.compile(
    r"(build|create|make|get|load|init|setup|unwrap|wrap|prepare|parse|define|construct)_",
    re.IGNORECASE,
)
NO_MODEL = re.compile(
    r"(is|has|should|can|save|export|count|print|log|check|eval\w*|test|train|data|batch)_",
    re.IGNORECASE,
)
LOSS = re.compile(r"(^|_)(loss|err[dg]?)(_|$)|loss$", re.IGNORECASE)
OPTIMIZER = re.compile(r"optim|(^|_)opt(_|$)|(^|_)opt[dg]?$", re.IGNORECASE)
OPTIMIZER_CLASS = re.compile(r"torch\.optim\.(?!lr_scheduler)(\w+\.)*[A-Z]\w*$")
TRAINING = re.compile(r"train", re.IGNORECASE)
HELD_OUT = re.compile(r"(^|_|\b)(e?val|valid|validation|dev|test|testing|eval|evaluation|"
                      r"predict|pred|infer|inference|holdout)(_|\b|$|\d)|"
                      r"^(val|test|eval|valid)", re.IGNORECASE)  # fmt: skip


class Imports:
    """Which dotted name a local name stands for."""

    def __init__(self, nodes: Iterable[ast.AST]) -> None:
        self._meaning: dict[str, str] = {}
        self.packages: set[str] = set()
        self.named: set[str] = set()  # what is imported from modules, with its module
        for node in nodes:
            if isinstance(node, ast.Import):
                self._plain(node)
            elif isinstance(node, ast.ImportFrom):
                self._from(node)

    def _plain(self, node: ast.Import) -> None:
        for item in node.names:
            self.packages.add(item.name.split(".")[0])
            if item.asname:
                self._meaning[item.asname] = item.name

    def _from(self, node: ast.ImportFrom) -> None:
        module = "." * node.level + (node.module or "")
        if not node.level:
            self.packages.add(module.split(".")[0])
        for item in node.names:
            self._meaning[item.asname or item.name] = f"{module}.{item.name}"
            self.named.add(f"{module}.{item.name}")

    def meaning(self, node: ast.AST | None) -> str:
        """``torch.nn.Module`` for ``nn.Module`` after ``from torch import nn``; as written else."""
        written = dotted(node)
        first, dot, rest = written.partition(".")
        return self._meaning.get(first, first) + dot + rest if written else ""


HOST_FUNCTIONS = frozenset((
    "float", "int", "bool", "str", "len", "isinstance", "hasattr", "callable", "type",
    "range", "id", "repr",
))  # fmt: skip
HOST_ATTRIBUTES = frozenset((
    "shape", "ndim", "dtype", "device", "requires_grad", "layout", "itemsize", "nbytes", "grad_fn",
    "names",
))  # fmt: skip
TO_HOST = frozenset((
    "item", "tolist", "numpy", "cpu", "size", "dim", "numel", "ndimension", "nelement",
    "data_ptr", "element_size", "stride", "get_device", "is_floating_point", "is_complex",
    "is_contiguous", "storage_offset", "type",
))  # fmt: skip
ALWAYS_TO_HOST = frozenset(("item", "tolist", "numpy"))
SAME_MODEL = frozenset((
    "train", "eval", "half", "bfloat16", "float", "double", "requires_grad_", "to", "cuda",
    "module", "apply", "compile",
))  # fmt: skip
MODEL_MAKERS = frozenset(("torch.compile", "torch.jit.script", "torch.jit.trace"))
MODULE_CLASS = re.compile(r"torch\.(nn\.(\w+\.)*[A-Z]\w*|distributed\.fsdp\.[A-Z]\w*)$")
TENSOR_MAKERS = frozenset(
    f"torch.{name}" for name in (
        "tensor", "as_tensor", "zeros", "ones", "rand", "randn", "randint", "randperm",
        "arange", "empty", "full", "eye", "linspace", "logspace", "from_numpy", "normal",
    )
)  # fmt: skip
NO_TENSORS = (
    "torch.cuda.", "torch.distributed.", "torch.utils.", "torch.optim.", "torch.backends.",
    "torch.device", "torch.save", "torch.load", "torch.manual_seed", "torch.is_tensor",
    "torch.no_grad", "torch.autocast", "torch.amp.", "torch.set_", "torch.get_", "torch.Generator",
    "torch.profiler.", "torch.jit.is_", "torch.compiler.", "torch._", "torch.is_", "torch.numel",
    "torch.hub.", "torch.autograd.set_", "torch.autograd.profiler",
)  # fmt: skip
PLACE = re.compile(
    r"(^|_|use|n)(device|gpu|xpu|mps|npu|hpu)s?(_|\d|$)|parallel|scaler|autocast", re.IGNORECASE
)
DEVICE = re.compile(r"device|cuda|rank|gpu", re.IGNORECASE)
NUMBER = re.compile(
    r"^[BCDHLNTW]$|(^|_)(num|n|size|sizes|len|length|width|height|count|dim|frames|steps?)(_|$)"
)
COMBINING = (ast.BinOp, ast.UnaryOp, ast.BoolOp, ast.Compare, ast.IfExp, ast.Starred,
             ast.NamedExpr, ast.Await)  # fmt: skip
NO_TENSOR_TESTS = (ast.Is, ast.IsNot, ast.In, ast.NotIn)
EVIDENCE = frozenset((
    "shape", "size", "view", "dim", "sum", "mean", "device", "dtype", "reshape", "permute",
    "transpose", "unsqueeze", "squeeze", "flatten", "contiguous", "new_zeros", "new_ones",
    "float", "long", "half", "masked_fill", "expand", "repeat", "clone", "argmax",
    "softmax", "detach", "ndim",
))  # fmt: skip


CACHE = re.compile(r"(^|[_.])(past|cache)(_|$)")
A_TENSOR = re.compile(r"\b(Bool|Byte|Double|Float|Half|Int|Long)?Tensor\b")
OTHER_TYPES = re.compile(r"\b(int|float|bool|str|[Ll]ist|[Dd]ict|[Tt]uple|Sequence|Iterable)\b")


def asks_about(attribute: str) -> bool:
    """Whether an attribute of a tensor says something about it, without its values."""
    return attribute in HOST_ATTRIBUTES or attribute.startswith("is_")


def about_no_tensor(test: ast.AST) -> bool:
    """Whether a condition cannot be about a tensor: identity, membership, comparison with text.

    ``past is not None and …`` holds in inference only: there is no cache in training.
    """
    if isinstance(test, ast.BoolOp) and isinstance(test.op, ast.And):
        return any(asks_for_cache(item) for item in test.values)
    if not isinstance(test, ast.Compare):
        return False
    texts = any(
        isinstance(side, ast.Constant) and isinstance(side.value, str | None)
        for side in test.comparators
    )
    sizes = any(map(_is_size, (test.left, *test.comparators)))
    return texts or sizes or isinstance(test.ops[0], NO_TENSOR_TESTS)


def _is_size(side: ast.expr) -> bool:
    """``x.shape[0]``, ``len(x)``: sizes are compared with plain numbers alone."""
    node = side.value if isinstance(side, ast.Subscript) else side
    if isinstance(node, ast.Call):
        return dotted(node.func).split(".")[-1] in ("len", "size", "type", "numel", "dim")
    return isinstance(node, ast.Attribute) and node.attr in ("shape", "ndim")


def plain_number(test: ast.AST) -> str:
    """What ``isinstance(name, int)`` says is no tensor, empty for other conditions."""
    asks = isinstance(test, ast.Call) and dotted(test.func) == "isinstance" and len(test.args) == 2
    about = isinstance(test, ast.Call) and asks and dotted(test.args[1]) in HOST_FUNCTIONS
    return dotted(test.args[0]) if isinstance(test, ast.Call) and about else ""


def asks_for_cache(test: ast.expr) -> bool:
    """Whether a condition asks for a cache of earlier tokens, which training has not."""
    asks = isinstance(test, ast.Compare) and isinstance(test.ops[0], ast.IsNot)
    return asks and isinstance(test, ast.Compare) and bool(CACHE.search(dotted(test.left)))


def tensor_parameters(function: Function, is_layer: Callable[[ast.Call], bool]) -> Iterator[str]:
    """The parameters of a forward method that its own code treats as tensors."""
    arguments = function.args
    switches = {
        item.arg for item, default in with_defaults(arguments)
        if isinstance(default, ast.Constant) and default.value is not None
    }  # fmt: skip
    for item in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs):
        if item.arg in switches:
            continue
        annotation = ast.unparse(item.annotation) if item.annotation else ""
        said = bool(A_TENSOR.search(annotation)) and not OTHER_TYPES.search(annotation)
        unsaid = not annotation and item.arg != "self" and not NUMBER.search(item.arg)
        if said or (unsaid and _treated(function, item.arg, is_layer)):
            yield item.arg


def _treated(function: Function, name: str, is_layer: Callable[[ast.Call], bool]) -> bool:
    for node in in_scope(function):
        if isinstance(node, ast.Attribute) and node.attr in EVIDENCE and dotted(node.value) == name:
            return True
        fed = isinstance(node, ast.Call) and node.args and dotted(node.args[0]) == name
        if fed and isinstance(node, ast.Call) and is_layer(node):
            return True
    return False
