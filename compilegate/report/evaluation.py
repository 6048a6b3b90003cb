"""What the evaluation examples add to a metric's spread, in words."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from compilegate.domain.formats import count, number, percent, significant


def evaluation_words(quality: Mapping[str, Any]) -> str:
    """The split in one sentence, empty where there is none."""
    evaluation = quality.get("evaluation") or {}
    training = number(evaluation.get("spread_of_training_expected"))
    own = number(evaluation.get("spread_of_evaluation"))
    examples = number(evaluation.get("examples"))
    if training is None or not own or not examples:
        return ""
    share = percent(own**2 / (own**2 + training**2), 2)
    text = (
        f"Of the spread between runs, {significant(own, 2)} comes from the choice of "
        f"{count(examples)} evaluation examples ({share} of the variance) and "
        f"about {significant(training, 2)} from training itself"
    )
    best, saved = number(evaluation.get("best_examples")), number(evaluation.get("runs_saved"))
    if best and saved:
        return f"{text}; {count(best)} examples would spare {count(saved)} runs of each arm."
    return f"{text}."
