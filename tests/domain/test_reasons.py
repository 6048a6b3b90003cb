"""One registry of reasons: every code is registered and raised, none is read as text."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest

import compilegate
from compilegate.domain.judging.probation import BLIND
from compilegate.domain.production.fingerprint import FIELDS
from compilegate.domain.reasons import Reason, Severity, in_one_line, with_fix
from compilegate.domain.reasons.registry import REGISTRY, advice, headline

ROOT = Path(compilegate.__file__).parent
# doctor and the embedded cloud have findings of their own, and so has the check of a deployment.
OWN_FINDINGS = ("doctor", "localcloud", "verify", "domain/deployment", "cli/deployment_check",
                "cli/doctor")  # fmt: skip
MAKERS = {"Reason", "block", "warn", "info", "make"}
# Codes that are put together from the name of a field or figure.
COMPUTED = {
    *(f"{field}_changed" for field in FIELDS), *(f"{figure}_not_watched" for figure in BLIND),
}  # fmt: skip
TEXT_METHODS = {
    "startswith", "endswith", "partition", "rpartition", "split", "find", "index", "match",
    "search", "fullmatch", "removeprefix", "removesuffix",
}  # fmt: skip


def _modules() -> Iterator[tuple[str, ast.Module]]:
    for file in sorted(ROOT.rglob("*.py")):
        name = str(file.relative_to(ROOT))
        if not name.startswith(OWN_FINDINGS):
            yield name, ast.parse(file.read_text(encoding="utf-8"))


def _constants(nodes: Iterable[ast.AST]) -> set[str]:
    return {
        str(node.value)
        for node in nodes
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
    }


def test_every_code_that_is_raised_is_registered() -> None:
    raised = _constants(
        code
        for _, tree in _modules()
        for node in ast.walk(tree)
        if isinstance(node, ast.Call) and getattr(node.func, "id", "") in MAKERS and node.args
        for first in node.args[:1]
        for code in ((first.body, first.orelse) if isinstance(first, ast.IfExp) else (first,))
    )

    assert raised | COMPUTED <= set(REGISTRY)


def test_every_registered_code_is_raised() -> None:
    code = (tree for name, tree in _modules() if not name.startswith("domain/reasons/"))

    assert set(REGISTRY) <= COMPUTED | _constants(node for tree in code for node in ast.walk(tree))


def _is_message(node: ast.AST) -> bool:
    if isinstance(node, ast.Subscript):
        return isinstance(node.slice, ast.Constant) and node.slice.value == "message"
    return isinstance(node, ast.Attribute) and node.attr == "message"


def _reads_a_message(node: ast.AST) -> bool:
    """A comparison of a message, or a method that looks for words in one."""
    if isinstance(node, ast.Compare):
        return any(_is_message(side) for side in (node.left, *node.comparators))
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
        return False
    if node.func.attr not in TEXT_METHODS:
        return False
    return _is_message(node.func.value) or any(map(_is_message, node.args))


def test_no_module_decides_by_the_words_of_a_message() -> None:
    found = [
        f"{name}:{node.lineno}"
        for name, tree in _modules()
        for node in ast.walk(tree)
        if isinstance(node, ast.expr) and _reads_a_message(node)
    ]

    assert found == []


@pytest.mark.parametrize("code", sorted(REGISTRY))
def test_a_kind_has_a_meaning_severities_and_templates_that_can_be_filled(code: str) -> None:
    kind = REGISTRY[code]
    names = dict.fromkeys(("speed", "but", "metric", "margin", "promote", "reject"), "")

    assert kind.severities
    assert kind.meaning.endswith(".")
    assert kind.fix == "" or kind.fix.endswith(".")
    for template in (kind.headline, *kind.variants.values()):
        assert template.format(**names) is not None
        assert not template.endswith(".")


def test_a_code_of_another_release_has_neither_headline_nor_advice() -> None:
    assert (headline("of_a_later_judge"), advice("of_a_later_judge")) == ("", "")


def test_a_reason_in_a_decision_names_its_fix_only_where_it_has_one() -> None:
    plain = Reason("alarm", "slower", "compile")

    assert plain.to_dict() == {"code": "alarm", "arm": "compile", "message": "slower"}
    assert Reason("alarm", "slower", fix="wait").to_dict()["fix"] == "wait"


def test_a_reason_in_an_eligibility_document_has_the_contracts_keys_in_order() -> None:
    reason = Reason("not_gpu", "m", None, Severity.WARN, "f", "x", "s")

    assert list(reason.to_finding().items()) == [
        ("code", "not_gpu"), ("severity", "warn"), ("field", "f"), ("message", "m"), ("fix", "x"),
        ("source", "s"),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("fix", "expected"),
    [("a\nb", "a; b"), ("a:\n  b", "a: b"), ("a,\n b", "a, b"), ("a", "a")],
)
def test_a_fix_with_lines_to_copy_fits_one_line(fix: str, expected: str) -> None:
    assert in_one_line(fix) == expected
    assert with_fix("m.", fix) == f"m. Fix: {expected}"
