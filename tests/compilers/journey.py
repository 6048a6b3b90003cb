"""Takes the compiler ``stand_in`` through all that asks for compilers, and prints the answers.

Runs in a process of its own, on a copy of the sources with the stand-in's two files in it.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import yaml
from compilegate_runtime import compilers as backends
from compilegate_runtime.errors import CompilerUnavailableError, NotAppliedError
from compilegate_runtime.launch import Launch
from compilegate_runtime.launching import arguments
from typer.testing import CliRunner

from compilegate.cli.main import app
from compilegate.domain.compilers import NAMES
from compilegate.domain.eligibility.check import check_eligibility
from compilegate.domain.planning.plan import plan_trial
from compilegate.domain.reasons import Reason
from compilegate.domain.request.build import quality_request
from compilegate.domain.workload.file import parse_workload
from compilegate.facts import load_facts
from tests.domain.test_request import CONTEXT
from tools.docs import generated

NAME, REGION = "stand_in", "us-east-1"
SCRIPT = """
import torch
from torch import nn

def train(model, loader, optimizer, criterion):
    total = 0.0
    for inputs, labels in loader:
        loss = criterion(model(inputs), labels)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        total += loss.item()
    return total
"""


def command(*words: str) -> Any:
    """The JSON document that a command prints."""
    return json.loads(CliRunner().invoke(app, [*words, "--json"]).stdout)


def workload_document() -> dict[str, Any]:
    """A job that is eligible with the stand-in."""
    document = yaml.safe_load((generated.ROOT / "workloads" / "demo-lm.yaml").read_text())
    del document["profile"], document["policy"]
    document["training"]["max_runtime_hours"] = 6
    document["training"]["inputs"] = {"train": "s3://bucket/train/"}
    document["schedule"] = {"runs_per_week": 20, "run_hours": 2}
    document["quality"]["history"] = [1.74, 1.75, 1.74, 1.73, 1.74]
    document["candidates"] = [{"name": "tried", "compiler": NAME, "compile_mode": "careful"}]
    return dict(document)


def planned() -> dict[str, Any]:
    """From the workload file to a trial's request."""
    workload, facts = parse_workload(workload_document()), load_facts()
    eligibility = check_eligibility(workload, facts, region=REGION)
    plan = plan_trial(workload, eligibility.choice, facts, region=REGION)
    assert not isinstance(plan, Reason), plan
    arm = plan.arms[-1]
    request = quality_request(workload, arm, run="q", replicate=0, seed=1, context=CONTEXT)
    return {
        "eligibility": eligibility.to_dict(),
        "arm": {"compiler": arm.compiler, "compile_seconds": arm.compile_seconds},
        "trial_usd": plan.estimate.usd,
        "hyperparameters": request["HyperParameters"],
    }


def blocked() -> dict[str, Any]:
    """The eligibility of the same job for a compiler of another library."""
    document = workload_document()
    document["candidates"] = [{"name": "tried", "compiler": "stand_in_jax"}]
    return check_eligibility(parse_workload(document), load_facts(), region=REGION).to_dict()


def trained() -> dict[str, Any]:
    """What a job proves of it before and after its first step."""
    compiler = backends.compiler_for(NAME, "careful")
    step = compiler.apply(lambda value: value)
    try:
        compiler.verify()
    except NotAppliedError as error:
        refused = str(error)
    step(1)
    compiler.verify()
    return {"refused": refused, "evidence": compiler.evidence()}


def launched() -> str:
    """What the launcher says of a script that hands its model to torch.compile at most."""
    Path("script.py").write_text(SCRIPT)
    settings, others = arguments.parse(["--script", "script.py", "--compiler", NAME])
    try:
        Launch(settings, others, SimpleNamespace(evaluated=None)).run()
    except CompilerUnavailableError as error:
        return str(error)
    return "started"


def checked() -> Any:
    """What the command says of a workload file with a candidate that it compiles."""
    Path("causal_lm.py").write_text(SCRIPT)
    document = workload_document()
    document["training"]["source_dir"] = "."
    Path("w.yaml").write_text(yaml.safe_dump(document))
    return command("check", "w.yaml")


def main() -> None:
    """Print all of it as one document."""
    document = {
        "names": {"workload": NAMES, "training": backends.NAMES},
        "planned": planned(),
        "other": blocked(),
        "trained": trained(),
        "launched": launched(),
        "check": checked(),
    }
    sys.stdout.write(json.dumps(document, default=str))


if __name__ == "__main__":
    main()
