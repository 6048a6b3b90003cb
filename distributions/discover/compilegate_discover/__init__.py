"""Finds the training workloads of an AWS account."""

from pathlib import Path

TEMPLATES = Path(__file__).with_name("templates")
