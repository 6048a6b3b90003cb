"""The combinations that are compared: every image on file, every launcher, every option."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from tests.conformance.cases import MANAGED, OPTIONS, Case

FACTS = Path(__file__).parents[2] / "compilegate" / "facts"
CPU = "ml.m6i.12xlarge"
SMALL, LARGE = "ml.g5.2xlarge", "ml.g5.48xlarge"
SMDDP = "ml.p4d.24xlarge"
IMAGES = ("framework_images", "images")
# The model-parallel library for PyTorch 2 comes in an image of its own (SDK: pytorch-smp).
SMP_IMAGE = (
    "658645717510.dkr.ecr.us-east-1.amazonaws.com/smdistributed-modelparallel:2.2.0-gpu-py310-cu121"
)
CPU_FRAMEWORKS = ("xgboost", "sklearn")
REGIONS = (
    "us-east-2", "us-west-2", "ca-central-1", "eu-central-1", "eu-south-1", "eu-north-1",
    "ap-northeast-3", "ap-south-1", "sa-east-1", "af-south-1", "il-central-1",
)  # fmt: skip


@dataclass(frozen=True)
class Image:
    """One URI on file, and how the SDK is asked for it."""

    row: dict[str, Any]
    region: str
    instance_type: str
    compiler: bool
    uri: str


def rows(name: str, key: str) -> list[dict[str, Any]]:
    """A fact file's rows."""
    document: dict[str, Any] = json.loads((FACTS / f"{name}.json").read_text())
    listed: list[dict[str, Any]] = document[key]
    return listed


def sdk_knows(row: dict[str, Any]) -> bool:
    """Whether the SDK finds the row's image by its version; others are named to it by URI."""
    documented_only = row["framework"] == "tensorflow" and row["version"] in ("2.9.1", "2.10.0")
    return "sagemaker 2.257" in row["source"] and not documented_only


def images() -> Iterator[Image]:
    """Every image on file that the SDK should know, in every region that has it."""
    registries: Any = rows("framework_images", "registries")
    native = [
        (row, tag, kind, False)
        for row in rows("framework_images", "images")
        for tag, kind in ((row["gpu_tag"], SMALL), (row["cpu_tag"], CPU))
    ]
    managed = [(row, row["tag"], SMALL, True) for row in rows("compiler_versions", "versions")]
    for row, tag, kind, compiler in [*native, *managed]:
        if tag is None or not sdk_knows(row):
            continue
        for region, account in sorted(registries[row["registry"]]["accounts"].items()):
            if not compiler or region in row["regions"]:
                domain = "amazonaws.com.cn" if region.startswith("cn-") else "amazonaws.com"
                place = f"{account}.dkr.ecr.{region}.{domain}/{row['repository']}:{tag}"
                yield Image(row, region, kind, compiler, place)


def digest() -> str:
    """Changes when an image on file does, so that what was compared is what is on file."""
    listed = "\n".join(image.uri for image in images())
    return hashlib.sha256(listed.encode()).hexdigest()


def uri(case: Case) -> str:
    """The image on file of a case that the SDK gets by URI."""
    if case.distribution == "smp":
        return SMP_IMAGE
    name, key = ("compiler_versions", "versions") if case.compiler == MANAGED else IMAGES
    same = ("framework", "version", "transformers", "python")
    row = next(
        row for row in rows(name, key) if all(row[part] == getattr(case, part) for part in same)
    )
    registries: Any = rows("framework_images", "registries")
    account = registries[row["registry"]]["accounts"][case.region]
    tag = row["tag"] if case.compiler == MANAGED else row["gpu_tag"]
    return f"{account}.dkr.ecr.{case.region}.amazonaws.com/{row['repository']}:{tag}"


def cases() -> list[Case]:
    """Every case once, in a fixed order."""
    chosen = [*_images(), *_managed(), *_launchers(), *_options(), *_regions()]
    return list({case.id: case for case in chosen}.values())


def _images() -> list[Case]:
    """Every native image on file, on one GPU or, for those that need none, on a CPU."""
    return [
        Case(
            row["framework"], row["version"], row["transformers"], row["python"],
            instance_type=CPU if row["framework"] in CPU_FRAMEWORKS else SMALL,
            by_uri=not sdk_knows(row),
        )
        for row in rows("framework_images", "images")
    ]  # fmt: skip


