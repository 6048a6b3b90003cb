"""Examines training scripts, and an account before a deployment: `compilegate doctor`."""

from pathlib import Path

TEMPLATES = Path(__file__).with_name("templates")
