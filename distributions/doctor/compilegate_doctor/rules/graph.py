"""Code inside a model that a compiler cannot put into one graph."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from compilegate_doctor.finding import Hit, Severity
from compilegate_doctor.kinds import Kind
from compilegate_doctor.options import MOST_NESTED
from compilegate_doctor.rule import EVERY, GRAPH_BREAKS, RECOMPILATION, TORCH_ONLY, Rule
from compilegate_doctor.script import Script
from compilegate_doctor.syntax import Function, called, dotted, in_scope, last_name, receiver
from compilegate_doctor.words import MODEL

FETCHES = ("item", "tolist")
TO_NUMBER = ("float", "int", "bool")
CHANGING = ("nonzero", "masked_select", "unique", "unique_consecutive", "bincount", "argwhere")
# What gives a single value, which a condition can ask for.
ASKS = ("any", "all", "isnan", "isinf", "isfinite", "isclose", "sum", "mean", "max", "min", "norm",
        "count_nonzero", "eq", "ne", "lt", "le", "gt", "ge", "logical_and", "logical_or",
        "logical_not", "rand", "randint", "bernoulli")  # fmt: skip
RANDOM = ("random.", "numpy.random.")
# Modules that change samples while they are loaded.
AUGMENTS = re.compile(r"^Random[A-Z\d]|(Crop|Flip|Jitter|Augment(er|ation)?)$")
GROWS = ("append", "extend", "insert", "add")


def branch_on_tensor(script: Script) -> Iterator[Hit]:
    """Decisions that depend on values."""
    for _, node in script.models.nodes:
        decides = isinstance(node, ast.If | ast.While | ast.IfExp) and script.is_tensor(node.test)
        if isinstance(node, ast.If | ast.While | ast.IfExp) and decides:
            if not _asks_value(script, node.test):
                continue
            word = "while" if isinstance(node, ast.While) else "if"
            yield _hit(script, node.test, f"This {word} depends on a tensor's value")


def _asks_value(script: Script, test: ast.expr, depth: int = 0) -> bool:
    """Whether a condition computes: a tensor's bare name asks whether there is one."""
    if depth > MOST_NESTED or not script.is_tensor(test):
        return False
    if isinstance(test, ast.BoolOp | ast.UnaryOp):
        parts = test.values if isinstance(test, ast.BoolOp) else [test.operand]
        return any(_asks_value(script, item, depth + 1) for item in parts)
    if isinstance(test, ast.Name):
        around = script.function_of(test)
        made = [
            node.value for node in ast.walk(around or script.tree)
            if isinstance(node, ast.Assign) and dotted(node.targets[0]) == test.id
            and node.lineno < test.lineno
        ]  # fmt: skip
        return any(_asks_value(script, item, depth + 1) for item in made)
    if isinstance(test, ast.Call) and script.steps.targets(test):
        return any(
            isinstance(node, ast.Return) and node.value is not None
            and _asks_value(script, node.value, depth + 1)
            for function in script.steps.targets(test) for node in in_scope(function)
        )  # fmt: skip
    return isinstance(test, ast.Compare) or (isinstance(test, ast.Call) and called(test) in ASKS)


def fetch_in_model(script: Script) -> Iterator[Hit]:
    """Values fetched, or shown, while the model computes."""
    seen: set[ast.AST] = set()
    for _, node in script.models.nodes:
        if not isinstance(node, ast.Call):
            continue
        what = _fetch(script, node)
        statement = script.statement(node)
        if what and statement not in seen and not _shows_now_and_then(script, statement):
            seen.add(statement)
            yield _hit(script, node, what)


def _shows_now_and_then(script: Script, statement: ast.AST) -> bool:
    """Whether it prints behind a condition: for debugging, or what the condition fetched."""
    shown = statement.value if isinstance(statement, ast.Expr) else None
    printed = isinstance(shown, ast.Call) and called(shown) == "print"
    return printed and any(isinstance(outer, ast.If) for outer in script.parents_of(statement))


def _fetch(script: Script, call: ast.Call) -> str:
    name, on = called(call), receiver(call)
    if on is None:
        if name == "print":
            return "print(…) inside the model breaks the graph"
        number = name in TO_NUMBER and len(call.args) == 1 and script.is_tensor(call.args[0])
        return f"{name}(…) of a tensor breaks the graph" if number else ""
    fetched = name in FETCHES and script.is_tensor(on)
    return f".{name}() breaks the graph" if fetched else ""


def changing_shape(script: Script) -> Iterator[Hit]:
    """Results whose size depends on values."""
    for _, node in script.models.nodes:
        what = ""
        if isinstance(node, ast.Call):
            what = _sized_by_values(script, node)
        elif isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Load):
            masks = isinstance(node.slice, ast.Compare) and script.is_tensor(node.slice)
            what = "Indexing with a condition" if masks and script.is_tensor(node.value) else ""
        if what:
            yield _hit(script, node, f"{what} gives a result whose size depends on the values")


