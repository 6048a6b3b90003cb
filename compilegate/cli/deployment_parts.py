"""What ``compilegate doctor --deployment`` examines, part by part."""

from __future__ import annotations

from enum import StrEnum


class Part(StrEnum):
    """What ``--only`` takes."""

    BOOTSTRAP = "bootstrap"
    STACK = "stack"
    VPC = "vpc"
    QUOTAS = "quotas"
