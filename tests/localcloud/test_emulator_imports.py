"""The emulator lives in an environment of its own."""

import ast

from compilegate.localcloud.environments import REPOSITORY

EMULATOR = REPOSITORY / "compilegate" / "localcloud" / "emulator"


def imported(path):
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield node.module


def test_emulator_imports_no_other_part_of_compilegate():
    found = {
        name
        for path in EMULATOR.rglob("*.py")
        for name in imported(path)
        if name.startswith("compilegate") and not name.startswith("compilegate.localcloud.emulator")
    }

    assert found == set()


def test_tool_imports_nothing_of_the_emulator():
    found = {
        (path.name, name)
        for path in (REPOSITORY / "compilegate" / "localcloud").glob("*.py")
        for name in imported(path)
        if name.startswith("compilegate.localcloud.emulator")
    }

    assert found == set()