def _managed() -> list[Case]:
    """Every image of the managed compiler: one GPU, eight, and 16 on two machines."""
    chosen = []
    for row in rows("compiler_versions", "versions"):
        for version in row["versions_accepted"]:
            one = Case(
                row["framework"], version, row["transformers"], row["python"], MANAGED,
                by_uri=not sdk_knows(row),
            )  # fmt: skip
            launch = "pytorchxla" if row["multi_device"] == "pytorchxla" else "none"
            node = replace(one, distribution=launch, instance_type=LARGE)
            chosen += [one, node]
            if row["multi_device"] != "none":
                chosen.append(replace(node, instance_type="ml.p4d.24xlarge", instance_count=2))
    return chosen


PYTORCH = Case("pytorch", "2.1.0", None, "py310")
PYTORCH_SMP = Case("pytorch", "2.2.0", None, "py310")
PYTORCH_1 = Case("pytorch", "1.13.1", None, "py39")
HUGGING_FACE = Case("huggingface-pytorch", "2.1.0", "4.36.0", "py310")
HUGGING_FACE_1 = Case("huggingface-pytorch", "1.10.2", "4.17.0", "py38")
TENSORFLOW = Case("tensorflow", "2.11.0", None, "py39")
HUGGING_FACE_TENSORFLOW = Case("huggingface-tensorflow", "2.6.3", "4.17.0", "py38")
XGBOOST = Case("xgboost", "1.7-1", instance_type=CPU)


def _launchers() -> list[Case]:
    """Every distribution on the frameworks that it exists for."""
    chosen = []
    for base in (PYTORCH, PYTORCH_1, HUGGING_FACE, HUGGING_FACE_1):
        chosen += [replace(base, instance_type=LARGE), replace(base, instance_count=2)]
        for launch in ("pytorchddp", "smddp"):
            chosen.append(replace(base, distribution=launch, instance_type=SMDDP, instance_count=2))
    for base in (PYTORCH, PYTORCH_1, HUGGING_FACE):
        torchrun = replace(base, distribution="torch_distributed", instance_type=LARGE)
        chosen += [torchrun, replace(torchrun, instance_count=8)]
        chosen.append(replace(torchrun, instance_type="ml.p5.48xlarge"))
    for base in (PYTORCH_SMP, PYTORCH_1, HUGGING_FACE_1, TENSORFLOW, HUGGING_FACE_TENSORFLOW):
        chosen.append(replace(base, distribution="smp", instance_type=SMDDP, instance_count=2))
    for base in (TENSORFLOW, HUGGING_FACE_TENSORFLOW):
        chosen.append(replace(base, distribution="smddp", instance_type=SMDDP, instance_count=2))
        chosen.append(replace(base, instance_type="ml.g5.12xlarge"))
    return chosen


def _options() -> list[Case]:
    """Every option by itself on each kind of job, and all of them at once."""
    managed = Case("pytorch", "1.13.1", None, "py39", MANAGED, "pytorchxla", LARGE, 2)
    base = replace(HUGGING_FACE, distribution="torch_distributed", instance_type=LARGE)
    chosen = [replace(base, options=(option,)) for option in OPTIONS]
    chosen += [
        replace(case, options=OPTIONS)
        for case in (base, managed, PYTORCH, TENSORFLOW, HUGGING_FACE_TENSORFLOW, XGBOOST)
    ]
    return chosen


def _regions() -> list[Case]:
    """Other regions, other accounts of the images, other GPU families."""
    managed = Case("huggingface-pytorch", "1.11.0", "4.21.1", "py38", MANAGED, "pytorchxla", LARGE)
    chosen = [replace(HUGGING_FACE, region=region) for region in REGIONS]
    chosen += [replace(managed, region=region) for region in REGIONS]
    chosen += [replace(XGBOOST, region=region) for region in ("eu-central-1", "ap-south-1")]
    chosen += [replace(HUGGING_FACE, region=region) for region in ("us-gov-west-1", "cn-north-1")]
    # Where the SDK knows no profiler.
    chosen += [replace(PYTORCH, region=region) for region in ("ap-southeast-3", "eu-central-2")]
    families = ("ml.g4dn.12xlarge", "ml.p3dn.24xlarge", "ml.g6.12xlarge", "ml.p5.48xlarge")
    chosen += [replace(PYTORCH, instance_type=kind) for kind in families]
    return [*chosen, replace(PYTORCH, instance_type=CPU)]
