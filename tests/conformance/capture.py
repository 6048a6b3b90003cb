"""Asks the SageMaker Python SDK for the matrix's jobs and keeps what it would send.

Runs in the SDK's own environment, without any network:
``.venv-sdk/bin/python -m tests.conformance.capture FILE``."""

from __future__ import annotations

import contextlib
import logging
import socket
import sys
import warnings
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import boto3
import botocore.loaders
import botocore.session
import jsonschema
import sagemaker
from sagemaker import huggingface, image_uris, pytorch, sklearn, tensorflow, xgboost
from sagemaker.instance_group import InstanceGroup
from sagemaker.pytorch import TrainingCompilerConfig

from tests.conformance import cases as spec
from tests.conformance.cases import Case
from tests.conformance.invalid import INVALID, LAUNCHES, Invalid, key
from tests.conformance.matrix import Image, cases, digest, images, uri
from tests.conformance.stored import write

HOUR = 3600
ESTIMATORS: dict[str, Callable[..., Any]] = {
    "pytorch": pytorch.PyTorch,
    "tensorflow": tensorflow.TensorFlow,
    "huggingface-pytorch": huggingface.HuggingFace,
    "huggingface-tensorflow": huggingface.HuggingFace,
    "xgboost": xgboost.XGBoost,
    "sklearn": sklearn.SKLearn,
}
CONFIGS: dict[str, Callable[..., Any]] = {
    "pytorch": pytorch.TrainingCompilerConfig,
    "tensorflow": tensorflow.TrainingCompilerConfig,
    "huggingface-pytorch": huggingface.TrainingCompilerConfig,
    "huggingface-tensorflow": huggingface.TrainingCompilerConfig,
    "xgboost": pytorch.TrainingCompilerConfig,
    "sklearn": pytorch.TrainingCompilerConfig,
}


class CapturingSession(sagemaker.Session):
    """A session that keeps the request instead of sending it."""

    captured: dict[str, Any]

    def _intercept_create_request(self, request: Any, create: Any, func_name: Any = None) -> None:
        self.captured = request


def offline() -> None:
    """No request leaves this process; and what the SDK reads again and again is read once."""

    def refuse(*_: object, **__: object) -> None:
        raise OSError("the capture is offline")

    socket.socket.connect = refuse  # type: ignore[method-assign,assignment]
    socket.getaddrinfo = refuse  # type: ignore[assignment]
    jsonschema.Draft202012Validator.check_schema = lambda *_, **__: None  # type: ignore[assignment]
    # Each estimator makes a client of its own, each client reads the service's description.
    boto3.client = cache(boto3.client)
    botocore.session.create_loader = cache(botocore.loaders.create_loader)
    image_uris.config_for_framework = cache(image_uris.config_for_framework)
    sagemaker.utils._botocore_resolver = cache(sagemaker.utils._botocore_resolver)
    warnings.simplefilter("ignore")
    logging.disable(logging.CRITICAL)


@cache
def session(region: str) -> CapturingSession:
    """A session with made-up credentials and no telemetry."""
    boto = boto3.Session(region_name=region, aws_access_key_id="none", aws_secret_access_key="none")
    modules = {"Modules": {"TelemetryOptOut": True}}
    quiet = {"SchemaVersion": "1.0", "SageMaker": {"PythonSDK": modules}}
    return CapturingSession(boto_session=boto, default_bucket=spec.BUCKET, sagemaker_config=quiet)


def request(case: Case) -> dict[str, Any]:
    """What the SDK would send for the case."""
    launch = _distribution(case)
    estimator = ESTIMATORS[case.framework](
        **_job(case),
        **_versions(case),
        **({"distribution": launch} if launch else {}),
        **({"image_uri": uri(case)} if case.by_uri else {}),
        **_compiler(case.framework, case.compiler),
        sagemaker_session=session(case.region),
    )
    estimator.environment = spec.environment(case, estimator.training_image_uri())
    inputs = spec.INPUTS if "inputs" in case.options else None
    estimator.fit(inputs, wait=False, job_name=spec.JOB)
    return session(case.region).captured


