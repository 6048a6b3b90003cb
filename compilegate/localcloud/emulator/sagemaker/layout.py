"""The job's folder: what is ``/opt/ml`` in a SageMaker container.

Everything in the request that names a path there is mapped to the job's own folder, since
several jobs share this machine. Source: the SageMaker training container contract.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

CONTAINER_ROOT = "/opt/ml"
DEFAULT_CHECKPOINT_PATH = "/opt/ml/checkpoints"
HOSTS = ["algo-1"]


class Layout:
    """Paths of one job, created on construction."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.config = root / "input" / "config"
        self.data = root / "input" / "data"
        self.model = root / "model"
        self.output = root / "output"
        self.output_data = root / "output" / "data"
        self.intermediate = root / "output" / "intermediate"
        self.failure = root / "output" / "failure"
        self.temporary = root / "tmp"
        self.packages = root / "packages"
        for folder in (
            self.config,
            self.data,
            self.model,
            self.output_data,
            self.intermediate,
            self.temporary,
        ):
            folder.mkdir(parents=True, exist_ok=True)

    def mapped(self, value: str) -> str:
        """A path under ``/opt/ml`` as it is called here; other values unchanged."""
        if value == CONTAINER_ROOT or value.startswith(f"{CONTAINER_ROOT}/"):
            return str(self.root) + value.removeprefix(CONTAINER_ROOT)
        return value

    def write_config(self, request: dict[str, Any], hyperparameters: Mapping[str, str]) -> None:
        """The three JSON files that SageMaker writes into ``input/config``."""
        channels = {
            channel["ChannelName"]: {
                "TrainingInputMode": "File",
                "S3DistributionType": "FullyReplicated",
                "RecordWrapperType": channel.get("RecordWrapperType", "None"),
            }
            for channel in request.get("InputDataConfig") or []
        }
        documents = {
            "hyperparameters.json": dict(hyperparameters),
            "inputdataconfig.json": channels,
            "resourceconfig.json": resource_config(request),
        }
        for name, document in documents.items():
            (self.config / name).write_text(json.dumps(document), encoding="utf-8")


def resource_config(request: dict[str, Any]) -> dict[str, Any]:
    """The cluster as the job sees it: always this one host."""
    instance_type = (request.get("ResourceConfig") or {}).get("InstanceType", "local")
    group = {"instance_group_name": "homogeneousCluster", "instance_type": instance_type}
    return {
        "current_host": HOSTS[0],
        "current_instance_type": instance_type,
        "current_group_name": "homogeneousCluster",
        "hosts": HOSTS,
        "instance_groups": [{**group, "hosts": HOSTS}],
        "network_interface_name": "lo",
    }
