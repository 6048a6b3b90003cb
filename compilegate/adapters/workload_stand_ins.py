"""Reads on where a section of a workload document is wrong, to say what else is."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from compilegate.domain.errors import InvalidInputError
from compilegate.domain.workload.model import Workload
from compilegate.usecases.records import read_document

# In place of wrong sections: sound in every document, whatever its other sections say.
STAND_INS: Mapping[str, Any] = {
    "schema": 1,
    "name": "any",
    "framework": {"name": "pytorch", "version": "2.4"},
    "model": {"family": "transformer", "name": "any"},
    "shapes": {"static": True},
    "schedule": {"runs_per_week": 1, "run_hours": 1e-9},
    "quality": {"metric": "any", "goal": "maximize", "margin": 1},
}
# Files, inputs and candidates are what this section says; nothing stands in for it.
LEADING = "training"
# Candidates differ from a framework, so without it nothing is said of them.
_TOGETHER = {"framework": "candidates"}
_INNER = re.compile(r"[.\[]")


def errors_elsewhere(
    document: object,
    errors: Sequence[InvalidInputError],
    examine: Callable[[Workload], object],
) -> list[InvalidInputError]:
    """What is wrong in the sections of a document that none of ``errors`` is in.

    ``examine`` raises InvalidInputError for what is wrong with a workload outside its document.
    """
    behind: list[InvalidInputError] = []
    wrong = _sections(errors)
    while isinstance(document, Mapping) and LEADING not in wrong:
        try:
            examine(read_document(_without(document, wrong)))
        except InvalidInputError as error:
            fresh = [one for one in error.each if not _sections([one]) & wrong]
        else:
            fresh = []
        if not fresh:
            break
        behind += fresh
        wrong |= _sections(fresh)
    return behind


def _sections(errors: Sequence[InvalidInputError]) -> set[str]:
    named = {_INNER.split(one.field or "")[0] for one in errors}
    return named | {_TOGETHER[name] for name in named if name in _TOGETHER}


def _without(document: Mapping[Any, Any], wrong: set[str]) -> dict[Any, Any]:
    sound = {key: value for key, value in document.items() if str(key) not in wrong}
    return sound | {key: value for key, value in STAND_INS.items() if key in wrong}
