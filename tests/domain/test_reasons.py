"""One registry of reasons: every code is registered and raised, none is read as text."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Set
from itertools import product
from pathlib import Path
from typing import Any

import pytest

import compilegate
from compilegate.domain.judging.probation import BLIND
from compilegate.domain.production.fingerprint import FIELDS
from compilegate.domain.reasons import advice, headline, in_one_line, registry, with_fix
from compilegate.domain.wording import names
from compilegate.domain.workload.model import Candidate, Workload

ROOT = Path(compilegate.__file__).parent
FINDINGS = {"finding", "finds"}
MAKERS = {"Reason", "make", *FINDINGS}
# Arguments of findings that are no constants, and what they may be.
COMPUTED_FINDINGS = {
    "code": ["run_length_unscaled", "warmup_unscaled", "framework_downgrade", "framework_change"],
    "image.code": ["no_compiler_image", "region_unsupported"],
    "situation": ["older", "other", "memory", "shapes", "no_graph", "xgboost", "sklearn"],
}
# What a rule may say itself, and what templates may name of every job (CandidateJob.finds).
OWN = ("message", "field", "fix", "source", "severity")
OF_EVERY_JOB = {
    "framework", "version", "instance_type", "distribution", "compiler", "family", "model",
    "region", "status", "as_of",
}  # fmt: skip
# Codes that are put together from the name of a field or figure.
COMPUTED = {
    *(f"{field}_changed" for field in FIELDS), *(code for code, _ in BLIND.values()),
}  # fmt: skip
TEXT_METHODS = {
    "startswith", "endswith", "partition", "rpartition", "split", "find", "index", "match",
    "search", "fullmatch", "removeprefix", "removesuffix", "replace",
}  # fmt: skip
WORDS = {"message", "reason"}


Modules = dict[str, ast.Module]


@pytest.fixture(scope="module")
def modules() -> Modules:
    """Every module by its place; gone after this file, they take a hundred megabytes."""
    files = {str(file.relative_to(ROOT)): file for file in sorted(ROOT.rglob("*.py"))}
    return {name: ast.parse(file.read_text(encoding="utf-8")) for name, file in files.items()}


def _called(call: ast.Call) -> str:
    return ast.unparse(call.func).rpartition(".")[2]


def _constants(nodes: Iterable[ast.AST]) -> set[str]:
    return {
        str(node.value)
        for node in nodes
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
    }


def test_every_code_that_is_raised_is_registered(modules):
    raised = _constants(
        code
        for tree in modules.values()
        for node in ast.walk(tree)
        if isinstance(node, ast.Call) and _called(node) in MAKERS and node.args
        for first in node.args[:1]
        for code in ((first.body, first.orelse) if isinstance(first, ast.IfExp) else (first,))
    )

    assert raised | COMPUTED <= set(registry())


def test_every_registered_code_is_raised(modules):
    code = (node for tree in modules.values() for node in ast.walk(tree))

    assert set(registry()) <= COMPUTED | _constants(code)


def _given(modules: Modules) -> Iterator[tuple[str, str, set[str | None]]]:
    """Code, situation and values of each finding."""
    for tree in modules.values():
        for call in ast.walk(tree):
            if isinstance(call, ast.Call) and _called(call) in FINDINGS and call.args:
                code, situation = [*call.args, ast.Constant("")][:2]
                values = {keyword.arg for keyword in call.keywords}
                for one, other in product(*map(_possible, (code, situation))):
                    if None not in values:  # which hands on those of a rule
                        yield one, other, values


def _possible(argument: ast.expr) -> list[str]:
    """The texts that an argument may be."""
    match argument:
        case ast.Constant(value=str(text)):
            return [text]
        case ast.IfExp(body=ast.Constant(value=str(one)), orelse=ast.Constant(value=str(other))):
            return [one, other]
    return COMPUTED_FINDINGS.get(ast.unparse(argument), [])


def _situations(code: str) -> Iterator[str]:
    says = registry()[code].says
    situations = [key for key, value in says.items() if isinstance(value, dict)]
    yield from situations or ([""] if says else [])


def test_a_reason_is_given_the_values_that_its_words_name_and_no_words_are_left(
    modules,
):
    given = [one for one in _given(modules) if one[1] in _situations(one[0])]
    written = {(code, situation) for code in registry() for situation in _situations(code)}

    assert written == {(code, situation) for code, situation, _ in given}
    for code, situation, values in given:
        says = registry()[code].says
        words = {"source": "", **(says[situation] if situation else says)}
        own = values & set(OWN)
        assert {"message", "field", "fix", "source"} <= set(words) | own, (code, situation)
        named = {name for key, text in words.items() if key not in own for name in names(text)}
        assert values - own <= named <= values | OF_EVERY_JOB, (code, situation)


def test_a_finding_names_a_key_of_the_workload_file():
    for code in registry():
        for situation in _situations(code):
            says = registry()[code].says
            *sections, last = (
                (says[situation] if situation else says).get("field", "name").split(".")
            )
            keys: Any = Workload.keys()
            for section in sections:
                keys = Candidate.keys() if section == "candidate" else keys[section].inner.keys()
            assert last in keys, (code, situation)


def _is_message(node: ast.AST, names: Set[str] = frozenset()) -> bool:
    """A reason's words: an attribute or a key, the same as text, or a name bound to them."""
    match node:
        # The last one is Review.reason, which answers with a message.
        case (
            ast.Attribute(attr=word)
            | ast.Subscript(slice=ast.Constant(value=word))
            | ast.Call(func=ast.Attribute(attr="get"), args=[ast.Constant(value=word), *_])
            | ast.Call(func=ast.Attribute(attr="reason" as word))
        ):
            return word in WORDS
        case ast.Name(id=name):
            return name in names
        case ast.BoolOp(values=parts) | ast.Call(func=ast.Name(id="str"), args=parts):
            return any(_is_message(part, names) for part in parts)
        case ast.Call(func=ast.Attribute(value=part)):  # message.strip()
            return _is_message(part, names)
    return False


