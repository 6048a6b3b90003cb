"""The way of a value from function to function, read from the code.

A journey begins at a function, with the values of some of its parameters. Inside a function, a name
holds such a value if it is a parameter that was handed one, or if it is bound to an expression in
which such a name occurs: what a call answers counts as what went in. A call with such a name in an
argument leads to the function called, where the parameters that take those arguments hold it.

- The way ends where only a figure or a text is left: a parameter annotated with plain types alone
  (`PLAIN`; several of them, or None, as well) holds nothing.
- It ends where an object chooses its method at run time. Followed are functions called by name,
  however imported, and methods called on `self`, on a class by its name and on a parameter
  annotated with a class; of a Protocol none.
- Constructors, properties and fields are not looked into: they are the value itself.

A climb is a function that hands the value down to a lower floor and goes on with what comes up
again. Floors are those of the first contract in pyproject.toml.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

Function = ast.FunctionDef | ast.AsyncFunctionDef
PLAIN = {
    "Collection", "Iterable", "Iterator", "Sequence", "bool", "bytes", "date", "datetime", "float",
    "frozenset", "int", "list", "set", "str", "timedelta", "tuple",
}  # fmt: skip


@dataclass(frozen=True)
class Defined:
    """A statement that gives a name its meaning, in the module where it stands."""

    module: str
    node: ast.AST


@dataclass(frozen=True)
class Step:
    """A function on the way; ``owner`` is the class of a method."""

    module: str
    function: Function
    owner: ast.ClassDef | None = None

    @property
    def parameters(self) -> list[ast.arg]:
        given = self.function.args
        return [*given.posonlyargs, *given.args, *given.kwonlyargs]

    def __str__(self) -> str:
        owner = f"{self.owner.name}." if self.owner else ""
        return f"{self.module}.{owner}{self.function.name}"


@dataclass
class Code:
    """Parsed modules by their dotted names, and what each name in them means."""

    modules: Mapping[str, ast.Module]
    lines: int
    names: dict[str, dict[str, ast.AST]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for module, tree in self.modules.items():
            self.names[module] = dict(_named(tree))

    def find(self, name: str) -> list[Step]:
        """Functions of modules with this name, wherever they are."""
        return [
            Step(module, node)
            for module, names in self.names.items()
            if isinstance(node := names.get(name), Function)
        ]

    def meaning(self, module: str, name: str) -> Defined | str | None:
        """Where a name is defined, through imports; the name of a module; None from outside."""
        node = self.names.get(module, {}).get(name)
        if isinstance(node, ast.alias):
            within, _, imported = node.name.rpartition(".")
            answer = self.meaning(within, imported) if within in self.modules else None
            return answer or (node.name if node.name in self.modules else None)
        if node is None:
            inner = f"{module}.{name}"
            return inner if inner in self.modules else None
        return Defined(module, node)

    def of_expression(self, module: str, expression: ast.AST) -> Defined | str | None:
        """What a name or ``module.name`` means."""
        if isinstance(expression, ast.Name):
            return self.meaning(module, expression.id)
        if isinstance(expression, ast.Attribute):
            inside = self.of_expression(module, expression.value)
            return self.meaning(inside, expression.attr) if isinstance(inside, str) else None
        return None

    def class_of(self, module: str, annotation: ast.AST | None) -> Defined | None:
        """The class of the project that an annotation names, None and quotes aside."""
        if isinstance(annotation, ast.BinOp):
            return self.class_of(module, annotation.left)
        meant = self.of_expression(module, annotation) if annotation else None
        is_class = isinstance(meant, Defined) and isinstance(meant.node, ast.ClassDef)
        return meant if is_class else None

    def method(self, owner: Defined, name: str) -> Step | None:
        """The method of a class or its bases; of a Protocol none."""
        assert isinstance(owner.node, ast.ClassDef)
        if "Protocol" in map(ast.unparse, owner.node.bases):
            return None
        for node in owner.node.body:
            if isinstance(node, ast.FunctionDef) and node.name == name:
                return Step(owner.module, node, owner.node)
        bases = [self.class_of(owner.module, base) for base in owner.node.bases]
        return next(filter(None, (self.method(base, name) for base in bases if base)), None)

    def is_plain(self, module: str, annotation: ast.AST | None) -> bool:
        """Whether only figures and texts are taken."""
        if annotation is None:
            return False
        for node in ast.walk(annotation):
            if isinstance(node, ast.Name) and node.id not in PLAIN:
                meant = self.meaning(module, node.id)
                if not isinstance(meant, Defined) or not isinstance(meant.node, ast.Assign):
                    return False
                if not self.is_plain(meant.module, meant.node.value):
                    return False
        return True


def _named(tree: ast.Module) -> Iterator[tuple[str, ast.AST]]:
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom | ast.Import):
            within = f"{node.module}." if isinstance(node, ast.ImportFrom) else ""
            for alias in node.names:
                yield alias.asname or alias.name, ast.alias(within + alias.name)
    for node in tree.body:
        match node:
            case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
                yield node.name, node
            case ast.Assign(targets=[ast.Name(id=name)]):
                yield name, node


@dataclass
class Journey:
    """Where the values of a function's parameters go."""

    code: Code
    held: dict[Step, set[str]] = field(default_factory=dict)
    calls: set[tuple[Step, Step]] = field(default_factory=set)

    @classmethod
    def of(cls, code: Code, start: Step, parameters: Sequence[str]) -> Journey:
        journey = cls(code)
        journey._enter(start, set(parameters))
        return journey

    @property
    def modules(self) -> set[str]:
        return {step.module for step in self.held}

    def climbs(self, floors: Mapping[str, int]) -> set[Step]:
        """Functions that hand the value down to a lower floor, whose answer comes up again."""

        def floor(step: Step) -> int:
            inside = [name for name in floors if f"{step.module}.".startswith(f"{name}.")]
            return floors[max(inside, key=len)]

        return {above for above, below in self.calls if floor(above) > floor(below)}

    def _enter(self, step: Step, parameters: set[str]) -> None:
        before = self.held.get(step, set())
        if step in self.held and parameters <= before:
            return
        self.held[step] = before | parameters
        holding = _holding(step.function, self.held[step])
        for call in ast.walk(step.function):
            if isinstance(call, ast.Call) and (to := self._called(step, call.func)):
                self._follow(step, call, to, holding)

    def _called(self, step: Step, function: ast.expr) -> Step | None:
        meant = self.code.of_expression(step.module, function)
        parameters = {one.arg: one.annotation for one in step.parameters}
        if isinstance(meant, Defined):
            return Step(meant.module, meant.node) if isinstance(meant.node, Function) else None
        if not isinstance(function, ast.Attribute) or not isinstance(function.value, ast.Name):
            return None
        name = function.value.id
        if name in {"self", "cls"} and step.owner:
            owner = Defined(step.module, step.owner)
        elif name in parameters:
            owner = self.code.class_of(step.module, parameters[name])
        else:
            owner = self.code.class_of(step.module, function.value)
        return self.code.method(owner, function.attr) if owner else None

    def _follow(self, step: Step, call: ast.Call, to: Step, holding: set[str]) -> None:
        names = [one.arg for one in to.parameters]
        handed = set()
        for keyword in call.keywords:
            if _mentions(keyword.value, holding):
                handed.update([keyword.arg] if keyword.arg else names)
        if to.owner and "staticmethod" not in map(ast.unparse, to.function.decorator_list):
            receiver, *names = names
            if _mentions(call.func, holding):
                handed.add(receiver)
        for place, argument in enumerate(call.args):
            if _mentions(argument, holding):
                last = len(names) if isinstance(argument, ast.Starred) else place + 1
                handed.update(names[place:last])
        plain = {one.arg for one in to.parameters if self.code.is_plain(to.module, one.annotation)}
        if handed - plain:
            self.calls.add((step, to))
            self._enter(to, handed - plain)


