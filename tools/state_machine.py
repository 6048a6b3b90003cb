"""Prints the definition of a state machine, or draws it, from the code as it stands.

    python -m tools.state_machine evaluate
    python -m tools.state_machine train --draw

A definition is JSON in the Amazon States Language, with the names of steps in place of their
functions' ARNs. A drawing is a flow chart in Mermaid, which GitHub and editors show. Dotted arrows
are ways that errors take.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator
from importlib import import_module
from typing import Any

import app
from compilegate.domain.naming import MACHINES
from lambdas.handlers import STEPS

SHAPES = {"Choice": '{{"{}"}}', "Succeed": '(["{}"])', "Fail": '(["{}"])', "Map": '[["{}"]]'}
TASK = '["{}"]'


def definition(machine: str) -> dict[str, Any]:
    """The definition of ``evaluate`` or ``train``, each made by the module of its name."""
    app.use_packaged_node()
    module = import_module(f"stacks.{machine}")  # only now: it starts the CDK's Node
    functions = {step: step for step in STEPS}
    made: dict[str, Any] = module.definition(functions, bucket="BUCKET", topic_arn="TOPIC")
    return made


def drawn(document: dict[str, Any]) -> str:
    """A definition as a flow chart in Mermaid, with a Map's own states inside it."""
    return "".join(f"{line}\n" for line in ("flowchart TD", *_lines(document, "  ")))


def _lines(machine: dict[str, Any], indent: str) -> Iterator[str]:
    for name, state in machine["States"].items():
        yield f"{indent}{name}{SHAPES.get(state['Type'], TASK).format(name)}"
        if inner := state.get("ItemProcessor"):
            yield f'{indent}subgraph Each{name}["each run of {name}"]'
            yield f"{indent}  direction TB"
            yield from _lines(inner, indent + "  ")
            yield f"{indent}end"
            yield f"{indent}{name} --- Each{name}"
        for choice in state.get("Choices", ()):
            condition = choice["Condition"].removeprefix("{% ").removesuffix(" %}")
            yield f'{indent}{name} -->|"{condition}"| {choice["Next"]}'
        if following := state.get("Next") or state.get("Default"):
            yield f"{indent}{name} --> {following}"
        for caught in state.get("Catch", ()):
            errors = ", ".join(caught["ErrorEquals"]).replace("States.ALL", "any error")
            yield f'{indent}{name} -. "{errors}" .-> {caught["Next"]}'


def main() -> None:
    """Run the command."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("machine", choices=MACHINES)
    parser.add_argument("--draw", action="store_true", help="as Mermaid, in place of JSON")
    arguments = parser.parse_args()
    document = definition(arguments.machine)
    sys.stdout.write(drawn(document) if arguments.draw else f"{json.dumps(document, indent=2)}\n")


if __name__ == "__main__":
    main()
