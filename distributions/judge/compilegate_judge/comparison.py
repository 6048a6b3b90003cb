"""Compares a decision that was recorded with what its judge says of the evidence again."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from compilegate.domain.decision import Verdict

Document = Mapping[str, Any]
# Not the judge's: which trial it belongs to is written beside it.
BESIDE = ("trial",)
# What follows from the verdict alone.
OF_THE_VERDICT = ("verdict", "next", "flag.action")
# Texts for people: a decision is the same in other words. Codes, arms and figures are compared.
TEXTS = frozenset({"message", "fix", "why", "reason"})


@dataclass(frozen=True)
class Difference:
    """One field, by its dotted path, as recorded and as decided again."""

    field: str
    recorded: Any
    replayed: Any


@dataclass(frozen=True)
class Comparison:
    """``differences`` leave out what only a limit explains.

    ``limit`` is the reason for which the trial itself ended what the judge would have continued.
    """

    differences: tuple[Difference, ...]
    limit: Document | None = None

    @property
    def equal(self) -> bool:
        """Whether the decision came out the same."""
        return not self.differences


def compare(recorded: Document, replayed: Document) -> Comparison:
    """Every field of two decision documents (docs/contracts.md) except texts for people."""
    limit = _limit(recorded, replayed)
    ignored = [*BESIDE]
    if limit is not None:
        ignored += OF_THE_VERDICT
        recorded = {**recorded, "reasons": recorded["reasons"][1:]}
    differences = tuple(
        difference
        for difference in _differences("", _plain(recorded), _plain(replayed))
        if difference.field not in ignored
    )
    return Comparison(differences, limit)


def _limit(recorded: Document, replayed: Document) -> Document | None:
    """The reason of a trial's limit: put before the judge's own, which would have continued."""
    ended = (recorded["verdict"], replayed["verdict"]) == (Verdict.INCONCLUSIVE, Verdict.CONTINUE)
    reasons = recorded["reasons"]
    if not ended or len(reasons) != len(replayed["reasons"]) + 1:
        return None
    first: Document = reasons[0]
    return first


def _plain(document: Document) -> Any:
    """As JSON: tuples become lists."""
    return json.loads(json.dumps(document))


def _differences(path: str, recorded: Any, replayed: Any) -> Iterator[Difference]:
    if isinstance(recorded, dict) and isinstance(replayed, dict):
        for key in sorted((recorded.keys() | replayed.keys()) - TEXTS):
            inner = f"{path}.{key}" if path else key
            yield from _differences(inner, recorded.get(key), replayed.get(key))
    elif (
        isinstance(recorded, list) and isinstance(replayed, list) and len(recorded) == len(replayed)
    ):
        for index, item in enumerate(recorded):
            yield from _differences(f"{path}[{index}]", item, replayed[index])
    elif recorded != replayed:
        yield Difference(path, recorded, replayed)
