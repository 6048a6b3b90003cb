"""Where today's judge decides otherwise than an archived one, on the generated evidence."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

from compilegate.cli.judge.documents import judged
from tests.frozen.entries import archived_judge
from tests.frozen.parts import DOCUMENTS

EXAMPLES = 3


def differences(version: str, every: int = 1) -> Iterator[tuple[str, str, str]]:
    """Of each document that is decided otherwise: its name, the decision then and now."""
    for kind, (make, count) in DOCUMENTS.items():
        for number in range(0, count, every):
            evidence = make(number)
            then = _decided(archived_judge(version, evidence)["json"])
            now = _decided(judged(evidence).to_dict(""))
            if then != now:
                yield f"{kind}-{number:04}", then, now


def summary(version: str, every: int = 1) -> str:
    """How many documents changed from what to what, with examples."""
    changes: Counter[tuple[str, str]] = Counter()
    names: dict[tuple[str, str], list[str]] = {}
    for name, then, now in differences(version, every):
        changes[then, now] += 1
        names.setdefault((then, now), []).append(name)
    lines = [
        f"{count:5}  {then}  ->  {now}    {', '.join(names[then, now][:EXAMPLES])}"
        for (then, now), count in changes.most_common()
    ]
    return "\n".join([*lines, f"{changes.total()} documents are decided otherwise"])


def _decided(document: dict[str, Any]) -> str:
    """The verdict and the reason that comes first."""
    first = document["reasons"][0]["code"] if document["reasons"] else "-"
    return f"{document['verdict']} ({first})"
