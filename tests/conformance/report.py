"""The agreement in numbers, and the tables of README.md."""

from __future__ import annotations

import textwrap
from collections import Counter
from dataclasses import dataclass
from typing import Any

from tests.conformance import ours
from tests.conformance.cases import Case
from tests.conformance.compare import Difference, differences, occurrences, unjustified
from tests.conformance.invalid import INVALID, key
from tests.conformance.matrix import cases
from tests.conformance.stored import flat, read

PAGE = 104  # columns of a page's text


@dataclass(frozen=True)
class Agreement:
    """Ours and the SDK's answers side by side; ``refusals`` are (name, SDK's words, our codes)."""

    sdk: str
    by_case: dict[str, list[Difference]]
    refusals: list[tuple[str, str | None, list[str]]]
    images: dict[str, Any]

    @property
    def differing(self) -> list[Difference]:
        """Every difference of every case."""
        return [item for items in self.by_case.values() for item in items]

    @property
    def agreeing(self) -> int:
        """Cases without a difference that has no reason."""
        return sum(not unjustified(items) for items in self.by_case.values())

    @property
    def gaps(self) -> list[tuple[str, list[str]]]:
        """What the SDK lets through and our check refuses."""
        return [(name, codes) for name, words, codes in self.refusals if words is None and codes]

    @property
    def missed(self) -> list[str]:
        """What our check lets through although it cannot work."""
        return [name for name, _, codes in self.refusals if not codes]


def agreement() -> Agreement:
    """Build every request, ask every check, and compare with what was captured."""
    captured = read()
    requests, answers = captured["requests"], captured["refusals"]
    return Agreement(
        sdk=captured["sdk"],
        by_case={
            case.id: differences(case.id, flat(ours.built(case)), requests[case.id])
            for case in cases()
        },
        refusals=[(key(row), answers[key(row)], ours.refusal(row)) for row in INVALID],
        images=captured["images"],
    )


def summary(result: Agreement) -> str:
    """The counts, one line each."""
    refused = sum(words is not None for _, words, _ in result.refusals)
    return "\n".join(
        [
            f"{result.agreeing} of {len(result.by_case)} requests are the SDK's "
            f"({result.sdk}), key by key, but for {len(_used(result))} justified differences",
            f"{len(result.refusals) - len(result.missed)} of {len(result.refusals)} combinations "
            f"that cannot work are refused; the SDK refuses {refused}",
            f"{result.images['compared'] - len(result.images['differing'])} of "
            f"{result.images['compared']} image URIs on file are the SDK's",
        ]
    )


def _used(result: Agreement) -> list[Any]:
    return [reason for reason, count in occurrences(result.differing).items() if count]


def tables(result: Agreement) -> str:
    """What README.md shows: the combinations, the differences, the gaps."""
    return "\n\n".join([_matrix(cases()), _differences(result), _gaps(result)])


def _matrix(compared: list[Case]) -> str:
    """How many combinations of each framework were compared, and their spread."""
    lines = [
        "| framework | requests | versions | launchers | managed compiler | regions |",
        "|---|---:|---:|---|---:|---:|",
    ]
    for name, count in Counter(case.framework for case in compared).items():
        own = [case for case in compared if case.framework == name]
        launchers = sorted({case.distribution for case in own})
        managed = sum(case.compiler != "none" for case in own)
        versions = {(case.version, case.transformers) for case in own}
        lines.append(
            f"| {name} | {count} | {len(versions)} | {', '.join(launchers)} | {managed} "
            f"| {len({case.region for case in own})} |"
        )
    return "\n".join(lines)


def _differences(result: Agreement) -> str:
    """One paragraph per difference, its reason wrapped as the page is."""
    paragraphs = []
    for number, (reason, count) in enumerate(occurrences(result.differing).items(), start=1):
        head = (
            f"{number}. `{reason.path}`, {count} requests: ours {_side(reason.ours)}, "
            f"the SDK's {_side(reason.sdk)}. {reason.why}"
        )
        lines = textwrap.wrap(head, PAGE, subsequent_indent="   ", break_on_hyphens=False)
        paragraphs.append("\n".join(lines))
    return "\n".join(paragraphs)


def _side(value: str) -> str:
    return {"*": "a value", "absent": "absent"}.get(value, f"`{value}`")


def _gaps(result: Agreement) -> str:
    lines = ["| what the SDK lets through | our reasons |", "|---|---|"]
    for name, codes in result.gaps:
        lines.append(f"| {name} | {', '.join(f'`{code}`' for code in codes)} |")
    return "\n".join(lines)
