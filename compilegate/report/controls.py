"""What the controls say, in sentences: they decide nothing."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from compilegate.domain.formats import number, ratio
from compilegate.report.model import Document


def control_sentences(decision: Document) -> list[str]:
    """One for each control of the decision."""
    return [
        f"The same versions without the compiler ({one['name']}): {_figures(one)}."
        for one in decision.get("controls") or ()
    ]


def _figures(one: Mapping[str, Any]) -> str:
    if number(one.get("speedup")) is None and one.get("reason"):
        return f"not measured: {str(one['reason']).rstrip('.')}"
    return (
        f"{_times(one.get('speedup'), ' of the baseline')}; the compiler alone on them: "
        f"{_times(one.get('compiler_speedup'))}"
    )


def _times(value: object, of: str = "") -> str:
    found = number(value)
    return "not measured" if found is None else ratio(found) + of