def _mentions(expression: ast.AST, names: set[str]) -> bool:
    return any(isinstance(node, ast.Name) and node.id in names for node in ast.walk(expression))


def _holding(function: Function, parameters: set[str]) -> set[str]:
    """The parameters, and what is bound to an expression with one of them, and so on."""
    holding, bindings = set(parameters), list(_bindings(function))
    before = 0
    while before < len(holding):
        before = len(holding)
        for target, value in bindings:
            if _mentions(value, holding):
                holding |= {node.id for node in ast.walk(target) if isinstance(node, ast.Name)}
                holding |= {node.name for node in ast.walk(target) if isinstance(node, ast.MatchAs)}
    return holding


def _bindings(function: Function) -> Iterator[tuple[ast.AST, ast.AST]]:
    """What is bound, and the expression that it is bound to."""
    for node in ast.walk(function):
        match node:
            case ast.Assign(targets=[ast.Tuple(elts=targets)], value=ast.Tuple(elts=values)):
                yield from zip(targets, values, strict=False)
            case ast.Assign(targets=targets, value=value):
                yield from ((target, value) for target in targets)
            case ast.AnnAssign() | ast.AugAssign() | ast.NamedExpr() if node.value:
                yield node.target, node.value
            case ast.For() | ast.comprehension():
                yield node.target, node.iter
            case ast.withitem(optional_vars=ast.expr() as target):
                yield target, node.context_expr
            case ast.Match():
                yield from ((case.pattern, node.subject) for case in node.cases)
