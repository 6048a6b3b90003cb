"""The code blocks of docs/flag-in-your-pipeline.md. The tools' own environments import this too."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

PAGE = Path(__file__).resolve().parents[2] / "docs" / "flag-in-your-pipeline.md"
# The Python blocks, by words of each.
ESTIMATOR = ("import estimator_arguments",)
MODEL_TRAINER = ("import model_trainer_arguments",)
AIRFLOW = ("import SageMakerTrainingOperator",)
REQUEST = ("def start",)
STEP_FUNCTIONS = ("import training_job_request", "def handle")
PIPELINE_STEP = ("import pipeline_values",)
PIPELINE = ("import Pipeline\n",)
SCRIPT = ("import resolve",)


def blocks(language: str) -> list[str]:
    """All of that language, in the page's order."""
    return re.findall(rf"```{language}\n(.*?)```", PAGE.read_text(), re.DOTALL)


def block(language: str, *words: str) -> str:
    """The only one with these words in it."""
    (found,) = (one for one in blocks(language) if all(word in one for word in words))
    return found


def run(*words: str, **names: Any) -> dict[str, Any]:
    """What the Python block with these words defines; ``names`` stand before it."""
    namespace: dict[str, Any] = dict(names)
    exec(compile(block("python", *words), str(PAGE), "exec"), namespace)
    return namespace
