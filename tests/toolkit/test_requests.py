"""One request of every kind through the embedded cloud and each release of the container toolkit.

The requests are the domain's own. What every script got is compared with what was asked for.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
from botocore.exceptions import ClientError

from compilegate.adapters.workload_files import RUNTIME, make_bundle
from compilegate.domain.argument_text import decoded_document
from compilegate.domain.deployment_settings import JobRules
from compilegate.domain.request.build import (
    JobContext,
    JobSite,
    ProductionJob,
    production_request,
    quality_request,
    speed_request,
)
from compilegate.domain.workload.model import Workload
from compilegate_localcloud.lifecycle import LocalCloud
from compilegate_localcloud.places import REPOSITORY, Places
from distributions.localcloud.tests.conftest import FAST
from distributions.localcloud.tests.helpers import BUCKET, ROLE, Trainer
from tests.domain.test_request import arm
from tests.domain.workload_builder import SOUND, change
from tests.toolkit.releases import RELEASES, folder_of

pytestmark = [pytest.mark.e2e, pytest.mark.training]
TRAINING_PYTHON = REPOSITORY / ".venv-training" / "bin" / "python"
SOURCE = "source/toolkit.tar.gz"
SITE = JobSite(stage="prod", bucket=BUCKET, region="us-east-1", job_roles="")
CONTEXT = JobContext(SITE, ROLE, trial="abcd1234", execution="e", source_key=SOURCE)
ISOLATED = replace(CONTEXT, site=replace(SITE, rules=JobRules(network_isolation=True)))
IMAGE = "763104351884.dkr.ecr.us-east-1.amazonaws.com/pytorch:2.13.0"
BASELINE = arm(name="baseline", compiler="none", overrides={}, image=IMAGE)
COMPILE = arm(image=IMAGE)
# Everything that a value for a team's own script may hold, and what only the launcher carries.
PLAIN = {"data": "s3://b/k_1,2:3@4%+=x", "epochs": 3, "ratio": 1e-05, "shuffle": True, "v": 9}
NASTY = {"prompt": 'it\'s $(touch ran) `x`\n"größe" \\ {a,b} *', "empty": "", "dashes": "--other"}
REPORT = """
import json, os, pathlib, sys
own = os.environ.get("COMPILEGATE_EVIDENCE_DIR")
folder = pathlib.Path(own or os.environ["SM_OUTPUT_DATA_DIR"])
folder.mkdir(parents=True, exist_ok=True)
shown = {"arguments": sys.argv[1:], "environment": dict(os.environ), "folder": os.listdir(".")}
(folder / "shown.json").write_text(json.dumps(shown))
"""
TRAINS = """
import json, os, pathlib, sys
import torch
pathlib.Path(os.environ["SM_OUTPUT_DATA_DIR"], "shown.json").write_text(json.dumps({
    "arguments": sys.argv[1:], "environment": {}, "folder": os.listdir(".")}))
model = torch.nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range(3):
    loss = model(torch.ones(2, 4)).pow(2).mean()
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
print("val loss 0.25")
"""
LAUNCHED = {
    "script": "trains.py",
    "script_kind": "plain",
    "argument_names": '{"learning_rate": "lr", "batch_size": "bs", "seed": null, '
    '"precision": "dtype"}',
    "precision_names": '{"fp32": "float 32"}',
    "argument_style": "equals",
    "flags": "do_eval,cpu",
    "do_eval": True,
    "cpu": False,
    "metric_patterns": '{"eval_loss": "val loss ([0-9.]+)"}',
    "full_run_samples": 6,
    **NASTY,
}


def workload(**changes: Any) -> Workload:
    settings = {"training__entry_point": "report.py", "training__distribution": "none"}
    return change(SOUND, **{**settings, "training__hyperparameters": PLAIN, **changes})


def full(**changes: Any) -> dict[str, Any]:
    arm_of_it = changes.pop("arm", COMPILE)
    return quality_request(
        workload(**changes), arm_of_it, run="q0b17", replicate=0, seed=17, context=CONTEXT
    )


def short(*arms: Any, **changes: Any) -> dict[str, Any]:
    values = {"training__hyperparameters": {**PLAIN, **NASTY}, **changes}
    return speed_request(
        workload(**values), arms, run="s0", first_block=0, blocks=1, steps=5, context=CONTEXT
    )


def production(of: Any) -> dict[str, Any]:
    job = ProductionJob(
        run="r1", number=0, replicate=0, seed=5, variables={"COMPILEGATE_WHY": "it's a canary"}
    )
    return production_request(workload(), of, job, CONTEXT)


KINDS: dict[str, Callable[[], dict[str, Any]]] = {
    "quality": full,
    "isolated": lambda: quality_request(
        workload(), COMPILE, run="q0b17", replicate=0, seed=17, context=ISOLATED
    ),
    "speed": lambda: short(BASELINE, COMPILE),
    "launch.py": lambda: full(
        training__entry_point="launch.py", training__hyperparameters=LAUNCHED, arm=BASELINE
    ),
    "production": lambda: production(BASELINE),
    "canary": lambda: production(COMPILE),
    "torchrun": lambda: full(arm=arm(image=IMAGE, distribution="torch_distributed")),
}


@dataclass
class Ran:
    """A request and what came of it."""

    request: dict[str, Any]
    job: dict[str, Any]
    output: dict[str, Any]
    lines: list[str]

    def shown(self, path: str = "shown.json") -> dict[str, Any]:
        assert self.job["TrainingJobStatus"] == "Completed", self.job["FailureReason"]
        document: dict[str, Any] = json.loads(self.output[path])
        return document

    def words(self, path: str = "shown.json") -> dict[str, str]:
        """The script's arguments by name."""
        arguments = self.shown(path)["arguments"]
        return dict(zip(arguments[::2], arguments[1::2], strict=True))


