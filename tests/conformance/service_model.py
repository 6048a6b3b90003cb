"""Extracts CreateTrainingJob's shapes from botocore's service model into a fact file.

Run with ``python -m tests.conformance.service_model``.
"""

from __future__ import annotations

import json
from datetime import date
from pathlib import Path

import botocore
import botocore.loaders

FILE = Path(__file__).parents[2] / "compilegate" / "facts" / "create_training_job.json"
OPERATION = "CreateTrainingJob"
API_VERSION = "2017-07-24"
LIMITS = ("min", "max", "pattern", "enum", "required")


def shapes() -> tuple[str, dict[str, object]]:
    """The input's shape name, and every shape below it without its prose."""
    model = botocore.loaders.Loader().load_service_model("sagemaker", "service-2", API_VERSION)
    first = model["operations"][OPERATION]["input"]["shape"]
    below_input: dict[str, object] = {}
    waiting = [first]
    while waiting:
        name = waiting.pop()
        if name in below_input:
            continue
        shape = model["shapes"][name]
        below = {key: shape[key]["shape"] for key in ("member", "key", "value") if key in shape}
        members = {key: item["shape"] for key, item in shape.get("members", {}).items()}
        limits = {key: shape[key] for key in LIMITS if key in shape}
        below_input[name] = {
            "type": shape["type"],
            **limits,
            **below,
            **({"members": members} if "members" in shape else {}),
        }
        waiting += [*below.values(), *members.values()]
    return first, dict(sorted(below_input.items()))


def document(as_of: str) -> dict[str, object]:
    """The fact file's content."""
    first, below_input = shapes()
    return {
        "schema": 1,
        "as_of": as_of,
        "source": f"botocore {botocore.__version__} data/sagemaker/{API_VERSION}/service-2.json",
        "about": "What CreateTrainingJob accepts: types, required fields, lengths, patterns, enums."
        " botocore checks types and required fields only.",
        "input": first,
        "shapes": below_input,
    }


def written(content: dict[str, object]) -> str:
    """The file's text, one shape per line."""
    rows = [f"    {json.dumps(key)}: {json.dumps(row)}" for key, row in content["shapes"].items()]
    head = [
        f"  {json.dumps(key)}: {json.dumps(content[key])}," for key in content if key != "shapes"
    ]
    return "\n".join(["{", *head, '  "shapes": {', ",\n".join(rows), "  }", "}", ""])


if __name__ == "__main__":
    FILE.write_text(written(document(date.today().isoformat())))
