"""Compares every image on file with what the SageMaker Python SDK would use.

Runs in the SDK's own environment.
"""

from __future__ import annotations

from typing import Any

from sagemaker import image_uris
from sagemaker.pytorch import TrainingCompilerConfig

from tests.conformance.matrix import Image, images


def compared_images() -> dict[str, Any]:
    """How many URIs were compared, and the SDK's answer for those that differ."""
    found = {image.uri: _retrieved(image) for image in images()}
    return {
        "compared": len(found),
        "differing": {ours: theirs for ours, theirs in found.items() if ours != theirs},
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
