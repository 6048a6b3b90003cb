"""What a run of a workload starts from, and what follows for who may make a trial's full runs.

Where every run starts alike (newly drawn or the same pretrained weights), runs of both arms in
turns are independent of each other. Where a run starts from the last run's model, of either arm,
each arm continues what the other has done: a candidate's loss is carried into the baseline's next
run, and the comparison sees half of it or none. Then production cannot make the runs of a
trial, unless each arm continues from its own last model. Extra runs of one round do start alike.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from compilegate.domain.workload.model import OWN_LINE, PREVIOUS, Training

# Channels and hyperparameters by which scripts are given weights to start from.
_CHANNEL = re.compile(
    r"(.*_)?(model|models|weights|checkpoints?|pretrained|previous|last|warm_?start|init)(_.*)?",
    re.IGNORECASE,
)
_HYPERPARAMETER = re.compile(
    r"resume.*|init(ial)?_(from|checkpoint|weights|model).*|warm_?start.*|.*_checkpoint(_path)?|"
    r"(load|start|continue)_from.*|previous_model.*",
    re.IGNORECASE,
)
_OFF = ("", "false", "none", "null", "0", "scratch")


def earlier_models(training: Training) -> Iterator[str]:
    """Paths of what might hold an earlier run's model."""
    for channel in training.inputs:
        if _CHANNEL.fullmatch(channel):
            yield f"training.inputs.{channel}"
    for name, value in training.hyperparameters.items():
        if _HYPERPARAMETER.fullmatch(name) and str(value).strip().lower() not in _OFF:
            yield f"training.hyperparameters.{name}"


def not_in_turns(training: Training) -> str | None:
    """Why production cannot train both arms in turns, None where it can.

    What is not said and may be is taken to be: a model from an earlier run.
    """
    if training.starts_from == PREVIOUS:
        return (
            "a run starts from the last run's model (training.starts_from: previous), so in turns "
            "each arm would go on from the other's models"
        )
    unsaid = next(earlier_models(training), None) if training.starts_from is None else None
    if unsaid is not None:
        return (
            f"{unsaid} may hold an earlier run's model, in which case each arm would go on from "
            f"the other's: say so or not in training.starts_from"
        )
    return None


def keeps_lines(training: Training) -> bool:
    """Whether each arm continues from its own last model."""
    return training.starts_from == OWN_LINE
