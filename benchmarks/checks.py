"""How many workloads are checked per second on one core, beside a fixed piece of work.

The reference is ``json.loads`` of the same documents in the same run: the ratio to it says more
than a rate, which is this machine's. CPU time, the best of three passes.
"""

from __future__ import annotations

import copy
import json
import time
from collections.abc import Callable, Sequence
from itertools import cycle
from pathlib import Path
from typing import Any

import yaml

from compilegate.adapters.yaml_document import YamlDocument, load_yaml
from compilegate.domain.eligibility.check import check_eligibility
from compilegate.domain.workload.model import Workload
from compilegate.facts import load_facts
from compilegate.usecases.records import read_document

SHIPPED = Path(__file__).resolve().parents[1] / "workloads"
DOCUMENTS = 10_000
PASSES = 3
INSTANCES = (
    "ml.g5.xlarge", "ml.g5.12xlarge", "ml.g5.48xlarge", "ml.p4d.24xlarge", "ml.m6i.12xlarge",
)  # fmt: skip
RUN_HOURS = (0.2, 1.0, 3.5)


def documents(count: int) -> list[dict[str, Any]]:
    """The shipped workloads over and over, with other names, machines, run lengths and history."""
    shipped = [load_yaml(path) for path in sorted(SHIPPED.glob("*.yaml"))]
    made = []
    kinds = zip(cycle(shipped), cycle(INSTANCES), cycle(RUN_HOURS), range(count), strict=False)
    for document, instance, hours, index in kinds:
        changed: Any = copy.deepcopy(document)
        changed["name"] = f"job-{index}"
        changed["training"] |= {"instance_type": instance, "max_runtime_hours": max(RUN_HOURS)}
        changed["schedule"]["run_hours"] = hours
        if index % 2:
            changed["quality"]["history"] = [0.9 + 0.001 * (index * step % 7) for step in range(8)]
        made.append(changed)
    return made


def measure(count: int = DOCUMENTS) -> dict[str, Any]:
    """Documents per second of each stage, and each as a share of the reference's rate."""
    parsed = documents(count)
    files = [yaml.safe_dump(document, sort_keys=False) for document in parsed]
    as_json = [json.dumps(document) for document in parsed]
    workloads = [read_document(document) for document in parsed]
    rates = {
        "json_loads": _rate(json.loads, as_json),
        "parse": _rate(read_document, parsed),
        "check": _rate(_check, workloads),
        "yaml_parse_check": _rate(_from_text, files),
    }
    reference = rates["json_loads"]
    return {
        "documents": count,
        "per_second": {name: round(rate) for name, rate in rates.items()},
        "json_loads_per_document": {
            name: round(reference / rate, 1) for name, rate in rates.items() if name != "json_loads"
        },
    }


def _check(workload: Workload) -> Any:
    return check_eligibility(workload, load_facts(), region="us-east-1").to_dict()


def _from_text(text: str) -> Any:
    return _check(read_document(YamlDocument(text).value))


def _rate(step: Callable[[Any], object], items: Sequence[Any]) -> float:
    """Items per CPU second of the fastest pass."""
    seconds = []
    for _ in range(PASSES):
        began = time.process_time()
        for item in items:
            step(item)
        seconds.append(time.process_time() - began)
    return len(items) / min(seconds)


if __name__ == "__main__":
    print(json.dumps(measure(), indent=2))