def _bound(function: ast.AST) -> set[str]:
    """Names that are bound to a message in a function, or in a comprehension of it."""
    bound: set[str] = set()
    for node in ast.walk(function):
        match node:
            case ast.Assign(targets=targets, value=value):
                pairs = [pair for target in targets for pair in _pairs(target, value)]
            case ast.NamedExpr(target=target, value=value):
                pairs = [(target, value)]
            case _:
                continue
        bound |= {
            name.id for name, text in pairs
            if isinstance(name, ast.Name) and _is_message(text, bound)
        }  # fmt: skip
    return bound


def _pairs(target: ast.expr, value: ast.expr) -> Iterable[tuple[ast.expr, ast.expr]]:
    if isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple):
        return zip(target.elts, value.elts, strict=True)
    return [(target, value)]


def _reads_a_message(node: ast.AST, names: Set[str]) -> bool:
    """A comparison of a message, or a method that looks for words in one."""
    if isinstance(node, ast.Compare):
        sides = (node.left, *node.comparators)
        absent = any(isinstance(side, ast.Constant) and side.value is None for side in sides)
        return not absent and any(_is_message(side, names) for side in sides)
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
        return False
    if node.func.attr not in TEXT_METHODS:
        return False
    return any(_is_message(part, names) for part in (node.func.value, *node.args))


def _readers(name: str, tree: ast.Module) -> Iterator[str]:
    """Functions of a module that read a message, as ``module:function``."""
    for function in ast.walk(tree):
        if isinstance(function, ast.FunctionDef):
            names = _bound(function)
            if any(_reads_a_message(node, names) for node in ast.walk(function)):
                yield f"{name}:{function.name}"


def test_no_module_decides_by_the_words_of_a_message(modules):
    readers = {reader for name, tree in modules.items() for reader in _readers(name, tree)}

    assert readers == set()


def test_a_code_of_another_release_has_neither_headline_nor_advice():
    assert (headline("of_a_later_judge"), advice("of_a_later_judge")) == ("", "")


@pytest.mark.parametrize(
    ("fix", "expected"),
    [("a\nb", "a; b"), ("a:\n  b", "a: b"), ("a,\n b", "a, b"), ("a", "a")],
)
def test_a_fix_with_lines_to_copy_fits_one_line(fix, expected):
    assert in_one_line(fix) == expected
    assert with_fix("m.", fix) == f"m. Fix: {expected}"
