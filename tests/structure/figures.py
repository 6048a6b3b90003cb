"""The size of the core and how far its values travel: what `figures.json` holds."""

from __future__ import annotations

import ast
import json
import tomllib
from collections.abc import Mapping
from pathlib import Path

from tests.structure.journeys import Code, Journey, Step

ROOT = Path(__file__).parents[2]
HELD = Path(__file__).with_name("figures.json")
PACKAGE = "compilegate"
# What a journey begins with: the function, where it is, the parameter.
JOURNEYS = {
    "judge_round": ("judge_round", "compilegate.domain.", "facts"),
    "PlanTrial": ("plan_trial", "compilegate.usecases.", "event"),
    "WriteReport": ("write_report", "compilegate.usecases.", "event"),
}
REPORT = "compilegate.report"
# Distributions whose commands the command requires: what moves there gets no lighter.
COMMANDS = ("checkup", "exports", "facts", "init", "judge", "local", "operating", "statement")


def held() -> dict[str, dict[str, int]]:
    """The figures that may only shrink: each with ``value``, ``aim`` and perhaps a ``gate``."""
    figures: dict[str, dict[str, int]] = json.loads(HELD.read_text())
    return figures


def measured(root: Path = ROOT) -> dict[str, int]:
    """Each figure by its name."""
    code = read(root, PACKAGE)
    nodes = [node for tree in code.modules.values() for node in ast.walk(tree)]
    ways = {
        name: Journey.of(code, start(code, *way[:2]), way[2:]) for name, way in JOURNEYS.items()
    }
    return {
        "lines": code.lines,
        "lines with commands and templates": code.lines
        + lines_of_templates(root / PACKAGE)
        + lines_of_commands(root / "distributions"),
        "lines of templates": lines_of_templates(root / PACKAGE),
        "functions": sum(
            isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) for node in nodes
        ),
        "tests for None": sum(none_tests(node) for node in nodes),
        **{f"modules of {name}": len(way.modules) for name, way in ways.items()},
        "climbs in the report": climbs_in_report(ways["WriteReport"], floors(root)),
    }


def start(code: Code, name: str, within: str) -> Step:
    """The only function of the name there."""
    (step,) = [one for one in code.find(name) if one.module.startswith(within)]
    return step


def none_tests(node: ast.AST) -> int:
    """How often an expression asks ``is None`` or ``is not None``, parts of it aside."""
    if not isinstance(node, ast.Compare):
        return 0
    return sum(
        isinstance(operator, ast.Is | ast.IsNot)
        and isinstance(compared, ast.Constant)
        and compared.value is None
        for operator, compared in zip(node.ops, node.comparators, strict=True)
    )


def climbs_in_report(journey: Journey, levels: Mapping[str, int]) -> int:
    """Functions of the report that ask below for what they go on with."""
    return sum(f"{step.module}.".startswith(f"{REPORT}.") for step in journey.climbs(levels))


def read(root: Path, package: str) -> Code:
    """The modules of a package below ``root``."""
    modules, lines = {}, 0
    for path in sorted((root / package).rglob("*.py")):
        parts = path.relative_to(root).with_suffix("").parts
        name = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
        source = path.read_text()
        modules[name], lines = ast.parse(source), lines + len(source.splitlines())
    return Code(modules, lines)


def lines_of_commands(folder: Path) -> int:
    """Lines of the packages that the command is made of beside the core, templates too."""
    files = (path for name in COMMANDS for path in (folder / name).glob("compilegate_*/**/*"))
    code = (path for path in files if path.suffix in (".py", ".j2"))
    return sum(len(path.read_text().splitlines()) for path in code)


def lines_of_templates(folder: Path) -> int:
    """Lines of what Jinja reads: code that moves there gets no lighter."""
    return sum(len(path.read_text().splitlines()) for path in folder.rglob("*.j2"))


def floors(root: Path) -> dict[str, int]:
    """The floor of each package, 0 the lowest, by the first contract."""
    settings = tomllib.loads((root / "pyproject.toml").read_text())
    layers = settings["tool"]["importlinter"]["contracts"][0]["layers"]
    return {
        name.strip(): floor
        for floor, layer in enumerate(reversed(layers))
        for name in layer.split("|")
    }