@pytest.fixture(scope="module")
def toolkit(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What leads to the release that jobs run under."""
    return tmp_path_factory.mktemp("toolkit") / "release"


@pytest.fixture(scope="module")
def trainer(toolkit: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Trainer]:
    """One cloud for all releases."""
    places = Places(
        repository=REPOSITORY, home=tmp_path_factory.mktemp("cloud"),
        emulator_python=REPOSITORY / ".venv-localcloud" / "bin" / "python",
        training_python=TRAINING_PYTHON,
    )  # fmt: skip
    source = tmp_path_factory.mktemp("source")
    (source / "report.py").write_text(REPORT)
    (source / "trains.py").write_text(TRAINS)
    # They stand for packages with other tools; the toolkit asks for setup.py alone.
    (source / "pyproject.toml").write_text("[project]\nname = 'team'\nversion = '1'\n")
    (source / "setup.cfg").write_text("[metadata]\nname = team\n")
    with LocalCloud(places=places) as cloud:
        cloud.start(attached=True, extra_arguments=(*FAST, "--toolkit", str(toolkit)))
        trainer = Trainer(cloud.client)
        trainer.put(SOURCE, make_bundle(source, runtime=RUNTIME).body)
        yield trainer


@pytest.fixture(scope="module", params=RELEASES)
def ran(
    request: pytest.FixtureRequest,
    trainer: Trainer,
    toolkit: Path,
    tmp_path_factory: pytest.TempPathFactory,
) -> dict[str, Ran]:
    """Every kind of request, all at once, under one release."""
    folder = tmp_path_factory.mktemp("path")
    toolkit.unlink(missing_ok=True)
    toolkit.symlink_to(folder_of(request.param, folder) or installed(folder))
    requests = {}
    for kind, make in KINDS.items():
        name = f"{kind}-{request.param}".replace(".", "-")
        requests[kind] = {**make(), "TrainingJobName": name}
        trainer.client("sagemaker").create_training_job(**requests[kind])
    return {kind: outcome(trainer, asked) for kind, asked in requests.items()}


def installed(folder: Path) -> Path:
    """The release of the training environment, with nothing to put on the path."""
    (folder / "bin").symlink_to(TRAINING_PYTHON.parent)
    return folder


def outcome(trainer: Trainer, asked: dict[str, Any]) -> Ran:
    name = asked["TrainingJobName"]
    job = trainer.wait(name, 120)
    place = asked["OutputDataConfig"]["S3OutputPath"].rstrip("/")
    try:
        output = trainer.archive(f"{place}/{name}/output/output.tar.gz")
    except ClientError:  # a job that failed before its script began left none
        output = {}
    return Ran(asked, job, output, trainer.log_lines(name))


def own(values: dict[str, Any]) -> dict[str, str]:
    """As words for a script."""
    return {("--" if len(k) > 1 else "-") + k: str(v) for k, v in values.items()}


@pytest.mark.parametrize("kind", ["quality", "isolated", "production", "canary"])
def test_a_whole_run_gets_what_the_workload_and_the_arm_say(ran: dict[str, Ran], kind: str) -> None:
    one = ran[kind]

    assert own(PLAIN).items() <= one.words().items()
    assert one.words()["--arm"] in ("baseline", "compile")
    variables = one.shown()["environment"]
    for name, value in one.request["Environment"].items():
        if not value.startswith("/opt/ml"):
            assert variables[name] == value


def test_every_segment_of_a_speed_job_gets_its_arm(ran: dict[str, Ran]) -> None:
    one = ran["speed"]
    for index in range(2):
        text = json.loads(one.request["HyperParameters"][f"arm_{index}"])
        segment = decoded_document(text)
        words = one.words(f"evidence/block-0/{segment['name']}/shown.json")

        assert own({**PLAIN, **NASTY}).items() <= words.items()
        assert own(segment["hyperparameters"]).items() <= {**words, "--seed": "1"}.items()
        assert words["--max_steps"] == "5"


def test_the_launcher_passes_on_any_text_under_its_every_option(ran: dict[str, Ran]) -> None:
    one = ran["launch.py"]

    assert {
        "--lr=5e-05", "--bs=32", "--dtype=float 32", "--do_eval",
        f"--prompt={NASTY['prompt']}", "--empty=", "--dashes=--other",
    } == set(one.shown()["arguments"])  # fmt: skip
    summary = json.loads(one.output["evidence/summary.json"])
    assert summary["metrics"] == {"eval_loss": 0.25}
    assert summary["finished"] is True
    assert "ran" not in one.shown()["folder"]


def test_torchrun_starts_the_script_on_one_node(
    ran: dict[str, Ran], request: pytest.FixtureRequest
) -> None:
    one = ran["torchrun"]
    variables = one.shown()["environment"]

    assert own(PLAIN).items() <= one.words().items()
    if "3.9.2" not in request.node.name:  # older than torchrun
        assert ("0", "1") == (variables["RANK"], variables["WORLD_SIZE"])
        assert "TORCHELASTIC_RUN_ID" in variables


def test_the_release_that_was_asked_for_is_the_one_that_ran(
    ran: dict[str, Ran], request: pytest.FixtureRequest
) -> None:
    release = request.node.callspec.params["ran"]
    one = ran["quality"]
    started = next(line for line in one.lines if "report.py --arm" in line)

    assert (" -- report.py" in started) == (release == "5.1.4")
    assert ("SM_NUM_NEURONS" in one.shown()["environment"]) == (release != "3.9.2")
