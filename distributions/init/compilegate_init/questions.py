"""Readers of what a person says; a BadParameter is shown, and the question asked again."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import typer

from compilegate.domain.errors import InvalidInputError
from compilegate.domain.fields import LARGEST_WHOLE, Fields
from compilegate.domain.workload.model import Training


def instance(text: str) -> Any:
    """An instance type."""
    try:
        key = Training.keys()["instance_type"]
        return Fields({"instance_type": text}).value("instance_type", key)
    except InvalidInputError as error:
        raise typer.BadParameter(str(error)) from error


def up_to(most: float) -> Callable[[str], float]:
    """Reads a number above 0 and at most ``most``."""

    def read(text: str) -> float:
        try:
            number = float(text)
        except ValueError:
            number = 0.0
        if not 0 < number <= most:
            raise typer.BadParameter(f"must be a number above 0, at most {most:,.10g}")
        return number

    return read


def whole(text: str) -> int:
    """A whole number; people write 50,000 and 50_000 too."""
    try:
        number = int(str(text).replace(",", ""))
    except ValueError:
        number = -1
    if not 0 <= number <= LARGEST_WHOLE:
        raise typer.BadParameter("must be a whole number, 0 if you will write it later")
    return number
