"""What is replaced of ministack and moto: listed, documented, and still there upstream."""

import ast
import json
import subprocess
from pathlib import Path

import pytest

from compilegate_localcloud.emulator.replacements import LIBRARIES, REPLACEMENTS
from distributions.localcloud.tests.replacements_table import (
    DISTRIBUTION,
    README,
    ROOT,
    TABLE,
    locked_version,
    refreshed,
)

EMULATOR = DISTRIBUTION / "compilegate_localcloud" / "emulator"
# Runs among the emulator's own libraries, which are looked at before anything is replaced.
LOOK = """
import importlib.metadata, inspect, json, sys
from compilegate_localcloud.emulator import replacements
from compilegate_localcloud.emulator.__main__ import prepare_process
from compilegate_localcloud.emulator.settings import parse_arguments

def signature(thing):
    if not inspect.isroutine(thing):
        return type(thing).__name__
    parameters = inspect.signature(thing).parameters.values()
    return f"({', '.join(str(one.replace(annotation=one.empty)) for one in parameters)})"

settings = parse_arguments(["--home", sys.argv[1], "--run-id", "test",
                            "--job-python", sys.executable])
prepare_process(settings, port=1)
answer = {
    "versions": {name: importlib.metadata.version(name) for name in replacements.LIBRARIES},
    "signatures": {one.target: signature(replacements.upstream(one.target))
                   for one in replacements.REPLACEMENTS},
}
from compilegate_localcloud.emulator.journal.restore import open_recorder
from compilegate_localcloud.emulator.server import install
_, loader = install(settings, open_recorder(settings))
loader.start()
loader.wait()
print(json.dumps({**answer, "replaced": sorted(replacements.replaced)}))
"""


@pytest.fixture(scope="module")
def emulator(tmp_path_factory):
    """Versions and signatures of the libraries, and what the emulator replaces of them."""
    python = ROOT / ".venv-localcloud" / "bin" / "python"
    home = tmp_path_factory.mktemp("emulator")
    answer = subprocess.run(
        [python, "-c", LOOK, home], cwd=ROOT, check=True, capture_output=True, text=True
    )
    return json.loads(answer.stdout)


def test_what_is_replaced_is_what_the_table_lists(emulator):
    assert emulator["replaced"] == sorted(one.target for one in REPLACEMENTS)


def test_every_replaced_part_is_still_there_with_its_signature(emulator):
    assert emulator["versions"] == {library: locked_version(library) for library in LIBRARIES}
    assert emulator["signatures"] == {one.target: one.signature for one in REPLACEMENTS}


def test_the_table_of_the_readme_is_todays():
    page = README.read_text(encoding="utf-8")

    assert TABLE.search(page)
    assert refreshed(page) == page, (
        "write it anew: python -m distributions.localcloud.tests.replacements_table"
    )


def root_of(node):
    """The name that an attribute, a subscript or a call begins with."""
    while isinstance(node, ast.Attribute | ast.Subscript | ast.Call):
        node = node.func if isinstance(node, ast.Call) else node.value
    return node.id if isinstance(node, ast.Name) else None


def targets_of(node):
    return node.targets if isinstance(node, ast.Assign) else [node.target]


def changed_parts(tree):
    """Assignments to a part of a library that a module has imported, under any name."""
    nodes = list(ast.walk(tree))
    names = {
        alias.asname or alias.name.partition(".")[0]
        for node in nodes
        if isinstance(node, ast.Import | ast.ImportFrom)
        for alias in node.names
        if (getattr(node, "module", None) or alias.name).partition(".")[0] in LIBRARIES
    }
    assignments = [node for node in nodes if isinstance(node, ast.Assign | ast.AnnAssign)]
    for node in assignments:
        if isinstance(node.value, ast.Attribute | ast.Name) and root_of(node.value) in names:
            names |= {target.id for target in targets_of(node) if isinstance(target, ast.Name)}
    for node in assignments:
        for target in targets_of(node):
            if not isinstance(target, ast.Name) and root_of(target) in names:
                yield ast.unparse(target)


@pytest.mark.parametrize(
    "path", sorted(EMULATOR.rglob("*.py")), ids=lambda path: str(Path(path).relative_to(EMULATOR))
)
def test_nothing_of_the_libraries_is_replaced_past_the_table(path):
    tree = ast.parse(path.read_text())
    calls = {root_of(node) for node in ast.walk(tree) if isinstance(node, ast.Call)}

    assert list(changed_parts(tree)) == []
    assert "setattr" not in calls or path.name == "replacements.py"


def test_an_assignment_to_a_library_is_seen():
    code = "from ministack.services import budgets as b\nalias = b.x\nalias.y = 1\nb._z['k'] = 2\n"

    assert list(changed_parts(ast.parse(code))) == ["alias.y", "b._z['k']"]