def _sized_by_values(script: Script, call: ast.Call) -> str:
    name, on, meaning = called(call), receiver(call), script.called(call)
    from_torch = meaning == f"torch.{name}"
    about_tensor = on is not None and script.is_tensor(on)
    if name in CHANGING and (from_torch or about_tensor):
        fixed = any(item.arg == "size" for item in call.keywords)  # nonzero_static and the like
        return "" if fixed else f"{name}()"
    alone = len(call.args) == 1 and not call.keywords
    return "where() with a condition alone" if meaning == "torch.where" and alone else ""


def random_in_model(script: Script) -> Iterator[Hit]:
    """Randomness that is not the device's."""
    for function, node in script.models.nodes:
        drawn = isinstance(node, ast.Call) and script.called(node).startswith(RANDOM)
        if isinstance(node, ast.Call) and drawn and not _changes_samples(script, function):
            yield _hit(script, node, f"{script.called(node)}() is drawn outside the graph")


def _changes_samples(script: Script, function: Function) -> bool:
    """Whether it belongs to a module without layers, which changes samples before the model."""
    holder = script.parents.get(function)
    if not isinstance(holder, ast.ClassDef):
        return False
    made = [node.value for node in ast.walk(holder) if isinstance(node, ast.Assign)]
    built = any(isinstance(one, ast.Call) and called(one)[:1].isupper() for one in made)
    kept = any(MODEL.search(last_name(one)) for one in made)
    return not (built or kept) or AUGMENTS.search(holder.name) is not None


def counter_in_model(script: Script) -> Iterator[Hit]:
    """Python state of a module that changes with every call."""
    for function, node in script.models.nodes:
        if isinstance(node, ast.AugAssign) and dotted(node.target).startswith("self."):
            counts = script.kinds.of(node.value) is Kind.HOST
            if counts and _plain_number(script, function, dotted(node.target)):
                yield Hit(node, f"{dotted(node.target)} changes with every call")
        elif isinstance(node, ast.Call) and called(node) in GROWS:
            on = dotted(receiver(node))
            if on.startswith("self.") and on.count(".") == 1 and _list(script, function, on):
                yield Hit(node, f"{on} grows with every call")


def _list(script: Script, function: Function, name: str) -> bool:
    return any(isinstance(value, ast.List | ast.Set) for value in _set_up(script, function, name))


def _plain_number(script: Script, function: Function, name: str) -> bool:
    values = _set_up(script, function, name)
    return bool(values) and all(
        isinstance(value, ast.Constant) and isinstance(value.value, int | float) for value in values
    )


def _set_up(script: Script, function: Function, name: str) -> list[ast.expr]:
    """What its constructor gives an attribute; nothing where a method sets it anew."""
    holder = script.parents.get(function)
    values: list[ast.expr] = []
    for node in ast.walk(holder) if isinstance(holder, ast.ClassDef) else ():
        if isinstance(node, ast.Assign) and any(dotted(item) == name for item in node.targets):
            where = script.function_of(node)
            if where is not None and where.name != "__init__":
                return []  # in each call or between calls: it does not grow for ever
            values.append(node.value)
    return values


def _hit(script: Script, node: ast.AST, message: str) -> Hit:
    """With ``fullgraph=True`` a graph break is an error."""
    return Hit(node, message, Severity.BREAKS if script.models.whole_graph else None)


RULES = (
    Rule(
        "branch-on-tensor", "A decision on a tensor's value in the model", Severity.SLOWS, EVERY,
        branch_on_tensor,
        "The graph ends there, Python decides on the value, a second graph begins. With "
        "fullgraph=True it is an error.",
        "compute both branches and choose with torch.where, or use torch.cond",
        GRAPH_BREAKS,
    ),
    Rule(
        "fetch-in-model", "A value is fetched inside the model", Severity.SLOWS, EVERY,
        fetch_in_model,
        "The graph is cut in two and Python waits for the GPU. With fullgraph=True it is an error.",
        "keep the value a tensor, return it, and read it outside the model",
        GRAPH_BREAKS,
    ),
    Rule(
        "changing-shape", "A result whose size depends on values", Severity.SLOWS, EVERY,
        changing_shape,
        "The size is known only once computed: the graph is cut there, and XLA compiles each new "
        "size.",
        "keep the size fixed: multiply by the mask, or use torch.where(mask, a, b)",
        GRAPH_BREAKS,
    ),
    Rule(
        "random-in-model", "Python's or NumPy's randomness in the model", Severity.SLOWS, EVERY,
        random_in_model,
        "The draw happens in Python: the graph is cut there, or compiled once per outcome.",
        "draw with torch.rand on the device, or outside the model",
        GRAPH_BREAKS,
    ),
    Rule(
        "counter-in-model", "A Python counter in the model", Severity.SLOWS, TORCH_ONLY,
        counter_in_model,
        "torch.compile treats a module's numbers and its lists' lengths as constants: it compiles "
        "for each value, up to eight times, then runs uncompiled.",
        "count outside forward, or keep the counter in a tensor (register_buffer)",
        RECOMPILATION,
    ),
)  # fmt: skip