def _job(case: Case) -> dict[str, Any]:
    """Everything but the framework, as one would write it."""
    spot = "spot" in case.options
    network = {"subnets": list(spec.SUBNETS), "security_group_ids": list(spec.SECURITY_GROUPS)}
    return {
        "entry_point": spec.XLA_LAUNCHER if case.uses_launcher_script else spec.PROGRAM,
        "source_dir": spec.SOURCE,
        "role": spec.ROLE,
        "instance_type": case.instance_type,
        "instance_count": case.instance_count,
        "volume_size": spec.VOLUME_GB if "volume" in case.options else 100,
        "max_run": spec.HOURS * HOUR,
        "output_path": spec.OUTPUT,
        "checkpoint_s3_uri": spec.CHECKPOINTS if spot else spec.CACHE,
        "checkpoint_local_path": spec.CHECKPOINT_PATH if spot else spec.CACHE_PATH,
        "hyperparameters": spec.hyperparameters(case),
        "metric_definitions": spec.metrics(case),
        "tags": [{"Key": key, "Value": value} for key, value in spec.tags(case).items()],
        "disable_profiler": True,
        "debugger_hook_config": False,
        **({"use_spot_instances": True, "max_wait": spec.WAIT_HOURS * HOUR} if spot else {}),
        **(network if "vpc" in case.options else {}),
        **({"output_kms_key": spec.KMS_KEY} if "kms" in case.options else {}),
    }


def _versions(row: Case | Invalid) -> dict[str, Any]:
    """How the estimator gets its versions."""
    if row.framework.startswith("huggingface"):
        base = row.framework.removeprefix("huggingface-")
        return {
            "transformers_version": row.transformers,
            f"{base}_version": row.version,
            "py_version": row.python,
        }
    python = {"py_version": row.python} if row.python else {}
    return {"framework_version": row.version, **python}


def _compiler(framework: str, compiler: str) -> dict[str, Any]:
    return {"compiler_config": CONFIGS[framework]()} if compiler == spec.MANAGED else {}


def _distribution(case: Case) -> dict[str, Any]:
    """The SDK's way to ask for a launcher, by its documentation."""
    if case.distribution != "smp":
        return dict(LAUNCHES[case.distribution])
    on = {"enabled": True}
    library = {"smdistributed": {"modelparallel": {**on, "parameters": spec.PARTITIONING}}}
    if case.framework == "pytorch" and case.version.startswith("2"):
        return {**library, "torch_distributed": on}
    return {**library, "mpi": {**on, "processes_per_host": case.devices_per_instance}}


def refusal(row: Invalid) -> str | None:
    """The SDK's words when it refuses the combination, None when it lets it through."""
    machines: dict[str, Any] = {
        "instance_type": row.instance_type, "instance_count": row.instance_count,
    }  # fmt: skip
    if row.groups:
        group = InstanceGroup("gpu", row.instance_type, 1)
        machines = {"instance_groups": [group, InstanceGroup("cpu", "ml.m6i.12xlarge", 1)]}
    launch = LAUNCHES[row.distribution]
    arguments = {
        "entry_point": spec.PROGRAM, "source_dir": spec.SOURCE, "role": spec.ROLE,
        "output_path": spec.OUTPUT, **machines, **_versions(row),
        **({"distribution": dict(launch)} if launch else {}),
        **_compiler(row.framework, row.compiler), **row.sdk,
    }  # fmt: skip
    try:
        estimator = ESTIMATORS[row.framework](**arguments, sagemaker_session=session(row.region))
        estimator.fit(wait=False, job_name=spec.JOB)
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        return f"{type(error).__name__}: {' '.join(str(error).split())[:200]}"
    return None


def compared_images() -> dict[str, Any]:
    """How many URIs were compared, and the SDK's answer for those that differ."""
    uris = {image.uri: _retrieved(image) for image in images()}
    return {
        "compared": len(uris),
        "differing": {ours: theirs for ours, theirs in uris.items() if ours != theirs},
    }


def _retrieved(image: Image) -> str:
    row = image.row
    framework, version, base = row["framework"], row["version"], None
    if framework.startswith("huggingface"):
        base = f"{framework.removeprefix('huggingface-')}{version}"
        framework, version = "huggingface", row["transformers"]
    try:
        uri: str = image_uris.retrieve(
            framework,
            image.region,
            version=version,
            py_version=row["python"] or "py3",
            instance_type=image.instance_type,
            image_scope="training",
            base_framework_version=base,
            training_compiler_config=TrainingCompilerConfig() if image.compiler else None,
        )
    except (KeyError, ValueError) as error:
        return f"{type(error).__name__}: {' '.join(str(error).split())[:160]}"
    return uri


def main(path: Path) -> None:
    """Capture every case, refusal and image into ``path``."""
    offline()
    with contextlib.redirect_stdout(sys.stderr):
        captured = {
            "sdk": sagemaker.__version__,
            "images": {**compared_images(), "digest": digest()},
            "refusals": {key(row): refusal(row) for row in INVALID},
            "requests": {case.id: request(case) for case in cases()},
        }
    write(path, captured)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
