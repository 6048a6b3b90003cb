"""The commands that run on this machine alone: `local`, `demo`, `demo-production` and `try`."""

from pathlib import Path

TEMPLATES = Path(__file__).with_name("templates")
